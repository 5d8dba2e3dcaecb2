"""The catalog as a folder of web pages that works without a server and loads nothing from elsewhere.

:func:`~trnspec.site.build.build` makes the files, :func:`~trnspec.site.build.write_site` writes them. The pages need Jinja2 (extra ``site``).
"""
