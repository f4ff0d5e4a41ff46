// activation_test.cpp -- every activation that the library computes, on every instance that has it, against
// its reference; and chosen by the library.
#include <string>

#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/device_set.h"

using namespace dualgemm_test;

namespace {

void check(const Output& out, const ref::DualGemm& expected) {
  const Comparison result = compare(out, expected);
  INFO(result.first);
  CHECK(result.mismatches == 0);
}

}  // namespace

TEST_CASE("every activation gives its reference's result with every configuration", "[kernel]") {
  for (const dualgemm_activation_t activation : all_activations())
    for (const NamedConfig& config : all_configs(activation)) {
      DYNAMIC_SECTION(config.info.name) {
        if (config.info.grouped) {
          const ProblemSet set = make_offsets(Data::kFullRange, {70, 0, 131}, 72, 272, 3);
          const std::vector<Output> out = run(set, SetOptions(use(config)));
          for (const size_t group : {0, 2}) check(out[group], set.problems[group].reference(activation));
        } else {
          const Problem p = make_problem(Data::kFullRange, 130, 136, 272, 4);
          check(run(p, use(config)), p.reference(activation));
        }
      }
    }
}

TEST_CASE("the library chooses an instance of the activation that is asked for", "[kernel]") {
  const Problem p = make_problem(Data::kFullRange, 130, 136, 272, 5);
  for (const dualgemm_activation_t activation : all_activations())
    for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
      LaunchOptions options;
      options.activation = activation;
      options.dtype = dtype;
      check(run(p, options), p.reference(activation));
    }
}
