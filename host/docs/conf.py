"""The documentation as a site: Sphinx's configuration (`make docs`). The pages are the Markdown of the whole tree, as
it stands there, and those of this folder. Sphinx reads them from the root of the sources."""
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("DUALGEMM_BUILD", ROOT / "build")).resolve()
sys.path[:0] = [str(HERE), str(ROOT / "host/python"), str(ROOT / "test/tree")]
sys.dont_write_bytecode = True

import doxygen
from pages import pages

project = "libdualgemm"
version = release = doxygen.version(ROOT)
copyright = "libdualgemm's authors, Apache 2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe", "sources", "plots"]
root_doc = "README"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
include_patterns = [str(page.relative_to(ROOT)) for page in pages()] + ["host/docs/*.rst"]
smartquotes = False
html_theme = "furo"
html_title = "libdualgemm"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_use_index = html_domain_indices = False  # the search finds names
pygments_style = "default"
pygments_dark_style = "github-dark"
# Names of headings as GitHub makes them.
myst_heading_anchors = 6

# Python's modules are read where there is neither a GPU nor PyTorch.
autodoc_mock_imports = ["torch", "transformers", "safetensors", "packaging", "dualgemm.torch_op"]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True

breathe_projects = {"dualgemm": str(BUILD / "doxygen_xml/xml")}
breathe_default_project = "dualgemm"
breathe_domain_by_extension = {"h": "c"}

# What the sidebar shows, in the order in which one reads. A page that is not here is an error.
NAVIGATION = {
    "Manual": ["host/README", "host/BUILDING", "host/FORMATS", "host/GROUPS", "host/CHECKPOINT", "host/LAUNCHING",
               "host/ERRORS", "host/DEBUGGING", "host/ENGINES", "host/MODEL", "host/TUNING", "host/PEERS",
               "Examples <test/example/README>", "Examples: a checkpoint <test/example/checkpoint/README>"],
    "Reference": ["host/docs/c", "host/python/README", "host/docs/python"],
    "Speed": ["host/docs/benchmarks", "bench/HOPPER", "bench/README", "bench/FIRST_HOUR",
              "bench/contest/README"],
    "Kernels": ["kernel/README", "ptx/README", "host/SOURCES"],
    "Tests": ["test/README", "test/EVIDENCE", "test/sim/README", "test/sim/MACHINE", "test/sim/JUDGE",
              "test/sim/ADDING", "test/sim/defects/README", "test/mutation/README", "test/fuzz/README",
              "test/model/README"],
    "Project": ["CHANGELOG", ".github/CONTRIBUTING", ".github/CODE_OF_CONDUCT", ".github/SECURITY"],
}


def append_navigation(app, docname, source):
    """The front page is the root of the navigation, and need not show it."""
    if docname != root_doc: return
    for caption, names in NAVIGATION.items():
        source[0] += "\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(names) + "\n```\n"


def show_readmes(app, error):
    """A folder of the site is opened by its README."""
    for page in pathlib.Path(app.outdir).rglob("README.html"): shutil.copy(page, page.with_name("index.html"))


def setup(app):
    doxygen.run(ROOT, BUILD / "doxygen_xml")
    app.connect("source-read", append_navigation)
    app.connect("build-finished", show_readmes)
