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
using dualgemm::Options;
using dualgemm::TmemMap;

namespace {

using N64 = Config<128, 64, 1, CType::kFp16, Options{.stages = 6, .scale_stages = 5, .acc_stages = 2}>;
using N128 = Config<128, 128, 1, CType::kBf16, Options{.stages = 4, .scale_stages = 5}>;
using Pair64 = Config<256, 64, 1, CType::kFp16, Options{.stages = 7, .scale_stages = 4, .scale_k_tiles = 2}>;
using Pair128 = Config<256, 128, 1, CType::kBf16, Options{.stages = 6, .scale_stages = 5}>;
using Overlapped =
    Config<256, 128, 1, CType::kBf16, Options{.stages = 6, .scale_stages = 5, .acc_stages = 2}>;
using Pair192 = Config<256, 192, 2, CType::kFp16, Options{.stages = 4, .scale_stages = 4}>;
using Decode = Config<64, 128, 4, CType::kBf16, Options{.stages = 5, .scale_stages = 4}>;

struct Range {
  uint32_t first, count;
};

bool disjoint(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i - 1].first + ranges[i - 1].count > ranges[i].first) return false;
  return true;
}

// Every range of columns that the kernel gives a meaning; of the accumulators, those of one pair.
template <class Cfg>
std::vector<Range> columns(TmemMap<Cfg> tmem, int acc) {
  std::vector<Range> ranges{{tmem.acc1(acc), Cfg::kColumns}, {tmem.acc2(acc), Cfg::kColumns}};
  for (int window = 0; window < Cfg::kWindows; ++window)
    for (int step = 0; step < Cfg::kWindowSteps; ++step) {
      ranges.push_back({tmem.sfa(window, step), 4});
      for (int product = 0; product < 2; ++product)
        for (int block = 0; block < Cfg::kSfbBlocks; ++block)
          ranges.push_back({tmem.sfb(window, step, product) + 4u * block, 4});
    }
  return ranges;
}

template <class Cfg>
void check_tmem_map() {
  // A base that is not zero: no address may forget it.
  const TmemMap<Cfg> tmem{32};
  for (int acc = 0; acc < Cfg::kAccStages; ++acc) {
    const std::vector<Range> ranges = columns(tmem, acc);
    CHECK(disjoint(ranges));
    for (const Range& range : ranges) {
      CHECK(range.first >= 32);
      CHECK(range.first + range.count <= 32 + TmemMap<Cfg>::kUsed);
      CHECK(range.first % 4 == 0);  // tcgen05.cp to any other column is not known to work
    }
  }
  CHECK(TmemMap<Cfg>::kUsed <= TmemMap<Cfg>::kAllocColumns);
  CHECK(TmemMap<Cfg>::kAllocColumns <= kTmemColumns);
  CHECK((TmemMap<Cfg>::kAllocColumns & (TmemMap<Cfg>::kAllocColumns - 1)) == 0);
}

}  // namespace

TEST_CASE("tile n = 64: two mma, two accumulator pairs") {
  CHECK(N64::kMmaN == 64);
  CHECK(N64::kStageBytes == 16384 + 2 * 8192);
  CHECK(N64::kSlotBytes == 3 * 2048);
  CHECK_FALSE(N64::kOverlapped);
  CHECK(N64::kAccBarriers == 2);
  CHECK(TmemMap<N64>::kUsed == 256 + 5 * 48);
}

TEST_CASE("tile n = 128: one mma of n = 256, one accumulator pair") {
  CHECK(N128::kMmaN == 256);
  CHECK(N128::kStageBytes == 16384 + 2 * 16384);
  CHECK(N128::kAccBarriers == 1);
  CHECK(TmemMap<N128>::kUsed == 256 + 5 * 48);
}

TEST_CASE(
    "a pair with tile n = 64: each CTA brings half the rows of B1 and of B2; a slot holds two k-tiles") {
  CHECK(Pair64::kCtaGroup == 2);
  CHECK(Pair64::kMmaN == 64);
  CHECK(Pair64::kBBoxes == 2);
  CHECK(Pair64::kBBoxRows == 32);
  CHECK(Pair64::kStageBytes == 16384 + 2 * 4096);
  CHECK(Pair64::kSlotBytes == 2 * 3 * 2048);
  CHECK(TmemMap<Pair64>::kUsed == 128 + 4 * 96);
}

TEST_CASE("a pair with tile n = 128: one mma of n = 256, each CTA brings one of B1 and B2") {
  CHECK(Pair128::kMmaN == 256);
  CHECK(Pair128::kBBoxes == 1);
  CHECK(Pair128::kBBoxRows == 128);
  CHECK(Pair128::kStageBytes == 16384 + 16384);
  CHECK(Pair128::kSlotColumnsFit);
  CHECK(TmemMap<Pair128>::kUsed == 256 + 5 * 48);
}

TEST_CASE(
    "two pairs of 128 columns share 64, under one barrier, and scale factors pass through two windows") {
  CHECK(Overlapped::kOverlapped);
  CHECK(Overlapped::kAccBarriers == 1);
  CHECK_FALSE(Overlapped::kSlotColumnsFit);
  CHECK(Overlapped::kWindows == 2);
  CHECK(Overlapped::kWindowSteps == 2);
  const TmemMap<Overlapped> tmem{0};
  CHECK(tmem.acc1(1) == tmem.acc2(0) + 64);  // the upper half of acc2[0] is the lower half of acc1[1]
  CHECK(tmem.sfa(0, 0) == tmem.acc2(1) + 128);
  CHECK(TmemMap<Overlapped>::kUsed == 448 + 2 * 24);
}

TEST_CASE("a pair with tile n = 192: two mma, scale factors of B from two blocks, three windows") {
  CHECK(Pair192::kMmaN == 192);
  CHECK(Pair192::kBBoxRows == 96);
  CHECK(Pair192::kSfbBlocks == 2);
  CHECK(Pair192::kStageBytes == 16384 + 2 * 12288);
  CHECK(Pair192::kSlotBytes == 2048 + 2 * 4096);
  CHECK(Pair192::kWindows == 3);
  CHECK(TmemMap<Pair192>::kUsed == 384 + 3 * 40);
}

TEST_CASE("few rows of A: the weights take the lanes, a cluster of four splits K") {
  CHECK(Decode::kSwap);
  CHECK(Decode::kClusterSize == 4);
  CHECK(Decode::kMmaM == 128);
  CHECK(Decode::kMmaN == 64);
  CHECK(Decode::kStageBytes == 8192 + 2 * 16384);
  CHECK(TmemMap<Decode>::kUsed == 128 + 4 * 48);
}

TEMPLATE_TEST_CASE("tensor memory: what is used at the same time does not overlap, and suits tcgen05.cp", "",
                   N64, N128, Pair64, Pair128, Overlapped, Pair192, Decode) {
  check_tmem_map<TestType>();
}

TEMPLATE_TEST_CASE("one mma of n = 256 finds both products side by side", "", N128, Pair128, Overlapped) {
  const TmemMap<TestType> tmem{0};
  CHECK(tmem.acc2(0) == tmem.acc1(0) + 128);
  for (int window = 0; window < TestType::kWindows; ++window)
    for (int step = 0; step < TestType::kWindowSteps; ++step)
      CHECK(tmem.sfb(window, step, 1) == tmem.sfb(window, step, 0) + 4);
}
