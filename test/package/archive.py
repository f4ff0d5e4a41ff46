#!/usr/bin/env python3
"""archive.py -- what the static library shows, runs before main, and calls of CUDA.

    archive.py exports CXX NM ARCHIVE HEADER RECORD
    archive.py initialisers NM ARCHIVE
    archive.py imports NM ARCHIVE
"""
import re
import subprocess
import sys
import tempfile

DECLARATION = re.compile(r"^DUALGEMM_API [^;(]*\b(\w+)\(", re.M)
ENUMERATOR = re.compile(r"\b(DUALGEMM_\w+) = ")
STRUCTURE = re.compile(r"^typedef struct (\w+) \{", re.M)
RECORDED = re.compile(r"^(?:STRUCT|NUMBER|FUNCTION)\((\w+)", re.M)

# What compilers call the function that initialises the variables of a translation unit.
INITIALISER = re.compile(r"_GLOBAL__(sub_)?I_|__cxx_global_var_init|__sti__")
REGISTRATION = "__sti____cudaRegisterAll"

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
    "cudaStreamIsCapturing": NUMBERS,
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


def read(path):
    with open(path, encoding="utf-8") as file: return file.read()


def symbols(nm, *arguments):
    """The lines of nm that are not empty."""
    listing = subprocess.run([nm, "--format=posix", *arguments], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if line.strip()]


def exports(compiler, nm, archive, header, record):
    """The symbols of a shared object that embeds the whole archive are every function that the header declares, and
    nothing else, so that two libraries of one program can each embed their own. All that the header declares is on
    record: test/unit/host/abi_test.cpp compares the types and the numbers."""
    text = read(header)
    declared, recorded = set(DECLARATION.findall(text)), set(RECORDED.findall(read(record)))
    named = declared | set(ENUMERATOR.findall(text)) | {f"{name}_t" for name in STRUCTURE.findall(text)}
    with tempfile.NamedTemporaryFile(suffix=".so") as shared:
        subprocess.run([compiler, "-shared", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-o",
                        shared.name], check=True)
        shown = {line.split()[0] for line in symbols(nm, "-D", "--defined-only", shared.name)}
    problems = [f"{name} is declared and not exported" for name in sorted(declared - shown)]
    problems += [f"{name} is exported and not declared" for name in sorted(shown - declared)]
    problems += [f"{name} does not start with dualgemm_" for name in sorted(shown) if not name.startswith("dualgemm_")]
    problems += [f"{name} is not on record: append it to {record}" for name in sorted(named - recorded)]
    if not declared: problems.append(f"{header} declares nothing")
    return problems, f"{len(shown)} functions, all declared in {header}"


def initialisers(nm, archive):
    """The archive runs nothing before main but the registration of its kernels with the CUDA runtime, so that its
    functions work in the static constructors of others."""
    member, found = "", []  # (object, function)
    for line in symbols(nm, "--defined-only", archive):
        if head := re.match(r".*\[(.*)\]:$", line): member = head[1]
        elif (name := line.split()[0]) and INITIALISER.search(name): found.append((member, name))
    kernels = [member for member, name in found if REGISTRATION in name]
    problems = [f"{member} initialises variables when the program starts: {name}" for member, name in found
                if REGISTRATION not in name]
    if not kernels: problems.append(f"{archive} registers no kernels, or {nm} does not show them")
    return problems, f"{len(kernels)} objects register kernels, and none does anything else"


def imports(nm, archive):
    """The functions of CUDA that the archive calls, and what crosses there but numbers, strings and opaque handles. A
    structure has the layout of the header that the library was compiled with, and the runtime that a program links may
    be of another major version: so none may cross before host/common/device_description.cpp has asked for that version,
    and those that the runtime fills are left out altogether."""
    names = {line.split()[0] for line in symbols(nm, "--undefined-only", archive)}
    found = {name for name in names if re.match(r"(__)?cu(da)?[A-Z]", name) and not NVCC.match(name)}
    problems = [f"{name} is called: which of CUDA's structures does it pass? Say so in archive.py"
                for name in sorted(found - ALLOWED.keys())]
    problems += [f"{name} is not called any more: take it out of archive.py" for name in sorted(ALLOWED.keys() - found)]
    return problems, f"{len(found)} functions of CUDA, each with what it passes"


def main():
    check, *arguments = sys.argv[1:]
    problems, good = {"exports": exports, "initialisers": initialisers, "imports": imports}[check](*arguments)
    print("\n".join(problems) or f"archive.py: {good}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
