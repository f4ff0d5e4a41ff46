#!/usr/bin/env python3
"""triton_gemm.py OUT.inc -- a GEMM of fp16 with NVFP4 weights in Triton, compiled ahead of time for Hopper; OUT.inc is
what triton.cu includes. Triton's wgmma takes one operand from registers, the rows of its result: weights are that one,
so that they never return to shared memory, and a tile of the result is transposed."""
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

STEP = tl.constexpr(64)  # of K: four groups of 16, which share a factor each
WORDS = tl.constexpr(16)  # of 16 bits for each row and step; word i has the codes i, 16 + i, 32 + i and 48 + i
GROUP = tl.constexpr(16)  # tiles of M that tiles of N take turns with, so that both stay in L2


@triton.jit
def unpack_factors(word):
    """The four e4m3 factors of a row, times 2^7: bits of e4m3 are those of an fp16 that is 2^8 times smaller."""
    return tl.inline_asm_elementwise(
        """
        {
        .reg .b32 even, odd, scale;
        mov.b32 scale, 0x78007800;
        shl.b32 even, $4, 7;
        shr.b32 odd, $4, 1;
        and.b32 even, even, 0x7f807f80;
        and.b32 odd, odd, 0x7f807f80;
        mul.rn.f16x2 even, even, scale;
        mul.rn.f16x2 odd, odd, scale;
        mov.b32 {$0, $2}, even;
        mov.b32 {$1, $3}, odd;
        }
        """, "=h,=h,=h,=h,r", [word], dtype=(tl.float16, tl.float16, tl.float16, tl.float16), is_pure=True, pack=1)


@triton.jit
def unpack_weights(words, f0, f1, f2, f3):
    """The weights of the four groups, times 2^-7. The bits of e2m1, moved to where fp16 has them, are 2^14 times
    smaller; bits of a word are where few instructions move them, two words at a time (place in triton.cu)."""
    return tl.inline_asm_elementwise(
        """
        {
        .reg .b32 code, sign;
        and.b32 code, $4, 0x8e008e00;
        mul.rn.f16x2 $0, code, $5;
        shl.b32 code, $4, 3;
        and.b32 code, code, 0x8e008e00;
        mul.rn.f16x2 $1, code, $6;
        shl.b32 sign, $4, 1;
        and.b32 sign, sign, 0x80008000;
        shl.b32 code, $4, 6;
        and.b32 code, code, 0x0e000e00;
        or.b32 code, code, sign;
        mul.rn.f16x2 $2, code, $7;
        shl.b32 sign, $4, 2;
        and.b32 sign, sign, 0x80008000;
        shl.b32 code, $4, 9;
        and.b32 code, code, 0x0e000e00;
        or.b32 code, code, sign;
        mul.rn.f16x2 $3, code, $8;
        }
        """, "=&r,=&r,=&r,=&r,r,r,r,r,r", [words, f0, f1, f2, f3],
        dtype=(tl.float16, tl.float16, tl.float16, tl.float16), is_pure=True, pack=2)


@triton.jit
def gemm(a, words, factors, c, partial, arrived, M, N, K, BM: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr):
    """c [M, N] = a [M, K] * weights^T, for words [K / 64, N, 16] and factors [K / 64, N]. With SPLIT the second
    dimension of the grid shares K: the last of a tile adds up what all have left in `partial`."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    of_group = GROUP * (N // BN)
    first = pid // of_group * GROUP
    width = tl.minimum(tiles_m - first, GROUP)
    m = (first + pid % of_group % width) * BM + tl.arange(0, BM)
    n = pid % of_group // width * BN + tl.arange(0, BN)

    begin = 0
    end = K // STEP
    if SPLIT:
        steps = end
        begin = steps * tl.program_id(1) // tl.num_programs(1)
        end = steps * (tl.program_id(1) + 1) // tl.num_programs(1)
    tl.assume(begin < end)  # else ptxas does not overlap the wgmma of a step

    from_a = a + tl.minimum(m, M - 1)[None, :] * K + begin * STEP + tl.arange(0, STEP)[:, None]
    from_words = words + begin.to(tl.int64) * N * WORDS if SPLIT else words
    from_words = from_words + n[:, None] * WORDS + tl.arange(0, WORDS)[None, :]
    from_factors = factors + begin * N + n
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for _ in range(begin, end):
        f0, f1, f2, f3 = unpack_factors(tl.load(from_factors))
        w0, w1, w2, w3 = unpack_weights(tl.load(from_words), f0[:, None], f1[:, None], f2[:, None], f3[:, None])
        # [BN, 16] each, one behind the other along K. Every thread has its part of each: nothing moves.
        weights = tl.join(tl.join(w0, w2), tl.join(w1, w3)).permute(0, 2, 3, 1).reshape(BN, STEP)
        acc = tl.dot(weights, tl.load(from_a), acc)
        from_a += STEP
        from_words += N * WORDS
        from_factors += N

    to_c = c + m[None, :] * N + n[:, None]
    valid = m[None, :] < M
    if SPLIT:
        tile = tl.arange(0, BN)[:, None] * BM + tl.arange(0, BM)[None, :]
        splits = tl.num_programs(1)
        partials = partial + (pid * splits).to(tl.int64) * (BN * BM) + tile
        tl.store(partials + tl.program_id(1) * (BN * BM), acc)
        tl.debug_barrier()  # one thread adds for all
        if tl.atomic_add(arrived + pid, 1, sem="acq_rel", scope="gpu") == splits - 1:
            total = tl.zeros((BN, BM), dtype=tl.float32)
            for i in range(0, splits):
                total += tl.load(partials + i * (BN * BM), cache_modifier=".cg")
            tl.store(to_c, (total * 128.0).to(tl.float16), mask=valid)
            tl.store(arrived + pid, 0)  # for the next launch
    else:
        tl.store(to_c, (acc * 128.0).to(tl.float16), mask=valid)


# Rows of A and of weights of a tile, warps, stages. triton.cu times those that fit a shape.
TILES = [
    (16, 64, 4, 4), (16, 64, 4, 8), (16, 128, 4, 4), (16, 128, 4, 6), (16, 128, 8, 6),
    (32, 64, 4, 6), (32, 128, 4, 5), (32, 128, 8, 5),
    (64, 64, 4, 4), (64, 128, 4, 4), (64, 128, 8, 5), (64, 256, 8, 4),
    (128, 64, 4, 4), (128, 128, 4, 3), (128, 128, 8, 4), (128, 256, 8, 4),
    (256, 64, 4, 3), (256, 128, 8, 3), (256, 128, 8, 4),
]
ARGUMENTS = {"a": "*fp16", "words": "*i16", "factors": "*i32", "c": "*fp16", "partial": "*fp32", "arrived": "*i32",
             "M": "i32", "N": "i32", "K": "i32", "BM": "constexpr", "BN": "constexpr", "SPLIT": "constexpr"}
ALIGNED = ("a", "words", "factors", "c", "partial", "N", "K")  # to 16; `arrived` and M are any


def compile_tile(bm, bn, warps, stages, split):
    names = list(ARGUMENTS)
    source = ASTSource(fn=gemm, signature=ARGUMENTS,
                       constexprs={(names.index(k),): v for k, v in (("BM", bm), ("BN", bn), ("SPLIT", split))},
                       attrs={(names.index(name),): [["tt.divisibility", 16]] for name in ALIGNED})
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32),
                            options={"num_warps": warps, "num_stages": stages})
    assert kernel.metadata.global_scratch_size == kernel.metadata.profile_scratch_size == 0
    return kernel


def main():
    # Triton 3.6 wrote to the registers of a wgmma that had not read them: wrong results with 128 and 256 rows.
    if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9):
        sys.exit(f"triton_gemm.py needs triton 3.9 or later, not {triton.__version__}")
    images, rows = [], []
    for bm, bn, warps, stages in TILES:
        for split in (False, True):
            kernel = compile_tile(bm, bn, warps, stages, split)
            image = kernel.asm["cubin"]
            images.append(f"alignas(16) const unsigned char image{len(rows)}[] = {{{','.join(map(str, image))}}};\n")
            rows.append(f'{{image{len(rows)}, "{kernel.metadata.name}", {bm}, {bn}, {warps * 32}, {stages}, '
                        f"{kernel.metadata.shared}, {str(split).lower()}}},\n")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.writelines(images + ["const Tile kTiles[] = {\n"] + rows + ["};\n"])


if __name__ == "__main__":
    main()
