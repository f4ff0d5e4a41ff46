// subnormal_test.cpp -- launches whose operands are subnormal numbers beside wide ones: scale factors of
// bytes 1 to 7, and of a 16-bit A elements below its smallest normal number. A tensor core aligns products by
// the exponent fields of their operands, so that a subnormal operand could cost the places of a whole sum:
// the bound of the reference says how much (ref/dual_gemm.cpp).

#include "kernel/extras.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// Of the general instances those for an fp32 C, which hides least. They write gate and up as well.
std::vector<NamedInstance> instances() {
  std::vector<NamedInstance> out = all_instances();
  const std::vector<NamedInstance> of_sixteen_bits = sixteen_bit_instances();
  out.insert(out.end(), of_sixteen_bits.begin(), of_sixteen_bits.end());
  std::erase_if(out,
                [](const NamedInstance& x) { return x.info.general != 0 && x.dtype != DUALGEMM_DTYPE_FP32; });
  return out;
}

ProblemSet problems(Data data, const NamedInstance& instance, int32_t k, uint64_t seed) {
  const int32_t m = instance.info.tile_m / 2 + 3, n = 72;
  ProblemSet set = instance.info.grouped != 0 ? make_masked(data, {m, 0, 3}, n, k, seed)
                                              : make_batch(data, 1, m, n, k, seed);
  if (instance.info.a_dtype != DUALGEMM_DTYPE_NVFP4)
    for (Problem& p : set.problems)
      p = with_sixteen_bits(p, static_cast<dualgemm_dtype_t>(instance.info.a_dtype), ++seed);
  return set;
}

void check_bound(const NamedInstance& instance) {
  SetOptions options = use(instance);
  options.d = instance.info.general != 0;
  options.d_dtype = DUALGEMM_DTYPE_FP32;
  // Wide operands alone are those of many other tests, but for an A of 16 bits, which has subnormal elements
  // beside them.
  uint64_t seed = 0;
  for (const Data data : {Data::kSubnormalFactors, Data::kFullRange})
    for (const int32_t k : {16, 48, 304}) {
      ++seed;
      const bool packed = instance.info.a_dtype == DUALGEMM_DTYPE_NVFP4, wide = data == Data::kFullRange;
      if (!thorough() && (k == 16 || (wide && (packed || k == 304)))) continue;
      INFO("k " << k << ", seed " << seed + 100);
      check_launch(problems(data, instance, k, 100 + seed), options);
    }
}

}  // namespace

TEST_CASE("subnormal operands beside wide ones: each instance keeps the bound", "[subnormal]") {
  for (const NamedInstance& instance : all_or_in_turn(instances())) {
    DYNAMIC_SECTION(instance.name) { check_bound(instance); }
  }
}
