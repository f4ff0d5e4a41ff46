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
    # As the real one it fails where the folder is not there.
    "df": """[[ -e "$2" ]] || { echo "df: $2: No such file or directory" >&2; exit 1; }
case "$2" in build) free=${DISK:-100000} ;; *) free=${TEMPORARY:-100000} ;; esac
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
    "nvcc": """echo "Cuda compilation tools, release ${RELEASE:-13.0}, V13.0.88" """,
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
        self.assertIn("needs about 4500 MiB, and its disk has 1000 left", self.refused("test", DISK="1000"))
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

    def test_no_folder_of_temporary_files(self):
        file = self.folder / "file"
        file.touch()
        for folder in "/nonexistent", str(file):
            for target in (), ("lib",), ("test",):
                said = self.refused(*target, TMPDIR=folder)
                for part in f"TMPDIR={folder}: is no folder", "set TMPDIR": self.assertIn(part, said)

    def test_a_disk_of_which_nothing_is_known(self):
        (self.folder / "bin/df").write_text("#!/bin/bash\nexit 1\n")
        self.assertEqual(self.run_setup("lib").returncode, 0)

    def test_build_as_a_link(self):
        build, disk = self.folder / "build", self.folder / "disk"
        build.symlink_to(disk)
        said = self.refused()
        for part in f"build is a link to {disk}, which is no folder", "make that folder": self.assertIn(part, said)
        disk.mkdir()
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertTrue((disk / "cuda.mk").exists())

    def test_build_as_a_file(self):
        (self.folder / "build").touch()
        self.assertIn("build/ is no folder that can be written to", self.refused())

    def test_a_compiler_that_is_asked_for_and_will_not_do(self):
        nvcc, text = self.folder / "bin/nvcc", self.folder / "text"
        text.touch()
        for compiler, release, part in (
                ("/nonexistent/nvcc", "13.0", "is no program"), (self.folder, "13.0", "is no program"),
                (text, "13.0", "is no program"), (nvcc, "12.8", "is of CUDA 12.8"),
                ("/bin/true", "13.0", "does not say that it is an nvcc")):
            said = self.refused(DUALGEMM_NVCC=str(compiler), RELEASE=release)
            self.assertIn(f"DUALGEMM_NVCC={compiler}: {part}: set it to the nvcc of CUDA 12.9 or later", said)
        self.assertEqual(self.run_setup(DUALGEMM_NVCC="nvcc").returncode, 0)  # by its name, in PATH
        self.assertEqual(self.run_setup(DUALGEMM_NVCC="").returncode, 0)

    def test_who_builds_everything_needs_room_for_it(self):
        """By what make would do."""
        for target in "test", "package-test":
            plan = subprocess.run(["make", "-n", "-C", str(SETUP.parents[1]), target], text=True, check=True,
                                  stdout=subprocess.PIPE).stdout
            self.assertIn(".ci/setup test\n", plan)

    def test_packages_that_cannot_be_had(self):
        said = self.refused(MISSING="catch2 spin")
        for part in "apt-get cannot install catch2 spin", "build/apt.log": self.assertIn(part, said)
        self.assertIn("Unable to fetch", (self.folder / "build/apt.log").read_text())

    def test_no_pytorch_and_no_venv(self):
        """The stand-in for python3 has no ensurepip, as Debian's without python3-venv."""
        self.assertIn("apt-get cannot install python3-venv", self.refused("torch", MISSING="python3-venv"))
        said = self.refused("torch")
        for part in "python3 -m venv cannot make build/torch", "build/pip.log", "set TORCH_PYTHON":
            self.assertIn(part, said)

    def test_no_sphinx(self):
        for target in "docs", "docs-test":
            self.assertIn("apt-get cannot install doxygen", self.refused(target, MISSING="doxygen"))
            self.assertIn("python3 -m venv cannot make build/sphinx", self.refused(target))
        python = self.folder / "build/sphinx/bin/python"
        python.parent.mkdir(parents=True)
        shutil.copy(self.folder / "bin/python3", python)
        (self.folder / "bin/python3").write_text("#!/bin/bash\n")
        for target in "docs", "docs-test":
            said = self.refused(target)
            for part in "no Sphinx in build/sphinx", "build/pip.log", "network": self.assertIn(part, said)

    def test_an_unknown_target(self):
        self.assertIn("librar: must be lib, install, build", self.refused("librar"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
