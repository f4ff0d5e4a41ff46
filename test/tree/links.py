#!/usr/bin/env python3
"""links.py -- fails where a page links to what is not there: a file or a folder of this repository, or a heading of a
page. Links to other places are not looked at.
"""
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from pages import ROOT, files, pages

FENCED = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1[`~]*[ \t]*$", re.S | re.M)
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
LINKS = [
    re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^\s<>()]+)>?(?:\s+[\"'(].*?[\"')])?\s*\)"),  # [text](target)
    re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s<>]+)", re.M),                                         # [name]: target
    re.compile(r"<(?:a|img)\b[^>]*\b(?:href|src)=[\"']([^\"']+)"),
]
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$", re.M)
NAMED = re.compile(r"<[^>]*\b(?:id|name)=[\"']([^\"']+)")
ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")


def links(text):
    """The targets of a page's links. What is code has none."""
    text = CODE.sub("code", FENCED.sub("", text))
    return [found for link in LINKS for found in link.findall(text)]


def anchors(text):
    """The names that GitHub gives to the headings of a page, and those that the page gives."""
    text = FENCED.sub("", text)
    names, seen = set(NAMED.findall(text)), {}
    for heading in HEADING.findall(text):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-")
        names.add(slug if slug not in seen else f"{slug}-{seen[slug]}")
        seen[slug] = seen.get(slug, 0) + 1
    return names


def fault(page, target, root, known):
    """What is wrong with this link of a page, or None. `known`: the files of the repository, None: all."""
    if ELSEWHERE.match(target): return None
    name, _, anchor = target.partition("#")
    if name.startswith("/"): return "is no place beside the page"
    there = (page.parent / name).resolve() if name else page
    if not there.is_relative_to(root): return "lies outside the repository"
    if not there.exists(): return "is not there"
    if known is not None and there not in known: return "is no file of the repository"
    if "#" not in target: return None
    if there.suffix != ".md": return "is no page, and has no headings"
    return None if anchor in anchors(there.read_text(encoding="utf-8")) else "has no such heading"


def faults(page, root, known):
    for target in links(page.read_text(encoding="utf-8")):
        if what := fault(page, target, root, known): yield f"{page.relative_to(root)}: {target} {what}"


def check_the_check():
    """What has to be found is found, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve() / "root"
        (root / "sub").mkdir(parents=True)
        (root / "sub/file.c").touch()
        (root / "left").touch()
        other, page = root / "sub/other.md", root / "page.md"
        other.write_text("# A `name`, and (more)\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n", encoding="utf-8")
        known = {root / "sub", root / "sub/file.c", other, page}
        right = ["sub", "sub/", "sub/file.c", "sub/other.md", "sub/other.md#a-name-and-more", "sub/other.md#twice-1",
                 "#here", "sub/../page.md#here", "https://example.org/none.md#none", "mailto:a@example.org"]
        wrong = ["none.md", "sub/none", "../other", "/sub/file.c", "left", "sub/other.md#none", "sub/other.md#twice-2",
                 "sub/other.md#no-heading", "#there", "sub/file.c#L1", "sub/other.md#"]
        for target in right + wrong:
            for form in ("[a `b](c)` [d]](%s)", "![a\nb](%s)", "[a](<%s>)", "[a](%s 'b')", "[a]: %s", "<a href='%s'>"):
                page.write_text(f"# Here\n\n```\n[a](none)\n```\n`[a](none)`\n\n{form % target}\n", encoding="utf-8")
                found = list(faults(page, root, known))
                assert len(found) == (1 if target in wrong else 0), (form % target, found)


def main():
    check_the_check()
    known = files()
    if known is not None: known = {place for file in known for place in (file, *file.parents)}
    checked = pages()
    found = [what for page in checked for what in faults(page, ROOT, known)]
    count = sum(len(links(page.read_text(encoding="utf-8"))) for page in checked)
    print("\n".join(found) or f"{len(checked)} pages, {count} links: all are there")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
