"""Checks options of layers. Whoever takes an option checks it here, so that a wrong one is refused where it is
given."""
from .. import _structures

OF_NVFP4 = ("auto", "16bit", "nvfp4")  # what A may be where weights are NVFP4
A_FORMATS = (*OF_NVFP4, "fp8")
_FLAGS = {name: bit for name, bit in vars(_structures).items() if name.startswith("FLAG_")}


def check_one_of(name, value, known):
    if value not in tuple(known): raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(repr, known))}")


def check_a_format(value, known=A_FORMATS):
    check_one_of("a_format", value, known)


def check_flags(value):
    """Checks that flags are an integer, which True is not, and have no other bits than those of FLAG_*."""
    if type(value) is not int or value & ~sum(_FLAGS.values()):
        raise ValueError(f"flags={value!r}: must be 0, or a sum of {', '.join(_FLAGS)}")
