#!/usr/bin/env python3
"""activations.py ROOT -- every activation of dualgemm.h is in each list of activations that no compiler checks, and
what goes up to the last activation goes up to the last one of dualgemm.h.
"""
import pathlib
import re
import sys

HEADER = "host/include/dualgemm.h"
# What an activation is called there, and the files. {NAME} is GEGLU_TANH, {Name} is GegluTanh.
LISTS = {
    "ACTIVATION": (
        ("DUALGEMM_ACTIVATION_{NAME}", "host/common/names.h", "bench/names.h", "bench/errors.cpp",
         "test/support/extras.h", "test/support/interface.def"),
        ("ActivationKind::k{Name}", "test/unit/kernel/activation_test.cpp"),
        ("ACTIVATION_{NAME}", "host/python/dualgemm/nn/_activations.py"),
        ("{NAME}", "host/FORMATS.md", "bench/README.md")),
    "LINEAR_ACTIVATION": (
        ("DUALGEMM_LINEAR_ACTIVATION_{NAME}", "host/common/names.h", "bench/names.h", "test/support/interface.def"),
        ("LINEAR_ACTIVATION_{NAME}", "host/python/dualgemm/nn/_activations.py"),
        ("{NAME}", "host/FORMATS.md", "bench/README.md")),
}
# The last of a range or of a loop: `<= LAST`, `LAST + 1`, and in validate.cpp the largest value of a field.
LAST = r"(?:<= |activation, )DUALGEMM_{0}_(\w+)|\bDUALGEMM_{0}_(\w+) \+ 1\b"


def enumerators(header, kind):
    found = re.findall(rf"\bDUALGEMM_{kind}_(\w+) = \d+,", header)
    assert len(found) > 3, f"dualgemm.h: {len(found)} of {kind}"
    return found


def spelled(pattern, name):
    camel = "".join(word.capitalize() for word in name.split("_"))
    return re.compile(rf"(?<!\w){pattern.format(NAME=name, Name=camel)}(?!\w)")


def faults(header, read, sources):
    """`read` returns the text of a file, `sources` are the texts by file in which loops are looked for."""
    for kind, lists in LISTS.items():
        names = enumerators(header, kind)
        for pattern, *files in lists:
            for file in files:
                text = read(file)
                for name in names:
                    if not spelled(pattern, name).search(text): yield f"{file}: lacks {kind}_{name}"
        for file, text in sources.items():
            for found in re.finditer(LAST.format(kind), text):
                name = found[1] or found[2]
                if name != names[-1]: yield f"{file}: {kind}_{name} is not the last one"


def check_the_check(header, read):
    """A list without one of its names is found, and so is an activation that the header alone has."""
    for kind, lists in LISTS.items():
        names = enumerators(header, kind)
        for pattern, *files in lists:
            for file in files:
                for name in names:
                    without = {file: spelled(pattern, name).sub("?", read(file))}
                    found = list(faults(header, lambda other: without.get(other) or read(other), {}))
                    assert f"{file}: lacks {kind}_{name}" in found, (file, name)
        end = f"DUALGEMM_{kind}_MAX_ENUM"
        new = header.replace(end, f"DUALGEMM_{kind}_NEW = {len(names)}, {end}")
        last = f"DUALGEMM_{kind}_{names[-1]}"
        for text in (f"i <= {last};", f"below({last} + 1)", f"::activation, {last}}}"):
            assert list(faults(header, read, {"a": text})) == [], text
            assert f"a: {kind}_{names[-1]} is not the last one" in list(faults(new, read, {"a": text})), text


def main(root):
    texts = {}

    def read(file):
        return texts.setdefault(file, (root / file).read_text(encoding="utf-8"))

    check_the_check(read(HEADER), read)
    sources = {str(path.relative_to(root)): path.read_text(encoding="utf-8")
               for folder in ("host", "bench", "test") for path in sorted((root / folder).rglob("*"))
               if path.suffix in (".cpp", ".cu", ".h")}
    found = list(faults(read(HEADER), read, sources))
    print("\n".join(found) or "every activation is in every list")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
