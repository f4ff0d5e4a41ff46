#!/usr/bin/env python3
"""release.py -- a release of the commit that is checked out: the sources, tarballs, wheels, a folder for the package
kernels of Hugging Face, what each contains as SPDX, and SHA256SUMS. The same commit gives the same bytes.

    release.py FOLDER MACHINE/CUDA...

x86_64/13, say, has been built by host/package/build, and its wheels lie in build/wheels. FOLDER is made anew.
"""
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

from wheels import COMPILED_IN, HEADERS, PACKAGE, SOURCE, version

VERSION = version()
NAME = f"dualgemm-{VERSION}"
CUDA = {"12": "12.9", "13": "13.0"}
TORCH = "2.10"  # whose stable interface the operators need

# What the files contain beside our own code: the package of Debian that it is taken from, and its license.
LICENSES = {"libzstd-dev": "BSD-3-Clause", "liblz4-dev": "BSD-2-Clause", "libfmt-dev": "MIT",
            "libcli11-dev": "BSD-3-Clause", "nlohmann-json3-dev": "MIT",
            "libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1"}
HUB_README = """\
---
license: apache-2.0
tags:
- kernels
---
# dualgemm {version}

SwiGLU and linear layers in NVFP4 for NVIDIA Hopper and Blackwell, for every PyTorch from {torch} on. Calls are those of
the package dualgemm; `torch_op` has the operators, and `nn` layers.

```python
from kernels import get_local_kernel

dualgemm = get_local_kernel(path)
```

The operators register as `torch.ops.dualgemm`, so one version of them may be in a process.
"""


def said(*command):
    return subprocess.run([str(word) for word in command], cwd=SOURCE, capture_output=True, text=True,
                          check=True).stdout.strip()


TIME = int(said("git", "log", "-1", "--format=%ct"))


def packed(file, tar):
    """gzip without a name and a time."""
    with open(file, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out: out.write(tar)


def tarball(file, folder):
    """Of a folder, in an order and with owners, modes and times that no machine decides."""
    packed(file, subprocess.run(
        ["tar", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw,a-s",
         f"--mtime=@{TIME}", "-C", folder.parent, "-cf", "-", folder.name], check=True, capture_output=True).stdout)


def licenses(into, machine):
    into.mkdir(parents=True)
    shutil.copy(SOURCE / "LICENSE", into)
    for name in COMPILED_IN + HEADERS:
        root = PACKAGE / machine / "debian" if name in COMPILED_IN else pathlib.Path("/")
        shutil.copy(root / f"usr/share/doc/{name}/copyright", into / f"{name}.txt")


def binaries(out, scratch, machine, cuda):
    """The library and the simulator as `make install` lays them, for any folder."""
    tree = scratch / f"{NAME}-linux-{machine}-cu{cuda}"
    for part in ("dualgemm", "dualgemm_sim"):
        shutil.copytree(PACKAGE / machine / f"tarball-{cuda}" / part, tree, symlinks=True, dirs_exist_ok=True)
    licenses(tree / "share/doc/dualgemm", machine)
    tarball(out / f"{tree.name}.tar.gz", tree)


def hub(scratch, builds):
    """A repository for the package kernels: a folder for each machine and CUDA, which is a module of Python."""
    tree = scratch / f"{NAME}-kernels"
    for machine, cuda in builds:
        numbers = f"abi{TORCH}-cu{CUDA[cuda]}".replace(".", "")
        variant = tree / f"build/torch-stable-{numbers}-{machine}-linux"
        shutil.copytree(SOURCE / "host/python/dualgemm", variant,
                        ignore=shutil.ignore_patterns("__pycache__", "_programs.py"))
        built = PACKAGE / machine / f"stage-{cuda}/library/dualgemm"
        for name in ("libdualgemm.so.0", "libdualgemm_torch.so"): shutil.copy(built / name, variant)
        with open(variant / "__init__.py", "a", encoding="utf-8") as file:
            file.write("\nfrom . import nn, torch_op  # noqa: E402,F401 -- who loads this module imports no other\n")
        identity = "_dualgemm_" + said("git", "log", "-1", "--format=%h") + f"_cu{cuda}"
        described = {"id": identity, "name": "dualgemm", "version": int(VERSION.split(".")[1]), "license": "apache-2.0",
                     "python-depends": [], "backend": {"type": "cuda", "archs": ["9.0a", "10.0f"]}}
        (variant / "metadata.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    (tree / "README.md").write_text(HUB_README.format(version=VERSION, torch=TORCH), encoding="utf-8")
    return tree


def debian(name, machine):
    """The version of a package whose code is in the files of this machine."""
    if name in COMPILED_IN:
        file = next((PACKAGE / machine / "debian").glob(f"{name}_*.deb"))
        return said("dpkg-deb", "-f", file, "Version")
    return said("dpkg-query", "-W", "-f=${Version}", name)


def spdx(out, builds):
    """SPDX 2.3: every file of the release with its sum, what is compiled into it, and what it was made with."""
    files = sorted(path for path in out.iterdir())
    packages, relations = [], []
    zig = re.search(r"ziglang==(\S+)", (SOURCE / "host/package/requirements.txt").read_text(encoding="utf-8"))[1]

    def package(name, number, license_, **more):
        identity = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{number}")
        if all(known["SPDXID"] != identity for known in packages):
            packages.append({"SPDXID": identity, "name": name, "versionInfo": number, "downloadLocation": "NOASSERTION",
                             "filesAnalyzed": False, "licenseConcluded": license_, "licenseDeclared": license_,
                             "copyrightText": "NOASSERTION", **more})
        return identity

    def related(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    for path in files:
        sums = [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}]
        ours = package(path.name, VERSION, "Apache-2.0", packageFileName=path.name, checksums=sums)
        related("SPDXRef-DOCUMENT", "DESCRIBES", ours)
        for machine, cuda in builds:
            if machine not in path.name or f"cu{cuda}" not in path.name: continue
            simulator, wheel = "sim" in path.name, path.suffix == ".whl"
            for name, license_ in LICENSES.items():
                if name != "libstdc++-12-dev" and wheel and not simulator: continue
                related(ours, "CONTAINS",
                        package(name, debian(name, machine), license_, supplier="Organization: Debian"))
            related(ours, "DEPENDS_ON", package("CUDA runtime", cuda, "LicenseRef-NVIDIA"))
            related(package("CUDA compiler", CUDA[cuda], "LicenseRef-NVIDIA"), "BUILD_TOOL_OF", ours)
            related(package("g++", said("dpkg-query", "-W", "-f=${Version}", "g++-12"), "GPL-3.0-or-later"),
                    "BUILD_TOOL_OF", ours)
            related(package("ziglang", zig, "MIT"), "BUILD_TOOL_OF", ours)
    described = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": NAME,
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, NAME + said('git', 'rev-parse', 'HEAD'))}",
        "creationInfo": {"creators": ["Tool: host-package-release.py"], "created":
                         datetime.datetime.fromtimestamp(TIME, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")},
        "hasExtractedLicensingInfos": [{"licenseId": "LicenseRef-NVIDIA", "extractedText":
                                        "The license agreement of NVIDIA's CUDA toolkit."}],
        "packages": packages, "relationships": relations}
    (out / f"{NAME}.spdx.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def main():
    out, builds = pathlib.Path(sys.argv[1]).resolve(), [tuple(word.split("/")) for word in sys.argv[2:]]
    scratch = PACKAGE / "release"
    for folder in (out, scratch):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    os.umask(0o022)
    packed(out / f"{NAME}.tar.gz", subprocess.run(["git", "archive", "--format=tar", f"--prefix={NAME}/", "HEAD"],
                                                  cwd=SOURCE, check=True, capture_output=True).stdout)
    for machine, cuda in builds:
        binaries(out, scratch, machine, cuda)
        for name in (f"dualgemm_cu{cuda}", f"dualgemm_sim_cu{cuda}"):
            wheel, = (SOURCE / "build/wheels").glob(f"{name}-{VERSION}-*_{machine}.whl")
            shutil.copy(wheel, out)
    tree = hub(scratch, builds)
    tarball(out / f"{tree.name}.tar.gz", tree)
    spdx(out, builds)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir()))
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")


if __name__ == "__main__":
    main()
