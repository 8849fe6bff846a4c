"""How Sphinx builds the site; `python -m docs` runs it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent)]

import matplotlib  # noqa: E402

matplotlib.use("agg")

import site_docstrings  # noqa: E402
import site_gallery  # noqa: E402
import site_math  # noqa: E402
import site_reference  # noqa: E402
import site_search  # noqa: E402

import assay  # noqa: E402

project, author, copyright = "Assay", "The Assay developers", "The Assay developers"
version = release = assay.__version__
language = os.environ.get("ASSAY_DOCS_LANGUAGE", "en")
locale_dirs, gettext_compact, gettext_uuid = ["locale"], False, False

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "locale", "coverage.md"]
templates_path, html_static_path, html_css_files = ["_templates"], ["_static"], ["site.css"]
root_doc, nitpicky, default_role = "index", True, "literal"
nitpick_ignore_regex = [("py:.*", ".*")]  # types in docstrings are words of the field, not names; see site_links

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate, autosummary_imported_members = True, True
autodoc_typehints, autodoc_member_order = "none", "bysource"
numpydoc_show_class_members, numpydoc_validation_checks = False, set()

plot_include_source, plot_html_show_formats, plot_html_show_source_link = True, False, False
plot_formats, plot_rcparams = [("svg", 100)], {"figure.figsize": (6.4, 3.6), "font.size": 10, "svg.hashsalt": "assay"}
plot_apply_rcparams = True

sphinx_gallery_conf = site_gallery.CONF | {"doc_module": ("assay",), "backreferences_dir": "reference/examples"}
suppress_warnings = ["config.cache"]  # functions in sphinx_gallery_conf cannot be pickled

copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True

html_theme, html_title, html_show_sourcelink, html_copy_source = "pydata_sphinx_theme", "Assay", False, False
html_theme_options = {
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {"json_url": "_static/switcher.json", "version_match": version},
    "check_switcher": False,  # the file is on the site itself
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
}


def setup(app):
    site_docstrings.setup(app)
    site_math.setup(app)
    site_search.setup(app)
    site_reference.setup(app)
