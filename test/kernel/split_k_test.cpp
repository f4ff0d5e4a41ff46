// split_k_test.cpp -- the exchange of partial sums where 10.x splits K: how many bytes CTAs send each other.
// That their sums are right is what every test of the instances asks.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "sim/exec/observer.h"
#include "sim/shim/shim.h"

using namespace dualgemm_test;

namespace {

// Counts what threads write into the shared memory of other CTAs, by stores and by st.async.
class BytesBetweenCtas : public sim::Observer {
 public:
  BytesBetweenCtas() { sim::shim::set_launch_options({nullptr, this}); }
  ~BytesBetweenCtas() override { sim::shim::set_launch_options({}); }
  void accesses(const std::vector<sim::Access>& all) override {
    for (const sim::Access& access : all) count(access.thread, access.region);
  }
  void issue(const sim::AsyncIssue& issue) override {
    if (issue.kind != sim::AsyncIssue::Kind::kStAsync) return;
    for (const sim::Region& region : issue.writes) count(issue.thread, region);
  }
  int64_t total() const {
    int64_t sum = 0;
    for (const auto& [cta, bytes] : received_) sum += bytes;
    return sum;
  }
  int64_t of_busiest() const {
    int64_t most = 0;
    for (const auto& [cta, bytes] : received_) most = std::max(most, bytes);
    return most;
  }

 private:
  void count(const sim::Thread& thread, const sim::Region& region) {
    if (region.memory == sim::Memory::kShared && region.write && region.cta != thread.cta)
      received_[region.cta] += region.bytes;
  }
  std::map<uint64_t, int64_t> received_;  // by CTA
};

bool one_product(const NamedInstance& instance) { return instance.info.products == 1; }

// Returns one instance of each tile that splits K, plain and general, of two products and of one.
std::vector<NamedInstance> split_instances() {
  std::vector<NamedInstance> out = in_turn(dense_instances());
  const auto add = [&](const std::vector<NamedInstance>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  add(general_instances_in_turn(false));
  add(in_turn(one_product_instances()));
  std::erase_if(out, [](const NamedInstance& x) { return x.info.split_k == 1; });
  return out;
}

// Launches a batch and returns the bytes that its CTAs have sent each other.
int64_t bytes_sent(const NamedInstance& instance, int32_t problems, int32_t m, int32_t n, int32_t k) {
  ProblemSet set = make_batch(Data::kFullRange, problems, m, n, k, m + k);
  SetOptions options = use_all_of(instance, set);
  if (one_product(instance)) leave_one_product(set, DUALGEMM_LINEAR_ACTIVATION_NONE);
  const BytesBetweenCtas bytes;
  check_launch(set, options);
  return bytes.total();
}

// A lane sends four sums at a time. Where a lane of tensor memory is a column of C, these are four rows.
int64_t rows_sent(const NamedInstance& instance, int32_t m) {
  return instance.info.tile_m == 64 ? (m + 3) / 4 * 4 : m;
}

}  // namespace

TEST_CASE("split-K sends the sums of what lies in C, once from each other slice", "[split_k][simulated]") {
  for (const NamedInstance& instance : split_instances()) DYNAMIC_SECTION(instance.name) {
      const dualgemm_instance_info_t& info = instance.info;
      // The last tile has some of the columns of a lane, and with swap A/B some lanes of one warp.
      const int32_t n = info.tile_n + 48, k = info.split_k * info.tile_k;
      for (const int32_t m : {1, 16, 64, 100, info.tile_m + 72}) {
        const int32_t problems = m == 16 ? 2 : 1;
        INFO(problems << " of m " << m << ", n " << n << ", k " << k);
        CHECK(bytes_sent(instance, problems, m, n, k) ==
              int64_t{4} * problems * rows_sent(instance, m) * n * info.products * (info.split_k - 1));
      }
    }
}

TEST_CASE("a slice without k-tiles sends nothing and receives the sums of its share",
          "[split_k][simulated]") {
  for (const NamedInstance& instance : split_instances()) DYNAMIC_SECTION(instance.name) {
      const dualgemm_instance_info_t& info = instance.info;
      // One slice is empty. Each of the others sends to all slices but its own, which have as many columns.
      const int64_t senders = info.split_k - 1;
      const int64_t sums = int64_t{info.tile_m} * info.tile_n * info.products;
      CHECK(bytes_sent(instance, 1, info.tile_m, info.tile_n, static_cast<int32_t>(senders) * info.tile_k) ==
            4 * sums * senders * senders / info.split_k);
    }
}

// The cost model prices these bytes (cost_model_test.cpp has the same table).
TEST_CASE("the CTA that receives most receives the sums of its lanes and columns in C",
          "[split_k][simulated]") {
  const struct {
    const char* instance;
    int32_t m, n;
    int64_t bytes;
  } table[] = {{"m128n64k256s4_fp16", 1, 64, 384},     {"m128n64k256s4_fp16", 16, 64, 6144},
               {"m128n64k256s4_fp16", 128, 64, 49152}, {"m128n64k256s4_fp16", 128, 8, 24576},
               {"m128n64k256s2_fp16", 16, 64, 4096},   {"m128n64k256s2_fp16", 100, 64, 25600},
               {"m256n128k256s2_fp16", 1, 128, 512},   {"m256n128k256s2_fp16", 200, 128, 65536},
               {"m64n128k256s4_fp16", 1, 128, 12288},  {"m64n128k256s4_fp16", 16, 128, 49152},
               {"m64n128k256s4_fp16", 64, 128, 49152}, {"m64n128k256s4_fp16", 64, 48, 18432}};
  for (const auto& row : table) {
    INFO(row.instance << ", m " << row.m << ", n " << row.n);
    const std::vector<NamedInstance> all = dense_instances();
    const auto named =
        std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.name == row.instance; });
    REQUIRE(named != all.end());
    const int32_t k = named->info.split_k * named->info.tile_k;
    const BytesBetweenCtas bytes;
    check_launch(make_batch(Data::kFullRange, 1, row.m, row.n, k, row.m + row.n), use(*named));
    CHECK(bytes.of_busiest() == row.bytes);
  }
}
