"""Settings of the site: `make site` builds it from the pages of this folder and from examples/, which it executes."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import site_mathml
import site_pages

project = "tdce"
author = copyright = "The tdce authors"
version = release = site_pages.version()

extensions = ["myst_parser", "sphinx_gallery.gen_gallery", "site_mathml"]
exclude_patterns = ["pictures", "_theme", "sg_execution_times.rst"]
nitpicky = True
toc_object_entries = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_math_renderer = site_mathml.NAME

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": [str(ROOT / "examples" / name) for name in site_pages.GALLERIES],
    "gallery_dirs": list(site_pages.GALLERIES),
    "filename_pattern": site_pages.executed(),
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "site_pages.order",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "notebook_images": False,
    "min_reported_time": 1,
    "plot_gallery": True,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|list|NoneType|sklearn|xgboost",
    "default_thumb_file": str(ROOT / "docs" / "_theme" / "thumbnail.png"),
    "reset_modules": ("matplotlib",),
    "copyfile_regex": r"never",
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"tdce {release}"
html_static_path = ["_theme"]
html_css_files = ["tdce.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "tutorial/*": []}  # one page has nothing beside it
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher", *site_pages.switcher()],
    "footer_start": ["copyright"],
    "footer_end": [],
    **site_pages.switcher_options(),
}
linkcheck_ignore = [r"https?://"]  # what is outside may be down; what is inside must be there


def setup(app: Any) -> None:
    app.connect("source-read", lambda _, page, source: source.__setitem__(0, site_pages.prepared(page, source[0])))
    app.connect("build-finished", lambda app, error: error or site_pages.write_llms(Path(app.outdir)))
