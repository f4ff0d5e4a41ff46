#!/usr/bin/env python3
"""What rounding A costs in each of its types, and how far the sums of an A in FP8 are from exact ones on Hopper.

    fp8_sums.py [--outputs N] [--k K ...]

Each row of the table is a distribution of A, with gaussian weights in MXFP4. The first numbers are the errors that
rounding A makes: to NVFP4 and to FP8, with a scale for each row, and to bf16. The next is that of the tensor core's
accumulator for FP8: it keeps 13 places of a sum of 32 products and itself, aligned to the largest, and cuts the rest
(test/sim/engine/mma_dense.cpp has the law, which agrees with the records of an H200 bit for bit). The last are those
of sums that start anew every 1024 and 512 of K and are added up in fp32, which the kernels do not do. Errors are root
mean squares, relative to that of the exact results. It needs numpy, and no GPU.
"""
import argparse

import numpy

MAGNITUDES = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
STEP, PLACES, LARGEST = 32, 13, 448.0


def exponent(x, least):
    """Of each number; zero has one below all others."""
    return numpy.where(x == 0, -1000, numpy.maximum(numpy.floor(numpy.log2(numpy.abs(x) + (x == 0))), least))


def cut(x, exponents):
    """To a multiple of 2^(exponent - PLACES), toward zero."""
    unit = 2.0 ** (exponents - PLACES)
    return numpy.trunc(x / unit) * unit


def to_e4m3(x):
    unit = 2.0 ** (numpy.maximum(exponent(x, -6), -6) - 3)
    return numpy.clip(numpy.rint(x / unit) * unit, -LARGEST, LARGEST)


def to_nvfp4(a):
    """Rows whose largest element is LARGEST, so that the largest factor is that of 6."""
    blocks = a.reshape(len(a), -1, 16) * 6
    factors = to_e4m3(numpy.abs(blocks).max(2) / 6)[..., None]
    values = numpy.divide(blocks, factors, out=numpy.zeros_like(blocks), where=factors > 0)
    nearest = numpy.abs(numpy.abs(values)[..., None] - MAGNITUDES).argmin(-1)
    return (numpy.sign(values) * MAGNITUDES[nearest] * factors / 6).reshape(a.shape)


def to_bf16(x):
    unit = 2.0 ** (exponent(x, -126) - 7)
    return numpy.rint(x / unit) * unit


def to_mxfp4(weights):
    """Rows of MXFP4 whose largest factor is 2^6, as the kernel has them in FP8."""
    blocks = weights.reshape(len(weights), -1, 32)
    factors = numpy.floor(numpy.log2(numpy.abs(blocks).max(2))) - 2
    nearest = numpy.abs(numpy.abs(blocks / 2.0 ** factors[..., None])[..., None] - MAGNITUDES).argmin(-1)
    elements = numpy.sign(blocks) * MAGNITUDES[nearest]
    return to_e4m3((elements * 2.0 ** (factors - factors.max(1, keepdims=True) + 6)[..., None]).reshape(weights.shape))


def accumulate(a, weights, anew):
    total, sums = numpy.zeros(len(a)), numpy.zeros(len(a))
    for first in range(0, a.shape[1], STEP):
        here = slice(first, first + STEP)
        products = a[:, here] * weights[:, here]
        fields = exponent(a[:, here], -6) + exponent(weights[:, here], -6)
        largest = numpy.maximum(fields.max(1), exponent(sums, -126))
        sums = cut(products, largest[:, None]).sum(1) + cut(sums, largest)
        sums = cut(sums, exponent(sums, -126))
        if anew and (first + STEP) % anew == 0: total, sums = total + sums, numpy.zeros(len(a))
    return total + sums


def rows(name, shape, random):
    a = random.standard_t(4, shape) if name == "Student's t, 4" else random.standard_normal(shape)
    weights = random.standard_normal(shape)
    if name == "one sign": a, weights = numpy.abs(a), numpy.abs(weights)
    if name.startswith("2 channels x"): a[:, :2] *= float(name.split()[-1])
    weights = to_mxfp4(weights)
    if name == "2 channels that cancel":
        middle = shape[1] // 2
        a[:, 0] *= 1000
        a[:, middle], weights[:, middle] = a[:, 0], -weights[:, 0]
    return a, weights


NAMES = "gaussian", "Student's t, 4", "one sign", "2 channels x 100", "2 channels x 1000", "2 channels that cancel"
SPANS = None, 1024, 512


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=int, default=256, help="results of each row of the table")
    parser.add_argument("--k", type=int, nargs="+", default=[2880, 7168, 28672])
    options = parser.parse_args()
    print("| K | A | to NVFP4 | to FP8 | to bf16 | the sums of FP8 | anew every 1024 | 512 |")
    print("|" + " --- |" * 8)
    random = numpy.random.default_rng(1)
    for k in options.k:
        for name in NAMES:
            a, weights = rows(name, (options.outputs, k), random)
            a /= numpy.abs(a).max(1, keepdims=True) / LARGEST
            rounded = to_e4m3(a)
            wanted, exact = (a * weights).sum(1), (rounded * weights).sum(1)
            of_all = numpy.sqrt((wanted**2).mean())
            errors = [(to(a) * weights).sum(1) - wanted for to in (to_nvfp4, to_e4m3, to_bf16)]
            errors += [accumulate(rounded, weights, anew) - exact for anew in SPANS]
            cells = [f"{numpy.sqrt((e**2).mean()) / of_all:.1e}" for e in errors]
            print("| " + " | ".join([str(k), name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
