"""What pages link to and is no page has a place in the site, too: the text of a source file, coloured; a list of what
lies in a folder; data and pictures, as they are. A folder with a README is that page."""
import functools
import html
import pathlib
import shutil

from docutils import nodes
from pages import ROOT, files
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes

FOLDER = "sources"  # of the site
DATA = (".json", ".svg")
# Those that Pygments calls otherwise.
LEXERS = {".def": "cpp", ".inc": "cpp", ".in": "text", "setup": "bash", "run": "bash", "format": "bash"}
STYLES = ("default", "github-dark")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{name}</title>
<link rel="stylesheet" href="{up}sources/colours.css">
<link rel="stylesheet" href="{up}_static/source.css">
</head>
<body>
<p><a href="{up}index.html">libdualgemm</a></p>
<h1>{name}</h1>
{text}
</body>
</html>
"""


def up(docname):
    """From a page to the root of the site."""
    return "../" * docname.count("/")


@functools.cache
def is_text(path):
    try: path.read_text(encoding="utf-8")
    except UnicodeDecodeError: return False
    return path.suffix not in DATA


def address(path):
    """Where the site has what lies in the tree at `path`, from the site's root."""
    if path.is_dir() and (path / "README.md").exists(): path /= "README.md"
    name = path.relative_to(ROOT)
    if path.suffix == ".md": return str(name.with_suffix(".html"))
    return f"{FOLDER}/{name}" + (".html" if path.is_dir() or is_text(path) else "")


def link_to_sources(app, document):
    docname = app.env.docname
    for node in list(document.findall(nodes.Element)):
        if not isinstance(node, (addnodes.download_reference, addnodes.pending_xref)): continue
        if node.get("reftype") != "myst" or node.get("refdomain") == "doc": continue
        path = ((ROOT / docname).parent / node["reftarget"]).resolve()
        if not path.exists(): continue
        app.dualgemm_linked.add(path)
        link = nodes.reference("", "", *node.children, internal=True, refuri=up(docname) + address(path))
        node.replace_self(link)


def coloured(path):
    lexer = LEXERS.get(path.suffix or path.name)
    try: lexer = get_lexer_by_name(lexer) if lexer else get_lexer_for_filename(path.name)
    except ClassNotFound: lexer = TextLexer()
    return highlight(path.read_text(encoding="utf-8"), lexer, HtmlFormatter())


def listed(folder, up, known):
    entries = (f'<li><a href="{up}{address(child)}">{html.escape(child.name)}{"/" * child.is_dir()}</a></li>'
               for child in sorted(folder.iterdir()) if child in known)
    return f"<ul>{''.join(entries)}</ul>"


def write_sources(app, error):
    """Everything that is linked, and what lies in the folders among it. Pages of the theme would take minutes."""
    out = pathlib.Path(app.outdir)
    known = files() or [path for path in ROOT.rglob("*") if "build" not in path.relative_to(ROOT).parts]
    known = {folder for path in known for folder in (path, *path.parents)}
    waiting, done = sorted(app.dualgemm_linked), set()
    while waiting:
        path = waiting.pop()
        if path in done or not address(path).startswith(FOLDER): continue
        done.add(path)
        if path.is_dir(): waiting += [child for child in path.iterdir() if child in known]
        there, name = out / address(path), str(path.relative_to(ROOT)) + "/" * path.is_dir()
        there.parent.mkdir(parents=True, exist_ok=True)
        if there.suffix != ".html":
            shutil.copy(path, there)
            continue
        up = "../" * address(path).count("/")
        text = listed(path, up, known) if path.is_dir() else coloured(path)
        there.write_text(PAGE.format(name=html.escape(name), up=up, text=text), encoding="utf-8")
    light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in STYLES)
    (out / FOLDER / "colours.css").write_text(f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n")


def setup(app):
    app.dualgemm_linked = set()
    app.connect("doctree-read", link_to_sources, priority=100)  # before Sphinx collects downloads
    app.connect("build-finished", write_sources)
