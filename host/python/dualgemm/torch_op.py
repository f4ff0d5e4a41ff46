"""torch.ops.dualgemm.swiglu, made when this module is imported.

A functional operator: it allocates C and returns it. torch.compile traces it by its fake kernel; tensors on a GPU go to
dualgemm_launch_ex on the current stream, those on the CPU to dualgemm_reference_host, which is exact and slow."""
from typing import Optional

import torch

from . import launch, reference_host
from ._tensors import View

# Types of C, and what n has to be a multiple of.
_COLUMNS = {torch.bfloat16: 8, torch.float16: 8, torch.float32: 4, torch.float8_e4m3fn: 8}
_PITCH = 16  # bytes of which rows and problems are whole multiples
_BYTES = (torch.uint8, torch.int8)  # of any meaning
_PACKED = tuple(getattr(torch, name) for name in ("uint8", "int8", "float4_e2m1fn_x2") if hasattr(torch, name))
_WIDE = (torch.bfloat16, torch.float16)


def _check_type(name, tensor, types):
    torch._check(tensor.dtype in types,
                 lambda: f"{name}: its elements are {tensor.dtype}, and must be one of {', '.join(map(str, types))}")


def _check_matrix(name, tensor, types):
    """One whose rows, and whose problems in front of them, lie where the library can read them."""
    _check_type(name, tensor, types)
    torch._check(tensor.dim() in (2, 3), lambda: f"{name}: has {tensor.dim()} dimensions, and a matrix has 2, or 3 "
                 "with one for problems")
    if tensor.numel() == 0: return  # then strides say nothing
    (problems, rows, columns), (stride, pitch, step) = (1, *tensor.shape)[-3:], (0, *tensor.stride())[-3:]
    if rows == 1: pitch = columns
    size = (rows - 1) * pitch + columns  # of one problem
    torch._check((columns == 1 or step == 1) and pitch >= columns and (problems == 1 or stride >= size),
                 lambda: f"{name}: the strides {tuple(tensor.stride())} are not those of rows one behind the other")
    for what, distance in ("rows", pitch), ("problems", stride if problems > 1 else 0):
        bytes_apart = distance * tensor.element_size()
        torch._check(bytes_apart % _PITCH == 0, lambda: f"{name}: {what} must begin at multiples of {_PITCH} bytes, "
                     f"and are {bytes_apart} apart")


def _check_vector(name, tensor, types, size, ordered=True):
    """One of `size` bytes without gaps, in the order of its elements if that counts."""
    _check_type(name, tensor, types)
    torch._check(View(0, tuple(tensor.shape), tensor.stride()).gapless(ordered),
                 lambda: f"{name}: its elements lie without gaps, and its strides are {tuple(tensor.stride())}")
    has = tensor.numel() * tensor.element_size()
    torch._check(has >= size, lambda: f"{name}: has {has} bytes, and {size} are needed")


def _check_factors(name, tensor, matrix, k):
    problems, rows, _ = (1, *matrix.shape)[-3:]
    _check_vector(name, tensor, (*_BYTES, torch.float8_e4m3fn),
                  problems * ((rows + 127) // 128) * ((k + 63) // 64) * 512, ordered=False)


def _checked(a, b1, b2, sfa, sfb1, sfb2, out_dtype, **alphas):
    """Returns n, if places, shapes, strides and types are those of a launch."""
    for name, tensor in dict(b1=b1, b2=b2, sfa=sfa, sfb1=sfb1, sfb2=sfb2, **alphas).items():
        if tensor is None: continue
        torch._check(tensor.device == a.device, lambda: f"{name}: lies on {tensor.device}, and a on {a.device}")
    torch._check(out_dtype in _COLUMNS, lambda: f"out_dtype={out_dtype}: must be one of "
                 + ", ".join(map(str, _COLUMNS)))
    _check_matrix("a", a, (*_PACKED, *_WIDE))
    for name, tensor in ("b1", b1), ("b2", b2): _check_matrix(name, tensor, _PACKED)
    wide = a.dtype in _WIDE
    n, k, multiple = b1.shape[-2], b1.shape[-1] * 2, _COLUMNS[out_dtype]
    torch._check(a.shape[-1] * (1 if wide else 2) == k and b1.shape == b2.shape,
                 lambda: "a, b1 and b2 have one k, b1 and b2 one n")
    problems = [(1, *tensor.shape)[-3] for tensor in (a, b1)]
    torch._check(problems[0] == problems[1],
                 lambda: f"a has {problems[0]} problems, b1 and b2 have {problems[1]}")
    torch._check(k % 16 == 0, lambda: f"k={k}: must be a multiple of 16")
    torch._check(n % multiple == 0, lambda: f"n={n}: must be a multiple of {multiple} with out_dtype={out_dtype}")
    torch._check((sfa is None) == wide, lambda: f"sfa: must be {'None' if wide else 'given'} with an a of {a.dtype}")
    for name, tensor, matrix in ("sfa", sfa, a), ("sfb1", sfb1, b1), ("sfb2", sfb2, b2):
        if tensor is not None: _check_factors(name, tensor, matrix, k)
    for name, tensor in alphas.items():
        if tensor is not None: _check_vector(name, tensor, (*_BYTES, torch.float32), 4)
    return n


def _empty(a, b1, b2, sfa, sfb1, sfb2, out_dtype, **alphas):
    """C before the launch, of which all kernels of the operator give the same shape and strides, or the same refusal.
    Where rows of n elements do not begin at multiples of 16 bytes, there are gaps between them."""
    n = _checked(a, b1, b2, sfa, sfb1, sfb2, out_dtype, **alphas)
    elements = _PITCH // out_dtype.itemsize
    if n % elements == 0: return a.new_empty((*a.shape[:-1], n), dtype=out_dtype)
    return a.new_empty((*a.shape[:-1], (n + elements - 1) // elements * elements), dtype=out_dtype)[..., :n]


def _given(**optional):
    return {name: tensor for name, tensor in optional.items() if tensor is not None}


def _on_gpu(a: torch.Tensor, b1: torch.Tensor, b2: torch.Tensor, sfa: Optional[torch.Tensor], sfb1: torch.Tensor,
            sfb2: torch.Tensor, alpha1: float = 1.0, alpha2: float = 1.0, out_dtype: torch.dtype = torch.bfloat16,
            alpha1_dev: Optional[torch.Tensor] = None, alpha2_dev: Optional[torch.Tensor] = None) -> torch.Tensor:
    """C [m, n] of bfloat16, float16, float32 or float8_e4m3fn from a [m, k / 2], b1 and b2 [n, k / 2], of uint8 or
    float4_e2m1fn_x2, and their factors in 128x4 atoms; all with one more dimension in front for a batch. On Hopper a
    may be [m, k] of bfloat16 or float16, and sfa None. Rows of all begin at multiples of 16 bytes. All kernels refuse
    the same places, shapes, strides and types; what an address or the GPU decides, a launch alone can."""
    out = _empty(a, b1, b2, sfa, sfb1, sfb2, out_dtype, alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev)
    with torch.cuda.device(a.device):
        return launch(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2, stream=torch.cuda.current_stream(),
                      **_given(alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev))


swiglu = torch.library.custom_op("dualgemm::swiglu", _on_gpu, mutates_args=(), device_types="cuda")


@swiglu.register_kernel("cpu")
def _(a, b1, b2, sfa, sfb1, sfb2, alpha1=1.0, alpha2=1.0, out_dtype=torch.bfloat16, alpha1_dev=None, alpha2_dev=None):
    out = _empty(a, b1, b2, sfa, sfb1, sfb2, out_dtype, alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev)
    return reference_host(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2,
                          **_given(alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev))


@swiglu.register_fake
def _(a, b1, b2, sfa, sfb1, sfb2, alpha1=1.0, alpha2=1.0, out_dtype=torch.bfloat16, alpha1_dev=None, alpha2_dev=None):
    return _empty(a, b1, b2, sfa, sfb1, sfb2, out_dtype, alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev)
