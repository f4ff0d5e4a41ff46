#!/usr/bin/env python3
"""imports.py -- the functions of CUDA that the archive calls, and what crosses there but numbers, strings and opaque
handles. A structure has the layout of the header that the library was compiled with, and the runtime that a program
links may be of another major version: so none may cross before host/common/device_description.cpp has asked for that
version, and those that the runtime fills are left out altogether.

    imports.py NM ARCHIVE
"""
import re
import subprocess
import sys

NUMBERS = "numbers, strings and handles alone"
LAUNCH = "cudaLaunchConfig_t and cudaLaunchAttribute, filled by the library, once the version was asked"

# What nvcc's objects call for themselves, when a program starts and in the stubs of kernels, which nobody runs: made by
# the same toolkit as the image that they hand over.
NVCC = re.compile(r"__cuda[A-Z]|cudaLaunchKernel$")

ALLOWED = {
    "cudaRuntimeGetVersion": NUMBERS,
    "cudaDriverGetVersion": NUMBERS,
    "cudaGetDevice": NUMBERS,
    "cudaDeviceGetAttribute": NUMBERS,
    "cudaStreamGetDevice": NUMBERS,
    "cudaFuncSetAttribute": NUMBERS,
    "cudaGetErrorName": NUMBERS,
    "cudaGetErrorString": NUMBERS,
    "cudaGetLastError": NUMBERS,
    "cudaPeekAtLastError": NUMBERS,
    "cudaMemsetAsync": NUMBERS,
    "cudaMemset2DAsync": NUMBERS,
    # Types of the driver's functions have the version that is asked for, and CUtensorMap is the driver's.
    "cudaGetDriverEntryPointByVersion": NUMBERS,
    "cudaOccupancyMaxActiveClusters": LAUNCH,
    "cudaLaunchKernelExC": LAUNCH,
}


def imported(nm, archive):
    listing = subprocess.run([nm, "--undefined-only", "--format=posix", archive], capture_output=True, text=True,
                             check=True).stdout
    names = {line.split()[0] for line in listing.splitlines() if line.strip()}
    return {name for name in names if re.match(r"(__)?cu(da)?[A-Z]", name) and not NVCC.match(name)}


def main():
    nm, archive = sys.argv[1:]
    found = imported(nm, archive)
    problems = [f"{name} is called: which of CUDA's structures does it pass? Say so in imports.py"
                for name in sorted(found - ALLOWED.keys())]
    problems += [f"{name} is not called any more: take it out of imports.py" for name in sorted(ALLOWED.keys() - found)]
    print("\n".join(problems) or f"imports.py: {len(found)} functions of CUDA, each with what it passes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
