#!/usr/bin/env python3
"""version.py SOURCE BUILD -- dualgemm.h says which version this is: do CMake, the library, the changelog (its newest
section of a release) and the README say the same?"""
import ctypes
import pathlib
import re
import sys


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    header = (source / "host/include/dualgemm.h").read_text()
    numbers = re.findall(r"^#define DUALGEMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M)
    version = ".".join(numbers)
    ctypes.CDLL(str(build / "sim/libcudart.so.13"), mode=ctypes.RTLD_GLOBAL)
    dualgemm = ctypes.CDLL(str(build / "libdualgemm.so"))
    dualgemm.dualgemm_build_info.restype = ctypes.c_char_p
    said = {
        "CMake": re.search(r"^CMAKE_PROJECT_VERSION:\w+=(\S+)", (build / "CMakeCache.txt").read_text(), re.M)[1],
        "dualgemm_build_info": re.search(r"\d+\.\d+\.\d+", dualgemm.dualgemm_build_info().decode())[0],
        "CHANGELOG.md": re.search(r"^## (\S+) \((?!unreleased)", (source / "CHANGELOG.md").read_text(), re.M)[1],
        "README.md": re.search(r"\*\*Status:\*\* (\d+\.\d+)", (source / "README.md").read_text())[1] + f".{numbers[2]}",
    }
    wrong = {where: what for where, what in said.items() if what != version}
    if len(numbers) != 3 or wrong: sys.exit(f"version.py: dualgemm.h is {version}, but {wrong}")


if __name__ == "__main__":
    main()
