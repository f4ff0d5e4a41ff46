"""MXFP4 weights as checkpoints hold them, [..., n, k/2] elements and [..., n, k/32] bytes of E8M0, in the forms that
launches take, and back.

A launch with an A in FP8 takes atoms of E8M0 and an exponent for each row (prepare_mxfp4). Any other launch takes NVFP4
factors and one number for the weight (to_nvfp4). Blocks of zeros lose their byte in both forms, and so may other
blocks. `lost` says which bytes of a checkpoint a form does not give back."""
import torch

ops = torch.ops.dualgemm
BLOCK = 32
_BIAS = 127       # of a byte of E8M0
_NAN = 0xFF
_LEAST, _MOST = -9, 8  # exponents of the powers of two that UE4M3 holds


def as_bytes(factors):
    return factors.view(torch.uint8)


def _of_power(exponent):
    """Returns the bytes of UE4M3 that stand for 2^exponent, normal from 2^-6 on."""
    return torch.where(exponent > -7, (exponent + 7) << 3, torch.ones_like(exponent) << (exponent - _LEAST).clamp(0, 2))


def _power_of(byte):
    return torch.where(byte > 7, (byte >> 3) - 7, (byte >> 1) + _LEAST)


def to_nvfp4(elements, factors, check):
    """Returns factors of NVFP4 [..., n, k/16], and the number [...] that each matrix is multiplied by, without loss.
    Where the factors of one matrix lie too far apart, there is no such form: with `check`, which waits for a GPU, that
    is a ValueError."""
    exponent = as_bytes(factors).int() - _BIAS
    zero = (as_bytes(elements) & 0x77).unflatten(-1, (-1, BLOCK // 2)).amax(-1) == 0
    largest = exponent.masked_fill(zero, -_BIAS).amax((-2, -1), keepdim=True)
    scale = (largest - _MOST).clamp(1 - _BIAS)  # of a normal number
    power = (exponent - scale).masked_fill(zero, 0)
    if check:
        if bool(((exponent == _NAN - _BIAS) & ~zero).any()): raise ValueError("has a factor that is NaN")
        if (least := int(power.amin())) < _LEAST:
            raise ValueError(f"has factors 2^{_MOST - least} apart, and NVFP4 holds 2^{_MOST - _LEAST}: as it is, it "
                             "needs a_format='fp8' and compute capability 9.0")
    made = _of_power(power).masked_fill(zero, 0).to(torch.uint8).view(torch.float8_e4m3fn)
    return (made.view(torch.uint8).repeat_interleave(2, -1).view(torch.float8_e4m3fn),
            ((scale + _BIAS) << 23).view(torch.float32).flatten())


def from_nvfp4(atoms, decode, n, k):
    """Returns the bytes of E8M0 that to_nvfp4 was given, but for those that are lost."""
    power = _power_of(ops.sf_unswizzle(atoms, n, k)[..., ::2].int())
    scale = (decode.view(torch.int32) >> 23) - _BIAS
    return (power + (scale if power.dim() == 2 else scale.reshape(-1, 1, 1)) + _BIAS).to(torch.uint8)


def from_prepared(atoms, exponents, n, k):
    """Returns the bytes of E8M0 that prepare_mxfp4 was given, but for those that are lost. Atoms of 32 elements for
    each factor lie as those of half as many elements with 16."""
    byte = ops.sf_unswizzle(as_bytes(atoms), n, k // 2)
    return torch.where(byte == _NAN, byte, (byte.int() + exponents.int().unsqueeze(-1)).to(torch.uint8))


def lost(given, restored):
    """Returns where the bytes of a checkpoint differ from those that a form gives back, and what they are there."""
    given = as_bytes(given).contiguous().flatten()
    places = (given != restored.flatten()).nonzero().flatten()
    return places, given[places]
