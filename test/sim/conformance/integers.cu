// integers.cu -- integer arithmetic and bit patterns: sums, products, quotients, shifts, fields, counts,
// permutation and byte dot products.
#include "test/sim/conformance/form.cuh"

#define SIZES2(op)                        \
  BINARIES(h, h, h, op ".u16", op ".s16") \
  BINARIES(r, r, r, op ".u32", op ".s32") \
  BINARIES(l, l, l, op ".u64", op ".s64")
EACH(SIZES2, "add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max")
BINARIES(r, h, h, "mul.wide.u16", "mul.wide.s16")
BINARIES(l, r, r, "mul.wide.u32", "mul.wide.s32")
#define SIZES3(op)                            \
  TERNARIES(h, h, h, h, op ".u16", op ".s16") \
  TERNARIES(r, r, r, r, op ".u32", op ".s32") \
  TERNARIES(l, l, l, l, op ".u64", op ".s64")
EACH(SIZES3, "mad.lo", "mad.hi", "sad")
TERNARIES(r, h, h, r, "mad.wide.u16", "mad.wide.s16")
TERNARIES(l, r, r, l, "mad.wide.u32", "mad.wide.s32")
TERNARY(r, r, r, r, "mad.hi.sat.s32")
BINARIES(r, r, r, "add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32", "mul24.lo.u32",
         "mul24.lo.s32", "mul24.hi.u32", "mul24.hi.s32")
TERNARIES(r, r, r, r, "mad24.lo.u32", "mad24.lo.s32", "mad24.hi.u32", "mad24.hi.s32", "mad24.hi.sat.s32")
#define SIGNED1(op)      \
  UNARY(h, h, op ".s16") \
  UNARY(r, r, op ".s32") \
  UNARY(l, l, op ".s64")
EACH(SIGNED1, "neg", "abs")

// ---- logic and shifts ----
#define PATTERN2(op)         \
  BINARY(h, h, h, op ".b16") \
  BINARY(r, r, r, op ".b32") \
  BINARY(l, l, l, op ".b64")
EACH(PATTERN2, "and", "or", "xor")
#define PATTERN1(op)     \
  UNARY(h, h, op ".b16") \
  UNARY(r, r, op ".b32") \
  UNARY(l, l, op ".b64")
EACH(PATTERN1, "not", "cnot")
BINARY(h, h, r, "shl.b16")
BINARY(r, r, r, "shl.b32")
BINARY(l, l, r, "shl.b64")
BINARIES(h, h, r, "shr.u16", "shr.s16")
BINARIES(r, r, r, "shr.u32", "shr.s32")
BINARIES(l, l, r, "shr.u64", "shr.s64")
TERNARIES(r, r, r, r, "shf.l.clamp.b32", "shf.l.wrap.b32", "shf.r.clamp.b32", "shf.r.wrap.b32")

// ---- fields, counts, permutation ----
TERNARIES(r, r, r, r, "bfe.u32", "bfe.s32")
TERNARIES(l, l, r, r, "bfe.u64", "bfe.s64")
#define INSERT(d, spelling)                                                                                \
  CONFORMANCE_FORM3(__COUNTER__, d, d, d, r, spelling,                                                     \
                    "{ .reg .b32 p, n; shr.u32 p, %3, 3; and.b32 p, p, 127; and.b32 n, %3, 127; " spelling \
                    " %0, %1, %2, p, n; }")
INSERT(r, "bfi.b32")
INSERT(l, "bfi.b64")
BINARIES(r, r, r, "szext.clamp.u32", "szext.clamp.s32", "szext.wrap.u32", "szext.wrap.s32", "bmsk.clamp.b32",
         "bmsk.wrap.b32")
UNARY(r, r, "popc.b32")
UNARY(r, l, "popc.b64")
UNARY(r, r, "clz.b32")
UNARY(r, l, "clz.b64")
UNARY(r, r, "brev.b32")
UNARY(l, l, "brev.b64")
UNARIES(r, r, "bfind.u32", "bfind.s32")
UNARIES(r, l, "bfind.u64", "bfind.s64")
UNARIES(r, r, "bfind.shiftamt.u32", "bfind.shiftamt.s32")
UNARIES(r, l, "bfind.shiftamt.u64", "bfind.shiftamt.s64")
CONFORMANCE_FORM3(__COUNTER__, r, r, r, r, "fns.b32",
                  "{ .reg .b32 b, n; and.b32 b, %2, 31; bfe.s32 n, %3, 3, 6; fns.b32 %0, %1, b, n; }")
TERNARIES(r, r, r, r, "prmt.b32", "prmt.b32.f4e", "prmt.b32.b4e", "prmt.b32.rc8", "prmt.b32.ecl",
          "prmt.b32.ecr", "prmt.b32.rc16")
#define DOT(op) TERNARIES(r, r, r, r, op ".u32.u32", op ".u32.s32", op ".s32.u32", op ".s32.s32")
EACH(DOT, "dp4a", "dp2a.lo", "dp2a.hi")

// ---- comparisons ----
#define COMPARISONS(a, type)                                                                       \
  PREDICATES(a, a, "setp.eq" type, "setp.ne" type, "setp.lt" type, "setp.le" type, "setp.gt" type, \
             "setp.ge" type)
COMPARISONS(h, ".u16")
COMPARISONS(h, ".s16")
COMPARISONS(r, ".u32")
COMPARISONS(r, ".s32")
COMPARISONS(l, ".u64")
COMPARISONS(l, ".s64")
PREDICATES(r, r, "setp.lo.u32", "setp.ls.u32", "setp.hi.u32", "setp.hs.u32")
BINARIES(r, r, r, "set.lt.u32.s32", "set.lt.f32.u32")
TERNARY(r, r, r, r, "slct.u32.s32")
TERNARY(l, l, l, r, "slct.u64.s32")

// ---- lop3, every table ----
namespace {

template <int kTable>
__device__ uint32_t lop3(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm volatile("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(kTable));
  return d;
}

template <int kFirst, int kCount>
__device__ void lop3_range(uint32_t a, uint32_t b, uint32_t c, uint32_t* out) {
  if constexpr (kCount == 1) {
    out[kFirst * 32 + threadIdx.x] = lop3<kFirst>(a, b, c);
  } else {
    lop3_range<kFirst, kCount / 2>(a, b, c, out);
    lop3_range<kFirst + kCount / 2, kCount / 2>(a, b, c, out);
  }
}

__global__ void lop3_tables(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* out) {
  lop3_range<0, 256>(a[threadIdx.x], b[threadIdx.x], c[threadIdx.x], out);
}

const conformance::Register lop3_case("alu/lop3.b32", [](conformance::Recorder& out) {
  std::vector<uint32_t> operands[3];
  conformance::Random random(3);
  for (auto& values : operands)
    for (int i = 0; i < 32; ++i) values.push_back(uint32_t(random.bits()));
  const conformance::Buffer<uint32_t> a(operands[0]), b(operands[1]), c(operands[2]);
  conformance::Buffer<uint32_t> d(256 * 32);
  conformance::launch({1, 32}, lop3_tables, a.data(), b.data(), c.data(), d.data());
  out.exact("alu/lop3.b32", d.host());
});

}  // namespace
