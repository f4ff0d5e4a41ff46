#!/usr/bin/env python3
"""wheels_test.py -- the wheels in a bare Debian 12 without a network, as somebody installs them who has Python alone:
what they contain, that the example is right in the simulator, and what they say where another CUDA is.

    wheels_test.py SOURCE CUDA

CUDA is 13 or 12. SOURCE/build/wheels has the wheels of this machine. Makes a root of Debian in build/package, as root.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import unittest
import zipfile

SOURCE, CUDA = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
OTHER = {"12": "13", "13": "12"}[CUDA]
PACKAGE = SOURCE / "build/package"
PYTHON = PACKAGE / "tools/bin/python"
RUNTIME = {"12": "nvidia-cuda-runtime-cu12", "13": "nvidia-cuda-runtime"}
ROOT = PACKAGE / "root"
# The policy of manylinux_2_28.
OF_A_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1",
               "libstdc++.so.6"}
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    return done.returncode, done.stdout


def need(*command, **more):
    code, said = run(*command, **more)
    if code: sys.exit(f"{said}\nwheels_test.py: failed: {' '.join(map(str, command))}")
    return said


def bare(*command):
    """In the root: no network, no variables but PATH, no process and no mount of this machine."""
    return run("unshare", "--net", "--mount", "--pid", "--fork", f"--root={ROOT}", "--mount-proc", "/usr/bin/env", "-i",
               "PATH=/usr/bin:/bin", *command)


def wheel(name):
    found = list((SOURCE / "build/wheels").glob(f"{name.replace('-', '_')}-*_{platform.machine()}.whl"))
    if len(found) == 1: return found[0]
    return sys.exit(f"wheels_test.py: {name}: {len(found)} wheels in build/wheels: make wheels CUDA={CUDA}")


LIBRARY, SIMULATOR = wheel(f"dualgemm-cu{CUDA}"), wheel(f"dualgemm-sim-cu{CUDA}")


def make_root():
    archive = PACKAGE / "debian-12.tar"
    if not archive.exists():
        if not shutil.which("mmdebstrap"): need("apt-get", "install", "-y", "-qq", "mmdebstrap")
        need("mmdebstrap", "--variant=minbase", "--include=python3-venv", "bookworm", f"{archive}.part")
        os.rename(f"{archive}.part", archive)
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir()
    need("tar", "-xf", archive, "-C", ROOT)
    wheels = ROOT / "wheels"
    wheels.mkdir()
    for file in (LIBRARY, SIMULATOR): shutil.copy(file, wheels)
    for major in (CUDA, OTHER):
        kept = PACKAGE / f"runtime-{major}"
        if not kept.exists():
            need(PYTHON, "-m", "pip", "download", "--no-deps", "-d", kept, f"{RUNTIME[major]}=={major}.*")
        for file in kept.iterdir(): shutil.copy(file, wheels)
    shutil.copy(SOURCE / "host/python/example.py", ROOT)


class Contents(unittest.TestCase):
    def test_all_that_is_promised(self):
        names = set(zipfile.ZipFile(LIBRARY).namelist())
        for name in ("__init__.py", "libdualgemm.so.0", "libdualgemm_torch.so", "libdualgemm.a", "include/dualgemm.h",
                     "cmake/dualgemm/dualgemmConfig.cmake", "dualgemm-report", "nn/__init__.py"):
            self.assertIn(f"dualgemm/{name}", names)
        for name in ("dualgemm-sim", f"sim/libcudart.so.{CUDA}", "sim/libcuda.so.1"):
            self.assertIn(f"dualgemm_sim/{name}", zipfile.ZipFile(SIMULATOR).namelist())

    def test_no_file_names_a_path_of_the_build(self):
        for file in (LIBRARY, SIMULATOR):
            archive = zipfile.ZipFile(file)
            for name in archive.namelist():
                self.assertNotIn(str(SOURCE).encode(), archive.read(name), name)

    def test_the_policy(self):
        """auditwheel says which files a wheel asks for. The CUDA runtime and PyTorch come with other wheels."""
        for file in (LIBRARY, SIMULATOR):
            self.assertIn("manylinux_2_28", file.name)
            said = need(PYTHON, "-m", "auditwheel", "show", file)
            asked = set(re.findall(r"(lib[\w+]+\.so[.\d]*) with versions", said))
            self.assertLessEqual(asked, OF_A_SYSTEM | {f"libcudart.so.{CUDA}"})
            newest = {}
            for family, number in re.findall(r"'([A-Z]+)_([\d.]+)'", said):
                newest[family] = max(newest.get(family, ()), tuple(map(int, number.split("."))))
            for family, found in newest.items(): self.assertLessEqual(found, NEWEST[family], family)
            self.assertIn("GLIBC", newest)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_root()
        start = time.monotonic()
        for command in (["python3", "-m", "venv", "/venv"],
                        ["/venv/bin/pip", "install", "-q", "--no-index", "--find-links", "/wheels",
                         f"dualgemm-cu{CUDA}", f"dualgemm-sim-cu{CUDA}"]):
            code, said = bare(*command)
            if code: sys.exit(said)
        cls.example = bare("/venv/bin/dualgemm-sim", "/venv/bin/python", "/example.py")
        cls.seconds = time.monotonic() - start

    def test_the_example_in_the_simulator(self):
        code, said = self.example
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"\bcorrect\b")
        self.assertRegex(said, rf"CUDART_VERSION {CUDA}\d\d\d")
        print(f"\nfrom an empty environment to a right result: {self.seconds:.1f} s")

    def test_without_a_gpu(self):
        """NVIDIA's own runtime of the wheel that pip brought, which finds no driver: the library says so."""
        code, said = bare("/venv/bin/python", "/example.py")
        self.assertNotEqual(code, 0)
        self.assertNotIn("libcudart", said)
        code, said = bare("/venv/bin/dualgemm-report", "16x64x64")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, rf"runtime +CUDA {CUDA}\.\d+, /venv/\S*/nvidia/")

    def test_host_functions_need_no_simulator(self):
        code, said = bare("/venv/bin/python", "-c", "import array, dualgemm as d; "
                          "print(d.sf_size(128, 64), d.global_scale_host(array.array('f', [6.0] * 32), 1, 32))")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.split()[0], "512")

    def test_a_cmake_project_finds_it(self):
        """On the machine that builds, since the bare root has no compiler."""
        site = next((ROOT / "venv/lib").glob("python3*")) / "site-packages"
        folder = PACKAGE / "found"
        shutil.rmtree(folder, ignore_errors=True)
        cuda = next((PACKAGE / platform.machine() / f"cuda-{CUDA}/nvidia").glob("*/lib")).parent
        need("cmake", "-S", SOURCE / "test/package/program", "-B", folder, "-G", "Ninja", "-DKIND=shared",
             f"-DCMAKE_PREFIX_PATH={site}", "-DCMAKE_BUILD_TYPE=Release",
             env={**os.environ, "CUDAToolkit_ROOT": str(cuda)})
        need("cmake", "--build", folder)
        said = need(site / "dualgemm_sim/dualgemm-sim", folder / "program")
        self.assertRegex(said, r"\bcorrect\b")


class OtherCuda(unittest.TestCase):
    """Without the runtime that the library was built with, whether another is there or none."""

    def test_the_sentence_names_what_to_install(self):
        site = next((ROOT / "venv/lib").glob("python3*")) / "site-packages"
        for others in ([], [f"{RUNTIME[OTHER]}=={OTHER}.*"]):
            bare("/venv/bin/pip", "uninstall", "-q", "-y", RUNTIME[CUDA])
            if others:
                code, said = bare("/venv/bin/pip", "install", "-q", "--no-index", "--find-links", "/wheels", *others)
                self.assertEqual(code, 0, said)
            self.assertFalse(list(site.glob(f"nvidia/*/lib/libcudart.so.{CUDA}")))
            code, said = bare("/venv/bin/python", "-c", "import dualgemm; dualgemm.load()")
            self.assertEqual(code, 1)
            last = said.strip().splitlines()[-1]
            self.assertTrue(last.startswith("ImportError: "), said)
            self.assertIn(f"was built with CUDA {CUDA}, and there is no libcudart.so.{CUDA}: pip install "
                          f"'{RUNTIME[CUDA]}=={CUDA}.*'", last)
            self.assertNotIn("OSError", last)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
