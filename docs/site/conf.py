"""Settings of Sphinx for the site that `make docs` builds; `build.py` assembles its sources."""

from pathlib import Path

from jaccard_eval.version import __version__

project = "jaccard-eval"
release = version = __version__
copyright = "the jaccard-eval authors"  # noqa: A001 - Sphinx's own word
html_title = f"jaccard-eval {__version__}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3  # links between pages are those of the repository: page.md#heading

html_theme = "furo"
html_static_path = ["_static"]
html_extra_path = [name for name in ("_extra",) if (Path(__file__).parent / name).is_dir()]  # schemas
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False

autodoc_typehints = "none"  # numpydoc sections have the types, in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = napoleon_use_ivar = False

nitpick_ignore = [("py:exc", "MachineError")]  # caught by its public base
