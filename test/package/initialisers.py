#!/usr/bin/env python3
"""initialisers.py -- what a static library runs before main: nothing but the registration of its kernels with the CUDA
runtime, so that its functions work in the static constructors of others.

    initialisers.py NM ARCHIVE
"""
import re
import subprocess
import sys

# What compilers call the function that initialises the variables of a translation unit.
INITIALISER = re.compile(r"_GLOBAL__(sub_)?I_|__cxx_global_var_init|__sti__")
REGISTRATION = "__sti____cudaRegisterAll"


def initialisers(nm, archive):
    """(object, function)"""
    listing = subprocess.run([nm, "--defined-only", "--format=posix", archive], capture_output=True, text=True,
                             check=True).stdout
    member, found = "", []
    for line in listing.splitlines():
        if head := re.match(r".*\[(.*)\]:$", line): member = head[1]
        elif (name := line.split()[0]) and INITIALISER.search(name): found.append((member, name))
    return found


def main():
    nm, archive = sys.argv[1:]
    found = initialisers(nm, archive)
    kernels = [member for member, name in found if REGISTRATION in name]
    others = [f"{member} initialises variables when the program starts: {name}" for member, name in found
              if REGISTRATION not in name]
    if not kernels: others.append(f"{archive} registers no kernels, or {nm} does not show them")
    print("\n".join(others) or f"initialisers.py: {len(kernels)} objects register kernels, and none does anything else")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
