#!/usr/bin/env python3
"""make.py -- what others say of the formats, as files that test/unit/host/formats_test.cpp compares the library with:

    gguf.txt        blocks of GGUF's type NVFP4, and their numbers by the package gguf
    ml_dtypes.txt   E2M1 and E4M3 by the package ml_dtypes, and blocks quantised with numpy's fp32

    python3 -m venv v && v/bin/pip install gguf numpy ml_dtypes && v/bin/python make.py

writes both anew, beside this file; each begins with the versions. Numbers are the hexadecimal bits of their fp32, of
GGUF the upper 16, without which they do.
"""
import importlib.metadata
import pathlib

import gguf
import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(20260101)
E2M1, E4M3 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn


def versions(*packages):
    return "# " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def bits(x):
    return " ".join(f"{word:08x}" for word in np.ascontiguousarray(x, np.float32).view(np.uint32).reshape(-1))


def octets(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes().hex()


def write(name, lines):
    (HERE / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def gguf_lines():
    """A line for each row: its blocks, and its numbers. Row 0 has every code, the others all factors."""
    kind = gguf.GGMLQuantizationType.NVFP4
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, blocks = 4, 8
    data = RANDOM.integers(0, 256, (rows, blocks, size), np.uint8)
    data[:, :, :4] = RANDOM.permutation(np.arange(rows * blocks * 4) % 128).reshape(rows, blocks, 4)
    data[0, 0] = [0x38, 0x30, 0x40, 0x7E, *[j | (15 - j) << 4 for j in range(16)], *[j * 16 | j for j in range(16)]]
    values = gguf.quants.dequantize(data.reshape(rows, blocks * size), kind)
    assert values.shape == (rows, blocks * elements)
    words = values.astype(np.float32).view(np.uint32)
    assert not (words & 0xFFFF).any()
    return [f"{octets(data[row])} {''.join(f'{word >> 16:04x}' for word in words[row])}" for row in range(rows)]


def around(codes_to_values):
    """The numbers of a format, the middles between two of them, and the floats beside each."""
    values = np.unique(np.abs(codes_to_values[np.isfinite(codes_to_values)])).astype(np.float32)
    centres = np.unique(np.concatenate([values, (values[1:] + values[:-1]) / np.float32(2)]))
    beside = [np.nextafter(centres, np.float32(side)) for side in (0, 1e9)]
    return np.unique(np.concatenate([centres, *beside]))


def format_lines(name, dtype, codes, largest):
    decoded = np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float32)
    x = around(decoded)
    x = x[x <= largest]
    return [f"{name}_values {bits(decoded)}", f"{name}_from {bits(x)}", f"{name}_to {octets(x.astype(dtype))}"]


def block_lines():
    """scale, 16 numbers, factor, codes: the arithmetic of dualgemm_quantize_host, operation by operation."""
    lines = []
    for i in range(24):
        scale = np.float32(np.exp2(RANDOM.uniform(-12, 12)))
        x = (RANDOM.standard_normal(16) * np.exp2(RANDOM.uniform(-3, 3)) * 400 / scale).astype(np.float32)
        if i % 8 == 0: x[RANDOM.integers(16)] = 0
        sixth = scale * (np.float32(1) / np.float32(6))
        factor = np.minimum(np.max(np.abs(x)) * sixth, np.float32(448)).astype(E4M3)
        encode = scale * (np.float32(1) / factor.astype(np.float32))
        codes = np.clip(x * encode, -6, 6).astype(E2M1).view(np.uint8) & 15
        lines.append(f"block {bits(scale)} {bits(x)} {octets(factor)} {octets(codes[::2] | codes[1::2] << 4)}")
    return lines


if __name__ == "__main__":
    write("gguf.txt", [versions("gguf", "numpy"), *gguf_lines()])
    write("ml_dtypes.txt", [versions("ml_dtypes", "numpy"), *format_lines("e2m1", E2M1, 16, 6),
                            *format_lines("e4m3", E4M3, 127, 448), *block_lines()])
