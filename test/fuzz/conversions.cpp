// conversions.cpp -- moving factors, quantising, and what stands around a layer of experts, on the device: a
// refusal launches nothing, a success what the structure asks for.

#include "fuzz/answer.h"
#include "fuzz/block.h"
#include "fuzz/problems.h"
#include "fuzz/targets.h"

namespace dualgemm_fuzz {
namespace {

struct Expected {
  uint64_t launches, fills;
};

Expected expected_of(const dualgemm_sf_args_t&) { return {1, 0}; }
// The largest magnitude of the tensor comes from a kernel of its own, which raises what was set to 0.
Expected expected_of(const dualgemm_quantize_args_t& args) {
  return args.scale_mode == DUALGEMM_SCALE_TENSOR ? Expected{2, 1} : Expected{1, 0};
}

Expected expected_of(const dualgemm_moe_permute_args_t&) { return {1, 0}; }
Expected expected_of(const dualgemm_moe_gather_args_t&) { return {1, 0}; }
Expected expected_of(const dualgemm_moe_combine_args_t&) { return {1, 0}; }

template <class Args>
bool is_empty(const Args& args) {
  return args.rows == 0 || args.k == 0;
}
bool is_empty(const dualgemm_moe_permute_args_t& args) { return args.tokens == 0 || args.top_k == 0; }
bool is_empty(const dualgemm_moe_combine_args_t& args) {
  return args.tokens == 0 || args.top_k == 0 || args.n == 0;
}

// What releases have appended is 0 by default, except in this structure.
template <class Args>
Args defaults_of() {
  return {};
}
template <>
dualgemm_quantize_args_t defaults_of() {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  return args;
}

template <class Args, class Call>
void convert(const Args* args, bool bad_stream, Call call) {
  const cudaStream_t stream = bad_stream ? dualgemm_test::stub_bad_stream() : nullptr;
  const Work work;
  const Answer answer = answer_of(call(args, stream));
  if (answer.status == DUALGEMM_STATUS_CUDA_ERROR) {
    require(bad_stream && work.launches() + work.fills() == 1, "\"%s\"", answer.text.c_str());
    return;
  }
  if (!answer.good()) {
    const Args all = args ? whole(args, defaults_of<Args>()) : Args{};
    require_named(answer, fields_of(all), args ? &all : nullptr, nullptr);
    require(work.none(), "a refused call runs something: \"%s\"", answer.text.c_str());
    require_same(answer, answer_of(call(args, stream)), "the same call again");
    return;
  }
  const bool empty = is_empty(*args);
  const Expected expected = empty ? Expected{0, 0} : expected_of(*args);
  require(work.launches() == expected.launches && work.fills() == expected.fills, "%zu launches, %zu fills",
          static_cast<size_t>(work.launches()), static_cast<size_t>(work.fills()));
  if (empty) return;
  const dualgemm_test::StubWork& last = dualgemm_test::stub_work();
  require(!bad_stream && last.grid.x > 0 && last.grid.x <= INT32_MAX && last.grid.y == 1 && last.grid.z == 1,
          "%u CTAs", last.grid.x);
}

template <class Args, class Call>
void convert_some(Bytes& bytes, Args (*some)(Bytes&), Call call) {
  const bool bad_stream = bytes.one_in(16);
  const Claimed<Args> claim(bytes, some(bytes));
  convert(claim.get(), bad_stream, call);
}

}  // namespace

void move_factors(Bytes& bytes) {
  convert_some(bytes, some_factors, bytes.one_in(2) ? dualgemm_sf_swizzle : dualgemm_sf_unswizzle);
}
void quantize(Bytes& bytes) { convert_some(bytes, some_quantization, dualgemm_quantize); }
void permute_experts(Bytes& bytes) { convert_some(bytes, some_permutation, dualgemm_moe_permute); }
void gather_experts(Bytes& bytes) { convert_some(bytes, some_gathering, dualgemm_moe_gather); }
void combine_experts(Bytes& bytes) { convert_some(bytes, some_combination, dualgemm_moe_combine); }

}  // namespace dualgemm_fuzz
