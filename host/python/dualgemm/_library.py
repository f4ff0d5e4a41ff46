"""Loads libdualgemm.so.0: where it is, what its functions take, and how its errors become exceptions."""
import ctypes
import ctypes.util
import functools
import os
import pathlib
import re
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p

from . import _structures as s

FILE = "libdualgemm.so.0"

# What every function returns, and its arguments. _STATUS is a status, which is checked.
_STATUS = object()
_PROTOTYPES = {
    "status_name": (c_char_p, [c_int]),
    "status_string": (c_char_p, [c_int]),
    "last_error": (c_char_p, []),
    "last_cuda_error": (c_int, []),
    "version": (c_int, []),
    "build_info": (c_char_p, []),
    "args_init_sized": (None, [POINTER(s.Args), c_size_t]),
    "device_init_sized": (None, [POINTER(s.Device), c_size_t]),
    "instance_info_init_sized": (None, [POINTER(s.InstanceInfo), c_size_t]),
    "sf_args_init_sized": (None, [POINTER(s.SfArgs), c_size_t]),
    "quantize_args_init_sized": (None, [POINTER(s.QuantizeArgs), c_size_t]),
    "prepare_mxfp4_args_init_sized": (None, [POINTER(s.PrepareMxfp4Args), c_size_t]),
    "moe_permute_args_init_sized": (None, [POINTER(s.MoePermuteArgs), c_size_t]),
    "moe_gather_args_init_sized": (None, [POINTER(s.MoeGatherArgs), c_size_t]),
    "moe_combine_args_init_sized": (None, [POINTER(s.MoeCombineArgs), c_size_t]),
    "launch": (_STATUS, [c_void_p] * 7 + [c_int32] * 3 + [c_float] * 2 + [c_int, c_void_p]),
    "launch_linear": (_STATUS, [c_void_p] * 5 + [c_int32] * 3 + [c_float, c_int, c_void_p]),
    "launch_ex": (_STATUS, [POINTER(s.Args), c_void_p]),
    "try_launch": (_STATUS, [POINTER(s.Args), POINTER(c_size_t), c_void_p]),
    "init": (_STATUS, []),
    "current_device": (_STATUS, [POINTER(s.Device)]),
    "can_implement": (_STATUS, [POINTER(s.Args)]),
    "can_implement_on": (_STATUS, [POINTER(s.Args), POINTER(s.Device)]),
    "workspace_size": (_STATUS, [POINTER(s.Args), POINTER(c_size_t)]),
    "instance_count": (c_int32, []),
    "instance_info": (_STATUS, [c_int32, POINTER(s.InstanceInfo)]),
    "select_instance": (_STATUS, [POINTER(s.Args), POINTER(s.Device), POINTER(c_int32)]),
    "sf_size": (c_size_t, [c_int32] * 2),
    "sf_offset": (c_int64, [c_int32] * 4),
    "sf_size_of": (c_size_t, [c_int, c_int32, c_int32]),
    "sf_offset_of": (c_int64, [c_int] + [c_int32] * 4),
    "global_scale_host": (_STATUS, [c_void_p, c_int32, c_int32, c_int64, POINTER(c_float)]),
    "quantize_host": (_STATUS, [c_void_p, c_int32, c_int32, c_int64, c_float, c_void_p, c_int64, c_void_p]),
    "dequantize_host": (_STATUS, [c_void_p, c_int64, c_void_p, c_int32, c_int32, c_float, c_void_p, c_int64]),
    "sf_swizzle": (_STATUS, [POINTER(s.SfArgs), c_void_p]),
    "sf_swizzle_host": (_STATUS, [POINTER(s.SfArgs)]),
    "sf_unswizzle": (_STATUS, [POINTER(s.SfArgs), c_void_p]),
    "sf_unswizzle_host": (_STATUS, [POINTER(s.SfArgs)]),
    "quantize": (_STATUS, [POINTER(s.QuantizeArgs), c_void_p]),
    "quantize_host_ex": (_STATUS, [POINTER(s.QuantizeArgs)]),
    "prepare_mxfp4": (_STATUS, [POINTER(s.PrepareMxfp4Args), c_void_p]),
    "prepare_mxfp4_host": (_STATUS, [POINTER(s.PrepareMxfp4Args)]),
    "moe_permute": (_STATUS, [POINTER(s.MoePermuteArgs), c_void_p]),
    "moe_permute_host": (_STATUS, [POINTER(s.MoePermuteArgs)]),
    "moe_gather": (_STATUS, [POINTER(s.MoeGatherArgs), c_void_p]),
    "moe_gather_host": (_STATUS, [POINTER(s.MoeGatherArgs)]),
    "moe_combine": (_STATUS, [POINTER(s.MoeCombineArgs), c_void_p]),
    "moe_combine_host": (_STATUS, [POINTER(s.MoeCombineArgs)]),
    "sf_split_host": (_STATUS, [c_void_p, c_int32, c_int32, c_int, c_void_p, c_void_p]),
    "import_gguf_host": (_STATUS, [c_void_p, c_int64, c_int32, c_int32, c_void_p, c_int64, c_void_p]),
    "import_mxfp4_host": (_STATUS, [c_void_p, c_int64, c_void_p, c_int64, c_int32, c_int32, c_void_p,
                                    POINTER(c_float)]),
    "reference_host": (_STATUS, [POINTER(s.Args), c_void_p]),
    "load_tuning": (_STATUS, [c_char_p]),
    "tuning_info_init_sized": (None, [POINTER(s.TuningInfo), c_size_t]),
    "tuning_info": (_STATUS, [POINTER(s.TuningInfo)]),
}


class Error(RuntimeError):
    """A status other than SUCCESS: its number, its name, and the CUDA error behind it where there is one."""

    def __init__(self, status):
        library = load()
        self.status = status
        self.name = library.dualgemm_status_name(status).decode()
        self.cuda_error = library.dualgemm_last_cuda_error() if self.name.endswith("_CUDA_ERROR") else 0
        said = library.dualgemm_last_error() or library.dualgemm_status_string(status)
        super().__init__(f"{self.name}: {said.decode()}")


def _check(status, _function, _arguments):
    if status != s.STATUS_SUCCESS: raise Error(status)


def _candidates():
    """Returns files and names, in the order in which they are tried."""
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("DUALGEMM_LIBRARY")
    if named: return [named]
    beside = [here / FILE]
    if (here.parents[1] / "include/dualgemm.h").exists():  # the module runs from the sources
        beside += [here.parents[2] / "build/lib" / FILE, here.parents[2] / "build" / FILE]
    installed = [ctypes.util.find_library("dualgemm"), FILE]
    return [str(path) for path in beside if path.exists()] + [name for name in installed if name]


def explained(file, problem):
    """Returns what the loader says of a file. If it finds no CUDA runtime for the file, the text says what brings
    one."""
    missing = re.match(r"(libcudart\.so\.(\d+)): cannot open", problem)
    if not missing: return problem
    runtime, major = missing.groups()
    package = "nvidia-cuda-runtime-cu12" if major == "12" else "nvidia-cuda-runtime"
    return (f"{file} was built with CUDA {major}, and there is no {runtime}: pip install '{package}=={major}.*', or "
            f"for another CUDA the package dualgemm-cu12 or dualgemm-cu13 instead of this one")


@functools.lru_cache(maxsize=None)
def load():
    """Returns the library with its prototypes. The first call loads it."""
    problems = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            problems.append(explained(name, str(error)))
            continue
        for function, (result, arguments) in _PROTOTYPES.items():
            entry = getattr(library, f"dualgemm_{function}")
            entry.argtypes = arguments
            entry.restype = c_int if result is _STATUS else result
            if result is _STATUS: entry.errcheck = _check
        return library
    raise ImportError(f"{FILE} cannot be loaded; DUALGEMM_LIBRARY may name it. Tried: " + "; ".join(problems))


@functools.lru_cache(maxsize=None)
def cuda_runtime():
    """Returns the CUDA runtime that the library uses: libcudart.so of its version, which is loaded with it."""
    version = re.search(r"CUDART_VERSION (\d+)", load().dualgemm_build_info().decode())
    return ctypes.CDLL(f"libcudart.so.{int(version[1]) // 1000}")
