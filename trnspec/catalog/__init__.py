"""The catalog as a program queries it.

``catalog`` and ``views`` are the typed documents, ``query`` the query language, ``tables`` and ``frames`` relational
tables and data frames, ``versions`` editions, dates, git revisions, overlays and differences.
"""
