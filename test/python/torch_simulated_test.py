#!/usr/bin/env python3
"""torch_simulated_test.py -- the operators for torch on the simulated GPU, by torch itself: its allocator, streams and
copies use the simulated CUDA runtime, and so do the operators. Kernels of torch do not run there, so these are the
tests of torch_operators_test.py and torch_direct_test.py that need none. They compare bits with launches by ctypes, as
on a GPU. Exits with 77 where there is no torch with CUDA, or no simulated runtime of torch's CUDA.

    torch_simulated_test.py MODULE SIMULATED_RUNTIME COMPILER MACHINE...

SIMULATED_RUNTIME is the folder of libcudart.so.13, COMPILER one for C, MACHINE b200 or h100.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

MODULE, RUNTIME, COMPILER, *MACHINES = sys.argv[1:]
HERE = pathlib.Path(__file__).resolve().parent
# Functions that torch asks for and the simulated runtime does not have.
MISSING = """
int cudaProfilerStart(void) { return 801; }
int cudaProfilerStop(void) { return 801; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  (void)device;
  *flags = 0;
  *active = 1;
  return 0;
}
"""
TESTS = ["Launches", "Conversions", "Experts", "Empty", "Versions", "OnGpu.test_instances"]
SCRIPTS = ["torch_operators_test.py", "torch_direct_test.py"]
NEEDED = "import torch; x = torch.arange(9).cuda(); print(torch.cuda.get_device_name(), x.cpu().tolist())"


def skip(why):
    print(f"torch_simulated_test.py: skipped: {why}")
    sys.exit(77)


def missing_functions(folder, major):
    """Builds libcuda.so.1, which takes the place of the simulated one: that has no code of its own either."""
    source, versions = folder / "missing.c", folder / "missing.map"
    source.write_text(MISSING)
    versions.write_text("libcudart.so.%s { global: cudaProfiler*; };\ndriver { global: cuDevice*; };\n" % major)
    subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", folder / "libcuda.so.1", "-Wl,-soname,libcuda.so.1",
                    f"-Wl,--version-script={versions}", "-Wl,--no-as-needed", f"-L{RUNTIME}",
                    f"-l:libcudart.so.{major}"], check=True)


def main():
    try:
        import torch
    except ImportError as error:
        skip(f"there is no torch: {error}")
    if torch.version.cuda is None: skip("this torch has no CUDA")
    major = torch.version.cuda.split(".")[0]
    runtime = pathlib.Path(RUNTIME, f"libcudart.so.{major}").resolve()
    if not runtime.exists(): skip(f"there is no simulated CUDA {major} in {RUNTIME}")
    with tempfile.TemporaryDirectory() as folder:
        missing_functions(pathlib.Path(folder), major)
        env = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{RUNTIME}",
               "LD_PRELOAD": f"{runtime} {folder}/libcuda.so.1"}
        tried = subprocess.run([sys.executable, "-c", NEEDED], env=env, capture_output=True, text=True)
        if "simulated" not in tried.stdout: skip("torch does not run on it: " + tried.stderr.strip().split("\n")[-1])
        failed = [(machine, script) for machine in MACHINES for script in SCRIPTS
                  if subprocess.run([sys.executable, HERE / script, MODULE, *TESTS],
                                    env={**env, "SIM_MACHINE": machine}).returncode]
    if failed: sys.exit(f"torch_simulated_test.py: failed: {failed}")


if __name__ == "__main__":
    main()
