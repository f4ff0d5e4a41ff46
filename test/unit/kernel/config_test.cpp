// config_test.cpp -- the byte and column counts of every configuration, against budgets worked out by hand,
// and the layouts that follow from them: shared memory as the device lays it out, columns of tensor memory
// without overlap.
#include "kernel/config.h"

#include <algorithm>
#include <vector>

#include "kernel/tmem_map.cuh"
#include "support/catch.hpp"

using dualgemm::Config;
using dualgemm::CType;
using dualgemm::kMaxSmemBytes;
using dualgemm::kTmemColumns;
using dualgemm::TmemMap;

namespace {

using N64 = Config<128, 64, 1, CType::kFp16>;
using N128 = Config<128, 128, 1, CType::kBf16>;
using Pair64 = Config<256, 64, 1, CType::kFp16>;
using Pair128 = Config<256, 128, 1, CType::kBf16>;
using Decode = Config<64, 128, 4, CType::kBf16>;

struct Range {
  uint32_t first, count;
};

bool disjoint(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i - 1].first + ranges[i - 1].count > ranges[i].first) return false;
  return true;
}

// Every range of columns that the kernel gives a meaning.
template <class Cfg>
std::vector<Range> columns(TmemMap<Cfg> tmem) {
  std::vector<Range> ranges;
  for (int acc = 0; acc < Cfg::kAccStages; ++acc) {
    ranges.push_back({tmem.acc1(acc), Cfg::kColumns});
    ranges.push_back({tmem.acc2(acc), Cfg::kColumns});
  }
  for (int stage = 0; stage < Cfg::kStages; ++stage)
    for (int step = 0; step < Cfg::kMmasPerKTile; ++step)
      for (uint32_t first : {tmem.sfa(stage, step), tmem.sfb1(stage, step), tmem.sfb2(stage, step)})
        ranges.push_back({first, 4});
  return ranges;
}

template <class Cfg>
void check_tmem_map() {
  // A base that is not zero: no address may forget it.
  const TmemMap<Cfg> tmem{32};
  const std::vector<Range> ranges = columns(tmem);
  CHECK(disjoint(ranges));
  uint32_t used = 0;
  for (const Range& range : ranges) {
    CHECK(range.first >= 32);
    CHECK(range.first + range.count <= 32 + TmemMap<Cfg>::kUsed);
    CHECK(range.first % 4 == 0);  // tcgen05.cp to any other column is not known to work
    used += range.count;
  }
  CHECK(used == TmemMap<Cfg>::kUsed);
  CHECK(TmemMap<Cfg>::kUsed <= TmemMap<Cfg>::kAllocColumns);
  CHECK(TmemMap<Cfg>::kAllocColumns <= kTmemColumns);
  CHECK((TmemMap<Cfg>::kAllocColumns & (TmemMap<Cfg>::kAllocColumns - 1)) == 0);
}

}  // namespace

TEST_CASE("tile n = 64: two mma, five stages, two accumulator pairs") {
  CHECK(N64::kMmaN == 64);
  CHECK(N64::kStageBytes == 16384 + 2 * 8192 + 3 * 2048);
  CHECK(N64::kStages == 5);
  CHECK(N64::kAccStages == 2);
  CHECK(TmemMap<N64>::kUsed == 256 + 5 * 48);
}

TEST_CASE("tile n = 128: one mma of n = 256, four stages, one accumulator pair") {
  CHECK(N128::kMmaN == 256);
  CHECK(N128::kStageBytes == 16384 + 2 * 16384 + 3 * 2048);
  CHECK(N128::kStages == 4);
  CHECK(N128::kAccStages == 1);
  CHECK(TmemMap<N128>::kUsed == 256 + 4 * 48);
}

TEST_CASE("a pair with tile n = 64: each CTA brings half the rows of B1 and of B2, seven stages") {
  CHECK(Pair64::kCtaGroup == 2);
  CHECK(Pair64::kMmaN == 64);
  CHECK(Pair64::kBBoxes == 2);
  CHECK(Pair64::kBBoxRows == 32);
  CHECK(Pair64::kStageBytes == 16384 + 2 * 4096 + 3 * 2048);
  CHECK(Pair64::kStages == 7);
  CHECK(Pair64::kAccStages == 1);
  CHECK(TmemMap<Pair64>::kUsed == 128 + 7 * 48);
}

TEST_CASE("a pair with tile n = 128: one mma of n = 256, each CTA brings one of B1 and B2, five stages") {
  CHECK(Pair128::kMmaN == 256);
  CHECK(Pair128::kBBoxes == 1);
  CHECK(Pair128::kBBoxRows == 128);
  CHECK(Pair128::kStageBytes == 16384 + 16384 + 3 * 2048);
  CHECK(Pair128::kStages == 5);
  CHECK(Pair128::kAccStages == 1);
  CHECK(TmemMap<Pair128>::kUsed == 256 + 5 * 48);
}

TEST_CASE("few rows of A: the weights take the lanes, a cluster of four splits K") {
  CHECK(Decode::kSwap);
  CHECK(Decode::kClusterSize == 4);
  CHECK(Decode::kMmaM == 128);
  CHECK(Decode::kMmaN == 64);
  CHECK(Decode::kStageBytes == 8192 + 2 * 16384 + 3 * 2048);
  CHECK(Decode::kStages == 4);
  CHECK(TmemMap<Decode>::kUsed == 128 + 4 * 48);
}

TEMPLATE_TEST_CASE("the ring and its reserve fit in shared memory, and one more stage would not", "", N64,
                   N128, Pair64, Pair128) {
  CHECK(TestType::kStages * TestType::kStageBytes + TestType::kReservedBytes <= kMaxSmemBytes);
  CHECK((TestType::kStages + 1) * TestType::kStageBytes + TestType::kReservedBytes > kMaxSmemBytes);
}

TEMPLATE_TEST_CASE("tensor memory: ranges do not overlap, fill what is counted, and suit tcgen05.cp", "", N64,
                   N128, Pair64, Pair128) {
  check_tmem_map<TestType>();
}

TEMPLATE_TEST_CASE("one mma of n = 256 finds both products side by side", "", N128, Pair128) {
  const TmemMap<TestType> tmem{0};
  CHECK(tmem.acc2(0) == tmem.acc1(0) + 128);
  for (int stage = 0; stage < TestType::kStages; ++stage)
    for (int step = 0; step < TestType::kMmasPerKTile; ++step)
      CHECK(tmem.sfb2(stage, step) == tmem.sfb1(stage, step) + 4);
}
