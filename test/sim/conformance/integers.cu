// integers.cu -- integer arithmetic and bit patterns: sums, products, quotients, shifts, fields, counts,
// permutation and byte dot products.
#include "test/sim/conformance/form.cuh"

#define SIZES2(op)           \
  BINARY(h, h, h, op ".u16") \
  BINARY(h, h, h, op ".s16") \
  BINARY(r, r, r, op ".u32") \
  BINARY(r, r, r, op ".s32") \
  BINARY(l, l, l, op ".u64") \
  BINARY(l, l, l, op ".s64")
SIZES2("add")
SIZES2("sub")
SIZES2("mul.lo")
SIZES2("mul.hi")
SIZES2("div")
SIZES2("rem")
SIZES2("min")
SIZES2("max")
BINARY(r, h, h, "mul.wide.u16")
BINARY(r, h, h, "mul.wide.s16")
BINARY(l, r, r, "mul.wide.u32")
BINARY(l, r, r, "mul.wide.s32")
#define SIZES3(op)               \
  TERNARY(h, h, h, h, op ".u16") \
  TERNARY(h, h, h, h, op ".s16") \
  TERNARY(r, r, r, r, op ".u32") \
  TERNARY(r, r, r, r, op ".s32") \
  TERNARY(l, l, l, l, op ".u64") \
  TERNARY(l, l, l, l, op ".s64")
SIZES3("mad.lo")
SIZES3("mad.hi")
SIZES3("sad")
TERNARY(r, h, h, r, "mad.wide.u16")
TERNARY(r, h, h, r, "mad.wide.s16")
TERNARY(l, r, r, l, "mad.wide.u32")
TERNARY(l, r, r, l, "mad.wide.s32")
TERNARY(r, r, r, r, "mad.hi.sat.s32")
BINARY(r, r, r, "add.sat.s32")
BINARY(r, r, r, "sub.sat.s32")
BINARY(r, r, r, "min.relu.s32")
BINARY(r, r, r, "max.relu.s32")
BINARY(r, r, r, "mul24.lo.u32")
BINARY(r, r, r, "mul24.lo.s32")
BINARY(r, r, r, "mul24.hi.u32")
BINARY(r, r, r, "mul24.hi.s32")
TERNARY(r, r, r, r, "mad24.lo.u32")
TERNARY(r, r, r, r, "mad24.lo.s32")
TERNARY(r, r, r, r, "mad24.hi.u32")
TERNARY(r, r, r, r, "mad24.hi.s32")
TERNARY(r, r, r, r, "mad24.hi.sat.s32")
#define SIGNED1(op)      \
  UNARY(h, h, op ".s16") \
  UNARY(r, r, op ".s32") \
  UNARY(l, l, op ".s64")
SIGNED1("neg")
SIGNED1("abs")

// ---- logic and shifts ----
#define PATTERN2(op)         \
  BINARY(h, h, h, op ".b16") \
  BINARY(r, r, r, op ".b32") \
  BINARY(l, l, l, op ".b64")
PATTERN2("and")
PATTERN2("or")
PATTERN2("xor")
#define PATTERN1(op)     \
  UNARY(h, h, op ".b16") \
  UNARY(r, r, op ".b32") \
  UNARY(l, l, op ".b64")
PATTERN1("not")
PATTERN1("cnot")
BINARY(h, h, r, "shl.b16")
BINARY(r, r, r, "shl.b32")
BINARY(l, l, r, "shl.b64")
BINARY(h, h, r, "shr.u16")
BINARY(h, h, r, "shr.s16")
BINARY(r, r, r, "shr.u32")
BINARY(r, r, r, "shr.s32")
BINARY(l, l, r, "shr.u64")
BINARY(l, l, r, "shr.s64")
TERNARY(r, r, r, r, "shf.l.clamp.b32")
TERNARY(r, r, r, r, "shf.l.wrap.b32")
TERNARY(r, r, r, r, "shf.r.clamp.b32")
TERNARY(r, r, r, r, "shf.r.wrap.b32")

// ---- fields, counts, permutation ----
TERNARY(r, r, r, r, "bfe.u32")
TERNARY(r, r, r, r, "bfe.s32")
TERNARY(l, l, r, r, "bfe.u64")
TERNARY(l, l, r, r, "bfe.s64")
#define INSERT(d, spelling)                                                                                \
  CONFORMANCE_FORM3(__COUNTER__, d, d, d, r, spelling,                                                     \
                    "{ .reg .b32 p, n; shr.u32 p, %3, 3; and.b32 p, p, 127; and.b32 n, %3, 127; " spelling \
                    " %0, %1, %2, p, n; }")
INSERT(r, "bfi.b32")
INSERT(l, "bfi.b64")
BINARY(r, r, r, "szext.clamp.u32")
BINARY(r, r, r, "szext.clamp.s32")
BINARY(r, r, r, "szext.wrap.u32")
BINARY(r, r, r, "szext.wrap.s32")
BINARY(r, r, r, "bmsk.clamp.b32")
BINARY(r, r, r, "bmsk.wrap.b32")
UNARY(r, r, "popc.b32")
UNARY(r, l, "popc.b64")
UNARY(r, r, "clz.b32")
UNARY(r, l, "clz.b64")
UNARY(r, r, "brev.b32")
UNARY(l, l, "brev.b64")
UNARY(r, r, "bfind.u32")
UNARY(r, r, "bfind.s32")
UNARY(r, l, "bfind.u64")
UNARY(r, l, "bfind.s64")
UNARY(r, r, "bfind.shiftamt.u32")
UNARY(r, r, "bfind.shiftamt.s32")
UNARY(r, l, "bfind.shiftamt.u64")
UNARY(r, l, "bfind.shiftamt.s64")
CONFORMANCE_FORM3(__COUNTER__, r, r, r, r, "fns.b32",
                  "{ .reg .b32 b, n; and.b32 b, %2, 31; bfe.s32 n, %3, 3, 6; fns.b32 %0, %1, b, n; }")
TERNARY(r, r, r, r, "prmt.b32")
TERNARY(r, r, r, r, "prmt.b32.f4e")
TERNARY(r, r, r, r, "prmt.b32.b4e")
TERNARY(r, r, r, r, "prmt.b32.rc8")
TERNARY(r, r, r, r, "prmt.b32.ecl")
TERNARY(r, r, r, r, "prmt.b32.ecr")
TERNARY(r, r, r, r, "prmt.b32.rc16")
#define DOT(op)                      \
  TERNARY(r, r, r, r, op ".u32.u32") \
  TERNARY(r, r, r, r, op ".u32.s32") \
  TERNARY(r, r, r, r, op ".s32.u32") \
  TERNARY(r, r, r, r, op ".s32.s32")
DOT("dp4a")
DOT("dp2a.lo")
DOT("dp2a.hi")

// ---- comparisons ----
#define COMPARISONS(a, type)      \
  PREDICATE(a, a, "setp.eq" type) \
  PREDICATE(a, a, "setp.ne" type) \
  PREDICATE(a, a, "setp.lt" type) \
  PREDICATE(a, a, "setp.le" type) \
  PREDICATE(a, a, "setp.gt" type) \
  PREDICATE(a, a, "setp.ge" type)
COMPARISONS(h, ".u16")
COMPARISONS(h, ".s16")
COMPARISONS(r, ".u32")
COMPARISONS(r, ".s32")
COMPARISONS(l, ".u64")
COMPARISONS(l, ".s64")
PREDICATE(r, r, "setp.lo.u32")
PREDICATE(r, r, "setp.ls.u32")
PREDICATE(r, r, "setp.hi.u32")
PREDICATE(r, r, "setp.hs.u32")
BINARY(r, r, r, "set.lt.u32.s32")
BINARY(r, r, r, "set.lt.f32.u32")
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
