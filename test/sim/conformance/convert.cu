// convert.cu -- every form of cvt that both sm_90 and sm_100 have: between integers, from and to floats in
// every rounding mode, and the packed 16-bit and 8-bit formats.
#include "test/sim/conformance/form.cuh"

// ---- integer to integer ----
#define TO_INTEGERS(a, from)                                                      \
  UNARIES(h, a, "cvt.u8." from, "cvt.s8." from, "cvt.u16." from, "cvt.s16." from) \
  UNARIES(r, a, "cvt.u32." from, "cvt.s32." from)                                 \
  UNARIES(l, a, "cvt.u64." from, "cvt.s64." from)
TO_INTEGERS(h, "u8")
TO_INTEGERS(h, "s8")
TO_INTEGERS(h, "u16")
TO_INTEGERS(h, "s16")
TO_INTEGERS(r, "u32")
TO_INTEGERS(r, "s32")
TO_INTEGERS(l, "u64")
TO_INTEGERS(l, "s64")

UNARIES(h, h, "cvt.sat.u8.s8", "cvt.sat.s8.u8", "cvt.sat.u8.u16", "cvt.sat.u8.s16", "cvt.sat.s8.u16",
        "cvt.sat.s8.s16", "cvt.sat.u16.s16", "cvt.sat.s16.u16")
UNARIES(h, r, "cvt.sat.u8.u32", "cvt.sat.u8.s32", "cvt.sat.s8.s32", "cvt.sat.u16.u32", "cvt.sat.u16.s32",
        "cvt.sat.s16.u32", "cvt.sat.s16.s32")
UNARIES(r, r, "cvt.sat.u32.s32", "cvt.sat.s32.u32")
UNARIES(r, l, "cvt.sat.u32.u64", "cvt.sat.u32.s64", "cvt.sat.s32.u64", "cvt.sat.s32.s64")
UNARIES(l, l, "cvt.sat.u64.s64", "cvt.sat.s64.u64")
UNARIES(h, l, "cvt.sat.s16.s64", "cvt.sat.u8.u64")

// ---- integer to float ----
#define ROUNDED(d, a, types) UNARIES(d, a, "cvt.rn." types, "cvt.rz." types, "cvt.rm." types, "cvt.rp." types)
#define FROM_INTEGERS(d, to) \
  ROUNDED(d, h, to ".u8")    \
  ROUNDED(d, h, to ".s8")    \
  ROUNDED(d, h, to ".u16")   \
  ROUNDED(d, h, to ".s16")   \
  ROUNDED(d, r, to ".u32")   \
  ROUNDED(d, r, to ".s32")   \
  ROUNDED(d, l, to ".u64")   \
  ROUNDED(d, l, to ".s64")
FROM_INTEGERS(h, "f16")
#define FROM_WIDER_INTEGERS(d, to) \
  ROUNDED(d, h, to ".u16")         \
  ROUNDED(d, h, to ".s16")         \
  ROUNDED(d, r, to ".u32")         \
  ROUNDED(d, r, to ".s32")         \
  ROUNDED(d, l, to ".u64")         \
  ROUNDED(d, l, to ".s64")
FROM_WIDER_INTEGERS(h, "bf16")
FROM_INTEGERS(r, "f32")
FROM_INTEGERS(l, "f64")

// ---- float to integer ----
#define INTEGRAL(d, a, types) \
  UNARIES(d, a, "cvt.rni." types, "cvt.rzi." types, "cvt.rmi." types, "cvt.rpi." types)
#define FLOAT_TO_INTEGERS(a, from) \
  INTEGRAL(h, a, "u8." from)       \
  INTEGRAL(h, a, "s8." from)       \
  INTEGRAL(h, a, "u16." from)      \
  INTEGRAL(h, a, "s16." from)      \
  INTEGRAL(r, a, "u32." from)      \
  INTEGRAL(r, a, "s32." from)      \
  INTEGRAL(l, a, "u64." from)      \
  INTEGRAL(l, a, "s64." from)
FLOAT_TO_INTEGERS(h, "f16")
INTEGRAL(h, h, "u16.bf16")
INTEGRAL(h, h, "s16.bf16")
INTEGRAL(r, h, "u32.bf16")
INTEGRAL(r, h, "s32.bf16")
INTEGRAL(l, h, "u64.bf16")
INTEGRAL(l, h, "s64.bf16")
FLOAT_TO_INTEGERS(r, "f32")
FLOAT_TO_INTEGERS(l, "f64")
#define FLUSHED(d, types) \
  UNARIES(d, r, "cvt.rni.ftz." types, "cvt.rpi.ftz." types, "cvt.rmi.ftz." types, "cvt.rzi.ftz." types)
FLUSHED(r, "s32.f32")
FLUSHED(r, "u32.f32")
FLUSHED(l, "s64.f32")
FLUSHED(l, "u64.f32")

// ---- float to float ----
ROUNDED(h, r, "f16.f32")
ROUNDED(h, r, "sat.f16.f32")
ROUNDED(h, l, "f16.f64")
ROUNDED(r, l, "f32.f64")
ROUNDED(r, l, "ftz.f32.f64")
ROUNDED(r, l, "sat.f32.f64")
ROUNDED(h, r, "bf16.f32")
ROUNDED(h, l, "bf16.f64")
UNARIES(h, r, "cvt.rn.relu.f16.f32", "cvt.rz.relu.f16.f32", "cvt.rn.relu.bf16.f32", "cvt.rz.relu.bf16.f32",
        "cvt.rn.satfinite.f16.f32", "cvt.rz.relu.satfinite.f16.f32", "cvt.rn.satfinite.bf16.f32")
UNARIES(r, h, "cvt.f32.f16", "cvt.ftz.f32.f16", "cvt.sat.f32.f16", "cvt.f32.bf16")
UNARIES(l, h, "cvt.f64.f16", "cvt.f64.bf16")
UNARIES(l, r, "cvt.f64.f32", "cvt.ftz.f64.f32")
UNARIES(r, r, "cvt.f32.f32", "cvt.ftz.f32.f32", "cvt.sat.f32.f32")
UNARIES(h, h, "cvt.f16.f16", "cvt.sat.f16.f16", "cvt.rn.bf16.f16", "cvt.rz.bf16.f16", "cvt.rn.f16.bf16",
        "cvt.rz.f16.bf16")
INTEGRAL(h, h, "f16.f16")
INTEGRAL(h, h, "bf16.bf16")
INTEGRAL(r, r, "f32.f32")
INTEGRAL(r, r, "ftz.f32.f32")
INTEGRAL(r, r, "sat.f32.f32")
INTEGRAL(l, l, "f64.f64")

// ---- tf32 ----
UNARIES(r, r, "cvt.rna.tf32.f32", "cvt.rn.tf32.f32", "cvt.rz.tf32.f32", "cvt.rn.relu.tf32.f32",
        "cvt.rz.relu.tf32.f32", "cvt.rna.satfinite.tf32.f32")

// ---- pairs ----
#define TO_PAIR(to)                                                                                \
  BINARIES(r, r, r, "cvt.rn." to ".f32", "cvt.rz." to ".f32", "cvt.rn.relu." to ".f32",            \
           "cvt.rz.relu." to ".f32", "cvt.rn.satfinite." to ".f32", "cvt.rz.satfinite." to ".f32", \
           "cvt.rn.relu.satfinite." to ".f32")
EACH(TO_PAIR, "f16x2", "bf16x2")

#define NARROW(format)                                                                         \
  BINARIES(h, r, r, "cvt.rn.satfinite." format ".f32", "cvt.rn.satfinite.relu." format ".f32") \
  UNARIES(h, r, "cvt.rn.satfinite." format ".f16x2", "cvt.rn.satfinite.relu." format ".f16x2") \
  UNARIES(r, h, "cvt.rn.f16x2." format, "cvt.rn.relu.f16x2." format)
EACH(NARROW, "e4m3x2", "e5m2x2")

// ---- cvt.pack ----
BINARIES(r, r, r, "cvt.pack.sat.u16.s32", "cvt.pack.sat.s16.s32")
TERNARIES(r, r, r, r, "cvt.pack.sat.u8.s32.b32", "cvt.pack.sat.s8.s32.b32", "cvt.pack.sat.u4.s32.b32",
          "cvt.pack.sat.s4.s32.b32", "cvt.pack.sat.u2.s32.b32", "cvt.pack.sat.s2.s32.b32")
