// floats.cu -- f32, f64, f16 and bf16 arithmetic that IEEE 754 or the ISA determines to the last bit.
#include "test/sim/conformance/form.cuh"

// ---- f32 ----
#define MODES2(op, type)         \
  BINARY(r, r, r, op ".rn" type) \
  BINARY(r, r, r, op ".rz" type) \
  BINARY(r, r, r, op ".rm" type) \
  BINARY(r, r, r, op ".rp" type)
MODES2("add", ".f32")
MODES2("add", ".ftz.f32")
MODES2("sub", ".f32")
MODES2("mul", ".f32")
MODES2("mul", ".ftz.f32")
MODES2("div", ".f32")
MODES2("div", ".ftz.f32")
BINARY(r, r, r, "add.f32")
BINARY(r, r, r, "add.sat.f32")
BINARY(r, r, r, "add.ftz.sat.f32")
BINARY(r, r, r, "sub.sat.f32")
BINARY(r, r, r, "mul.sat.f32")
TERNARY(r, r, r, r, "fma.rn.f32")
TERNARY(r, r, r, r, "fma.rz.f32")
TERNARY(r, r, r, r, "fma.rm.f32")
TERNARY(r, r, r, r, "fma.rp.f32")
TERNARY(r, r, r, r, "fma.rn.ftz.f32")
TERNARY(r, r, r, r, "fma.rn.sat.f32")
TERNARY(r, r, r, r, "fma.rp.ftz.sat.f32")
#define MODES1(op, type)     \
  UNARY(r, r, op ".rn" type) \
  UNARY(r, r, op ".rz" type) \
  UNARY(r, r, op ".rm" type) \
  UNARY(r, r, op ".rp" type)
MODES1("sqrt", ".f32")
MODES1("sqrt", ".ftz.f32")
MODES1("rcp", ".f32")
MODES1("rcp", ".ftz.f32")
UNARY(r, r, "abs.f32")
UNARY(r, r, "abs.ftz.f32")
UNARY(r, r, "neg.f32")
UNARY(r, r, "neg.ftz.f32")
#define EXTREMA(d, type)                      \
  BINARY(d, d, d, "min" type)                 \
  BINARY(d, d, d, "max" type)                 \
  BINARY(d, d, d, "min.NaN" type)             \
  BINARY(d, d, d, "max.NaN" type)             \
  BINARY(d, d, d, "min.xorsign.abs" type)     \
  BINARY(d, d, d, "max.xorsign.abs" type)     \
  BINARY(d, d, d, "min.NaN.xorsign.abs" type) \
  BINARY(d, d, d, "max.NaN.xorsign.abs" type)
EXTREMA(r, ".f32")
BINARY(r, r, r, "min.ftz.f32")
BINARY(r, r, r, "max.ftz.f32")
BINARY(r, r, r, "min.ftz.NaN.f32")
BINARY(r, r, r, "max.ftz.NaN.xorsign.abs.f32")
BINARY(r, r, r, "copysign.f32")
// A comparison of single halves has one result, every other one a pair.
#define PREDICATE_ONE(a, b, spelling)               \
  CONFORMANCE_FORM2(__COUNTER__, r, a, b, spelling, \
                    "{ .reg .pred p; " spelling " p, %1, %2; selp.u32 %0, 1, 0, p; }")
#define COMPARISONS_OF(PREDICATE, a, type) \
  PREDICATE(a, a, "setp.eq" type)          \
  PREDICATE(a, a, "setp.ne" type)          \
  PREDICATE(a, a, "setp.lt" type)          \
  PREDICATE(a, a, "setp.le" type)          \
  PREDICATE(a, a, "setp.gt" type)          \
  PREDICATE(a, a, "setp.ge" type)          \
  PREDICATE(a, a, "setp.equ" type)         \
  PREDICATE(a, a, "setp.neu" type)         \
  PREDICATE(a, a, "setp.ltu" type)         \
  PREDICATE(a, a, "setp.leu" type)         \
  PREDICATE(a, a, "setp.gtu" type)         \
  PREDICATE(a, a, "setp.geu" type)         \
  PREDICATE(a, a, "setp.num" type)         \
  PREDICATE(a, a, "setp.nan" type)
#define COMPARISONS(a, type) COMPARISONS_OF(PREDICATE, a, type)
COMPARISONS(r, ".f32")
PREDICATE(r, r, "setp.lt.ftz.f32")
PREDICATE(r, r, "setp.equ.ftz.f32")
COMPARISONS(r, ".f16x2")
COMPARISONS(r, ".bf16x2")
COMPARISONS_OF(PREDICATE_ONE, h, ".f16")
COMPARISONS_OF(PREDICATE_ONE, h, ".bf16")
COMPARISONS(l, ".f64")
BINARY(r, r, r, "set.gt.u32.f32")
BINARY(r, r, r, "set.le.f32.f32")
BINARY(r, r, r, "set.ltu.f16x2.f16x2")
BINARY(r, r, r, "set.ge.bf16x2.bf16x2")
TERNARY(r, r, r, r, "slct.u32.f32")
TERNARY(r, r, r, r, "slct.ftz.s32.f32")
TERNARY(r, r, r, r, "slct.f32.s32")
#define TESTP(a, type) \
  CONFORMANCE_FORM1(__COUNTER__, r, a, type, "{ .reg .pred p; " type " p, %1; selp.u32 %0, 1, 0, p; }")
TESTP(r, "testp.finite.f32")
TESTP(r, "testp.infinite.f32")
TESTP(r, "testp.number.f32")
TESTP(r, "testp.notanumber.f32")
TESTP(r, "testp.normal.f32")
TESTP(r, "testp.subnormal.f32")
TESTP(l, "testp.normal.f64")

// ---- f64 ----
#define MODES2_64(op)           \
  BINARY(l, l, l, op ".rn.f64") \
  BINARY(l, l, l, op ".rz.f64") \
  BINARY(l, l, l, op ".rm.f64") \
  BINARY(l, l, l, op ".rp.f64")
MODES2_64("add")
MODES2_64("sub")
MODES2_64("mul")
MODES2_64("div")
TERNARY(l, l, l, l, "fma.rn.f64")
TERNARY(l, l, l, l, "fma.rz.f64")
UNARY(l, l, "sqrt.rn.f64")
UNARY(l, l, "sqrt.rp.f64")
UNARY(l, l, "rcp.rn.f64")
UNARY(l, l, "rcp.rm.f64")
UNARY(l, l, "abs.f64")
UNARY(l, l, "neg.f64")
BINARY(l, l, l, "min.f64")
BINARY(l, l, l, "max.f64")
BINARY(l, l, l, "copysign.f64")

// ---- f16, bf16 and their pairs ----
#define HALF(d, type)                     \
  BINARY(d, d, d, "add.rn" type)          \
  BINARY(d, d, d, "sub.rn" type)          \
  BINARY(d, d, d, "mul.rn" type)          \
  TERNARY(d, d, d, d, "fma.rn" type)      \
  TERNARY(d, d, d, d, "fma.rn.relu" type) \
  EXTREMA(d, type)                        \
  UNARY(d, d, "abs" type)                 \
  UNARY(d, d, "neg" type)
#define HALF_F16(d, type)                     \
  HALF(d, type)                               \
  BINARY(d, d, d, "add.ftz" type)             \
  BINARY(d, d, d, "add.sat" type)             \
  BINARY(d, d, d, "sub.ftz.sat" type)         \
  BINARY(d, d, d, "mul.ftz" type)             \
  BINARY(d, d, d, "mul.sat" type)             \
  TERNARY(d, d, d, d, "fma.rn.ftz" type)      \
  TERNARY(d, d, d, d, "fma.rn.sat" type)      \
  TERNARY(d, d, d, d, "fma.rn.ftz.relu" type) \
  BINARY(d, d, d, "min.ftz" type)             \
  BINARY(d, d, d, "max.ftz.NaN" type)         \
  UNARY(d, d, "abs.ftz" type)                 \
  UNARY(d, d, "neg.ftz" type)
HALF_F16(h, ".f16")
HALF_F16(r, ".f16x2")
HALF(h, ".bf16")
HALF(r, ".bf16x2")
