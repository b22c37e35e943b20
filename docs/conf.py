"""Sphinx configuration; docs/README.md has the command that builds the pages."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "dhsk"
author = "The dhsk developers"
copyright = author
version = release = version_of("dhsk")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "commands",
    "docstrings",
    "mathml",
    "repository",
]
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]
default_role = "backticks"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 80
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True

html_theme = "pydata_sphinx_theme"
html_title = f"dhsk {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["dhsk.css"]
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}
html_sidebars = {  # pages without others below them have room instead
    page: []
    for page in (
        "benchmarks", "choosing", "commands", "files", "from_scikit_learn", "glossary", "large",
        "limits", "mathematics", "s3", "start", "tasks",
    )
}  # fmt: skip
html_theme_options = {
    "logo": {"text": f"dhsk {release}"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
