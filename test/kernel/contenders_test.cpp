// contenders_test.cpp -- kernels of others beside the library in the benchmark: what is exact is verified,
// what goes wrong is said, and nothing that was made is left.
#include "bench/contenders.h"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/budget.h"
#include "bench/inputs.h"
#include "bench/measure.h"
#include "bench/operands.h"
#include "ref/formats.h"
#include "support/catch.hpp"

namespace {

using namespace bench;
using dualgemm_test::contains;

int alive = 0;     // of what contenders have created
int left_out = 0;  // the last of K, which a wrong contender does not multiply

std::vector<uint16_t> download(const void* from, size_t count) {
  std::vector<uint16_t> out(count);
  check_cuda(cudaMemcpy(out.data(), from, 2 * count, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return out;
}

// A GEMM in float on the host, with everything that a contender defines.
ContenderFunctions on_the_host() {
  ContenderFunctions f;
  f.name = [] { return "host"; };
  f.is_exact = [] { return 1; };
  f.create = [](const contender_problem* problem) -> void* {
    if (problem->k % 32 != 0) return nullptr;
    ++alive;
    return new contender_problem(*problem);
  };
  f.multiply = [](void* created, void* products, void* stream) {
    const auto& p = *static_cast<const contender_problem*>(created);
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    const auto m = static_cast<size_t>(p.m), n = static_cast<size_t>(p.products * p.n),
               k = static_cast<size_t>(p.k);
    const std::vector<uint16_t> a = download(p.a, m * k), b = download(p.b, n * k);
    std::vector<uint16_t> out;
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column) {
        float sum = 0;
        for (size_t i = 0; i < k - static_cast<size_t>(left_out); ++i)
          sum += static_cast<float>(ref::decode(ref::Format::kFp16, a[row * k + i]) *
                                    ref::decode(ref::Format::kFp16, b[column * k + i]));
        out.push_back(std::bit_cast<uint16_t>(static_cast<_Float16>(sum)));
      }
    check_cuda(cudaMemcpy(products, out.data(), 2 * out.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    return 0;
  };
  f.takes_one_product = [] { return 1; };
  f.destroy = [](void* created) {
    --alive;
    delete static_cast<contender_problem*>(created);
  };
  return f;
}

Contender prepared(const ContenderFunctions& functions, const char* text,
                   const Epilogue& epilogue = DUALGEMM_DTYPE_FP16, int32_t products = 2) {
  Shape shape = parse_shape(text);
  shape.products = products;
  Workload workload(shape, epilogue, 2, 7);
  SharedOperands operands(workload);
  return prepare_contenders({functions}, &workload, &operands, 60).at(0);
}

}  // namespace

TEST_CASE("contenders: one that computes the library's numbers is verified", "[bench]") {
  left_out = 0;
  for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
    const Contender contender = prepared(on_the_host(), "20x72x64", dtype);
    CHECK(contender.name == "host");
    CHECK(contender.exact);
    CHECK(contender.error.empty());
    CHECK(contender.launch != nullptr);
    CHECK(alive == 2);  // one of each input set
  }
  CHECK(alive == 0);
}

TEST_CASE(
    "contenders: one that is exact and computes other numbers is noticed, one that is not is not verified",
    "[bench]") {
  left_out = 16;
  CHECK_THAT(prepared(on_the_host(), "20x72x64").error, contains("wrong: input set 0: problem 0: C[0][0]"));
  ContenderFunctions other = on_the_host();
  other.is_exact = [] { return 0; };
  const Contender contender = prepared(other, "20x72x64");
  CHECK(!contender.exact);
  CHECK(contender.launch != nullptr);
  left_out = 0;
}

TEST_CASE("contenders: one product is multiplied by those that say so, into C where that is fp16",
          "[bench][one]") {
  for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16})
    for (const auto linear : {DUALGEMM_LINEAR_ACTIVATION_NONE, DUALGEMM_LINEAR_ACTIVATION_SILU}) {
      const Epilogue epilogue(dtype, DUALGEMM_ACTIVATION_SWIGLU, linear);
      left_out = 0;
      CHECK(prepared(on_the_host(), "20x72x64", epilogue, 1).error.empty());
      left_out = 16;
      CHECK_THAT(prepared(on_the_host(), "20x72x64", epilogue, 1).error, contains("wrong: "));
    }
  left_out = 0;
  ContenderFunctions of_two = on_the_host();
  of_two.takes_one_product = nullptr;
  CHECK_THAT(prepared(of_two, "20x72x64", DUALGEMM_DTYPE_FP16, 1).error, contains("takes two products"));
  CHECK(alive == 0);
}

TEST_CASE("contenders: what one does not take, or fails at, is said", "[bench]") {
  left_out = 0;
  ContenderFunctions refuses = on_the_host();
  refuses.create = [](const contender_problem*) -> void* { return nullptr; };
  CHECK_THAT(prepared(refuses, "20x72x64").error, contains("does not take this shape"));
  ContenderFunctions fails = on_the_host();
  fails.multiply = [](void*, void*, void*) { return 5; };
  CHECK_THAT(prepared(fails, "20x72x64").error, contains("contender_multiply returned 5"));
  CHECK_THAT(prepared(on_the_host(), "2*20x72x64").error, contains("one problem"));
  CHECK_THAT(prepared(on_the_host(), "masked:20,3x72x64").error, contains("one problem"));
  CHECK_THAT(prepared(on_the_host(), "20x72x64", DUALGEMM_DTYPE_FP32).error, contains("to fp16 or bf16"));
  CHECK(alive == 0);
}

TEST_CASE("contenders: a file that is none, or lacks a function, is refused by name", "[bench]") {
  CHECK_THROWS_WITH(load_contender("/no/such/file.so"), contains("/no/such/file.so"));
  CHECK_THROWS_WITH(load_contender("libm.so.6"), contains("libm.so.6 does not define contender_name"));
}
