#!/usr/bin/env python3
"""abi.py -- do programs of 0.2 run with the library that dualgemm.h describes? abidiff compares the types and functions
of the header with those of 0.2. The library is compiled with the same header, and archive.py compares its names.

    abi.py SOURCE CUDA_HEADERS            compares, and plants changes that have to be found
    abi.py SOURCE CUDA_HEADERS --write FILE HEADER
                                          writes the record of a header. dualgemm-0.2.abi is of commit b7e172cd, the
                                          last one whose changelog ended with 0.2.0
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, CUDA_HEADERS = pathlib.Path(sys.argv[1]), sys.argv[2]
HEADER = SOURCE / "host/include/dualgemm.h"
HERE = SOURCE / "test/package"


def library(text, folder):
    """A shared object with the functions of a header, which do nothing, and what a debugger knows of their types."""
    (folder / "dualgemm.h").write_text(text, encoding="utf-8")
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    bodies = re.findall(r"^DUALGEMM_API ([^;]*\));", re.sub(r"\) DUALGEMM_NOEXCEPT", ")", code), re.M)
    (folder / "library.c").write_text('#include "dualgemm.h"\n' + "".join(f"{head} {{ __builtin_trap(); }}\n"
                                                                         for head in bodies), encoding="utf-8")
    made = folder / "libdualgemm.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-isystem", CUDA_HEADERS, folder / "library.c", "-o", made],
                   check=True)
    return made


# What abidiff says around what has changed, and of fields that are appended: structures carry their size, and grow.
AROUND = re.compile("|".join([
    r"(Functions|Variables) changes summary: ", r"\d+ functions? with some indirect sub-type change",
    r"\[C\] 'function .* has some indirect sub-type changes:$", r"parameter \d+ of type .* has sub-type changes:$",
    r"in (pointed to|unqualified underlying) type '[^']*'( at .*)?:$", r"underlying type 'struct \w+' changed:$",
    r"\d+ data member insertions?:$"]))
SIZE = re.compile(r"type size changed from (\d+) to \d+ \(in bits\)$")
INSERTED = re.compile(r"'[^']*', at offset (\d+) \(in bits\)( at .*)?$")


def compared(text):
    """What abidiff finds in a header beside what is appended, and whether a function is gone."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["abidiff", "--no-added-syms", HERE / "dualgemm-0.2.abi",
                               library(text, pathlib.Path(folder))],
                              text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found, size = ["a function is gone, or abidiff failed"] if done.returncode & ~4 else [], 0
    for line in filter(None, map(str.strip, done.stdout.splitlines())):
        if grown := SIZE.match(line): size = int(grown[1])
        elif not (AROUND.match(line) or (new := INSERTED.match(line)) and int(new[1]) >= size): found.append(line)
    return found


class Abi(unittest.TestCase):
    def planted(self, pattern, instead):
        text = HEADER.read_text(encoding="utf-8")
        changed, count = re.subn(pattern, instead, text, count=1, flags=re.M | re.S)
        self.assertEqual(count, 1, pattern)
        self.assertTrue(compared(changed))

    def test_programs_of_the_first_release_run(self):
        self.assertEqual(compared(HEADER.read_text(encoding="utf-8")), [])

    def test_a_field_in_the_middle_is_found(self):
        self.planted(r"^(typedef struct dualgemm_args \{.*?^  int32_t) m,", r"\1 mine, m,")

    def test_another_type_is_found(self):
        self.planted(r"^(typedef struct dualgemm_device \{.*?^  )int32_t cc_major", r"\1float cc_major")

    def test_a_function_that_is_gone_is_found(self):
        self.planted(r"^DUALGEMM_API [^;]*dualgemm_launch_ex\([^;]*;", "")

    def test_another_argument_is_found(self):
        self.planted(r"dualgemm_sf_size\(int32_t", "dualgemm_sf_size(int64_t")

    def test_another_number_is_found(self):
        self.planted(r"(DUALGEMM_STATUS_INVALID_SHAPE =) \d+", r"\1 77")


def write(file, header):
    with tempfile.TemporaryDirectory() as folder:
        made = library(pathlib.Path(header).read_text(encoding="utf-8"), pathlib.Path(folder))
        subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed",
                        "--out-file", file, made], check=True)


if __name__ == "__main__":
    if "--write" in sys.argv:
        write(*sys.argv[4:])
    else:
        unittest.main(argv=sys.argv[:1])
