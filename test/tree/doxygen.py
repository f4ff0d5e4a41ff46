#!/usr/bin/env python3
"""doxygen.py SOURCE BUILD DOXYGEN -- `make doxygen` without a warning, and with every function and field of dualgemm.h
on its pages. Then the comment of a function is taken away, which has to be an error: else the check above says nothing.
Without doxygen (DOXYGEN-NOTFOUND) the test is skipped."""
import pathlib
import re
import shutil
import subprocess
import sys

PLANTED = ("dualgemm_init(void)", r"/\*(?:(?!\*/).)*?\*/\n(?=DUALGEMM_API dualgemm_status_t dualgemm_init\()")


def run(doxygen, settings, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run([doxygen, "-"], input=settings, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return done.returncode, done.stdout


def main():
    source, build, doxygen = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    if doxygen.endswith("NOTFOUND"):
        print("doxygen is not installed: `make doxygen` brings it")
        sys.exit(77)
    settings = (build / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {build}/test/tree/doxygen\n"
    header = (source / "host/include/dualgemm.h").read_text()
    status, said = run(doxygen, settings, build / "test/tree/doxygen")
    if status != 0: sys.exit(f"doxygen.py: doxygen warns:\n{said}")

    pages = "".join(page.read_text() for page in (build / "test/tree/doxygen/html").glob("*.html"))
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    names = set(re.findall(r"\b(dualgemm_\w+)\(|[ *](\w+)[,;]", code))
    names = {function or field for function, field in names}
    missing = sorted(name for name in names if not re.search(rf"\b{name}\b", pages))
    if missing: sys.exit(f"doxygen.py: not on the pages: {', '.join(missing)}")

    name, comment = PLANTED
    planted = build / "test/tree/planted.h"
    planted.write_text(re.sub(comment, "", header, count=1, flags=re.S))
    if planted.read_text() == header: sys.exit(f"doxygen.py: {name} has no comment to take away")
    status, said = run(doxygen, f"{settings}INPUT = {planted}\n", build / "test/tree/doxygen")
    if status == 0 or name not in said: sys.exit(f"doxygen.py: {name} without a comment is no error:\n{said}")


if __name__ == "__main__":
    main()
