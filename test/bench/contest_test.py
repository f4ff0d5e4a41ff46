#!/usr/bin/env python3
"""contest_test.py -- the contest's file in the simulator: nvcc compiles it with its own flags, its Python runs over
stand-ins for torch's tensors, and C has the bits of dualgemm_launch of the same data.

    contest_test.py SOURCE FILE NVCC FOLDER compile       compiles it, into FOLDER
    contest_test.py SOURCE FILE NVCC FOLDER [MxNxK]...    all problems of the contest, or those of these shapes

DUALGEMM_LIBRARY names the shared library, LD_LIBRARY_PATH the simulated runtime.
"""
import hashlib
import importlib.util
import os
import pathlib
import random
import re
import subprocess
import sys
import time
import types

SOURCE, FILE, NVCC, FOLDER = map(pathlib.Path, sys.argv[1:5])
sys.path[:0] = [str(SOURCE / "host/python"), str(SOURCE / "bench/contest")]
import dualgemm  # noqa: E402
from example import DeviceMemory  # noqa: E402
from shapes import TESTS, TIMED  # noqa: E402

# The driver takes the machine code that the contest's flags make, the simulator PTX of the same target.
FOR_SIMULATOR = ["-gencode=arch=compute_100a,code=compute_100a", "-shared", "-Xcompiler=-fPIC", "-cudart=none",
                 "-lcudart"]
# Bytes of two E2M1 of 0 to 1.5 in magnitude, and UE4M3 of numbers below 1, as the contest draws them.
CODES = bytes(byte & 0xBB for byte in range(256))
FACTORS = bytes(byte % 0x39 for byte in range(256))


def require(condition, text):
    if not condition: sys.exit(f"contest_test.py: {text}")


def load_inline(name, cpp_sources, cuda_sources, extra_cuda_cflags, is_python_module, no_implicit_headers):
    """torch's, as far as the file uses it: a shared object of these sources, made once."""
    require(not cpp_sources and not is_python_module and no_implicit_headers, "the file asks for parts of torch")
    require("torch" not in cuda_sources and "ATen" not in cuda_sources, "the CUDA source names torch")
    runtime = [f"-L{folder}" for folder in os.environ["LD_LIBRARY_PATH"].split(":") if folder]
    command = [str(NVCC), *extra_cuda_cflags, *FOR_SIMULATOR, *runtime]
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / f"{name}-{hashlib.sha256((cuda_sources + repr(command)).encode()).hexdigest()[:16]}.so"
    if not made.exists():
        for old in FOLDER.glob(f"{name}-*.so"): old.unlink()
        source = FOLDER / f"{name}.cu"
        source.write_text(cuda_sources)
        done = subprocess.run([*command, source, "-o", f"{made}.new"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        require(done.returncode == 0, f"nvcc:\n{done.stdout}")
        os.rename(f"{made}.new", made)
    return str(made)


def load_file():
    """The file as the contest imports it, with modules of these names that know no GPU."""
    task = types.ModuleType("task")
    task.input_t = task.output_t = tuple
    extension = types.ModuleType("torch.utils.cpp_extension")
    extension.load_inline = load_inline
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch.utils")
    sys.modules.update({"task": task, "torch": torch, "torch.utils": utils, "torch.utils.cpp_extension": extension})
    spec = importlib.util.spec_from_file_location("submission", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tensor:
    """A tensor of torch, as far as the file looks at one. Strides are those of the contest: L is outermost."""

    def __init__(self, shape, data):
        self.memory, self.shape = DeviceMemory(len(data), bytearray(data)), shape

    def stride(self):
        rows, columns, _ = self.shape
        return columns, 1, rows * columns

    def data_ptr(self):
        return self.memory.data_ptr()

    def bytes(self):
        return bytes(self.memory.to(bytearray(self.memory.size.value)))


def problem(m, n, k):
    """The ten tensors. Factors in rows are for the contest's own reference; nobody else may look at them."""
    random.seed(f"{m} {n} {k}")
    operands = [Tensor((rows, k // 2, 1), random.randbytes(rows * k // 2).translate(CODES)) for rows in (m, n, n)]
    factors = [Tensor((32, 4, rows // 128, 4, k // 64, 1), random.randbytes(rows * k // 16).translate(FACTORS))
               for rows in (m, n, n)]
    return (*operands, None, None, None, *factors, Tensor((m, n, 1), b"\xff" * (2 * m * n)))


def check(module, m, n, k):
    """The file's C against the library's."""
    data = problem(m, n, k)
    begin = time.monotonic()
    out = module.custom_kernel(data)
    require(out is data[9], "the file returns another tensor than c")
    got = out.bytes()
    expected = Tensor((m, n, 1), b"\xff" * (2 * m * n))
    pointers = [tensor.data_ptr() for tensor in (*data[:3], *data[6:9])]
    dualgemm.launch(*pointers, expected.data_ptr(), m=m, n=n, k=k, c_dtype=dualgemm.DTYPE_FP16)
    wanted = expected.bytes()
    require(got == wanted, f"{m} x {n} x {k}: {sum(x != y for x, y in zip(got, wanted))} bytes of C differ")
    require(len(set(wanted)) > 100, f"{m} x {n} x {k}: C has few different bytes")
    print(f"{m} x {n} x {k}: the library's bits, {time.monotonic() - begin:.0f} s", flush=True)


def main():
    text = FILE.read_text(encoding="utf-8")
    require("stream" not in text.lower(), "the file contains a word that the contest refuses")
    require(not re.search(r'#include *"', text), "the file includes one that is not of the system")
    require('"-gencode=arch=compute_100a,code=sm_100a"' in text, "the flags are not the contest's")
    module = load_file()
    if sys.argv[5:] == ["compile"]: return
    shapes = [tuple(map(int, shape.split("x"))) for shape in sys.argv[5:]]
    require(set(shapes) <= set(TESTS + TIMED), f"{shapes}: not all are shapes of the contest")
    for shape in shapes or dict.fromkeys(TESTS + TIMED): check(module, *shape)
    try:
        module.custom_kernel(problem(128, 128, 256))
    except RuntimeError:
        return
    sys.exit("contest_test.py: a shape that is not the contest's was computed")


if __name__ == "__main__":
    main()
