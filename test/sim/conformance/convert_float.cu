// convert_float.cu -- cvt between floating-point formats, scalar and packed, with every rounding mode and
// modifier that both sm_90 and sm_100 have.
#include "test/sim/conformance/form.cuh"

#define ROUNDED(d, a, types)   \
  UNARY(d, a, "cvt.rn." types) \
  UNARY(d, a, "cvt.rz." types) \
  UNARY(d, a, "cvt.rm." types) \
  UNARY(d, a, "cvt.rp." types)
#define INTEGRAL(d, a, types)   \
  UNARY(d, a, "cvt.rni." types) \
  UNARY(d, a, "cvt.rzi." types) \
  UNARY(d, a, "cvt.rmi." types) \
  UNARY(d, a, "cvt.rpi." types)

// ---- scalar ----
ROUNDED(h, r, "f16.f32")
ROUNDED(h, r, "sat.f16.f32")
ROUNDED(h, l, "f16.f64")
ROUNDED(r, l, "f32.f64")
ROUNDED(r, l, "ftz.f32.f64")
ROUNDED(r, l, "sat.f32.f64")
ROUNDED(h, r, "bf16.f32")
ROUNDED(h, l, "bf16.f64")
UNARY(h, r, "cvt.rn.relu.f16.f32")
UNARY(h, r, "cvt.rz.relu.f16.f32")
UNARY(h, r, "cvt.rn.relu.bf16.f32")
UNARY(h, r, "cvt.rz.relu.bf16.f32")
UNARY(h, r, "cvt.rn.satfinite.f16.f32")
UNARY(h, r, "cvt.rz.relu.satfinite.f16.f32")
UNARY(h, r, "cvt.rn.satfinite.bf16.f32")
UNARY(r, h, "cvt.f32.f16")
UNARY(r, h, "cvt.ftz.f32.f16")
UNARY(r, h, "cvt.sat.f32.f16")
UNARY(r, h, "cvt.f32.bf16")
UNARY(l, h, "cvt.f64.f16")
UNARY(l, h, "cvt.f64.bf16")
UNARY(l, r, "cvt.f64.f32")
UNARY(l, r, "cvt.ftz.f64.f32")
UNARY(r, r, "cvt.f32.f32")
UNARY(r, r, "cvt.ftz.f32.f32")
UNARY(r, r, "cvt.sat.f32.f32")
UNARY(h, h, "cvt.f16.f16")
UNARY(h, h, "cvt.sat.f16.f16")
UNARY(h, h, "cvt.rn.bf16.f16")
UNARY(h, h, "cvt.rz.bf16.f16")
UNARY(h, h, "cvt.rn.f16.bf16")
UNARY(h, h, "cvt.rz.f16.bf16")
INTEGRAL(h, h, "f16.f16")
INTEGRAL(h, h, "bf16.bf16")
INTEGRAL(r, r, "f32.f32")
INTEGRAL(r, r, "ftz.f32.f32")
INTEGRAL(r, r, "sat.f32.f32")
INTEGRAL(l, l, "f64.f64")

// ---- tf32 ----
UNARY(r, r, "cvt.rna.tf32.f32")
UNARY(r, r, "cvt.rn.tf32.f32")
UNARY(r, r, "cvt.rz.tf32.f32")
UNARY(r, r, "cvt.rn.relu.tf32.f32")
UNARY(r, r, "cvt.rz.relu.tf32.f32")
UNARY(r, r, "cvt.rna.satfinite.tf32.f32")

// ---- pairs ----
#define TO_PAIR(to)                              \
  BINARY(r, r, r, "cvt.rn." to ".f32")           \
  BINARY(r, r, r, "cvt.rz." to ".f32")           \
  BINARY(r, r, r, "cvt.rn.relu." to ".f32")      \
  BINARY(r, r, r, "cvt.rz.relu." to ".f32")      \
  BINARY(r, r, r, "cvt.rn.satfinite." to ".f32") \
  BINARY(r, r, r, "cvt.rz.satfinite." to ".f32") \
  BINARY(r, r, r, "cvt.rn.relu.satfinite." to ".f32")
TO_PAIR("f16x2")
TO_PAIR("bf16x2")

#define NARROW(format)                                    \
  BINARY(h, r, r, "cvt.rn.satfinite." format ".f32")      \
  BINARY(h, r, r, "cvt.rn.satfinite.relu." format ".f32") \
  UNARY(h, r, "cvt.rn.satfinite." format ".f16x2")        \
  UNARY(h, r, "cvt.rn.satfinite.relu." format ".f16x2")   \
  UNARY(r, h, "cvt.rn.f16x2." format)                     \
  UNARY(r, h, "cvt.rn.relu.f16x2." format)
NARROW("e4m3x2")
NARROW("e5m2x2")

// ---- cvt.pack ----
BINARY(r, r, r, "cvt.pack.sat.u16.s32")
BINARY(r, r, r, "cvt.pack.sat.s16.s32")
TERNARY(r, r, r, r, "cvt.pack.sat.u8.s32.b32")
TERNARY(r, r, r, r, "cvt.pack.sat.s8.s32.b32")
TERNARY(r, r, r, r, "cvt.pack.sat.u4.s32.b32")
TERNARY(r, r, r, r, "cvt.pack.sat.s4.s32.b32")
TERNARY(r, r, r, r, "cvt.pack.sat.u2.s32.b32")
TERNARY(r, r, r, r, "cvt.pack.sat.s2.s32.b32")
