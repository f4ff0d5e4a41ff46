#!/usr/bin/env python3
"""exports.py -- the symbols of a shared object that embeds the whole archive: every function that the header declares,
and nothing else, so that two libraries of one program can each embed their own. All that the header declares is on
record: test/unit/host/abi_test.cpp compares the types and the numbers.

    exports.py CXX NM ARCHIVE HEADER RECORD
"""
import re
import subprocess
import sys
import tempfile

DECLARATION = re.compile(r"^DUALGEMM_API [^;(]*\b(\w+)\(", re.M)
ENUMERATOR = re.compile(r"\b(DUALGEMM_\w+) = ")
STRUCTURE = re.compile(r"^typedef struct (\w+) \{", re.M)
RECORDED = re.compile(r"^(?:STRUCT|NUMBER|FUNCTION)\((\w+)", re.M)


def exported(compiler, nm, archive):
    """The dynamic symbols that a shared object made of the archive defines."""
    with tempfile.NamedTemporaryFile(suffix=".so") as shared:
        subprocess.run([compiler, "-shared", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-o",
                        shared.name], check=True)
        listing = subprocess.run([nm, "-D", "--defined-only", "--format=posix", shared.name], capture_output=True,
                                 text=True, check=True).stdout
    return {line.split()[0] for line in listing.splitlines()}


def main():
    compiler, nm, archive, header, record = sys.argv[1:]
    with open(header, encoding="utf-8") as file: text = file.read()
    with open(record, encoding="utf-8") as file: recorded = set(RECORDED.findall(file.read()))
    declared = set(DECLARATION.findall(text))
    named = declared | set(ENUMERATOR.findall(text)) | {f"{name}_t" for name in STRUCTURE.findall(text)}
    shown = exported(compiler, nm, archive)
    problems = [f"{name} is declared and not exported" for name in sorted(declared - shown)]
    problems += [f"{name} is exported and not declared" for name in sorted(shown - declared)]
    problems += [f"{name} does not start with dualgemm_" for name in sorted(shown) if not name.startswith("dualgemm_")]
    problems += [f"{name} is not on record: append it to {record}" for name in sorted(named - recorded)]
    if not declared: problems.append(f"{header} declares nothing")
    print("\n".join(problems) or f"exports.py: {len(shown)} functions, all declared in {header}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
