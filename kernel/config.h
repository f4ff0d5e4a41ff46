// config.h -- what one kernel instance is: tile, pipeline depth and the byte and column counts that follow
// from them. Plain C++ without CUDA types: the device code, host/ and the tests on a CPU all include it.
// Every derived number is computed here once and checked here.
#pragma once

#include <cstdint>

namespace dualgemm {

// Output element types a kernel instance can write.
enum class CType : int32_t { kBf16 = 0, kFp16 = 1 };

// Hardware limits, compute capability 10.x (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability").
inline constexpr int kMaxSmemBytes = 232448;  // 227 KiB of opt-in shared memory per CTA
inline constexpr int kTmemColumns = 512;      // tensor memory of one SM: 128 lanes x 512 columns x 32 bits

// One instance. kTileM x kTileN is the tile of C that one CTA, or a pair of CTAs (cta_group::2), computes
// from kTileM rows of A and kTileN rows of B1 and of B2. Tensor memory has 128 lanes, so a CTA multiplies 128
// rows of the operand on the M side of the mma:
//   kTileM = 256   a pair; each CTA has 128 rows of A, and brings half of what is multiplied with them
//   kTileM = 128   one CTA; its lanes are rows of A, its accumulator columns are rows of B1 and B2
//   kTileM = 64    one CTA for few rows of A; the sides are swapped: lanes are 128 rows of B1 and B2, columns
//   are rows of A
// kSplitK CTAs or pairs of one cluster share a tile: each takes a part of K, and they add their accumulators
// up.
template <int kTileM_, int kTileN_, int kSplitK_, CType kC_>
struct Config {
  static constexpr CType kC = kC_;
  static constexpr int kTileM = kTileM_;
  static constexpr int kTileN = kTileN_;
  static constexpr int kSplitK = kSplitK_;
  static constexpr int kTileK = 256;  // elements; 128 bytes of e2m1 = one row of a 128-byte-swizzled operand
  static constexpr int kMmaK = 64;    // K of one tcgen05.mma kind::mxf4nvf4
  static constexpr int kMmasPerKTile = kTileK / kMmaK;

  static constexpr int kLanes = 128;
  static constexpr bool kSwap = kTileM < kLanes;
  static constexpr int kCtaGroup = kTileM == 2 * kLanes ? 2 : 1;
  static constexpr int kClusterSize = kCtaGroup * kSplitK;
  static constexpr int kColumns = kSwap ? kTileM : kTileN;  // of the accumulator of one product
  static_assert(kTileM == 64 || kTileM == 128 || kTileM == 256, "swapped, one CTA or a pair");
  static_assert(kTileN == 128 || (kTileN == 64 && !kSwap), "tiles built so far");

  // kColumns = 128: ONE mma of N = 256 computes both products from B1 and B2 as one operand of 256 rows.
  // kColumns = 64: scale factors of B cannot be packed without overlapping copies, so TWO mmas of N = 64.
  static constexpr bool kOneMma = kColumns == 128;
  static constexpr int kMmaM = kLanes * kCtaGroup;
  static constexpr int kMmaN = kOneMma ? 2 * kColumns : kColumns;

  // The B of a mma is split by rows between the CTAs of a pair. With one mma the first half is B1 and the
  // second B2, so each CTA brings one of them whole; with two, each CTA brings its half of the rows of both.
  static constexpr bool kOneBPerCta = kCtaGroup == 2 && kOneMma;
  static constexpr int kBBoxes = kOneBPerCta ? 1 : 2;
  static constexpr int kBBoxRows = kOneBPerCta ? kTileN : kTileN / kCtaGroup;
  static constexpr int kABoxRows = kTileM / kCtaGroup;

  // Shared memory of one stage.
  static constexpr int kSfAtomBytes = 512;  // 128 rows x 4 scale factors
  static constexpr int kABytes = kABoxRows * kTileK / 2;
  static constexpr int kBBoxBytes = kBBoxRows * kTileK / 2;
  static constexpr int kSfBytes = kMmasPerKTile * kSfAtomBytes;  // each of SFA, SFB1, SFB2
  static constexpr int kStageBytes =
      kABytes + kBBoxes * kBBoxBytes + 3 * kSfBytes;  // what TMA delivers per stage and CTA
  static constexpr int kReservedBytes = 2048;  // barriers, the TMEM base, alignment of the ring to 1024 bytes
  static constexpr int kStages = (kMaxSmemBytes - kReservedBytes) / kStageBytes;
  static_assert(kStages >= 2, "a pipeline needs two stages");

  // Tensor memory: the accumulators of both products lie side by side, twice where the scale factors of every
  // stage leave room for it. Four columns hold the scale factors of 128 rows x 64 elements of K.
  static constexpr int kAccColumns = 2 * kColumns;
  static constexpr int kSfColumns = 4;
  static constexpr int kStageColumns = 3 * kMmasPerKTile * kSfColumns;
  static constexpr int kAccStages =
      kSplitK == 1 && 2 * kAccColumns + kStages * kStageColumns <= kTmemColumns ? 2 : 1;
};

}  // namespace dualgemm
