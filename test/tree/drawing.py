#!/usr/bin/env python3
"""drawing.py SOURCE BUILD -- the drawing of the scale factors: is the file that is committed what its script writes,
and is the formula that the script draws by that of the library?"""
import ctypes
import importlib.util
import pathlib
import sys

# Rows and K: what the drawing shows, one atom, and sizes that end inside an atom in either direction.
SHAPES = [(300, 176), (128, 64), (1, 16), (129, 80), (300, 464)]


def load(path):
    spec = importlib.util.spec_from_file_location("scale_factors", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library(build):
    ctypes.CDLL(str(build / "sim/libcudart.so.13"), mode=ctypes.RTLD_GLOBAL)
    dualgemm = ctypes.CDLL(str(build / "libdualgemm.so"))
    dualgemm.dualgemm_sf_offset.restype = ctypes.c_int64
    return dualgemm


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    drawing = load(source / "host/drawing/scale_factors.py")
    if drawing.drawing() != (source / "host/drawing/scale_factors.svg").read_text(encoding="utf-8"):
        sys.exit("drawing.py: scale_factors.svg is not what its script writes; `make pages` writes it anew")
    dualgemm = library(build)
    for rows, k in [(drawing.ROWS, drawing.K)] + SHAPES:
        for row in range(128 * -(-rows // 128)):
            for factor in range(drawing.padded_factors(k)):
                expected = dualgemm.dualgemm_sf_offset(rows, k, row, factor)
                if drawing.offset(k, row, factor) != expected:
                    sys.exit(f"drawing.py: K = {k}, row {row}, factor {factor}: drawn at byte "
                             f"{drawing.offset(k, row, factor)}, dualgemm_sf_offset says {expected}")


if __name__ == "__main__":
    main()
