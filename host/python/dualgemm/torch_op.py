"""torch.ops.dualgemm: the operators of the native library, loaded when this module is imported.

Their arguments are named as the fields of dualgemm.h, and README.md lists them. No Python runs in a call. This module
has the fake kernels by which torch.compile traces the operators: they ask the native library if sizes are numbers, and
compute shapes if sizes are symbols.

`direct` has the same operators as functions that cost less: torch_op.direct.linear_out(...)."""
import importlib.machinery
import importlib.util
import mmap
import os
import pathlib
import re
import sysconfig

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ._library import explained
from ._structures import DTYPE_FP8_E4M3, DTYPE_NVFP4, SCALE_ROW, SCALE_TENSOR

FILE = "libdualgemm_torch.so"
_MODULE = "PyInit__direct"
_ROW_BYTES = 16  # rows of an operator's results begin at multiples of so many bytes


def _candidates():
    """Returns files, in the order in which they are tried."""
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("DUALGEMM_TORCH_LIBRARY")
    if named: return [named]
    places = [here]
    if (here.parents[1] / "include/dualgemm.h").exists():  # the module runs from the sources
        places += [here.parents[2] / "build/lib", here.parents[2] / "build"]
    return [str(place / FILE) for place in places if (place / FILE).exists()]


def _problem(path):
    """Returns a sentence if the file was built with another CUDA than PyTorch, or is another library, else None. The
    file names the runtime that it asks for, and the function that makes a module of Python of it."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        named, ours = re.search(rb"\0libcudart\.so\.(\d+)\0", data), data.find(_MODULE.encode()) >= 0
        built = named and named[1].decode()
    theirs = (torch.version.cuda or "").split(".")[0]
    if not built or not theirs or built == theirs:
        return None if ours else f"{path} is another library: it has no operators for PyTorch"
    return (f"{path} was built with CUDA {built}, and this PyTorch with CUDA {torch.version.cuda}: install "
            f"dualgemm-cu{theirs} instead of dualgemm-cu{built}")


def _load():
    problems = []
    for path in _candidates():
        try:
            if problem := _problem(path):
                problems.append(problem)
                continue
            torch.ops.load_library(path)
            return path
        except (OSError, ValueError) as error:  # a file that is empty cannot be mapped
            problems.append(explained(path, str(error)))
    raise ImportError(f"{FILE} cannot be loaded (make torch builds it; DUALGEMM_TORCH_LIBRARY may name it)"
                      + "".join(f"; {problem}" for problem in problems))


_FILE = _load()


# ---- shapes where sizes are symbols ----

def _matrix(like, dtype, *shape):
    """Returns a matrix whose rows lie as far apart as those that tensor.cpp makes."""
    elements = _ROW_BYTES // dtype.itemsize
    pitch = (shape[-1] + elements - 1) // elements * elements
    stride = (pitch, 1) if len(shape) == 2 else (pitch * shape[1], pitch, 1)
    return torch.empty_strided(shape, stride, dtype=dtype, device=like.device)


def _atoms(like, problems, rows, k, groups):
    """Returns factors of rows of k elements. `groups` of OFFSETS may need more blocks than their rows fill."""
    blocks = (rows + 127 * (torch.sym_min(groups, rows) if groups else 1)) // 128
    return like.new_empty((*problems, blocks * ((k + 63) // 64) * 512), dtype=torch.uint8)


def _launch(a, b, out_dtype=torch.bfloat16, group_rows=None, **_):
    return _matrix(a, out_dtype, *a.shape[:-1], b.shape[-2])


def _launch_nvfp4(a, b, group_rows=None, **_):
    n, offsets = b.shape[-2], group_rows is not None and a.dim() == 2
    return (_matrix(a, torch.uint8, *a.shape[:-1], n // 2),
            _atoms(a, a.shape[:-2], a.shape[-2], n, b.shape[0] if offsets else 0))


def _quantize(x, scale_mode=0, row_index=None, group_rows=None, q_dtype=DTYPE_NVFP4, **_):
    rows, k, problems = x.shape[-2] if row_index is None else row_index.numel(), x.shape[-1], x.shape[:-2]
    groups = group_rows.numel() - 1 if group_rows is not None and x.dim() == 2 else 0
    scales = {SCALE_TENSOR: (3,), SCALE_ROW: (*problems, rows)}.get(scale_mode, (0,))
    if q_dtype == DTYPE_FP8_E4M3:
        q, sf = _matrix(x, torch.float8_e4m3fn, *problems, rows, k), x.new_empty((*problems, 0), dtype=torch.uint8)
    else: q, sf = _matrix(x, torch.uint8, *problems, rows, k // 2), _atoms(x, problems, rows, k, groups)
    return q, sf, x.new_empty(scales, dtype=torch.float32)


def _swizzle(src, group_rows=None, **_):
    groups = group_rows.numel() - 1 if group_rows is not None and src.dim() == 2 else 0
    return _atoms(src, src.shape[:-2], src.shape[-2], src.shape[-1] * 16, groups)


def _unswizzle(src, rows, k, **_):
    return src.new_empty((*src.shape[:-1], rows, k // 16), dtype=torch.uint8)


def _prepare_mxfp4(q, scales, **_):
    rows, atoms = (q.shape[-2] + 127) // 128, (2 * q.shape[-1] + 127) // 128  # of 128 rows by 128 elements
    return (q.new_empty((*q.shape[:-2], rows * atoms * 512), dtype=torch.float8_e8m0fnu),
            q.new_empty(q.shape[:-1], dtype=torch.int16), q.new_empty(4, dtype=torch.int32))


def _permute(topk_ids, topk_weights, experts, **_):
    ids, rows = topk_ids, topk_ids.numel()
    return (ids.new_empty(experts + 1), ids.new_empty(rows), ids.new_empty(ids.shape),
            ids.new_empty(0 if topk_weights is None else rows, dtype=torch.float32))


def _gather(x, row_index, **_):
    return _matrix(x, x.dtype, row_index.numel(), x.shape[1])


def _combine(c, token_row, out_dtype=None, **_):
    return _matrix(c, out_dtype or c.dtype, token_row.shape[0], c.shape[1])


def _of_b1(shapes):
    return lambda a, b1, **named: shapes(a, b1, **named)


_SHAPES = {"swiglu": _of_b1(_launch), "swiglu_nvfp4": _of_b1(_launch_nvfp4), "linear": _launch,
           "linear_nvfp4": _launch_nvfp4, "quantize": _quantize, "sf_swizzle": _swizzle, "sf_unswizzle": _unswizzle,
           "prepare_mxfp4": _prepare_mxfp4,
           "moe_permute": _permute, "moe_gather": _gather, "moe_combine": _combine,
           **dict.fromkeys(("swiglu_out", "linear_out", "quantize_out", "sf_swizzle_out", "sf_unswizzle_out",
                            "prepare_mxfp4_out", "moe_permute_out", "moe_gather_out", "moe_combine_out"),
                           lambda **_: None)}


# ---- fake kernels ----

def _symbolic(value):
    if isinstance(value, torch.Tensor): return any(map(_symbolic, (*value.shape, *value.stride())))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


def _without_memory(value):
    if not isinstance(value, torch.Tensor): return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _check_places(named):
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    first = next(iter(tensors))
    for name, tensor in tensors.items():
        if tensor.device != tensors[first].device:
            raise RuntimeError(f"{name}: lies on {tensor.device}, and {first} on {tensors[first].device}")
    return tensors[first].device


def _make_fake(name, overload, shapes):
    operator = getattr(getattr(torch.ops.dualgemm, name), overload)
    ask = getattr(getattr(torch.ops.dualgemm_meta, name), overload)
    names = [argument.name for argument in operator._schema.arguments]

    def fake(*args, **named):
        named = {**dict(zip(names, args)), **named}
        device = _check_places(named)
        if any(map(_symbolic, named.values())): return shapes(**named)
        with unset_fake_temporarily():
            made = ask(**{key: _without_memory(value) for key, value in named.items()})
        if made is None: return None
        results = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
                   for t in ((made,) if isinstance(made, torch.Tensor) else made)]
        return results[0] if isinstance(made, torch.Tensor) else tuple(results)

    torch.library.register_fake(operator._name, fake)


for _name, _shapes in _SHAPES.items():
    for _overload in getattr(torch.ops.dualgemm, _name).overloads(): _make_fake(_name, _overload, _shapes)


# ---- without the dispatcher ----

# Functions of torch._C. If one of them returns something true, PyTorch's dispatcher, or what lies in front of it, has
# to see all calls: a mode of torch functions or of operators is active, or torch.jit.trace is. A profiler has to see
# them, too; a variable of torch.autograd.profiler says whether one is active.
_WATCHERS = ("_is_torch_function_mode_enabled", "_len_torch_dispatch_stack", "_is_tracing")


def _arguments(schema):
    for each in schema.arguments:
        default = (each.default_value,) if each.has_default_value() else ()
        yield each.name, str(each.real_type), each.kwarg_only, *default


def _make_direct():
    """Returns the native library as a module of Python, with a function for each operator; or the operators themselves,
    if this Python or this PyTorch lacks what such a module needs."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"): return torch.ops.dualgemm  # it has another binary interface
    loader = importlib.machinery.ExtensionFileLoader("dualgemm._direct", _FILE)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    try:
        module._start(torch, tuple(getattr(torch._C, name) for name in _WATCHERS), torch.autograd.profiler,
                      "_is_profiler_enabled", torch._C._increment_version)
    except (AttributeError, ImportError):
        return torch.ops.dualgemm
    for name in _SHAPES:
        dispatched = getattr(torch.ops.dualgemm, name).default
        setattr(module, name, module._function(name, dispatched, tuple(_arguments(dispatched._schema)),
                                               str(dispatched._schema)))
    return module


direct = _make_direct()
