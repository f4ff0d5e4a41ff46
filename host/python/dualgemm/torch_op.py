"""torch.ops.dualgemm.swiglu, made when this module is imported.

A functional operator: it allocates C and returns it. torch.compile traces it by its fake kernel; tensors on a GPU go to
dualgemm_launch_ex on the current stream, those on the CPU to dualgemm_reference_host, which is exact and slow."""
from typing import Optional

import torch

from . import launch, reference_host

# Types of C, and what n has to be a multiple of.
_COLUMNS = {torch.bfloat16: 8, torch.float16: 8, torch.float32: 4, torch.float8_e4m3fn: 8}
_PITCH = 16  # bytes of which rows are whole multiples


def _pitch(name, tensor):
    """Checks that rows begin where the library can read them."""
    pitch = (tensor.stride(-2) if tensor.shape[-2] > 1 else tensor.shape[-1]) * tensor.element_size()
    torch._check(pitch % _PITCH == 0,
                 lambda: f"{name}: rows must begin at multiples of {_PITCH} bytes, and are {pitch} apart")


def _empty(a, b1, b2, out_dtype):
    """C before the launch, of which all kernels of the operator give the same shape and strides, or the same refusal.
    Where rows of n elements do not begin at multiples of 16 bytes, there are gaps between them."""
    per_byte = 1 if a.dtype in (torch.bfloat16, torch.float16) else 2
    torch._check(a.shape[-1] * per_byte == b1.shape[-1] * 2 and b1.shape == b2.shape,
                 lambda: "a, b1 and b2 have one k, b1 and b2 one n")
    torch._check(out_dtype in _COLUMNS, lambda: f"out_dtype={out_dtype}: must be one of "
                 + ", ".join(map(str, _COLUMNS)))
    n, multiple = b1.shape[-2], _COLUMNS[out_dtype]
    torch._check(n % multiple == 0, lambda: f"n={n}: must be a multiple of {multiple} with out_dtype={out_dtype}")
    for name, tensor in (("a", a), ("b1", b1), ("b2", b2)): _pitch(name, tensor)
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
    may be [m, k] of bfloat16 or float16, and sfa None. Rows of all begin at multiples of 16 bytes."""
    out = _empty(a, b1, b2, out_dtype)
    with torch.cuda.device(a.device):
        return launch(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2, stream=torch.cuda.current_stream(),
                      **_given(alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev))


swiglu = torch.library.custom_op("dualgemm::swiglu", _on_gpu, mutates_args=(), device_types="cuda")


@swiglu.register_kernel("cpu")
def _(a, b1, b2, sfa, sfb1, sfb2, alpha1=1.0, alpha2=1.0, out_dtype=torch.bfloat16, alpha1_dev=None, alpha2_dev=None):
    return reference_host(a, b1, b2, sfa, sfb1, sfb2, _empty(a, b1, b2, out_dtype), alpha1, alpha2,
                          **_given(alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev))


@swiglu.register_fake
def _(a, b1, b2, sfa, sfb1, sfb2, alpha1=1.0, alpha2=1.0, out_dtype=torch.bfloat16, alpha1_dev=None, alpha2_dev=None):
    return _empty(a, b1, b2, out_dtype)
