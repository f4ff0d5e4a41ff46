"""libdualgemm from Python: C = silu(alpha1 * A * B1^T) * (alpha2 * A * B2^T) in NVFP4, in one kernel.

Tensors come as they are, from torch, cupy, jax, or as addresses; neither torch nor numpy is needed. dualgemm.h
documents what every function and field means. README.md says how Python's functions correspond to the header's."""
import ctypes as _ctypes
import os as _os

from . import _rules
from ._arguments import (arguments, beside as _beside, complete as _complete, fill as _fill, in_place as _in_place,
                         initialised as _initialised, integer as _integer)
from ._library import Error, cuda_runtime, load  # noqa: F401
from ._prepared import Prepared
from ._structures import *  # noqa: F401,F403 -- the numbers of the header
from ._structures import (DTYPE_FP32, Device, InstanceInfo, MoeCombineArgs, MoeGatherArgs, MoePermuteArgs,
                          PrepareMxfp4Args, QuantizeArgs, SfArgs, TuningInfo)
from ._tensors import CPU as _CPU, CUDA as _CUDA, stream_handle as _stream


def launch(a, b1, b2, sfa, sfb1, sfb2, out, alpha1=1.0, alpha2=1.0, *, stream=0, **fields):
    """Calls dualgemm_launch_ex on `stream`, which is asynchronous: the caller keeps the tensors. Returns `out`."""
    args = _in_place(arguments(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2, **fields), _CUDA)
    load().dualgemm_launch_ex(args, _stream(stream))
    return out


def launch_linear(a, b, sfa, sfb, out, alpha=1.0, *, stream=0, **fields):
    """Computes one product, C = alpha * A * B^T: dualgemm_launch_ex with products = 1. Returns `out`."""
    args = _in_place(arguments(a, b, None, sfa, sfb, None, out, alpha, products=1, **fields), _CUDA)
    load().dualgemm_launch_ex(args, _stream(stream))
    return out


def prepare(a, b1, b2, sfa, sfb1, sfb2, out, alpha1=1.0, alpha2=1.0, **fields):
    """Returns a Prepared. `prepared(stream=...)` does what launch() of these arguments does, in a small part of its
    time, and `prepared(a=x, out=y)` does it with other tensors."""
    return Prepared(arguments(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2, **fields))


def prepare_linear(a, b, sfa, sfb, out, alpha=1.0, **fields):
    """Returns what prepare() returns, for launch_linear()."""
    return Prepared(arguments(a, b, None, sfa, sfb, None, out, alpha, products=1, **fields))


def reference_host(a, b1, b2, sfa, sfb1, sfb2, out, alpha1=1.0, alpha2=1.0, *, y=None, **fields):
    """Calls dualgemm_reference_host, which computes a launch over host memory, exactly and slowly. Returns `out`."""
    args = arguments(a, b1, b2, sfa, sfb1, sfb2, out, alpha1, alpha2, **fields)
    y = _beside(args, "y", y, _rules.Y)
    load().dualgemm_reference_host(_in_place(args, _CPU), y)
    return out


def can_implement_on(args, device):
    """Raises the Error that a launch with these arguments() would raise on this device()."""
    load().dualgemm_can_implement_on(args, device)


def select_instance(args, device):
    """Returns the id of the kernel that a launch with these arguments() runs on this device(), 0 if it runs none."""
    chosen = _ctypes.c_int32()
    load().dualgemm_select_instance(args, device, chosen)
    return chosen.value


def instance_info(instance_id):
    """Returns what the kernel of this id is and costs; ids are 1 .. instance_count()."""
    info = _initialised(InstanceInfo)
    load().dualgemm_instance_info(_integer("instance_id", instance_id), info)
    return info


def instance_count():
    """Returns how many kernels the library has."""
    return load().dualgemm_instance_count()


def load_tuning(path=None):
    """Makes launches go by this tuning file from now on, or by none if there is no path. Raises an Error if the file is
    refused."""
    load().dualgemm_load_tuning(None if path is None else _os.fsencode(path))


def tuning_info():
    """Returns which tuning file launches on the current device go by, and what became of the last file that was
    read."""
    info = _initialised(TuningInfo)
    load().dualgemm_tuning_info(info)
    return info


def device(**fields):
    """Returns the description of a device that need not be there: device(cc_major=10, sm_count=148,
    driver_version=13000) is a B200."""
    return _fill(_initialised(Device), fields)


def current_device():
    """Returns the description of the calling thread's current device."""
    found = _initialised(Device)
    load().dualgemm_current_device(found)
    return found


def init():
    """Calls dualgemm_init, which loads every kernel now."""
    load().dualgemm_init()


def version():
    """Returns the version of the library that was found: (major, minor, patch)."""
    number = load().dualgemm_version()
    return number // 10000, number // 100 % 100, number % 100


def build_info():
    """Returns which CUDA and which architectures the library was built for."""
    return load().dualgemm_build_info().decode()


def sf_size(rows, k):
    """Returns the bytes of the factors of a matrix in 128x4 atoms."""
    return load().dualgemm_sf_size(_integer("rows", rows), _integer("k", k))


def sf_size_of(dtype, rows, k):
    """Returns the same for the factors of DTYPE_NVFP4 or DTYPE_MXFP4."""
    return load().dualgemm_sf_size_of(_integer("dtype", dtype), _integer("rows", rows), _integer("k", k))


def _quantize_args(x, q, sf, fields, kind):
    rules = _rules.QUANTIZE if fields.get("row_index") is None else _rules.GATHER
    return _in_place(_complete(QuantizeArgs, rules, {"x": x, "q": q, "sf": sf, **fields}), kind)


def quantize(x, q, sf=None, *, stream=0, **fields):
    """Calls dualgemm_quantize, which makes packed E2M1 and factors of x [rows, k], or FP8 without factors.

    The fields are those of dualgemm_quantize_args_t. Tensors of two or three dimensions give rows, k, batch or groups,
    pitches, strides, x_dtype and q_dtype, unless a field gives them; bytes in q are E2M1 unless q_dtype says FP8. With
    OFFSETS `groups` has to be given. With a row_index `rows` is the number of q's rows, and `x_rows` that of x's."""
    load().dualgemm_quantize(_quantize_args(x, q, sf, fields, _CUDA), _stream(stream))


def quantize_host(x, q, sf=None, **fields):
    """Calls dualgemm_quantize_host_ex, which does what quantize does, over host memory."""
    load().dualgemm_quantize_host_ex(_quantize_args(x, q, sf, fields, _CPU))


def global_scale_host(x, rows, k, ldx=0):
    """Returns dualgemm_global_scale_host of fp32 in host memory. With ldx = 0 the pitch is that of an x of two
    dimensions."""
    fields = {"rows": rows, "k": k, "batch": 1, "x_dtype": DTYPE_FP32, **({"ldx": ldx} if ldx else {})}
    args, scale = _quantize_args(x, None, None, fields, _CPU), _ctypes.c_float()
    load().dualgemm_global_scale_host(args.x, args.rows, args.k, args.ldx, scale)
    return scale.value


def _sf_args(rules, src, dst, rows, k, fields, kind):
    return _in_place(_complete(SfArgs, rules, {"src": src, "dst": dst, "rows": rows, "k": k, **fields}), kind)


def sf_swizzle(src, dst, rows, k, *, stream=0, **fields):
    """Calls dualgemm_sf_swizzle, which moves factors from rows, as checkpoints hold them, to 128x4 atoms."""
    load().dualgemm_sf_swizzle(_sf_args(_rules.SWIZZLE, src, dst, rows, k, fields, _CUDA), _stream(stream))


def sf_swizzle_host(src, dst, rows, k, **fields):
    """Does what sf_swizzle does, over host memory."""
    load().dualgemm_sf_swizzle_host(_sf_args(_rules.SWIZZLE, src, dst, rows, k, fields, _CPU))


def sf_unswizzle(src, dst, rows, k, *, stream=0, **fields):
    """Calls dualgemm_sf_unswizzle, which moves factors from 128x4 atoms to rows."""
    load().dualgemm_sf_unswizzle(_sf_args(_rules.UNSWIZZLE, src, dst, rows, k, fields, _CUDA), _stream(stream))


def sf_unswizzle_host(src, dst, rows, k, **fields):
    """Does what sf_unswizzle does, over host memory."""
    load().dualgemm_sf_unswizzle_host(_sf_args(_rules.UNSWIZZLE, src, dst, rows, k, fields, _CPU))


def _mxfp4_args(q, scales, sf, row_exponent, fields, kind):
    return _in_place(_complete(PrepareMxfp4Args, _rules.PREPARE_MXFP4,
                               {"q": q, "scales": scales, "sf": sf, "row_exponent": row_exponent, **fields}), kind)


def prepare_mxfp4(q, scales, sf, row_exponent, *, stream=0, **fields):
    """Calls dualgemm_prepare_mxfp4, which makes the factors and row exponents of a launch of MXFP4 as checkpoints hold
    it. q [rows, k / 2] stays what B is; three dimensions are several matrices."""
    load().dualgemm_prepare_mxfp4(_mxfp4_args(q, scales, sf, row_exponent, fields, _CUDA), _stream(stream))


def prepare_mxfp4_host(q, scales, sf, row_exponent, **fields):
    """Does what prepare_mxfp4 does, over host memory."""
    load().dualgemm_prepare_mxfp4_host(_mxfp4_args(q, scales, sf, row_exponent, fields, _CPU))


def _permute_args(topk_ids, experts, group_rows, row_token, token_row, fields, kind):
    return _in_place(_complete(MoePermuteArgs, _rules.PERMUTE,
                               {"topk_ids": topk_ids, "experts": experts, "group_rows": group_rows,
                                "row_token": row_token, "token_row": token_row, **fields}), kind)


def moe_permute(topk_ids, experts, group_rows, row_token, token_row, *, stream=0, **fields):
    """Calls dualgemm_moe_permute, which turns the router's choices [tokens, top_k] into rows of the experts."""
    args = _permute_args(topk_ids, experts, group_rows, row_token, token_row, fields, _CUDA)
    load().dualgemm_moe_permute(args, _stream(stream))


def moe_permute_host(topk_ids, experts, group_rows, row_token, token_row, **fields):
    """Does what moe_permute does, over host memory."""
    load().dualgemm_moe_permute_host(_permute_args(topk_ids, experts, group_rows, row_token, token_row, fields, _CPU))


def _gather_args(x, row_index, out, fields, kind):
    return _in_place(_complete(MoeGatherArgs, _rules.ROWS_BY_INDEX,
                               {"x": x, "row_index": row_index, "out": out, **fields}), kind)


def moe_gather(x, row_index, out, *, stream=0, **fields):
    """Calls dualgemm_moe_gather, which copies rows of x by their index to an A of 16 bits. Returns `out`."""
    load().dualgemm_moe_gather(_gather_args(x, row_index, out, fields, _CUDA), _stream(stream))
    return out


def moe_gather_host(x, row_index, out, **fields):
    """Does what moe_gather does, over host memory. Returns `out`."""
    load().dualgemm_moe_gather_host(_gather_args(x, row_index, out, fields, _CPU))
    return out


def _combine_args(c, token_row, out, fields, kind):
    return _in_place(_complete(MoeCombineArgs, _rules.COMBINE, {"c": c, "token_row": token_row, "out": out, **fields}),
                     kind)


def moe_combine(c, token_row, out, *, stream=0, **fields):
    """Calls dualgemm_moe_combine, which adds up each token's rows of the experts. Returns `out`."""
    load().dualgemm_moe_combine(_combine_args(c, token_row, out, fields, _CUDA), _stream(stream))
    return out


def moe_combine_host(c, token_row, out, **fields):
    """Does what moe_combine does, over host memory. Returns `out`."""
    load().dualgemm_moe_combine_host(_combine_args(c, token_row, out, fields, _CPU))
    return out
