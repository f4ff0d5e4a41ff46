// floats.cu -- f32, f64, f16 and bf16 arithmetic that IEEE 754 or the ISA determines to the last bit.
#include "test/sim/conformance/form.cuh"

// ---- f32 ----
#define MODES2(op, type) BINARIES(r, r, r, op ".rn" type, op ".rz" type, op ".rm" type, op ".rp" type)
MODES2("add", ".f32")
MODES2("add", ".ftz.f32")
MODES2("sub", ".f32")
MODES2("mul", ".f32")
MODES2("mul", ".ftz.f32")
MODES2("div", ".f32")
MODES2("div", ".ftz.f32")
BINARIES(r, r, r, "add.f32", "add.sat.f32", "add.ftz.sat.f32", "sub.sat.f32", "mul.sat.f32")
TERNARIES(r, r, r, r, "fma.rn.f32", "fma.rz.f32", "fma.rm.f32", "fma.rp.f32", "fma.rn.ftz.f32",
          "fma.rn.sat.f32", "fma.rp.ftz.sat.f32")
#define MODES1(op, type) UNARIES(r, r, op ".rn" type, op ".rz" type, op ".rm" type, op ".rp" type)
MODES1("sqrt", ".f32")
MODES1("sqrt", ".ftz.f32")
MODES1("rcp", ".f32")
MODES1("rcp", ".ftz.f32")
UNARIES(r, r, "abs.f32", "abs.ftz.f32", "neg.f32", "neg.ftz.f32")
#define EXTREMA(d, type)                                                                            \
  BINARIES(d, d, d, "min" type, "max" type, "min.NaN" type, "max.NaN" type, "min.xorsign.abs" type, \
           "max.xorsign.abs" type, "min.NaN.xorsign.abs" type, "max.NaN.xorsign.abs" type)
EXTREMA(r, ".f32")
BINARIES(r, r, r, "min.ftz.f32", "max.ftz.f32", "min.ftz.NaN.f32", "max.ftz.NaN.xorsign.abs.f32",
         "copysign.f32")
// A comparison of single halves has one result, every other one a pair.
#define PREDICATE_ONE(a, b, spelling)               \
  CONFORMANCE_FORM2(__COUNTER__, r, a, b, spelling, \
                    "{ .reg .pred p; " spelling " p, %1, %2; selp.u32 %0, 1, 0, p; }")
#define COMPARISONS_OF(predicate, a, type)                                                               \
  CONFORMANCE_SCAN(CONFORMANCE_FORMS(predicate, (a, a), "setp.eq" type, "setp.ne" type, "setp.lt" type,  \
                                     "setp.le" type, "setp.gt" type, "setp.ge" type, "setp.equ" type,    \
                                     "setp.neu" type, "setp.ltu" type, "setp.leu" type, "setp.gtu" type, \
                                     "setp.geu" type, "setp.num" type, "setp.nan" type))
#define COMPARISONS(a, type) COMPARISONS_OF(PREDICATE, a, type)
COMPARISONS(r, ".f32")
PREDICATES(r, r, "setp.lt.ftz.f32", "setp.equ.ftz.f32")
COMPARISONS(r, ".f16x2")
COMPARISONS(r, ".bf16x2")
COMPARISONS_OF(PREDICATE_ONE, h, ".f16")
COMPARISONS_OF(PREDICATE_ONE, h, ".bf16")
COMPARISONS(l, ".f64")
BINARIES(r, r, r, "set.gt.u32.f32", "set.le.f32.f32", "set.ltu.f16x2.f16x2", "set.ge.bf16x2.bf16x2")
TERNARIES(r, r, r, r, "slct.u32.f32", "slct.ftz.s32.f32", "slct.f32.s32")
#define TESTP(a, type) \
  CONFORMANCE_FORM1(__COUNTER__, r, a, type, "{ .reg .pred p; " type " p, %1; selp.u32 %0, 1, 0, p; }")
CONFORMANCE_SCAN(CONFORMANCE_FORMS(TESTP, (r), "testp.finite.f32", "testp.infinite.f32", "testp.number.f32",
                                   "testp.notanumber.f32", "testp.normal.f32", "testp.subnormal.f32"))
TESTP(l, "testp.normal.f64")

// ---- f64 ----
#define MODES2_64(op) BINARIES(l, l, l, op ".rn.f64", op ".rz.f64", op ".rm.f64", op ".rp.f64")
EACH(MODES2_64, "add", "sub", "mul", "div")
TERNARIES(l, l, l, l, "fma.rn.f64", "fma.rz.f64")
UNARIES(l, l, "sqrt.rn.f64", "sqrt.rp.f64", "rcp.rn.f64", "rcp.rm.f64", "abs.f64", "neg.f64")
BINARIES(l, l, l, "min.f64", "max.f64", "copysign.f64")

// ---- f16, bf16 and their pairs ----
#define HALF(d, type)                                            \
  BINARIES(d, d, d, "add.rn" type, "sub.rn" type, "mul.rn" type) \
  TERNARIES(d, d, d, d, "fma.rn" type, "fma.rn.relu" type)       \
  EXTREMA(d, type)                                               \
  UNARIES(d, d, "abs" type, "neg" type)
#define HALF_F16(d, type)                                                                               \
  HALF(d, type)                                                                                         \
  BINARIES(d, d, d, "add.ftz" type, "add.sat" type, "sub.ftz.sat" type, "mul.ftz" type, "mul.sat" type) \
  TERNARIES(d, d, d, d, "fma.rn.ftz" type, "fma.rn.sat" type, "fma.rn.ftz.relu" type)                   \
  BINARIES(d, d, d, "min.ftz" type, "max.ftz.NaN" type)                                                 \
  UNARIES(d, d, "abs.ftz" type, "neg.ftz" type)
HALF_F16(h, ".f16")
HALF_F16(r, ".f16x2")
HALF(h, ".bf16")
HALF(r, ".bf16x2")
