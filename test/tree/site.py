#!/usr/bin/env python3
"""site.py FOLDER -- the site that `make docs` makes, as readers have it. Every link leads to a file of the
site, and to a name on that page. In a Chromium without a window no page says an error or asks another host; on a
telephone none is wider than the screen; pictures can be told from their ground, which is as dark as the page; and the
page of benchmarks shows one GPU, the one that is chosen.

All pages are opened but those of sources, which are alike: of these one for each kind of file. Playwright's own browser
is taken where no program of a system is there. `make docs-test` has what this needs.
"""
import collections
import functools
import html.parser
import http.server
import io
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import urllib.parse

os.environ["PLAYWRIGHT_BROWSERS_PATH"] = "0"  # a browser of its own lies in its environment
from PIL import Image
from playwright.sync_api import sync_playwright

TELEPHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
SOURCES = "sources"
ELSEWHERE = ("http:", "https:", "mailto:", "data:", "javascript:")
TEXT, SHARE = 7, 0.005  # contrast that text needs (WCAG, AAA); the least share of pixels that differ from the ground
BENCHMARKS = "host/docs/benchmarks.html"


class Page(html.parser.HTMLParser):
    """The names on a page, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.names, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id" or (tag == "a" and key == "name"): self.names.add(value)
            elif key in ("href", "src") and value is not None: self.links.append(value)
            elif key == "srcset": self.links += [part.split()[0] for part in value.split(",")]


def dead_links(site):
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(ELSEWHERE): continue
            parts = urllib.parse.urlsplit(link)
            there = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if there.is_dir(): there /= "index.html"
            what = None
            if not there.is_relative_to(site): what = "lies outside the site"
            elif not there.is_file(): what = "is not there"
            elif there in pages and parts.fragment and urllib.parse.unquote(parts.fragment) not in pages[there].names:
                what = "has no such name"
            if what: yield f"{path.relative_to(site)}: {link} {what}"
    if not pages: yield "there is no page"


def luminance(colour):
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear))


def picture_faults(png, dark):
    """What is wrong with a picture as it is shown: the colour that most of it has is its ground."""
    colours = collections.Counter(Image.open(io.BytesIO(png)).convert("RGB").get_flattened_data())
    ground = luminance(colours.most_common(1)[0][0])
    apart = {colour: (max(luminance(colour), ground) + 0.05) / (min(luminance(colour), ground) + 0.05)
             for colour in colours}
    total, seen = sum(colours.values()), sum(n for colour, n in colours.items() if apart[colour] >= 3)
    if max(apart.values()) < TEXT or seen < SHARE * total: yield "cannot be told from its ground"
    elif (ground < 0.2) != dark: yield "has a ground that does not fit the page"


# What reaches beyond the right edge of the screen, and lies in no box of its own that scrolls: one that holds no
# heading. A theme's drawers wait there, fixed. All that can be unfolded is.
TOO_WIDE = """() => {
  document.querySelectorAll("details").forEach(e => e.open = true);
  const boxed = e => {
    for (let up = e; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.position === "fixed") return true;
      if (up !== e && ["auto", "scroll"].includes(style.overflowX)) return !up.querySelector("h1, h2");
    }
    return false;
  };
  const wide = [...document.querySelectorAll("body *")]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && e.checkVisibility() && !boxed(e))
    .map(e => `${e.tagName.toLowerCase()} ${e.textContent.trim().slice(0, 40)}`);
  return document.scrollingElement.scrollWidth > innerWidth ? ["its body", ...wide] : wide;
}"""


class Reader:
    """A browser that reads the site from a server of this machine."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def open(self, name, size, scheme, theme=None):
        """The page, and what it says of errors while it is loaded."""
        context = self.browser.new_context(viewport=size, color_scheme=scheme)
        if theme: context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
        page, said = context.new_page(), []
        page.on("console", lambda message: message.type == "error" and said.append(f"says: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"fails: {error}"))
        page.on("request", lambda request: request.url.startswith((self.address, "data:", "blob:")) or
                said.append(f"asks {request.url}"))
        page.on("response", lambda response: response.status >= 400 and said.append(f"lacks {response.url}"))
        page.goto(self.address + name, wait_until="load")
        return page, said

    def faults(self, name):
        for size, scheme, theme in ((TELEPHONE, "light", None), (DESK, "dark", None), (DESK, "light", "dark")):
            if theme and not name == BENCHMARKS: continue
            page, said = self.open(name, size, scheme, theme)
            yield from said
            if wide := page.evaluate(TOO_WIDE): yield f"is wider than {size['width']} pixels: {wide[-1]}"
            for image in page.locator("img").all():
                if not image.is_visible(): continue
                for what in picture_faults(image.screenshot(), "dark" in (scheme, theme)):
                    yield f"{image.get_attribute('src')} {what} ({theme or scheme})"
            page.context.close()

    def switch_faults(self):
        page, _ = self.open(BENCHMARKS, TELEPHONE, "light")
        for gpu in ("h100", "h200"):
            page.locator(f"input[value={gpu}]").check()
            shown = [image.get_attribute("src") for image in page.locator("img").all() if image.is_visible()]
            if not shown or not all(f"/{gpu}" in source for source in shown):
                yield f"{BENCHMARKS} shows {shown} of an {gpu.upper()}"
        page.context.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass


def serve(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


def to_open(site):
    """The names of the pages that are opened."""
    kinds = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site)
        kinds[path.with_suffix("").suffix or "folder" if name.parts[0] == SOURCES else str(name)] = str(name)
    return kinds.values()


def check_the_check(browser):
    """What has to be found is found, and nothing else."""
    dark = "@media (prefers-color-scheme: dark)"
    good = (f"<style>body{{color-scheme:light dark}} rect{{fill:#fff}} text{{fill:#000}} {dark}"
            "{rect{fill:#000} text{fill:#fff}}</style>"
            '<rect width="200" height="80"/><text x="9" y="40">words that can be read</text>')
    def image(text): return f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="80">{text}</svg>'
    pictures = {"good.svg": image(good), "black.svg": image('<text x="9" y="40">black on nothing</text>'),
                "light.svg": image('<rect width="200" height="80" fill="#fff"/><text x="9" y="40">words</text>')}
    head = ('<!DOCTYPE html><html lang="en"><meta name="color-scheme" content="light dark">'
            '<link rel="icon" href="data:,"><p id="here">')
    wrong = {'<a href="none.html">': 1, '<a href="#none">': 1, '<a href="other.html#none">': 1, '<a href="../x">': 1,
             '<script>console.error("a")</script>': 2, "<script>none()</script>": 2,
             '<img src="https://example.org/a.svg">': 2, '<div style="width: 500px">wide': 1,
             '<div style="overflow: auto"><h1>title</h1><p style="width: 500px">wide</div>': 1,
             '<div style="overflow: hidden"><p style="width: 500px">wide</div>': 1,
             '<details><p style="width: 500px">wide</details>': 1,
             '<img src="black.svg">': 1, '<img src="light.svg">': 1, '<img src="none.svg">': 1}
    right = ['<a href="other.html#there">', '<a href="#here">', '<a href="https://example.org">',
             '<div style="overflow: auto"><pre style="width: 500px">wide', '<img src="good.svg">']
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder).resolve()
        for name, text in pictures.items(): (site / name).write_text(text, encoding="utf-8")
        (site / "other.html").write_text(f'{head}<p id="there">', encoding="utf-8")
        server, address = serve(site)
        for text in (*right, *wrong):
            (site / "page.html").write_text(head + text, encoding="utf-8")
            found = list(dead_links(site)) + list(Reader(browser, address).faults("page.html"))
            assert (len(found) >= wrong[text]) if text in wrong else not found, (text, found)
        server.shutdown()


def main():
    site, program = pathlib.Path(sys.argv[1]).resolve(), shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        check_the_check(browser)
        found, names = list(dead_links(site)), to_open(site)
        server, address = serve(site)
        reader = Reader(browser, address)
        found += [f"{name}: {what}" for name in names for what in reader.faults(name)]
        found += reader.switch_faults()
        server.shutdown()
        browser.close()
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, {len(names)} of them opened: all is well")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
