#!/usr/bin/env python3
"""aarch64_test.py -- the wheels for aarch64 on another machine, under qemu-user with the Python of Debian 12 for arm64:
the example and the tests of host/python, which launch simulated kernels, and whether the machine code for the GPU is
that of the wheel for x86_64.

    aarch64_test.py SOURCE CUDA
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

SOURCE, CUDA = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
PACKAGE = SOURCE / "build/package"
ROOT, SITE = PACKAGE / "root-arm64", PACKAGE / "site-arm64"
PYTHON = "usr/bin/python3.11"


def need(*command):
    done = subprocess.run([str(word) for word in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode: sys.exit(f"{done.stdout}\naarch64_test.py: failed: {' '.join(map(str, command))}")


def find_wheels():
    """Returns the wheels for aarch64."""
    patterns = [f"{name}-*_aarch64.whl" for name in (f"dualgemm_cu{CUDA}", f"dualgemm_sim_cu{CUDA}")]
    found = [path for pattern in patterns for path in (SOURCE / "build/wheels").glob(pattern)]
    if len(found) != len(patterns):
        sys.exit(f"aarch64_test.py: build/wheels has {len(found)} of {' and '.join(patterns)}, and needs one of each: "
                 f"run make wheels MACHINE=aarch64 CUDA={CUDA}")
    return found


def make_root():
    """Unpacks a Debian without configuring it, which would take programs of its own to run, and the wheels."""
    wheels = find_wheels()
    if not (ROOT / PYTHON).exists():
        shutil.rmtree(ROOT, ignore_errors=True)
        need("mmdebstrap", "--architectures=arm64", "--variant=extract",
             "--include=python3-minimal,libpython3-stdlib,libstdc++6", "bookworm", ROOT)
    shutil.rmtree(SITE, ignore_errors=True)
    for wheel in wheels: zipfile.ZipFile(wheel).extractall(SITE)
    (SITE / "dualgemm/dualgemm-report").chmod(0o755)
    shutil.copy(SOURCE / "host/python/example.py", SITE)  # away from the module's sources


class UnderQemu(unittest.TestCase):
    def run_there(self, *words, machine="b200", expected=(0,)):
        """A program of the root or of the wheels, on the simulated runtime."""
        variables = {"LD_LIBRARY_PATH": SITE / "dualgemm_sim/sim", "PYTHONPATH": SITE, "SIM_MACHINE": machine,
                     "PYTHONDONTWRITEBYTECODE": 1}
        given = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
        done = subprocess.run(["qemu-aarch64-static", "-L", ROOT, *given, *map(str, words)], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                              env={"PATH": os.environ["PATH"]})
        self.assertIn(done.returncode, expected, done.stdout)
        return done.stdout

    def test_the_example_on_both_architectures(self):
        for machine in ("b200", "h100"):
            said = self.run_there(ROOT / PYTHON, SITE / "example.py", machine=machine)
            self.assertRegex(said, r"\bcorrect\b")

    def test_tensors_and_refusals(self):
        """All but the one that starts another Python, which qemu-user does not emulate."""
        for name in ("tensors_test.py", "refusals_test.py"):
            said = self.run_there(ROOT / PYTHON, SOURCE / "test/python" / name, SITE, expected=(0, 1))
            self.assertRegex(said, r"\nRan \d\d? tests")
            self.assertLessEqual(set(re.findall(r"^(?:ERROR|FAIL): (\w+)", said, re.M)),
                                 {"test_importing_takes_nothing_along"}, said)

    def test_the_report_names_the_machine(self):
        said = self.run_there(SITE / "dualgemm/dualgemm-report", "33x40x96", machine="h100")
        self.assertIn(", aarch64, glibc 2.36", said)
        self.assertRegex(said, r"launch +33x40x96, .*: \w+ \(\d+\)")

    def test_the_machine_code_is_that_for_x86_64(self):
        archives = [PACKAGE / machine / f"wheel-{CUDA}/dualgemm/libdualgemm.a" for machine in ("x86_64", "aarch64")]
        if not archives[0].exists(): self.skipTest("make wheels has built none for x86_64")
        need(sys.executable, SOURCE / "test/sass/same.py", *archives)


if __name__ == "__main__":
    make_root()
    unittest.main(argv=sys.argv[:1])
