#!/usr/bin/env python3
"""release_test.py -- build/release as somebody has it who has downloaded it: sums, what it says it contains, a program
linked with the tarball of this machine, and the folder for the package kernels in PyTorch.

    release_test.py SOURCE CUDA TORCH_PYTHON [OTHER]

OTHER is a release of the same commit that was built in another folder, and has the same bytes.
"""
import filecmp
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, CUDA, TORCH_PYTHON = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
OTHER = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
RELEASE, PACKAGE = SOURCE / "build/release", SOURCE / "build/package"
SCRATCH = PACKAGE / "release test"
KERNELS = "kernels==0.17.2"
LOAD = """
import pathlib, sys, torch
from kernels import get_local_kernel
dualgemm = get_local_kernel(pathlib.Path(sys.argv[1]))
a, sf, _ = torch.ops.dualgemm.quantize(torch.full((8, 64), 6, dtype=torch.bfloat16))
print(dualgemm.__file__, torch.ops.dualgemm.linear(a, a, sf, sf).unique().tolist())
"""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    return done.returncode, done.stdout


class Release(unittest.TestCase):
    def right(self, *command, **more):
        code, said = run(*command, **more)
        self.assertEqual(code, 0, said)
        return said

    def unpacked(self, pattern):
        file, = (path for path in RELEASE.iterdir() if re.fullmatch(pattern, path.name))
        self.right("tar", "-xf", file, "-C", SCRATCH)
        return SCRATCH / file.name.removesuffix(".tar.gz")

    def test_sums(self):
        self.right("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=RELEASE)
        listed = {line.split()[1] for line in (RELEASE / "SHA256SUMS").read_text().splitlines()}
        self.assertEqual(listed, {path.name for path in RELEASE.iterdir()} - {"SHA256SUMS"})

    def test_the_same_bytes_from_another_folder(self):
        if OTHER is None: self.skipTest("no other release was built")
        names = sorted(path.name for path in RELEASE.iterdir())
        self.assertEqual(names, sorted(path.name for path in OTHER.iterdir()))
        self.assertEqual(filecmp.cmpfiles(RELEASE, OTHER, names, shallow=False)[1:], ([], []))

    def test_spdx(self):
        file, = RELEASE.glob("*.spdx.json")
        self.right(PACKAGE / "tools/bin/pyspdxtools", "-i", file)
        described = json.loads(file.read_text())
        named = {package.get("packageFileName") for package in described["packages"]} - {None}
        self.assertEqual(named, {path.name for path in RELEASE.iterdir()} - {"SHA256SUMS", file.name})
        contained = {package["name"] for package in described["packages"]}
        self.assertLessEqual({"libzstd-dev", "liblz4-dev", "CUDA compiler", "ziglang"}, contained)

    def test_the_sources_are_the_commit(self):
        tree = self.unpacked(r"dualgemm-[\d.]+\.tar\.gz")
        listed = run("git", "ls-tree", "-r", "--name-only", "HEAD", cwd=SOURCE)[1].split("\n")[:-1]
        self.assertEqual(sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()),
                         sorted(listed))

    def test_a_program_with_the_tarball(self):
        tree = self.unpacked(rf".*-linux-{platform.machine()}-cu{CUDA}\.tar\.gz")
        runtime = next((PACKAGE / platform.machine() / f"cuda-{CUDA}/nvidia").glob("*/lib")).parent
        program = SCRATCH / "program"
        self.right("gcc", f"-I{tree}/include", f"-I{runtime}/include", SOURCE / "test/example/quickstart.c",
                   f"-L{tree}/lib", "-ldualgemm", f"-Wl,-rpath,{tree}/lib", runtime / f"lib/libcudart.so.{CUDA}", "-lm",
                   "-o", program)
        said = self.right(tree / "bin/dualgemm-sim", program, cwd="/")
        self.assertRegex(said, r"\bcorrect\b")
        self.assertIn("0 E", said)
        for file in (path for path in tree.rglob("*") if path.is_file()):
            self.assertNotIn(str(SOURCE).encode(), file.read_bytes(), file)

    def test_the_folder_of_kernels(self):
        code, version = run(TORCH_PYTHON, "-c", "import torch, huggingface_hub; print(torch.version.cuda)")
        if code or version.split(".")[0] != CUDA: self.skipTest(f"{TORCH_PYTHON} has no PyTorch of CUDA {CUDA}")
        loader = PACKAGE / "kernels"
        if not loader.exists():
            self.right(PACKAGE / "tools/bin/python", "-m", "pip", "install", "-q", "--no-deps", "--target", loader,
                       KERNELS)
        said = self.right(TORCH_PYTHON, "-c", LOAD, self.unpacked(r".*-kernels\.tar\.gz"), cwd="/",
                          env={**os.environ, "PYTHONPATH": str(loader), "HF_HUB_OFFLINE": "1"})
        self.assertRegex(said, rf"torch-stable-abi210-cu{CUDA}\d-\w+-linux/__init__\.py \[2304\.0\]")


if __name__ == "__main__":
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    unittest.main(argv=sys.argv[:1])
