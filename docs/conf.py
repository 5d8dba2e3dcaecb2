"""The manual: ``make docs`` builds the pages of this folder, and the catalog as web pages, into one site."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trnspec import __version__

sys.path.insert(0, str(Path(__file__).parent))
from reference_pages import FORMULAS, linked, llms, pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "trnspec"
author = "The trnspec authors"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
# Console blocks show what commands print, which is not a shell language.
suppress_warnings = ["misc.highlighting_failure"]

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
# Attributes that a class redeclares are members as well; as fields of the docstring they are not described twice.
napoleon_use_ivar = True

# Formulas are MathML, see docs/mathml.py: MathJax would be loaded from the network.
html_math_renderer = "mathml"

html_theme = "furo"
html_title = f"trnspec {version}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["manual.css"]
smartquotes = False  # the names of options begin with two dashes


def write(app: Sphinx) -> None:
    """Writes the pages that are made from the code, which are not kept in the repository."""
    for name, text in pages().items():
        file = Path(app.srcdir) / "reference" / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def mark(app: Sphinx, name: str, source: list[str]) -> None:
    """Makes targets of the anchors that GitHub reads in pages of codes, and links of the functions of formulas."""
    source[0] = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", source[0], flags=re.MULTILINE)
    if Path(app.env.doc2path(name)) in FORMULAS:
        source[0] = linked(source[0])


def mark_options(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:  # noqa: ARG001  # Sphinx passes them
    """Gives the options of commands a class, so that they stay on one line."""
    if "body" in context:
        context["body"] = re.sub(r'<span class="pre">(?=--[\w-]+</span>)', '<span class="pre option">', context["body"])


def summarize(app: Sphinx, error: Exception | None) -> None:
    """Writes the list of pages for language models next to the pages."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text(llms(Path(app.srcdir)), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", mark)
    app.connect("builder-inited", write)
    app.connect("html-page-context", mark_options)
    app.connect("build-finished", summarize)
