// config_test.cpp -- the byte and column counts of the configurations, against budgets worked out by hand and
// against what the kernels were compiled to, and the columns of tensor memory: without overlap but the one
// that is meant.
#include "kernel/config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernel/instances.h"
#include "kernel/tmem_map.cuh"
#include "support/catch.hpp"

using dualgemm::Config;
using dualgemm::CType;
using dualgemm::kInstances;
using dualgemm::kMaxSmemBytes;
using dualgemm::kTmemColumns;
using dualgemm::Options;
using dualgemm::TmemMap;

namespace {

template <int kM, int kN, int kSplit, Options kOptions>
using Fp16 = Config<kM, kN, kSplit, CType::kFp16, kOptions>;

// Instances with the depths that they have in kernel/instances.cu.
struct Decode : Fp16<64, 128, 1, Options{.stages = 5, .scale_stages = 4, .acc_stages = 2}> {
  static constexpr const char* kName = "m64n128k256_fp16";
};
struct DecodeSplit : Fp16<64, 128, 4, Options{.stages = 5, .scale_stages = 4}> {
  static constexpr const char* kName = "m64n128k256s4_fp16";
};
struct N64 : Fp16<128, 64, 1, Options{.stages = 6, .scale_stages = 5, .acc_stages = 2}> {
  static constexpr const char* kName = "m128n64k256_fp16";
};
struct N128 : Fp16<128, 128, 1, Options{.stages = 4, .scale_stages = 5}> {
  static constexpr const char* kName = "m128n128k256_fp16";
};
struct Pair64 : Fp16<256, 64, 1, Options{.stages = 7, .scale_stages = 4, .scale_k_tiles = 2}> {
  static constexpr const char* kName = "m256n64k256_fp16";
};
struct Pair128 : Fp16<256, 128, 1, Options{.stages = 6, .scale_stages = 5}> {
  static constexpr const char* kName = "m256n128k256_fp16";
};
struct Overlapped : Fp16<256, 128, 1, Options{.stages = 6, .scale_stages = 5, .acc_stages = 2}> {
  static constexpr const char* kName = "m256n128k256o_fp16";
};
struct Wide : Fp16<256, 192, 1, Options{.stages = 4, .scale_stages = 4}> {
  static constexpr const char* kName = "m256n192k256_fp16";
};
struct GroupedDecode
    : Fp16<64, 128, 1, Options{.stages = 4, .scale_stages = 5, .acc_stages = 2, .grouped = true}> {
  static constexpr const char* kName = "m64n128k256g_fp16";
};
struct GroupedPair
    : Fp16<256, 128, 1, Options{.stages = 5, .scale_stages = 5, .acc_stages = 2, .grouped = true}> {
  static constexpr const char* kName = "m256n128k256og_fp16";
};

const dualgemm::Instance& instance_named(const std::string& name) {
  const auto* const end = kInstances + dualgemm::kInstanceCount;
  const auto* const found =
      std::find_if(kInstances, end, [&](const dualgemm::Instance& i) { return i.name == name; });
  REQUIRE(found != end);
  return *found;
}

}  // namespace

TEST_CASE("few rows of A: the weights take the lanes, a cluster of four splits K") {
  CHECK(DecodeSplit::kSwap);
  CHECK(DecodeSplit::kClusterSize == 4);
  CHECK(DecodeSplit::kMmaM == 128);
  CHECK(DecodeSplit::kMmaN == 64);
  CHECK(DecodeSplit::kStageBytes == 8192 + 2 * 16384);
  CHECK(DecodeSplit::kSlotBytes == 3 * 2048);
  CHECK(TmemMap<DecodeSplit>::kUsed == 128 + 4 * 48);
  CHECK(TmemMap<Decode>::kUsed == 2 * 128 + 4 * 48);
}

TEST_CASE("tile n = 64: two mma, two accumulator pairs") {
  CHECK(N64::kMmaN == 64);
  CHECK(N64::kStageBytes == 16384 + 2 * 8192);
  CHECK(N64::kSlotBytes == 3 * 2048);
  CHECK(TmemMap<N64>::kUsed == 2 * 128 + 5 * 48);
}

TEST_CASE("tile n = 128: one mma of n = 256, one accumulator pair") {
  CHECK(N128::kMmaN == 256);
  CHECK(N128::kStageBytes == 16384 + 2 * 16384);
  CHECK(N128::kSlotBytes == 3 * 2048);
  CHECK(TmemMap<N128>::kUsed == 256 + 5 * 48);
}

TEST_CASE("a pair with tile n = 64: each CTA brings half the rows of B1 and of B2, slots of two k-tiles") {
  CHECK(Pair64::kCtaGroup == 2);
  CHECK(Pair64::kMmaN == 64);
  CHECK(Pair64::kBBoxes == 2);
  CHECK(Pair64::kBBoxRows == 32);
  CHECK(Pair64::kStageBytes == 16384 + 2 * 4096);
  CHECK(Pair64::kSlotBytes == 2 * 3 * 2048);
  CHECK(TmemMap<Pair64>::kUsed == 128 + 4 * 2 * 48);
}

TEST_CASE("a pair with tile n = 128: one mma of n = 256, each CTA brings one of B1 and B2") {
  CHECK(Pair128::kMmaN == 256);
  CHECK(Pair128::kBBoxes == 1);
  CHECK(Pair128::kBBoxRows == 128);
  CHECK(Pair128::kStageBytes == 16384 + 16384);
  CHECK(TmemMap<Pair128>::kUsed == 256 + 5 * 48);
}

TEST_CASE("overlapping accumulators leave room for two windows of half a k-tile") {
  CHECK(Overlapped::kOverlapped);
  CHECK(!Overlapped::kSlotColumnsFit);
  CHECK(Overlapped::kAccBarriers == 1);
  CHECK(Overlapped::kWindows == 2);
  CHECK(Overlapped::kWindowSteps == 2);
  const TmemMap<Overlapped> tmem{0};
  CHECK(tmem.acc1(1) == tmem.acc2(0) + 64);  // the upper half of acc2[0] is the lower half of acc1[1]
  CHECK(TmemMap<Overlapped>::kUsed == 448 + 2 * 24);
  CHECK(!Decode::kOverlapped);
  CHECK(Decode::kAccBarriers == 2);
}

TEST_CASE("a pair with tile n = 192: two mma, scale factors of B in two blocks of 128 rows") {
  CHECK(Wide::kMmaN == 192);
  CHECK(Wide::kClusterSize == 2);
  CHECK(Wide::kBBoxRows == 96);
  CHECK(Wide::kStageBytes == 16384 + 2 * 12288);
  CHECK(Wide::kSlotBytes == 5 * 2048);
  CHECK(Wide::kWindows == 3);
  CHECK(TmemMap<Wide>::kUsed == 384 + 3 * 40);
}

TEMPLATE_TEST_CASE("shared memory: all of it fits, and one more stage would not", "", Decode, DecodeSplit,
                   N64, N128, Pair64, Pair128, Overlapped, Wide, GroupedDecode, GroupedPair) {
  using Cfg = TestType;
  const dualgemm::Instance& instance = instance_named(Cfg::kName);
  CHECK(instance.stages == Cfg::kStages);
  CHECK(instance.scale_stages == Cfg::kScaleStages);
  CHECK(instance.scale_k_tiles == Cfg::kScaleKTiles);
  CHECK(instance.tmem_columns == TmemMap<Cfg>::kAllocColumns);
  const int rings = Cfg::kStages * Cfg::kStageBytes + Cfg::kScaleStages * Cfg::kSlotBytes;
  const int groups = Cfg::kGrouped ? 513 * 20 : 0;  // entries of the table of groups
  CHECK(instance.smem_bytes >= rings + groups);
  CHECK(instance.smem_bytes <= kMaxSmemBytes);
  CHECK(instance.smem_bytes + Cfg::kStageBytes > kMaxSmemBytes);
}

TEMPLATE_TEST_CASE("tensor memory: every column has one meaning, or the two that are meant", "", Decode,
                   DecodeSplit, N64, N128, Pair64, Pair128, Overlapped, Wide, GroupedDecode, GroupedPair) {
  using Cfg = TestType;
  // A base that is not zero: no address may forget it.
  constexpr uint32_t kBase = 32;
  const TmemMap<Cfg> tmem{kBase};
  std::vector<int> meanings(TmemMap<Cfg>::kUsed, 0);
  const auto use = [&](uint32_t first, uint32_t count) {
    REQUIRE(first >= kBase);
    REQUIRE(first + count <= kBase + TmemMap<Cfg>::kUsed);
    for (uint32_t column = first; column < first + count; ++column) ++meanings[column - kBase];
  };
  for (int acc = 0; acc < Cfg::kAccStages; ++acc) {
    use(tmem.acc1(acc), Cfg::kColumns);
    use(tmem.acc2(acc), Cfg::kColumns);
  }
  const uint32_t sfb_columns = 4 * ((Cfg::kTileN + 127) / 128);
  for (int window = 0; window < Cfg::kWindows; ++window)
    for (int step = 0; step < Cfg::kWindowSteps; ++step) {
      use(tmem.sfa(window, step), 4);
      for (int product = 0; product < 2; ++product) use(tmem.sfb(window, step, product), sfb_columns);
      // tcgen05.cp to any other column is not known to work.
      CHECK(tmem.sfa(window, step) % 4 == 0);
      CHECK(tmem.sfb(window, step, 0) % 4 == 0);
      CHECK(tmem.sfb(window, step, 1) % 4 == 0);
    }
  for (uint32_t column = 0; column < meanings.size(); ++column) {
    INFO("column " << column);
    CHECK(meanings[column] == (Cfg::kOverlapped && column >= 192 && column < 256 ? 2 : 1));
  }
  CHECK(TmemMap<Cfg>::kUsed <= TmemMap<Cfg>::kAllocColumns);
  CHECK(TmemMap<Cfg>::kAllocColumns <= kTmemColumns);
  CHECK((TmemMap<Cfg>::kAllocColumns & (TmemMap<Cfg>::kAllocColumns - 1)) == 0);
}

TEMPLATE_TEST_CASE("one mma of n = 256 finds both products side by side", "", N128, Pair128, Overlapped,
                   GroupedPair) {
  const TmemMap<TestType> tmem{0};
  for (int acc = 0; acc < TestType::kAccStages; ++acc) CHECK(tmem.acc2(acc) == tmem.acc1(acc) + 128);
  for (int window = 0; window < TestType::kWindows; ++window)
    for (int step = 0; step < TestType::kWindowSteps; ++step)
      CHECK(tmem.sfb(window, step, 1) == tmem.sfb(window, step, 0) + 4);
}
