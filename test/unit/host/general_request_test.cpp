// general_request_test.cpp -- a plain instance computes the default SwiGLU, or one product, and nothing else.
// So each field of a launch is one that it obeys, or one that asks for a general instance. And what only a
// general instance computes, the library's reference computes, too. A field that is forgotten in either place
// would be ignored without a word.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

#include "host/include/dualgemm.h"
#include "rules.h"
#include "support/catch.hpp"

namespace general_request_test {

using namespace dualgemm_test;

// Everything that a launch may write, as zeros.
struct Outputs {
  alignas(16) uint16_t c[8], d1[8], d2[8];
  alignas(16) float amax;
};

// A launch of one row and eight columns, in host memory. Gate and value are 1 everywhere, and so is the
// one product.
struct Small {
  alignas(16) uint8_t a[32], b1[128], b2[128], sfa[512], sfb1[512], sfb2[512];
  alignas(16) uint16_t addend[8];
  int16_t exponents[8];
  float ones[8], half = 0.5f;
  Outputs out;
  dualgemm_args_t args;

  explicit Small(int32_t products) {
    for (uint8_t* elements : {b1, b2}) std::fill_n(elements, sizeof b1, uint8_t{0x22});  // two times 1
    std::fill_n(a, sizeof a, uint8_t{0x22});
    for (uint8_t* factors : {sfa, sfb1, sfb2}) std::fill_n(factors, sizeof sfa, uint8_t{0x38});  // 1
    std::fill_n(addend, std::size(addend), uint16_t{0x3C00});                                    // 1
    std::fill_n(ones, std::size(ones), 1.0f);
    dualgemm_args_init(&args);
    args.products = products;
    args.m = 1;
    args.n = 8;
    args.k = 32;
    args.a = a;
    args.b1 = b1;
    args.sfa = sfa;
    args.sfb1 = sfb1;
    args.alpha1 = 1.0f / 32;
    if (products == 2) {
      args.b2 = b2;
      args.sfb2 = sfb2;
      args.alpha2 = 1.0f / 32;
    }
    args.c_dtype = DUALGEMM_DTYPE_FP16;
    args.bias_dtype = DUALGEMM_DTYPE_FP32;
    args.c = out.c;
  }

  // Makes the weights MXFP4, and A FP8, of the same numbers.
  void take_mxfp4() {
    args.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
    args.b_dtype = DUALGEMM_DTYPE_MXFP4;
    args.sfa = nullptr;
    std::fill_n(a, sizeof a, uint8_t{0x38});                                                // 1
    for (uint8_t* factors : {sfb1, sfb2}) std::fill_n(factors, sizeof sfb1, uint8_t{127});  // 1
    std::fill_n(exponents, std::size(exponents), int16_t{-1});
  }

  // Returns the bytes of all outputs as the library's reference leaves them.
  std::string written() {
    std::memset(&out, 0, sizeof out);
    const dualgemm_status_t status = dualgemm_reference_host(&args, nullptr);
    INFO(dualgemm_last_error());
    REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
    return {reinterpret_cast<const char*>(&out), sizeof out};
  }
};

// What only a general instance computes: the field, the products of a launch that has it, and a value of it
// that changes what such a launch writes.
struct Request {
  const char* field;
  int32_t products;
  void (*make)(Small&);
};
const Request kRequests[] = {
    {"activation", 2, [](Small& x) { x.args.activation = DUALGEMM_ACTIVATION_REGLU; }},
    {"swiglu_alpha", 2, [](Small& x) { x.args.swiglu_alpha = 2; }},
    {"swiglu_beta", 2, [](Small& x) { x.args.swiglu_beta = 1; }},
    {"swiglu_limit", 2, [](Small& x) { x.args.swiglu_limit = 0.5f; }},
    {"a_row_scale", 2, [](Small& x) { x.args.a_row_scale = &x.half; }},
    {"bias1", 2, [](Small& x) { x.args.bias1 = x.ones; }},
    {"bias2", 2, [](Small& x) { x.args.bias2 = x.ones; }},
    {"c_row_scale", 2, [](Small& x) { x.args.c_row_scale = &x.half; }},
    {"amax_out", 2, [](Small& x) { x.args.amax_out = &x.out.amax; }},
    {"d1", 2, [](Small& x) { x.args.d1 = x.out.d1, x.args.d2 = x.out.d2; }},
    {"linear_activation", 1, [](Small& x) { x.args.linear_activation = DUALGEMM_LINEAR_ACTIVATION_SILU; }},
    {"c_add", 1, [](Small& x) { x.args.c_add = x.addend; }},
};

// The other fields.
const std::set<std::string> kOthers = {
    // Every instance obeys them, or the host does.
    "struct_size", "m", "n", "k", "batch", "a", "b1", "b2", "sfa", "sfb1", "sfb2", "c", "lda", "ldb1", "ldb2",
    "ldc", "batch_stride_a", "batch_stride_b1", "batch_stride_b2", "batch_stride_c", "batch_stride_sfa",
    "batch_stride_sfb1", "batch_stride_sfb2", "alpha1", "alpha2", "alpha1_dev", "alpha2_dev", "alpha_stride",
    "a_dtype", "b_dtype", "b1_row_exponent", "b2_row_exponent", "products", "group_mode", "groups",
    "group_rows", "expected_rows", "instance_id", "max_sms", "workspace", "workspace_size", "reserved0",
    "reserved1", "reserved2", "reserved3", "reserved4",
    // Some of their values ask for a general instance.
    "flags", "c_dtype",
    // The rules take them beside a field above or a c_dtype that asks for one, and refuse them or leave them
    // without effect elsewhere.
    "sfc", "batch_stride_sfc", "c_global_scale", "c_global_scale_dev", "c_global_scale_stride", "situ_gate",
    "situ_up", "bias_dtype", "bias_stride", "d2", "ldd1", "ldd2", "batch_stride_d1", "batch_stride_d2",
    "d_dtype", "batch_stride_a_row_scale", "batch_stride_c_row_scale", "batch_stride_b_row_exponent",
    "ld_c_add", "batch_stride_c_add"};

TEST_CASE("what a plain instance lacks asks for a general one, and the reference computes it",
          "[host][general]") {
  for (const Request& request : kRequests) {
    INFO(request.field);
    Small plain(request.products), asked(request.products);
    request.make(asked);
    CHECK_FALSE(checked(plain.args).general());
    const dualgemm::Problem problem = checked(asked.args);
    REQUIRE(problem.general());
    CHECK(std::string(problem.general_request.field) == request.field);
    CHECK(plain.written() != asked.written());
  }
}

// With an A in FP8 a plain instance takes what is of rows of A and B.
TEST_CASE("an A in FP8 has factors of its rows and exponents of those of B with a plain instance, too",
          "[host][general][mxfp4]") {
  Small plain(2);
  plain.take_mxfp4();
  const std::string before = plain.written();
  const struct {
    const char* field;
    void (*make)(Small&);
  } obeyed[] = {{"a_row_scale", [](Small& x) { x.args.a_row_scale = &x.half; }},
                {"b1_row_exponent", [](Small& x) { x.args.b1_row_exponent = x.exponents; }},
                {"b2_row_exponent", [](Small& x) { x.args.b2_row_exponent = x.exponents; }}};
  for (const auto& one : obeyed) {
    INFO(one.field);
    Small asked(2);
    asked.take_mxfp4();
    one.make(asked);
    CHECK_FALSE(checked(asked.args).general());
    CHECK(asked.written() != before);
  }
}

TEST_CASE("each field on record is one that a plain instance obeys, or asks for a general one",
          "[host][general]") {
  std::set<std::string> requests;
  for (const Request& request : kRequests) requests.insert(request.field);
  size_t fields = 0;
  std::string structure;
#define STRUCT(type, size) structure = #type;
#define FIELD(offset, type, name)                               \
  if (structure == "dualgemm_args_t") {                         \
    INFO(#name);                                                \
    CHECK(requests.contains(#name) != kOthers.contains(#name)); \
    ++fields;                                                   \
  }
#define END()
#include "support/interface.def"
  CHECK(fields == requests.size() + kOthers.size());
}

}  // namespace general_request_test
