#!/usr/bin/env python3
"""same.py -- have the kernels of two archives the same machine code, registers, memory and constants? Which lines of
the source it comes from is no part of that.

    same.py ARCHIVE ARCHIVE
"""
import hashlib
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from image import cubins, sections, target  # noqa: E402

# What a GPU loads of a kernel, or a driver reads of it.
LOADED = re.compile(r"\.(text|nv\.info|nv\.constant\d*|nv\.shared\S*|nv\.capmerc\.text)\.(\S+)")
PARAMETERS = b"\x04\x0a\x08\x00"  # in nv.info, the attribute of 8 bytes that begins with the index of a symbol


def without_indices(section, content):
    """Sections of lines move the others, whose numbers stand in two places."""
    if section == "nv.capmerc.text": return content[4:]
    if section == "nv.info": return re.sub(re.escape(PARAMETERS) + b"(?s:.{4})", PARAMETERS, content, count=1)
    return content


def kernels(path):
    """For every kernel and what it is compiled for, a digest of each section."""
    found = {}
    for cubin in cubins(pathlib.Path(path).read_bytes()):
        for name, content in sections(cubin).items():
            if match := LOADED.fullmatch(name):
                digest = hashlib.sha256(without_indices(match[1], content)).hexdigest()
                found.setdefault(f"{match[2]} ({target(cubin)})", {})[match[1]] = digest
    return found


def main():
    first, second = (kernels(path) for path in sys.argv[1:])
    differ = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    for name in differ: print(f"same.py: {name} differs: {sorted(first.get(name, {}))}, {sorted(second.get(name, {}))}")
    print(f"same.py: {len(first)} kernels, {len(differ)} of them differ")
    sys.exit(1 if differ or not first else 0)


if __name__ == "__main__":
    main()
