// one_product_test.cpp -- launches with products = 1: what they take, what they refuse, and the reference in
// host memory against the tests' own.
#include <cmath>
#include <cstring>
#include <vector>

#include "arguments.h"
#include "ref/formats.h"
#include "rules.h"
#include "support/compare.h"
#include "support/extras.h"
#include "support/problem.h"
#include "support/problem_set.h"

namespace one_product_test {

using namespace dualgemm_test;

static dualgemm_args_t one_product(dualgemm_args_t args = valid_args()) {
  args.products = 1;
  args.b2 = args.sfb2 = nullptr;
  return args;
}
static void* somewhere(uint64_t number) { return reinterpret_cast<void*>((number + 100) << 32); }

TEST_CASE("one product: what belongs to the second one is refused by name", "[host][validate][one]") {
  check({{kValue, "products=3: must be in [0, 2]", [](auto& a) { a.products = 3; }},
         {kValue, "products=-1: must be in [0, 2]", [](auto& a) { a.products = -1; }},
         {kValue, "linear_activation=6: must be in [0, 5]", [](auto& a) { a.linear_activation = 6; }},
         {kValue, "activation=2 (GEGLU_ERF): must be 0 with products=1",
          [](auto& a) { a.activation = DUALGEMM_ACTIVATION_GEGLU_ERF; }},
         {kValue, "alpha2=3: must be 1 with products=1", [](auto& a) { a.alpha2 = 3; }},
         {kValue, "swiglu_alpha=2: must be 1 unless", [](auto& a) { a.swiglu_alpha = 2; }},
         {kValue, "swiglu_limit=7: must be infinity unless", [](auto& a) { a.swiglu_limit = 7; }},
         {kValue, "b2=0x6400000000: must be NULL with products=1", [](auto& a) { a.b2 = somewhere(0); }},
         {kValue, "sfb2=0x6400000000: must be NULL", [](auto& a) { a.sfb2 = somewhere(0); }},
         {kValue, "bias2=0x6400000000: must be NULL", [](auto& a) { a.bias2 = somewhere(0); }},
         {kValue, "alpha2_dev=0x6400000000: must be NULL",
          [](auto& a) { a.alpha2_dev = static_cast<const float*>(somewhere(0)); }},
         {kValue, "d2=0x6400000000: must be NULL", [](auto& a) { a.d2 = somewhere(0); }},
         {kValue, "ldb2=512: must be 0 where products is 1", [](auto& a) { a.ldb2 = 512; }},
         {kValue, "batch_stride_b2=512: must be 0 where products is 1",
          [](auto& a) { a.batch_stride_b2 = 512; }},
         {kValue, "batch_stride_sfb2=512: must be 0 where products is 1",
          [](auto& a) { a.batch_stride_sfb2 = 512; }},
         {kValue, "ld_c_add=512: must be 0 where c_add is NULL", [](auto& a) { a.ld_c_add = 512; }},
         {kValue, "batch_stride_c_add=512: must be 0 where c_add is NULL",
          [](auto& a) { a.batch_stride_c_add = 512; }},
         {kValue, "c_add=0x6400000000: must be NULL with c_dtype=4 (FP8_E4M3)",
          [](auto& a) {
            a.c_add = somewhere(0);
            a.c_dtype = DUALGEMM_DTYPE_FP8_E4M3;
          }},
         {DUALGEMM_STATUS_NULL_POINTER, "b1=NULL", [](auto& a) { a.b1 = nullptr; }},
         {DUALGEMM_STATUS_NOT_SUPPORTED, "k=0: must be above 0 with c_add=",
          [](auto& a) {
            a.c_add = somewhere(0);
            a.k = 0;
          }}},
        one_product());
}

TEST_CASE("one product: two take nothing of it, and still need B2", "[host][validate][one]") {
  check({{DUALGEMM_STATUS_NULL_POINTER, "b2=NULL", [](auto& a) { a.b2 = nullptr; }},
         {DUALGEMM_STATUS_NULL_POINTER, "b2=NULL",
          [](auto& a) {
            a.products = 2;
            a.b2 = nullptr;
          }},
         {DUALGEMM_STATUS_INVALID_VALUE, "linear_activation=1 (SILU): must be 0 (NONE) unless products is 1",
          [](auto& a) { a.linear_activation = DUALGEMM_LINEAR_ACTIVATION_SILU; }},
         {DUALGEMM_STATUS_INVALID_VALUE, "c_add=0x6400000000: must be NULL unless products is 1",
          [](auto& a) { a.c_add = somewhere(0); }}});
  check_accepted({[](auto& a) { a.products = 2; }});
}

TEST_CASE("one product: c_add may be C and overlaps it in no other way", "[host][validate][one]") {
  const auto add = [](int64_t bytes, int64_t pitch) {
    return [=](dualgemm_args_t& a) {
      a.c_add = static_cast<const char*>(a.c) + bytes;
      a.ld_c_add = pitch;
    };
  };
  const dualgemm_args_t good = one_product();
  CHECK(ask(good) == DUALGEMM_STATUS_SUCCESS);
  check_accepted({add(0, 0), add(0, good.n), [](auto& a) { a.c_add = somewhere(0); },
                  [](auto& a) {
                    a.c_add = somewhere(0);
                    a.ld_c_add = 2 * a.n;
                  }},
                 good);
  check({{DUALGEMM_STATUS_ALIASING, "c_add", add(16, 0)},
         {DUALGEMM_STATUS_ALIASING, "c_add", add(0, 2 * good.n)},
         {DUALGEMM_STATUS_MISALIGNED, "c_add",
          [](auto& a) { a.c_add = static_cast<const char*>(somewhere(0)) + 8; }},
         {DUALGEMM_STATUS_INVALID_STRIDE, "ld_c_add",
          [](auto& a) {
            a.c_add = somewhere(0);
            a.ld_c_add = a.n - 8;
          }}},
        good);
}

TEST_CASE("one product: instances compute one or two", "[host][one]") {
  for (const bool one : {false, true}) {
    const dualgemm_args_t args = one ? one_product() : valid_args();
    const int32_t id = selected_id(args);
    CHECK(info_of(id).products == (one ? 1 : 2));
    dualgemm_args_t other = one ? valid_args() : one_product();
    other.instance_id = id;
    CHECK(ask(other) == DUALGEMM_STATUS_NOT_SUPPORTED);
    INFO(dualgemm_last_error());
    CHECK(std::string(dualgemm_last_error()).find("computes products=") != std::string::npos);
  }
}

TEST_CASE("one product: the reference in host memory lies within the bound", "[host][reference][one]") {
  for (int32_t activation = 0; activation <= DUALGEMM_LINEAR_ACTIVATION_RELU2; ++activation)
    for (const bool everything : {false, true}) {
      CAPTURE(activation, everything);
      ProblemSet set;
      set.problems = {make_problem(Data::kFullRange, 21, 80, 144, 5 + activation, 32)};
      set.m = 21;
      set.n = 80;
      set.k = 144;
      if (everything) {
        give_all(set, extras().back(), 7);
        set.problems[0].parameters = {};
        give_c_add(set, 9);
      }
      leave_one_product(set, static_cast<dualgemm_linear_activation_t>(activation));
      const Problem& p = set.problems[0];
      dualgemm_args_t args;
      dualgemm_args_init(&args);
      args.products = 1;
      args.linear_activation = activation;
      args.m = p.m;
      args.n = p.n;
      args.k = p.k;
      args.a = p.a.data();
      args.b1 = p.b1.data();
      args.sfa = p.sfa.data();
      args.sfb1 = p.sfb1.data();
      args.lda = p.lda;
      args.ldb1 = p.ldb1;
      args.alpha1 = p.alpha1;
      args.c_dtype = DUALGEMM_DTYPE_FP32;
      if (everything) {
        args.a_row_scale = p.row_scale.data();
        args.c_row_scale = p.c_row_scale.data();
        args.bias_dtype = DUALGEMM_DTYPE_FP32;
        args.bias1 = p.bias1.data();
        args.c_add = p.c_add.data();
      }
      std::vector<float> c(static_cast<size_t>(p.m) * static_cast<size_t>(p.n));
      args.c = c.data();
      INFO(dualgemm_last_error());
      REQUIRE(dualgemm_reference_host(&args, nullptr) == DUALGEMM_STATUS_SUCCESS);
      Output out{p.m, p.n, DUALGEMM_DTYPE_FP32, std::vector<uint16_t>(2 * c.size())};
      std::memcpy(out.bits.data(), c.data(), 4 * c.size());
      const Comparison result = compare(out, p.reference());
      INFO(result.first);
      CHECK(result.mismatches == 0);
    }
}

}  // namespace one_product_test
