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

// One instance. kTileN counts output columns: each tile multiplies A by kTileN rows of B1 and kTileN rows of
// B2. A CTA holds 128 rows of A and of C, one per lane of tensor memory. A tile of 256 rows belongs to a pair
// of CTAs (cta_group::2): each brings half of A and half of what is multiplied with it, and both read both
// halves of B.
template <int kTileM_, int kTileN_, CType kC_>
struct Config {
  static constexpr CType kC = kC_;
  static constexpr int kTileM = kTileM_;
  static constexpr int kTileN = kTileN_;
  static constexpr int kCtaRows = 128;
  static constexpr int kCtaGroup = kTileM / kCtaRows;
  static constexpr int kTileK = 256;  // elements; 128 bytes of e2m1 = one row of a 128-byte-swizzled operand
  static constexpr int kMmaK = 64;    // K of one tcgen05.mma kind::mxf4nvf4
  static constexpr int kMmasPerKTile = kTileK / kMmaK;
  static constexpr int kThreads = 256;

  // kTileN = 128: ONE mma of N = 256 computes both products from B1 and B2 as one operand of 256 rows.
  // kTileN = 64: scale factors of B cannot be packed without overlapping copies, so TWO mmas of N = 64.
  static constexpr bool kOneMma = kTileN == 128;
  static constexpr int kMmaN = kOneMma ? 2 * kTileN : kTileN;

  // The B of a mma is split by rows between the CTAs of a pair. With one mma the first half is B1 and the
  // second B2, so each CTA brings one of them whole; with two, each CTA brings its half of the rows of both.
  static constexpr bool kOneBPerCta = kCtaGroup == 2 && kOneMma;
  static constexpr int kBBoxes = kOneBPerCta ? 1 : 2;
  static constexpr int kBBoxRows = kOneBPerCta ? kTileN : kTileN / kCtaGroup;

  // Shared memory of one stage.
  static constexpr int kSfAtomBytes = 512;  // 128 rows x 4 scale factors
  static constexpr int kABytes = kCtaRows * kTileK / 2;
  static constexpr int kBBoxBytes = kBBoxRows * kTileK / 2;
  static constexpr int kSfBytes = kMmasPerKTile * kSfAtomBytes;  // each of SFA, SFB1, SFB2
  static constexpr int kStageBytes =
      kABytes + kBBoxes * kBBoxBytes + 3 * kSfBytes;  // what TMA delivers per stage and CTA
  static constexpr int kReservedBytes = 2048;  // barriers, the TMEM base, alignment of the ring to 1024 bytes
  static constexpr int kStages = (kMaxSmemBytes - kReservedBytes) / kStageBytes;
  static_assert(kTileM == 128 || kTileM == 256, "one CTA or a pair");
  static_assert(kTileN == 64 || kTileN == 128, "tiles built so far");
  static_assert(kStages >= 2, "a pipeline needs two stages");

  // Tensor memory: the accumulators of both products lie side by side, twice where the scale factors of every
  // stage leave room for it. Four columns hold the scale factors of 128 rows x 64 elements of K.
  static constexpr int kAccColumns = 2 * kTileN;
  static constexpr int kSfColumns = 4;
  static constexpr int kStageColumns = 3 * kMmasPerKTile * kSfColumns;
  static constexpr int kAccStages = 2 * kAccColumns + kStages * kStageColumns <= kTmemColumns ? 2 : 1;
};

}  // namespace dualgemm
