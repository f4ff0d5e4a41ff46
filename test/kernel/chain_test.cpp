// chain_test.cpp -- two launches, the second of which takes the NVFP4 output of the first and its factors as
// its A and SFA where they lie: what the first wrote, padding included, is what the second may read. The
// second is compared with the reference of the bytes that the first wrote; and from end to end, with the
// reference of what fp64 makes of the first.
#include <algorithm>
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "ref/nvfp4.h"

using namespace dualgemm_test;

namespace {

// Returns the problem of the second launch: its A and SFA are C of the first and its factors as they came
// back.
Problem after(const Output& c, int32_t n, uint64_t seed) {
  Problem p = make_problem(Data::kFullRange, static_cast<int32_t>(c.m), n, static_cast<int32_t>(c.n), seed);
  for (int64_t row = 0; row < c.m; ++row) {
    const auto codes = reinterpret_cast<const uint8_t*>(c.bits.data()) + row * c.n / 2;
    std::copy(codes, codes + c.n / 2, p.a.begin() + row * p.lda / 2);
    for (int64_t block = 0; block < c.n / ref::kBlock; ++block)
      p.sfa[ref::sf_offset(c.n, row, block)] = c.factors[row * c.n / ref::kBlock + block];
  }
  return p;
}

// Returns the arguments of `second`, with C of `first` and its factors for A and SFA where they lie.
dualgemm_args_t after(const dualgemm_args_t& first, dualgemm_args_t second) {
  second.a = first.c;
  second.sfa = first.sfc;
  second.lda = first.ldc;
  second.batch_stride_a = first.batch_stride_c;
  second.batch_stride_sfa = first.batch_stride_sfc;
  return second;
}

// Runs the chain and checks both launches. The second has `n` columns.
void check_chain(const ProblemSet& first, SetOptions options, int32_t n) {
  options.dtype = DUALGEMM_DTYPE_NVFP4;
  const DeviceSet from(first, options);
  from.launch(nullptr);
  const std::vector<Output> between = from.download();

  ProblemSet second = first;
  second.n = n;
  second.k = first.n;
  for (size_t i = 0; i < between.size(); ++i) {
    if (first.problems[i].m != 0) check(between[i], first.problems[i], options);
    second.problems[i] = after(between[i], n, 100 + i);
  }
  SetOptions next;
  next.dtype = DUALGEMM_DTYPE_BF16;
  const DeviceSet to(second, next);
  const dualgemm_args_t args = after(from.args(), to.args());
  check_status(dualgemm_launch_ex(&args, nullptr));
  const std::vector<Output> out = to.download();
  for (size_t i = 0; i < out.size(); ++i) {
    INFO("problem " << i << ", " << first.problems[i].m << " rows");
    if (first.problems[i].m != 0) check(out[i], second.problems[i], next);
  }
}

void check_chains(ProblemSet set, const SetOptions& options) {
  give_encode(set, DUALGEMM_DTYPE_NVFP4);
  for (const int32_t n : {72, 264}) check_chain(set, options, n);
}

// Returns what fp64 makes of a launch with an NVFP4 output.
Output exact_output(const Problem& p, const LaunchOptions& options) {
  const ref::DualGemm exact = expected(p, options, 1)->c;
  Output out{exact.m, exact.n, DUALGEMM_DTYPE_NVFP4};
  for (size_t i = 0; i < exact.c.size(); i += ref::kBlock) {
    uint8_t codes[ref::kBlock];
    out.factors.push_back(ref::quantise_block(&exact.c[i], p.encode, codes));
    for (int j = 0; j < ref::kBlock; j += 4)
      out.bits.push_back(
          static_cast<uint16_t>(codes[j] | codes[j + 1] << 4 | codes[j + 2] << 8 | codes[j + 3] << 12));
  }
  return out;
}

// Gives `exact` those rows of `got` that have other values: the bound of the kernel lets a number that lies
// between two codes become either. Returns how many.
int64_t take_other_rows(Output& exact, const Output& got) {
  const auto take = [](auto& to, const auto& from, int64_t row, int64_t width) {
    std::copy(from.begin() + row * width, from.begin() + (row + 1) * width, to.begin() + row * width);
  };
  int64_t others = 0;
  for (int64_t row = 0; row < got.m; ++row) {
    bool same = true;
    for (int64_t column = 0; column < got.n; ++column)
      same &= exact.value(row, column) == got.value(row, column);
    if (same) continue;
    take(exact.bits, got.bits, row, got.n / 4);
    take(exact.factors, got.factors, row, got.n / ref::kBlock);
    ++others;
  }
  return others;
}

}  // namespace

TEST_CASE("chain: from end to end, the second launch is what fp64 makes of the first", "[chain]") {
  struct Chain {
    const char* name;
    ProblemSet set;
    dualgemm_activation_t activation;
    void (*give)(Problem&, Rng&);
    int32_t second_n = 72;
  };
  const auto nothing = [](Problem&, Rng&) {};
  const Chain chains[] = {
      {"one problem", make_batch(Data::kFullRange, 1, 200, 272, 528, 21), DUALGEMM_ACTIVATION_SWIGLU,
       nothing},
      {"a batch with biases and factors of rows", make_batch(Data::kFullRange, 3, 33, 176, 272, 22),
       DUALGEMM_ACTIVATION_SWIGLU, give_everything},
      {"groups", make_offsets(Data::kFullRange, {40, 0, 129, 1}, 176, 272, 23),
       DUALGEMM_ACTIVATION_GEGLU_TANH, nothing},
      {"groups with capacities", make_masked(Data::kFullRange, {7, 130, 0}, 208, 272, 24, 9),
       DUALGEMM_ACTIVATION_SITU, give_biases},
      // GLM-4.5-Air: an eighth of an expert's 1408, and the hidden size
      {"an expert of a model", make_batch(Data::kFullRange, 1, 30, 176, 4096, 26), DUALGEMM_ACTIVATION_SWIGLU,
       nothing, 4096}};
  for (const Chain& chain : chains) {
    DYNAMIC_SECTION(chain.name) {
      ProblemSet first = chain.set;
      Rng rng(25);
      for (Problem& p : first.problems) chain.give(p, rng);
      give_encode(first, DUALGEMM_DTYPE_NVFP4);
      SetOptions options;
      options.activation = chain.activation;
      options.dtype = DUALGEMM_DTYPE_NVFP4;
      const DeviceSet from(first, options);
      from.launch(nullptr);
      const std::vector<Output> between = from.download();

      ProblemSet second = first;
      second.n = chain.second_n;
      second.k = first.n;
      int64_t rows = 0, others = 0;
      for (size_t i = 0; i < between.size(); ++i) {
        Output exact = first.problems[i].m == 0 ? between[i] : exact_output(first.problems[i], options);
        rows += exact.m;
        others += take_other_rows(exact, between[i]);
        second.problems[i] = after(exact, second.n, 200 + i);
      }
      INFO(others << " of " << rows << " rows");
      CHECK(others <= 1 + rows / 50);
      const DeviceSet to(second, SetOptions{});
      const dualgemm_args_t args = after(from.args(), to.args());
      check_status(dualgemm_launch_ex(&args, nullptr));
      const std::vector<Output> out = to.download();
      for (size_t i = 0; i < out.size(); ++i)
        if (first.problems[i].m != 0) check(out[i], second.problems[i], SetOptions{});
    }
  }
}

TEST_CASE("chain: a dense launch, with columns that do and do not fill a block of factors", "[chain]") {
  for (const int32_t n : {16, 64, 176, 256, 272}) {
    INFO("n " << n);
    for (const int32_t m : {1, 130}) check_chains(make_batch(Data::kFullRange, 1, m, n, 272, n + m), {});
  }
}

TEST_CASE("chain: every tile writes what the next launch reads", "[chain]") {
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances(grouped)) {
      if (instance.dtype != DUALGEMM_DTYPE_NVFP4) continue;
      DYNAMIC_SECTION(instance.name) {
        ProblemSet set = grouped ? make_offsets(Data::kFullRange, {33, 0, 129}, 208, 272, 2, 7, 5)
                                 : make_batch(Data::kFullRange, 1, 150, 208, 272, 2);
        give_encode(set, DUALGEMM_DTYPE_NVFP4);
        check_chain(set, use(instance), 72);
      }
    }
}

TEST_CASE("chain: a batch, compact and with strides", "[chain][batch]") {
  for (const int32_t gap : {0, 3}) {
    SetOptions options;
    options.gap = gap;
    check_chains(make_batch(Data::kFullRange, 3, 70, 176, 272, 3, Alphas::kOwn), options);
  }
}

TEST_CASE("chain: groups, whose unused rows and blocks are poison between the launches", "[chain][grouped]") {
  for (const dualgemm_group_mode_t mode : kGroupModes) {
    INFO(text(mode));
    SetOptions options;
    check_chains(make_groups(mode, Data::kFullRange, {40, 0, 129, 1, 128}, 176, 272, 4, 140), options);
  }
}

TEST_CASE("chain: with PDL the second launch reads nothing that the first has not written", "[chain][pdl]") {
  ProblemSet set = make_masked(Data::kFullRange, {40, 0, 129}, 176, 272, 5, 20);
  give_encode(set, DUALGEMM_DTYPE_NVFP4);
  SetOptions options;
  options.dtype = DUALGEMM_DTYPE_NVFP4;
  options.flags = DUALGEMM_FLAG_PDL;
  const DeviceSet from(set, options);
  ProblemSet second = make_masked(Data::kFullRange, {40, 0, 129}, 72, 176, 6, 20);
  SetOptions next;
  next.flags = DUALGEMM_FLAG_PDL;
  const DeviceSet to(second, next);
  const dualgemm_args_t args = after(from.args(), to.args());
  Judged judged;
  from.launch(nullptr);
  REQUIRE(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS);
  const std::vector<Output> between = from.download(), out = to.download();
  for (size_t i = 0; i < out.size(); ++i) {
    if (set.problems[i].m == 0) continue;
    Problem p = after(between[i], 72, 0);
    p.b1 = second.problems[i].b1;
    p.b2 = second.problems[i].b2;
    p.sfb1 = second.problems[i].sfb1;
    p.sfb2 = second.problems[i].sfb2;
    p.alpha1 = second.problems[i].alpha1;
    p.alpha2 = second.problems[i].alpha2;
    check(out[i], p, next);
  }
  CHECK(judged.findings() == "");
}
