#!/usr/bin/env python3
"""wheels.py -- dualgemm-cu13 and dualgemm-sim-cu13, or those of CUDA 12, from what host/package/build has installed.

    wheels.py MACHINE CUDA FOLDER

MACHINE is x86_64 or aarch64, CUDA 13 or 12. The wheels go to FOLDER. auditwheel has to agree to their tags. The same
commit gives the same bytes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = SOURCE / "build/package"
PYTHON = PACKAGE / "tools/bin/python"
GLIBC = 28  # 2.28
# What comes with other wheels, with PyTorch, and with the driver.
OF_OTHERS = ["libcudart.so.12", "libcudart.so.13", "libcuda.so.1", "libtorch.so", "libtorch_cpu.so"]
RUNTIME = {"12": "nvidia-cuda-runtime-cu12", "13": "nvidia-cuda-runtime"}
COMPILED_IN = ["libzstd-dev", "liblz4-dev"]  # packages of Debian whose archives the simulator contains, and headers:
HEADERS = ["libfmt-dev", "libcli11-dev", "nlohmann-json3-dev"]

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "{description}"
requires-python = ">=3.9"
license = "Apache-2.0"
license-files = ["licenses/*"]
dependencies = {dependencies}
{more}
[tool.hatch.build]
ignore-vcs = true

[tool.hatch.build.targets.wheel]
packages = ["{module}"]

[tool.hatch.build.targets.wheel.hooks.custom]
platform = "{platform}"
"""
OF_LIBRARY = """
[project.optional-dependencies]
transformers = ["torch>=2.10", "transformers>=5.23", "accelerate", "safetensors"]

[project.scripts]
dualgemm-report = "dualgemm._programs:report"
"""
OF_SIMULATOR = """
[project.scripts]
dualgemm-sim = "dualgemm_sim:main"
"""


def version():
    header = (SOURCE / "host/include/dualgemm.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"^#define DUALGEMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M))


def library(installed, module):
    """The module of Python, and beside it what is installed. Wheels have no links, so one file is the library."""
    shutil.copytree(SOURCE / "host/python/dualgemm", module, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(installed, module, symlinks=True, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("pkgconfig"))
    links = [path for path in module.glob("libdualgemm.so*") if path.is_symlink()]
    soname, = (path for path in links if path.name != "libdualgemm.so")
    file = soname.resolve()
    for path in links: path.unlink()
    file.rename(soname)
    targets = next(module.glob("cmake/dualgemm/dualgemmTargets-*.cmake"))
    targets.write_text(targets.read_text().replace(file.name, soname.name))
    return OF_LIBRARY


def simulator(installed, module):
    shutil.copytree(SOURCE / "host/package/dualgemm_sim", module, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(installed / "dualgemm", module, dirs_exist_ok=True)
    return OF_SIMULATOR


def wheel(kind, machine, cuda, out):
    stage = PACKAGE / machine / f"stage-{cuda}" / kind.__name__
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "licenses").mkdir(parents=True)
    shutil.copy(SOURCE / "LICENSE", stage / "licenses")
    shutil.copy(SOURCE / "host/package/hatch_build.py", stage)
    fields = {"platform": f"manylinux_2_{GLIBC}_{machine}", "version": version()}
    if kind is library:
        fields |= {"name": f"dualgemm-cu{cuda}", "module": "dualgemm", "dependencies": [f"{RUNTIME[cuda]}=={cuda}.*"],
                   "description": "SwiGLU and linear layers in NVFP4 for NVIDIA Hopper and Blackwell: libdualgemm"}
    else:
        fields |= {"name": f"dualgemm-sim-cu{cuda}", "module": "dualgemm_sim", "dependencies": [],
                   "description": "Runs a CUDA program on a simulated GPU, and judges its synchronisation"}
        for name in COMPILED_IN + HEADERS:
            folder = PACKAGE / machine / "debian" if name in COMPILED_IN else pathlib.Path("/")
            shutil.copy(folder / f"usr/share/doc/{name}/copyright", stage / "licenses" / f"{name}.txt")
    more = kind(PACKAGE / machine / f"wheel-{cuda}" / fields["module"], stage / fields["module"])
    (stage / "pyproject.toml").write_text(PROJECT.format(**fields, more=more), encoding="utf-8")
    made = stage / "made"
    run("build", "--wheel", "--no-isolation", "--outdir", made, stage)
    # auditwheel finds the oldest system that the files run on, and adds none to them.
    excluded = [word for name in OF_OTHERS for word in ("--exclude", name)]
    file, = made.glob("*.whl")
    run("auditwheel", "repair", "--plat", "auto", "--only-plat", *excluded, "-w", stage / "audited", file)
    audited, = (stage / "audited").glob("*.whl")
    needed = [int(number) for number in re.findall(rf"manylinux_2_(\d+)_{machine}", audited.name)]
    if max(needed, default=99) > GLIBC: sys.exit(f"wheels.py: auditwheel makes {audited.name} of {file.name}")
    if names(audited) != names(file): sys.exit(f"wheels.py: auditwheel adds files to {file.name}")
    shutil.copy(file, out)


def names(wheel_file):
    return {name for name in zipfile.ZipFile(wheel_file).namelist() if not name.endswith("/")}


def run(module, *arguments):
    """A module of the tools, which says something only if it fails."""
    done = subprocess.run([str(word) for word in (PYTHON, "-m", module, *arguments)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PATH": f"{PYTHON.parent}:{os.environ['PATH']}"})
    if done.returncode: sys.exit(f"{done.stdout}wheels.py: {module} failed")


def main():
    machine, cuda, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    commit = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=SOURCE, capture_output=True, text=True,
                            check=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit.stdout.strip())
    out.mkdir(parents=True, exist_ok=True)
    for kind in (library, simulator): wheel(kind, machine, cuda, out)


if __name__ == "__main__":
    main()
