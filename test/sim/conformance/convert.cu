// convert.cu -- every form of cvt that both sm_90 and sm_100 have: between integers, from and to floats in
// every rounding mode, and the packed 16-bit and 8-bit formats.
#include "test/sim/conformance/form.cuh"

// ---- integer to integer ----
#define TO_INTEGERS(a, from)   \
  UNARY(h, a, "cvt.u8." from)  \
  UNARY(h, a, "cvt.s8." from)  \
  UNARY(h, a, "cvt.u16." from) \
  UNARY(h, a, "cvt.s16." from) \
  UNARY(r, a, "cvt.u32." from) \
  UNARY(r, a, "cvt.s32." from) \
  UNARY(l, a, "cvt.u64." from) \
  UNARY(l, a, "cvt.s64." from)
TO_INTEGERS(h, "u8")
TO_INTEGERS(h, "s8")
TO_INTEGERS(h, "u16")
TO_INTEGERS(h, "s16")
TO_INTEGERS(r, "u32")
TO_INTEGERS(r, "s32")
TO_INTEGERS(l, "u64")
TO_INTEGERS(l, "s64")

#define SATURATE(d, a, types) UNARY(d, a, "cvt.sat." types)
SATURATE(h, h, "u8.s8")
SATURATE(h, h, "s8.u8")
SATURATE(h, h, "u8.u16")
SATURATE(h, h, "u8.s16")
SATURATE(h, h, "s8.u16")
SATURATE(h, h, "s8.s16")
SATURATE(h, h, "u16.s16")
SATURATE(h, h, "s16.u16")
SATURATE(h, r, "u8.u32")
SATURATE(h, r, "u8.s32")
SATURATE(h, r, "s8.s32")
SATURATE(h, r, "u16.u32")
SATURATE(h, r, "u16.s32")
SATURATE(h, r, "s16.u32")
SATURATE(h, r, "s16.s32")
SATURATE(r, r, "u32.s32")
SATURATE(r, r, "s32.u32")
SATURATE(r, l, "u32.u64")
SATURATE(r, l, "u32.s64")
SATURATE(r, l, "s32.u64")
SATURATE(r, l, "s32.s64")
SATURATE(l, l, "u64.s64")
SATURATE(l, l, "s64.u64")
SATURATE(h, l, "s16.s64")
SATURATE(h, l, "u8.u64")

// ---- integer to float ----
#define ROUNDED(d, a, types)   \
  UNARY(d, a, "cvt.rn." types) \
  UNARY(d, a, "cvt.rz." types) \
  UNARY(d, a, "cvt.rm." types) \
  UNARY(d, a, "cvt.rp." types)
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
#define INTEGRAL(d, a, types)   \
  UNARY(d, a, "cvt.rni." types) \
  UNARY(d, a, "cvt.rzi." types) \
  UNARY(d, a, "cvt.rmi." types) \
  UNARY(d, a, "cvt.rpi." types)
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
#define FLUSHED(d, types)           \
  UNARY(d, r, "cvt.rni.ftz." types) \
  UNARY(d, r, "cvt.rpi.ftz." types) \
  UNARY(d, r, "cvt.rmi.ftz." types) \
  UNARY(d, r, "cvt.rzi.ftz." types)
FLUSHED(r, "s32.f32")
FLUSHED(r, "u32.f32")
FLUSHED(l, "s64.f32")
FLUSHED(l, "u64.f32")
