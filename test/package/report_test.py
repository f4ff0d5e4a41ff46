#!/usr/bin/env python3
"""report_test.py -- dualgemm-report on simulated GPUs, on none, and with arguments that it refuses. The instance that
it names is the one that quickstart launches and that the module of Python is told, and the workspace is that of the
module.

    report_test.py PROGRAM QUICKSTART SIMULATOR MODULE NVCC
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, QUICKSTART, SIMULATOR, MODULE, NVCC = map(pathlib.Path, sys.argv[1:])
SIZES = [(1, 64, 64), (33, 40, 96), (200, 512, 1024), (4096, 4096, 7168)]
# Prints the instance without a workspace, that with one, and its bytes, as dualgemm_select_instance and
# dualgemm_workspace_size say.
ASK = """
import ctypes, dualgemm
device, products, a, c, m, n, k = dualgemm.current_device(), *map(int, {!r}.split())
far = [i << 50 for i in range(1, 10)]
two = dict(b2=far[1], sfb2=far[4]) if products == 2 else {{}}
fields = dict(m=m, n=n, k=k, a_dtype=a, c_dtype=c, products=products, b1=far[0], sfb1=far[3], a=far[2], out=far[5],
              **two)
if a == dualgemm.DTYPE_NVFP4: fields["sfa"] = far[6]
if c == dualgemm.DTYPE_NVFP4: fields["sfc"] = far[7]
args, size = dualgemm.arguments(**fields), ctypes.c_size_t()
dualgemm.load().dualgemm_workspace_size(args, size)
name = lambda args: dualgemm.instance_info(dualgemm.select_instance(args, device)).name.decode()
print(name(args), name(dualgemm.arguments(**fields, workspace=far[8], workspace_size=size.value)) if size.value else "",
      size.value, sep=",")
"""


def run(*command, machine=None, **variables):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(SIMULATOR), **variables}
    if machine: environment["SIM_MACHINE"] = machine
    return subprocess.run([str(word) for word in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment)


class Report(unittest.TestCase):
    def said(self, *arguments, **how):
        """The values of a report by their names, in order."""
        done = run(PROGRAM, *arguments, **how)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        values = {}
        for text in done.stdout.splitlines(): values.setdefault(text[:12].strip(), []).append(text[12:])
        return values

    def test_machine_and_library(self):
        for machine, name, known in ("b200", "B200", "10.0, 148 SMs"), ("h100", "H100", "9.0, 132 SMs"):
            said = self.said(machine=machine)
            self.assertIn(name, said["GPU 0"][0])
            self.assertIn(f"compute capability {known}", said["GPU 0"][0])
            self.assertIn(f"SIM_MACHINE={machine}", said["variable"])
            self.assertIn(str(SIMULATOR / "libcudart.so.13"), said["runtime"][0])
            asked = "import dualgemm as d; print(d.build_info(), d.instance_count(), sep='\\n')"
            told = run(sys.executable, "-c", asked, PYTHONPATH=str(MODULE)).stdout.splitlines()
            self.assertEqual(said["library"][0], told[0])
            self.assertRegex(said["library"][1], rf"libdualgemm\.so\S*, {told[1]} instances$")
            self.assertNotIn("launch", said)

    def test_what_a_launch_runs(self):
        done = run(QUICKSTART, 33, 40, 96, machine="h100")
        launched = self.said("33x40x96", machine="h100")["launch"][0]
        name = re.search(r": (\w+) \(\d+\)$", launched)[1]
        self.assertRegex(done.stdout, rf"\b{name}\b")

    def test_every_question_against_the_module(self):
        types, workspaces = {"bf16": 0, "fp16": 1, "nvfp4": 3}, 0
        for products, a, c in (2, "nvfp4", "bf16"), (1, "nvfp4", "fp16"), (2, "bf16", "bf16"), (2, "nvfp4", "nvfp4"):
            lines = self.said(*("x".join(map(str, size)) for size in SIZES if c != "nvfp4" or size[1] % 16 == 0),
                              "--products", products, "--a-dtype", a, "--dtype", c, machine="h100")["launch"]
            for size in SIZES:
                if c == "nvfp4" and size[1] % 16: continue
                asked = " ".join(map(str, (products, types[a], types[c], *size)))
                told = run(sys.executable, "-c", ASK.format(asked), machine="h100", PYTHONPATH=str(MODULE))
                self.assertEqual(told.stderr, "")
                without, with_workspace, size_of_it = told.stdout.strip().split(",")
                expected = lines.pop(0)
                self.assertTrue(expected.startswith("x".join(map(str, size)) + ","), expected)
                self.assertIn(f": {without} (", expected)
                if size_of_it != "0":
                    workspaces += 1
                    self.assertRegex(lines.pop(0), rf"with {size_of_it} bytes of workspace: {with_workspace} \(")
            self.assertEqual(lines, [])
        self.assertGreater(workspaces, 0)

    def test_tuning(self):
        self.assertNotIn("tuning", self.said(machine="h100"))
        refused = self.said(machine="h100", DUALGEMM_TUNING="/nowhere/at/all")["tuning"]
        self.assertEqual(len(refused), 1)
        self.assertTrue(refused[0].startswith("DUALGEMM_TUNING=/nowhere/at/all: cannot be opened: "), refused)

    def test_without_a_gpu(self):
        """NVIDIA's own runtime sees none here, or is shown none."""
        cuda = NVCC.resolve().parents[1]
        real = next(path for folder in ("lib64", "lib") for path in (cuda / folder).glob("libcudart.so.1[0-9]"))
        said = self.said("16x64x64", LD_LIBRARY_PATH=str(real.parent), CUDA_VISIBLE_DEVICES="")
        self.assertTrue(said["GPU"][0].startswith("none: "), said)
        self.assertRegex(said["launch"][0], r"^16x64x64: .*[Dd]evice|driver")
        self.assertIn(str(real.parent), said["runtime"][0])

    def test_a_launch_that_is_refused(self):
        said = self.said("1x2x3", "1x64x64", machine="b200")["launch"]
        self.assertIn("k=3: must be a multiple of 16", said[0])
        self.assertRegex(said[1], r"\(\d+\)$")

    def test_arguments(self):
        for words, part in ((["1x2"], "1x2"), (["1x2x3x4"], "1x2x3x4"), (["-1x2x3"], "-1x2x3"), (["1xx3"], "1xx3"),
                            (["99999999999x1x1"], "99999999999x1x1"), ([""], ": must be a size"), (["--gpu"], "--gpu"),
                            (["--dtype", "int8"], "int8: must be bf16, "), (["--products", "3"], "3: must be 1 or 2"),
                            (["--a-dtype"], "--a-dtype: needs a value")):
            done = run(PROGRAM, *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertIn(part, done.stderr)
        self.assertIn("MxNxK", run(PROGRAM, "--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
