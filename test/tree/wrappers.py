#!/usr/bin/env python3
"""wrappers.py ROOT -- fails where the table of ptx/README.md and the wrappers in ptx/ differ: a function has no row, a
row no function, or the two name different headers or sections of the PTX ISA.
"""
import pathlib
import re
import sys

FUNCTION = re.compile(r"^((?://.*\n)+)\n*(?:template .*\n)?DUALGEMM_DEVICE \w+\*? (\w+)\(", re.M)
SECTION = re.compile(r"\b9(?:\.\d+){2,}")
ROW = re.compile(r"^\| (.*) \| (.*) \| `(\w+\.cuh)` \| (.*) \| .* \|$", re.M)
# Wrappers that emit no instruction of their own, and one that reads a special register.
WITHOUT_SECTION = {"even_cta_address", "hold_address", "cluster_ctarank", "smem_u32"}


def wrappers(folder):
    """Of each wrapper its header and its section. Those of the same name take other numbers of registers."""
    found = {}
    for header in sorted(folder.glob("*.cuh")):
        for comment, name in FUNCTION.findall(header.read_text(encoding="utf-8")):
            sections = SECTION.findall(comment)
            if name not in WITHOUT_SECTION: found.setdefault(name, set()).update((header.name, s) for s in sections[:1])
    return found


def rows(page):
    found = {}
    for _, functions, header, sections in ROW.findall(page.read_text(encoding="utf-8")):
        names = re.findall(r"`(\w+)", functions)
        each = [section.strip() for section in sections.split(",")]
        for i, name in enumerate(names):
            if name not in WITHOUT_SECTION: found.setdefault(name, set()).add((header, each[min(i, len(each) - 1)]))
    return found


def main(root):
    code, table = wrappers(root / "ptx"), rows(root / "ptx/README.md")
    different = [name for name in sorted(code.keys() | table.keys()) if code.get(name) != table.get(name)]
    for name in different:
        print(f"{name}: ptx/ has {sorted(code.get(name, []))}, ptx/README.md {sorted(table.get(name, []))}")
    return 1 if different or not code else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
