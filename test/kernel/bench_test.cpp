// bench_test.cpp -- the benchmark's verification: satisfied by what the library computes of single problems,
// batches and groups, and by nothing else.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/budget.h"
#include "bench/chain.h"
#include "bench/inputs.h"
#include "bench/layer.h"
#include "bench/measure.h"
#include "bench/shapes.h"
#include "support/catch.hpp"

namespace {

using bench::Workload;
using dualgemm_test::contains;

constexpr dualgemm_dtype_t kTypes[] = {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32,
                                       DUALGEMM_DTYPE_FP8_E4M3, DUALGEMM_DTYPE_NVFP4};

// Returns what the benchmark says of a launch whose arguments `change` has changed.
template <class Change>
std::string verdict(const std::string& shape, const Change& change,
                    const bench::Epilogue& epilogue = DUALGEMM_DTYPE_FP16) {
  Workload workload(bench::parse_shape(shape), epilogue, 1, 7);
  return workload.verify(16, [&change](dualgemm_args_t args, cudaStream_t stream) {
    change(args);
    bench::launch_library(args, stream);
  });
}
void nothing(dualgemm_args_t&) {}

const std::vector<std::string> kShapes = {"130x72x320", "3*40x72x320", "offsets:40,0,130,7x72x320",
                                          "masked:40,0,130,7x72x320"};

}  // namespace

TEST_CASE("bench: what the library computes is verified", "[bench]") {
  for (const std::string& shape : kShapes)
    for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
      INFO(shape);
      CHECK(Workload(bench::parse_shape(shape), dtype, 2, 1).verify(50).empty());
    }
}

TEST_CASE("bench: every type of C is verified, with every activation", "[bench]") {
  // 80 columns are 2 and a half pieces of 32 codes: C has a pitch of its own in NVFP4.
  for (const dualgemm_dtype_t dtype : kTypes) {
    INFO("type " << dtype);
    for (const char* shape :
         {"130x80x320", "2*40x80x320", "offsets:40,0,130x80x320", "masked:40,0,130x80x320"})
      CHECK(Workload(bench::parse_shape(shape), dtype, 1, 3).verify(40).empty());
    for (int32_t activation = 0; activation <= DUALGEMM_ACTIVATION_SITU; ++activation)
      CHECK(Workload(bench::parse_shape("20x80x320"),
                     bench::Epilogue(dtype, static_cast<dualgemm_activation_t>(activation)), 1, 3)
                .verify(40)
                .empty());
  }
}

TEST_CASE("bench: what is wrong is noticed in every type of C", "[bench]") {
  const dualgemm_test::DeviceArray<int32_t> rows(std::vector<int32_t>{40, 0, 131, 7});
  for (const dualgemm_dtype_t dtype : kTypes) {
    INFO("type " << dtype);
    const auto says = [&](const std::string& shape, auto change) { return verdict(shape, change, dtype); };
    CHECK(says("130x80x320", nothing).empty());
    CHECK_THAT(
        says("130x80x320", [](auto& args) { std::swap(args.b1, args.b2), std::swap(args.sfb1, args.sfb2); }),
        contains("expected"));
    // An alpha is off by a quarter, more than half a step of any type; a pitch; another activation.
    CHECK_THAT(says("130x80x320", [](auto& args) { args.alpha2 = 0.75f; }), contains("expected"));
    CHECK_THAT(says("130x80x320", [](auto& args) { args.activation = DUALGEMM_ACTIVATION_GLU; }),
               contains("expected"));
    CHECK_THAT(says("130x80x320", [](auto& args) { args.m = 129; }), contains("problem 0: "));
    CHECK_THAT(says("masked:40,0,130,7x80x320", [&](auto& args) { args.group_rows = rows.data(); }),
               contains("problem 2: C[130][0] belongs to no group"));
    if (dtype != DUALGEMM_DTYPE_FP8_E4M3 && dtype != DUALGEMM_DTYPE_NVFP4) continue;
    CHECK_THAT(says("130x80x320", [](auto& args) { args.c_global_scale *= 2; }), contains("expected"));
  }
  // Of C one problem is written with the factors of the other.
  CHECK_THAT(verdict(
                 "2*40x80x320",
                 [](auto& args) {
                   const auto factors = static_cast<int64_t>(dualgemm_sf_size(args.m, args.n));
                   args.batch = 1;
                   args.sfc = static_cast<uint8_t*>(args.sfc) + factors;
                 },
                 DUALGEMM_DTYPE_NVFP4),
             contains("problem 0: factor 0 of row 0 of C = 0xFF"));
}

TEST_CASE("bench: one product is verified, and what is wrong with it is noticed", "[bench][one]") {
  const dualgemm_test::DeviceArray<int32_t> rows(std::vector<int32_t>{40, 0, 131, 7});
  for (int32_t turn = 0; turn <= DUALGEMM_LINEAR_ACTIVATION_RELU2; ++turn)
    for (const dualgemm_dtype_t dtype : kTypes) {
      const auto linear = static_cast<dualgemm_linear_activation_t>(turn);
      const bench::Epilogue epilogue(dtype, DUALGEMM_ACTIVATION_SWIGLU, linear);
      const auto says = [&](const std::string& text, const auto& change) {
        INFO(text << ", type " << dtype << ", activation " << turn);
        bench::Shape shape = bench::parse_shape(text);
        shape.products = 1;
        Workload workload(shape, epilogue, 1, 7);
        const dualgemm_args_t& args = workload.input_set(0).args();
        CHECK(
            (args.products == 1 && args.b2 == nullptr && args.sfb2 == nullptr && args.alpha2_dev == nullptr));
        return workload.verify(40, [&change](dualgemm_args_t changed, cudaStream_t stream) {
          change(changed);
          bench::launch_library(changed, stream);
        });
      };
      CHECK(says("130x80x320", nothing).empty());
      CHECK_THAT(says("130x80x320", [](auto& args) { args.alpha1 = 0.75f; }), contains("expected"));
      CHECK_THAT(says("130x80x320",
                      [](auto& args) { args.linear_activation = args.linear_activation == 0 ? 4 : 0; }),
                 contains("expected"));
      if (turn > 1) continue;
      for (const char* text : {"3*40x80x320", "offsets:40,0,130,7x80x320", "masked:40,0,130,7x80x320"}) {
        CHECK(says(text, nothing).empty());
        CHECK_THAT(says(text, [](auto& args) { args.alpha_stride = 0; }), contains("problem "));
      }
      CHECK_THAT(says("masked:40,0,130,7x80x320", [&](auto& args) { args.group_rows = rows.data(); }),
                 contains("problem 2: C[130][0] belongs to no group"));
    }
}

TEST_CASE("bench: an A of 16 bits is verified", "[.h100][bench][a16]") {
  for (const dualgemm_dtype_t a_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16}) {
    const auto says = [a_dtype](const std::string& text, const auto& change) {
      bench::Shape shape = bench::parse_shape(text);
      shape.a_dtype = a_dtype;
      Workload workload(shape, a_dtype, 1, 7);
      const dualgemm_args_t& args = workload.input_set(0).args();
      CHECK(args.a_dtype == a_dtype);
      CHECK(args.sfa == nullptr);
      return workload.verify(16, [&change](dualgemm_args_t changed, cudaStream_t stream) {
        change(changed);
        bench::launch_library(changed, stream);
      });
    };
    for (const std::string& text : kShapes) {
      INFO(text);
      CHECK(says(text, nothing).empty());
    }
    // The same bits are other numbers in the other type.
    const bool bf16 = a_dtype == DUALGEMM_DTYPE_BF16;
    const dualgemm_dtype_t other = bf16 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_BF16;
    CHECK_THAT(says(kShapes[0], [other](auto& args) { args.a_dtype = other; }), contains("expected"));
  }
}

TEST_CASE("bench: an A in FP8 by weights in MXFP4 is verified, and what is wrong with it is noticed",
          "[.h100][bench][fp8]") {
  const auto says = [](const std::string& text, int32_t products, const auto& change) {
    INFO(text << ", products " << products);
    bench::Shape shape = bench::parse_shape(text);
    shape.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
    shape.products = products;
    Workload workload(shape, DUALGEMM_DTYPE_BF16, 1, 7);
    const dualgemm_args_t& args = workload.input_set(0).args();
    CHECK((args.a_dtype == DUALGEMM_DTYPE_FP8_E4M3 && args.b_dtype == DUALGEMM_DTYPE_MXFP4));
    CHECK((args.sfa == nullptr && args.a_row_scale != nullptr && args.b1_row_exponent != nullptr));
    CHECK((args.b2_row_exponent != nullptr) == (products == 2));
    return workload.verify(16, [&change](dualgemm_args_t changed, cudaStream_t stream) {
      change(changed);
      bench::launch_library(changed, stream);
    });
  };
  for (const std::string& text : kShapes) CHECK(says(text, 2, nothing).empty());
  CHECK(says(kShapes[0], 1, nothing).empty());
  CHECK(says(kShapes[2], 1, nothing).empty());
  CHECK_THAT(says(kShapes[0], 2, [](auto& args) { args.alpha2 = 0.75f; }), contains("expected"));
  // Other rows have other factors and exponents.
  const dualgemm_test::DeviceArray<float> factors(std::vector<float>(130, 0x1p-8f));
  const dualgemm_test::DeviceArray<int16_t> exponents(std::vector<int16_t>(72, -6));
  CHECK_THAT(says(kShapes[0], 2, [&](auto& args) { args.a_row_scale = factors.data(); }),
             contains("expected"));
  CHECK_THAT(says(kShapes[0], 2, [&](auto& args) { args.b1_row_exponent = exponents.data(); }),
             contains("expected"));
  CHECK_THAT(says(kShapes[0], 2, [](auto& args) { args.b2_row_exponent = args.b1_row_exponent; }),
             contains("expected"));
  CHECK_THAT(says(kShapes[0], 1, [](auto& args) { args.a_row_scale = nullptr; }), contains("expected"));
  CHECK_THAT(says(kShapes[0], 2,
                  [](auto& args) {
                    std::swap(args.b1, args.b2);
                    std::swap(args.sfb1, args.sfb2);
                  }),
             contains("expected"));
}

TEST_CASE("bench: an A of 16 bits or of 4 gets the workspace of a pass", "[.h100][bench][a16]") {
  const bench::Epilogue epilogue = DUALGEMM_DTYPE_BF16;
  bench::Shape many = bench::parse_shape("4096x4096x7168"), few = bench::parse_shape("20x72x320");
  for (const dualgemm_dtype_t a_dtype : {DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_BF16}) {
    many.a_dtype = few.a_dtype = a_dtype;
    // Instances with stream-K leave sums behind A, two tiles of up to 192 x 64 pairs for each of 132 CTAs.
    const size_t sums = size_t{2} * 132 * 192 * 64 * 2 * 4 + 2048;
    for (const auto& [shape, a] : {std::pair(&many, size_t{2} * 4096 * 7168), {&few, size_t{2} * 20 * 512}}) {
      CHECK(bench::workspace_bytes(*shape, epilogue) >= a);
      CHECK(bench::workspace_bytes(*shape, epilogue) <= a + sums);
    }
  }
  const dualgemm_test::DeviceArray<uint8_t> workspace(size_t{1} << 20);
  dualgemm_test::Rng random(1);
  const bench::InputSet set(few, epilogue, workspace, random);
  CHECK(set.args().workspace == workspace.data());
  CHECK(set.args().workspace_size == workspace.size());
}

TEST_CASE("bench: operands and alphas that are not the problem's own are noticed", "[bench]") {
  for (const std::string& shape : kShapes) {
    INFO(shape);
    CHECK(verdict(shape, nothing).empty());
    CHECK_THAT(verdict(shape,
                       [](dualgemm_args_t& args) {
                         std::swap(args.b1, args.b2);
                         std::swap(args.sfb1, args.sfb2);
                       }),
               contains("expected"));
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { args.alpha2 = 0.75f; }), contains("expected"));
    if (shape == kShapes[0]) continue;
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { args.alpha_stride = 0; }), contains("problem "));
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { std::swap(args.alpha1_dev, args.alpha2_dev); }),
               contains("problem 0"));
    CHECK_THAT(verdict(shape,
                       [](dualgemm_args_t& args) {  // those of the next problem
                         const int64_t one = int64_t{args.n} * args.k;
                         args.b1 = static_cast<const uint8_t*>(args.b1) + one / 2;
                         (args.batch > 1 ? args.batch : args.groups) -= 1;
                       }),
               contains("problem "));
  }
}

TEST_CASE("bench: a problem that is left out is noticed", "[bench]") {
  CHECK_THAT(verdict(kShapes[1], [](dualgemm_args_t& args) { args.batch = 2; }), contains("problem 2"));
  for (const std::string& shape : {kShapes[2], kShapes[3]})
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { args.groups = 3; }), contains("problem 3"));
}

TEST_CASE("bench: rows that no group owns are not to be written", "[bench][grouped]") {
  const dualgemm_test::DeviceArray<int32_t> rows(std::vector<int32_t>{40, 0, 131, 7});
  const auto more = [&rows](dualgemm_args_t& args) { args.group_rows = rows.data(); };
  CHECK_THAT(verdict(kShapes[3], more), contains("problem 2: C[130][0] belongs to no group"));
}

TEST_CASE("bench: groups are captured into a graph and timed", "[bench][grouped]") {
  for (const std::string& shape : kShapes) {
    Workload workload(bench::parse_shape(shape), DUALGEMM_DTYPE_FP16, 2, 1);
    CHECK(workload.time_graph({bench::launch_library}, 1).at(0).median_us >= 0);
    CHECK(workload.verify(16).empty());
  }
}

TEST_CASE("bench: several ways are timed in turns, each as often as the others", "[bench]") {
  std::string order;
  const std::vector<bench::Timing> timings = bench::in_turns(3, 3, [&order](size_t way) {
    order += static_cast<char>('a' + way);
    return static_cast<double>(10 * (way + 1) + order.size());
  });
  CHECK(order == "abcabcabc");
  REQUIRE(timings.size() == 3);
  for (size_t way = 0; way < 3; ++way) {  // the second of its three times
    CHECK(timings[way].median_us == static_cast<double>(10 * (way + 1) + 4 + way));
    CHECK((timings[way].p10_us < timings[way].median_us && timings[way].median_us < timings[way].p90_us));
  }
}

TEST_CASE("bench: input sets are many, and no more than memory holds", "[bench]") {
  const auto sets = [](const char* shape, int wanted) {
    return bench::input_sets_of(bench::parse_shape(shape), wanted);
  };
  CHECK(sets("512x4096x7168", 50) == 50);
  CHECK(sets("4096x14336x4096", 50) == 10);  // of 0.96e12 operations each
  // Each of 256 experts has 2 * 2048 * 7168 elements: 4.2 GB with their scale factors.
  CHECK(sets("offsets:256~8x2048x7168", 50) == 3);
  CHECK(sets("offsets:256~8x2048x7168", 2) == 2);
  CHECK(sets("512*64x4096x7168", 50) == 2);  // too large even so
  CHECK(sets("512*64x4096x7168", 1) == 1);
}

TEST_CASE("bench: a chain of two launches is verified, and what is wrong with it is noticed",
          "[bench][chain]") {
  const auto says = [](const std::string& text, const bench::Change& change = {}) {
    bench::Chain chain(bench::parse_dense_layer(text), 3, 7);
    return chain.verify(24, change);
  };
  for (const char* text : {"1x64x64", "130x96x320", "20x352x64"}) {
    INFO(text);
    CHECK(says(text) == "");
  }
  const std::string text = "130x96x320";
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.up.alpha2 = 0.75f; }), contains("gate and up: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.up.activation = DUALGEMM_ACTIVATION_GLU; }),
             contains("gate and up: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.down.alpha1 = 0.75f; }), contains("down: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.down.m = 129; }), contains("down: "));
  CHECK_THAT(
      says(text, [](bench::Calls& calls) { calls.down.linear_activation = DUALGEMM_LINEAR_ACTIVATION_RELU; }),
      contains("down: "));
  // Down takes other codes, or other factors.
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.down.a = calls.up.b1; }), contains("down: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.down.sfa = calls.up.sfb1; }), contains("down: "));
  // The chain with PDL is another one.
  CHECK_THAT(says(text,
                  [](bench::Calls& calls) {
                    if (calls.up.flags & DUALGEMM_FLAG_PDL) calls.up.alpha1 = 0.75f;
                  }),
             contains("gate and up: other bytes with PDL"));
  CHECK_THAT(says(text,
                  [](bench::Calls& calls) {
                    if (calls.up.flags & DUALGEMM_FLAG_PDL) calls.down.alpha1 = 0.75f;
                  }),
             contains("down: other bytes with PDL"));
}

TEST_CASE("bench: a chain is captured into graphs and timed", "[bench][chain]") {
  bench::Chain chain(bench::parse_dense_layer("20x64x64"), 3, 1);
  const std::vector<bench::Timing> times =
      bench::time_graph({chain.enqueue(0), chain.enqueue(bench::kDependent)}, 3, 1, chain.stream());
  REQUIRE(times.size() == 2);
  for (const bench::Timing& time : times) CHECK(time.median_us >= 0);
  CHECK(chain.verify(16) == "");
}

TEST_CASE("bench: the layers of a chain", "[bench][chain]") {
  CHECK(bench::dense_layers().size() == 40);
  const bench::Layer layer = bench::parse_dense_layer("20x64x96");
  CHECK((layer.up.m == 20 && layer.up.n == 64 && layer.up.k == 96 && layer.up.products == 2));
  CHECK((layer.down.m == 20 && layer.down.n == 96 && layer.down.k == 64 && layer.down.products == 1));
  CHECK(layer.flops() == 6.0 * 20 * 64 * 96);
  for (const char* text : {"2*20x64x96", "offsets:20,3x64x96"})
    CHECK_THROWS_WITH(bench::parse_dense_layer(text), contains("--chain ffn takes MxIxK"));
  CHECK(bench::with_rows({layer}, {1, 7, 1}).size() == 2);
  // Weights of both launches are 0.4 GB for Llama-70B.
  CHECK(bench::input_sets_of(bench::dense_layer(1, 28672, 8192, ""), 50) == 40);
  CHECK(bench::input_sets_of(bench::dense_layer(4096, 28672, 8192, ""), 50) == 2);
}

TEST_CASE("bench: a layer of experts is verified, and what is wrong with any of its calls is noticed",
          "[bench][chain]") {
  const auto says = [](const std::string& text, const bench::Change& change = {}) {
    bench::Chain chain(bench::parse_expert_layer(text), 3, 7);
    return chain.verify(40, change);
  };
  for (const char* text : {"1,8,2x64x64", "40,5,2x96x320", "300,3,2x64x96"}) {
    INFO(text);
    CHECK(says(text) == "");
  }
  const std::string text = "40,5,2x96x320";
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.permute.experts = 4; }), contains("permute: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.quantize.global_scale = 2; }),
             contains("quantize: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.quantize.x_rows = 39; }), contains("quantize: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.up.alpha_stride = 0; }), contains("gate and up: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.down.alpha_stride = 0; }), contains("down: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.combine.topk_weights = nullptr; }),
             contains("combine: "));
  CHECK_THAT(says(text, [](bench::Calls& calls) { calls.combine.tokens = 39; }), contains("combine: "));
  CHECK_THAT(says(text,
                  [](bench::Calls& calls) {
                    if (calls.combine.flags & DUALGEMM_FLAG_PDL) calls.combine.tokens = 39;
                  }),
             contains("combine: other bytes with PDL"));
}

TEST_CASE("bench: the choices of a layer of experts are those of its groups", "[bench][chain]") {
  const bench::Layer layer = bench::expert_layer(100, 16, 4, 64, 64, "");
  for (int32_t expert = 0; expert < 16; ++expert)
    CHECK(std::count(layer.ids.begin(), layer.ids.end(), expert) == layer.up.rows(expert));
  for (size_t token = 0; token < 100; ++token) {  // no token chooses an expert twice
    std::vector<int32_t> ids(layer.ids.begin() + 4 * token, layer.ids.begin() + 4 * token + 4);
    std::sort(ids.begin(), ids.end());
    CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  }
  CHECK(bench::expert_layers().size() == 10);
  for (const char* text : {"20x64x96", "20,0,1x64x64", "20,2000,1x64x64", "1,2,3x4"})
    CHECK_THROWS_WITH(bench::parse_expert_layer(text), contains("--shape "));
}
