#!/usr/bin/env python3
"""setup_test.py -- .ci/setup on machines that lack something: it ends with one sentence that says what is missing and
what to do, before anything is built.

    setup_test.py SOURCE

It runs in a folder of its own, and df, pip, apt-get, dpkg-query and nvcc are programs of this test's.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SETUP = pathlib.Path(sys.argv[1]) / ".ci/setup"
# What each program does, in the variables that a test may set.
PROGRAMS = {
    "df": """case "$2" in build) free=${DISK:-100000} ;; *) free=${TEMPORARY:-100000} ;; esac
printf 'Filesystem 1048576-blocks Used Available Capacity Mounted\\nx 1 1 %s 1%% /\\n' "$free" """,
    "python3": """[[ "$*" == *"-m pip"* ]] || exit 1
for try in 1 2 3; do echo "WARNING: Retrying (Retry(total=$try)) after connection broken" >&2; done
echo "ERROR: No matching distribution found" >&2
exit 1""",
    "dpkg-query": """[[ "$*" == *Depends* ]] && { echo clang-14; exit; }
[[ " ${MISSING:-} " == *" ${!#} "* ]] || echo 'install ok installed'""",
    "apt-get": """echo "E: Unable to fetch some archives" >&2
exit 100""",
    "sudo": """"$@" """,
    "nvcc": "echo 'Cuda compilation tools, release 13.0, V13.0.88'",
}


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ".ci", "bin": (self.folder / name).mkdir()
        shutil.copy(SETUP, self.folder / ".ci/setup")
        for name, text in PROGRAMS.items():
            program = self.folder / "bin" / name
            program.write_text(f"#!/bin/bash\n{text}\n")
            program.chmod(0o755)

    def run_setup(self, *arguments, **variables):
        environment = {"DUALGEMM_NVCC": str(self.folder / "bin/nvcc"), **variables}
        return subprocess.run([str(self.folder / ".ci/setup"), *arguments], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env={**os.environ, **environment, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})

    def refused(self, *arguments, **variables):
        """Its one sentence. Nothing has been chosen to build with."""
        run = self.run_setup(*arguments, **variables)
        self.assertEqual((run.returncode, run.stderr.count("\n")), (1, 1), run)
        self.assertTrue(run.stderr.startswith("setup: "), run)
        self.assertFalse((self.folder / "build/cuda.mk").exists())
        return run.stderr

    def test_a_machine_with_everything(self):
        for target in (), ("lib",), ("install",), ("test",):
            run = self.run_setup(*target)
            self.assertEqual((run.returncode, "ERROR" in run.stderr), (0, False), run)
            self.assertIn("/bin/nvcc", (self.folder / "build/cuda.mk").read_text())

    def test_no_compiler_and_no_network(self):
        for target in (), ("lib",), ("test",):
            said = self.refused(*target, DUALGEMM_NVCC="wheels")
            for part in ("no nvcc of at least 12.9", "its wheels could not be had", "build/pip.log",
                         "set DUALGEMM_NVCC", "network"):
                self.assertIn(part, said)
            self.assertIn("No matching distribution", (self.folder / "build/pip.log").read_text())

    def test_a_full_disk(self):
        self.assertIn("needs about 400 MiB, and its disk has 7 left", self.refused(DISK="7"))
        self.assertIn("needs about 200 MiB, and its disk has 0 left", self.refused("lib", DISK="0"))
        self.assertIn("needs about 4000 MiB, and its disk has 1000 left", self.refused("test", DISK="1000"))
        self.assertEqual(self.run_setup("lib", DISK="1000").returncode, 0)

    def test_wheels_need_room_too(self):
        self.assertIn("needs about 900 MiB", self.refused(DISK="600", DUALGEMM_NVCC="wheels"))

    def test_what_is_built_already_counts(self):
        (self.folder / "build").mkdir()
        (self.folder / "build/built").write_bytes(bytes(390 << 20))
        self.assertEqual(self.run_setup(DISK="20").returncode, 0)

    def test_a_full_folder_of_temporary_files(self):
        said = self.refused(TEMPORARY="3", TMPDIR="/tmp")
        for part in "/tmp", "has 3 left", "set TMPDIR": self.assertIn(part, said)

    def test_packages_that_cannot_be_had(self):
        said = self.refused(MISSING="catch2 spin")
        for part in "apt-get cannot install catch2 spin", "build/apt.log": self.assertIn(part, said)
        self.assertIn("Unable to fetch", (self.folder / "build/apt.log").read_text())

    def test_an_unknown_target(self):
        self.assertIn("librar: must be lib, install, build", self.refused("librar"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
