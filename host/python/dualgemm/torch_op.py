"""torch.ops.dualgemm.swiglu, made when this module is imported.

A functional operator: it allocates C and returns it. torch.compile traces it by its fake kernel; tensors on a GPU go to
dualgemm_launch_ex on the current stream, those on the CPU to dualgemm_reference_host, which is exact and slow."""
from typing import Optional

import torch

from . import launch, reference_host


def _empty(a, b1, out_dtype):
    return a.new_empty((*a.shape[:-1], b1.shape[-2]), dtype=out_dtype)


def _given(**optional):
    return {name: tensor for name, tensor in optional.items() if tensor is not None}


def _on_gpu(a: torch.Tensor, b1: torch.Tensor, b2: torch.Tensor, sfa: Optional[torch.Tensor], sfb1: torch.Tensor,
            sfb2: torch.Tensor, alpha1: float = 1.0, alpha2: float = 1.0, out_dtype: torch.dtype = torch.bfloat16,
            alpha1_dev: Optional[torch.Tensor] = None, alpha2_dev: Optional[torch.Tensor] = None) -> torch.Tensor:
    """C [m, n] of bfloat16, float16, float32 or float8_e4m3fn from a [m, k / 2], b1 and b2 [n, k / 2], of uint8 or
    float4_e2m1fn_x2, and their factors in 128x4 atoms; all with one more dimension in front for a batch. On Hopper a
    may be [m, k] of bfloat16 or float16, and sfa None."""
    out = _empty(a, b1, out_dtype)
    with torch.cuda.device(a.device):
        return launch(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2, stream=torch.cuda.current_stream(),
                      **_given(alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev))


swiglu = torch.library.custom_op("dualgemm::swiglu", _on_gpu, mutates_args=(), device_types="cuda")


@swiglu.register_kernel("cpu")
def _(a, b1, b2, sfa, sfb1, sfb2, alpha1=1.0, alpha2=1.0, out_dtype=torch.bfloat16, alpha1_dev=None, alpha2_dev=None):
    return reference_host(a, b1, b2, sfa, sfb1, sfb2, _empty(a, b1, out_dtype), alpha1, alpha2,
                          **_given(alpha1_dev=alpha1_dev, alpha2_dev=alpha2_dev))


@swiglu.register_fake
def _(a, b1, b2, sfa, sfb1, sfb2, alpha1=1.0, alpha2=1.0, out_dtype=torch.bfloat16, alpha1_dev=None, alpha2_dev=None):
    per_byte = 1 if a.dtype in (torch.bfloat16, torch.float16) else 2
    torch._check(a.shape[-1] * per_byte == b1.shape[-1] * 2 and b1.shape == b2.shape,
                 lambda: "a, b1 and b2 have one k, b1 and b2 one n")
    return _empty(a, b1, out_dtype)
