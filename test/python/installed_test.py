#!/usr/bin/env python3
"""installed_test.py -- the Python module as pip installs it, in the simulator: where it finds the library, and its
example, which is what its README shows.

    installed_test.py SOURCE BUILD FOLDER

BUILD has the shared library and the simulated runtime in sim/; FOLDER is written.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, BUILD, FOLDER = map(pathlib.Path, sys.argv[1:])
LIBRARY = BUILD / "libdualgemm.so.0"
VERSION = re.findall(r"^#define DUALGEMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)",
                     (SOURCE / "host/include/dualgemm.h").read_text(encoding="utf-8"), re.M)
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
       "--disable-pip-version-check", "--root-user-action=ignore"]


def install():
    """Where the module lies afterwards. pip writes beside the sources of what it installs, so it gets a copy."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    copy = FOLDER / "sources/python"
    shutil.copytree(SOURCE / "host/include", FOLDER / "sources/include")  # where setup.py reads the version
    shutil.copytree(SOURCE / "host/python", copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    done = subprocess.run([*PIP, "--target", FOLDER / "installed", copy], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0: return FOLDER / "installed"
    absent = re.compile(r"No module named '(?:pip|setuptools|wheel|packaging)\b|invalid command 'bdist_wheel'")
    needed = absent.findall(done.stdout)
    if not needed: sys.exit(done.stdout)
    print(f"installed_test.py: pip's part is skipped: {needed[0]}")
    return copy


class Installed(unittest.TestCase):
    def run_python(self, *command, **environment):
        libraries = {"LD_LIBRARY_PATH": str(BUILD / "sim"), "PYTHONPATH": str(MODULE), "PYTHONDONTWRITEBYTECODE": "1"}
        inherited = {name: value for name, value in os.environ.items() if name != "DUALGEMM_LIBRARY"}
        done = subprocess.run([sys.executable, *command], cwd=FOLDER, env={**inherited, **libraries, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def finds(self, **environment):
        return self.run_python("-c", "import dualgemm; print(dualgemm.version(), dualgemm.__file__)", **environment)

    def test_where_the_library_is_found(self):
        found = (0, f"({', '.join(VERSION)}) {MODULE / 'dualgemm/__init__.py'}\n")
        self.assertNotEqual(self.finds()[0], 0)
        self.assertEqual(self.finds(DUALGEMM_LIBRARY=str(LIBRARY)), found)
        self.assertEqual(self.finds(LD_LIBRARY_PATH=f"{BUILD / 'sim'}:{BUILD}"), found)
        beside = MODULE / "dualgemm" / LIBRARY.name
        beside.symlink_to(LIBRARY)
        try:
            self.assertEqual(self.finds(), found)
        finally:
            beside.unlink()

    def test_the_version_is_that_of_the_header(self):
        known = list(MODULE.glob("dualgemm-*.dist-info"))
        if not known: self.skipTest("pip has installed nothing")
        self.assertEqual([path.name for path in known], [f"dualgemm-{'.'.join(VERSION)}.dist-info"])

    def test_every_file_is_installed(self):
        def files(folder): return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}
        self.assertEqual(files(MODULE / "dualgemm"), files(SOURCE / "host/python/dualgemm"))

    def test_the_example(self):
        code, out = self.run_python(SOURCE / "host/python/example.py", DUALGEMM_LIBRARY=str(LIBRARY))
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"\bcorrect\b")

    def test_the_page_shows_the_example(self):
        page = (SOURCE / "host/python/README.md").read_text(encoding="utf-8")
        shown = re.search(r"```python\n(.*?)```", page, re.S).group(1)
        example = (SOURCE / "host/python/example.py").read_text(encoding="utf-8")
        self.assertIn(re.sub(r"^(?=.)", "    ", shown, flags=re.M), example)


if __name__ == "__main__":
    MODULE = install().resolve()
    unittest.main(argv=sys.argv[:1])
