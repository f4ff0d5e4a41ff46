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

using N64 = Config<64, CType::kFp16>;
using N128 = Config<128, CType::kBf16>;

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
    ranges.push_back({tmem.acc1(acc), Cfg::kTileN});
    ranges.push_back({tmem.acc2(acc), Cfg::kTileN});
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
    CHECK(range.first + range.count <= 32 + TmemMap<Cfg>::kColumns);
    CHECK(range.first % 4 == 0);  // tcgen05.cp to any other column is not known to work
    used += range.count;
  }
  CHECK(used == TmemMap<Cfg>::kColumns);
  CHECK(TmemMap<Cfg>::kColumns <= TmemMap<Cfg>::kAllocColumns);
  CHECK(TmemMap<Cfg>::kAllocColumns <= kTmemColumns);
  CHECK((TmemMap<Cfg>::kAllocColumns & (TmemMap<Cfg>::kAllocColumns - 1)) == 0);
}

}  // namespace

TEST_CASE("tile n = 64: two mma, five stages, two accumulator pairs") {
  CHECK(N64::kMmaN == 64);
  CHECK(N64::kStageBytes == 16384 + 2 * 8192 + 3 * 2048);
  CHECK(N64::kStages == 5);
  CHECK(N64::kAccStages == 2);
  CHECK(TmemMap<N64>::kColumns == 256 + 5 * 48);
}

TEST_CASE("tile n = 128: one mma of n = 256, four stages, one accumulator pair") {
  CHECK(N128::kMmaN == 256);
  CHECK(N128::kStageBytes == 16384 + 2 * 16384 + 3 * 2048);
  CHECK(N128::kStages == 4);
  CHECK(N128::kAccStages == 1);
  CHECK(TmemMap<N128>::kColumns == 256 + 4 * 48);
}

TEST_CASE("the ring and its reserve fit in shared memory, and one more stage would not") {
  CHECK(N64::kStages * N64::kStageBytes + N64::kReservedBytes <= kMaxSmemBytes);
  CHECK((N64::kStages + 1) * N64::kStageBytes + N64::kReservedBytes > kMaxSmemBytes);
  CHECK(N128::kStages * N128::kStageBytes + N128::kReservedBytes <= kMaxSmemBytes);
  CHECK((N128::kStages + 1) * N128::kStageBytes + N128::kReservedBytes > kMaxSmemBytes);
}

TEST_CASE("tensor memory: ranges do not overlap, fill what is counted, and suit tcgen05.cp") {
  check_tmem_map<N64>();
  check_tmem_map<N128>();
}

TEST_CASE("one mma of n = 256 finds both products side by side") {
  const TmemMap<N128> tmem{0};
  CHECK(tmem.acc2(0) == tmem.acc1(0) + 128);
  for (int stage = 0; stage < N128::kStages; ++stage)
    for (int step = 0; step < N128::kMmasPerKTile; ++step)
      CHECK(tmem.sfb2(stage, step) == tmem.sfb1(stage, step) + 4);
}
