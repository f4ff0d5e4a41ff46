// approximate.cu -- the approximate functions. Each is a table of 4096 inputs with the machine's exact bits;
// chips may differ in the last places, so a reader compares within the bound that the PTX ISA states.
#include <cstring>

#include "test/sim/conformance/form.cuh"

namespace conformance {

constexpr uint32_t kTableElements = 4096;

// Returns special values, then a range in equal steps of the bit pattern (so of the logarithm), both signs.
static std::vector<uint32_t> table_inputs(float low, float high) {
  std::vector<uint32_t> out = {0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000,
                               0x7FC00000, 0x7F800001, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF,
                               0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x40000000, 0x3F000000,
                               0x42FE0000, 0x42FF0000, 0x43000000, 0xC2FC0000, 0xC3150000, 0xC3160000};
  uint32_t first, last;
  std::memcpy(&first, &low, 4);
  std::memcpy(&last, &high, 4);
  Random random(11);
  while (out.size() < kTableElements) {
    const uint64_t t = out.size();
    const uint32_t magnitude =
        uint32_t(first + (uint64_t(last - first) * t + random.below(4096)) / kTableElements);
    out.push_back(magnitude | (t % 2 == 1 ? 0x80000000u : 0));
  }
  return out;
}

template <class Form>
static void run_table(Recorder& out, float low, float high) {
  std::vector<uint32_t> inputs = table_inputs(low, high);
  if (sizeof(typename Form::A) == 2) {  // a 16-bit form: patterns spread over all of them
    for (uint32_t i = 0; i < kTableElements; ++i) inputs[i] = i * 16 + (i & 15);
  } else if (Form::kPacked) {
    for (uint32_t i = 0; i < kTableElements; ++i) inputs[i] = (i * 16 + 7) << 16 | (i * 16 + (i & 15));
  }
  const Buffer<typename Form::A> a(std::vector<typename Form::A>(inputs.begin(), inputs.end()));
  Buffer<typename Form::D> d(kTableElements);
  launch({kTableElements / kBlock, kBlock}, form<Form, typename Form::D, typename Form::A>, d.data(),
         a.data());
  const std::vector<typename Form::A> x = a.host();
  out.exact(Form::name() + ".inputs", x);
  out.table(Form::name(), d.host(), x);
}
}  // namespace conformance

#define CONFORMANCE_TABLE(id, dr, ar, packed, label, low, high)                                           \
  namespace {                                                                                             \
  struct CONFORMANCE_JOIN(Form, id) {                                                                     \
    using D = conformance::Register_##dr;                                                                 \
    using A = conformance::Register_##ar;                                                                 \
    static constexpr bool kPacked = packed;                                                               \
    static std::string name() { return "approximate/" label; }                                            \
    static __device__ D apply(A a) {                                                                      \
      D d;                                                                                                \
      asm volatile(label " %0, %1;" : "=" #dr(d) : #ar(a));                                               \
      return d;                                                                                           \
    }                                                                                                     \
  };                                                                                                      \
  const conformance::Register CONFORMANCE_JOIN(register_,                                                 \
                                               id)("approximate/" label, [](conformance::Recorder& out) { \
    conformance::run_table<CONFORMANCE_JOIN(Form, id)>(out, low, high);                                   \
  });                                                                                                     \
  }
#define TABLE(label, low, high) CONFORMANCE_TABLE(__COUNTER__, r, r, false, label, low, high)
#define TABLE16(label) CONFORMANCE_TABLE(__COUNTER__, h, h, false, label, 0.0f, 1.0f)
#define TABLE16X2(label) CONFORMANCE_TABLE(__COUNTER__, r, r, true, label, 0.0f, 1.0f)

TABLE("ex2.approx.f32", 0x1p-12f, 0x1.3p7f)
TABLE("ex2.approx.ftz.f32", 0x1p-12f, 0x1.3p7f)
TABLE("lg2.approx.f32", 0x1p-149f, 0x1.fffffep127f)
TABLE("lg2.approx.ftz.f32", 0.25f, 4.0f)
TABLE("rcp.approx.f32", 0x1p-149f, 0x1.fffffep127f)
TABLE("rcp.approx.ftz.f32", 0x1p-126f, 0x1.fffffep127f)
TABLE("rsqrt.approx.f32", 0x1p-149f, 0x1.fffffep127f)
TABLE("rsqrt.approx.ftz.f32", 0.25f, 4.0f)
TABLE("sqrt.approx.f32", 0x1p-149f, 0x1.fffffep127f)
TABLE("sqrt.approx.ftz.f32", 0.25f, 4.0f)
TABLE("sin.approx.f32", 0x1p-12f, 3.14159265f)
TABLE("cos.approx.f32", 0x1p-12f, 3.14159265f)
TABLE("tanh.approx.f32", 0x1p-12f, 16.0f)
EACH(TABLE16, "ex2.approx.f16", "tanh.approx.f16", "tanh.approx.bf16", "ex2.approx.ftz.bf16")
EACH(TABLE16X2, "ex2.approx.f16x2", "tanh.approx.f16x2", "tanh.approx.bf16x2", "ex2.approx.ftz.bf16x2")
