"""pyproject.toml says everything else. The version is that of dualgemm.h."""
import pathlib
import re

from setuptools import setup

header = (pathlib.Path(__file__).resolve().parents[1] / "include/dualgemm.h").read_text(encoding="utf-8")
setup(version=".".join(re.findall(r"^#define DUALGEMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M)))
