"""Settings of the documentation, ``make docs``: it is built and read without the network."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]

import gallery  # noqa: E402

import convexkernels  # noqa: E402

project = "convexkernels"
version = release = convexkernels.__version__
project_copyright = "the authors of convexkernels"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "docstrings",
    "formula_links",
    "included_links",
    "gallery",
]
root_doc = "index"
exclude_patterns = ["_extensions", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]

# -- what is written in Markdown --------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# -- the reference ----------------------------------------------------------------------------------------------------
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks: set[str] = set()
viewcode_line_numbers = True

# -- scripts ----------------------------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": [str(gallery.SCRIPTS / name) for name in gallery.HEADERS],
    "gallery_dirs": [f"gallery/{name}" for name in gallery.HEADERS],
    "filename_pattern": r"\.py$",
    "image_scrapers": ("gallery.figures",),
    "reset_argv": "gallery.arguments",
    "reset_modules": (),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "parallel": False,
}

# -- pages ------------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "convexkernels"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
}
html_sidebars = {"index": [], "which_estimator": [], "claims": [], "formulas": [], "benchmarks": []}
