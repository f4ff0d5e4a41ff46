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
// B2.
template <int kTileN_, CType kC_>
struct Config {
  static constexpr CType kC = kC_;
  static constexpr int kCtaGroup = 1;
  static constexpr int kTileM = 128;
  static constexpr int kTileN = kTileN_;
  static constexpr int kTileK = 256;  // elements; 128 bytes of e2m1 = one row of a 128-byte-swizzled operand
  static constexpr int kMmaK = 64;    // K of one tcgen05.mma kind::mxf4nvf4
  static constexpr int kMmasPerKTile = kTileK / kMmaK;
  static constexpr int kThreads = 256;

  // kTileN = 128: B1 and B2 lie next to each other in a stage and ONE mma of N = 256 computes both products.
  // kTileN = 64: scale factors of B cannot be packed without overlapping copies, so TWO mmas of N = 64.
  static constexpr bool kOneMma = kTileN == 128;
  static constexpr int kMmaN = kOneMma ? 2 * kTileN : kTileN;

  // Shared memory of one stage.
  static constexpr int kSfAtomBytes = 512;  // 128 rows x 4 scale factors
  static constexpr int kABytes = kTileM * kTileK / 2;
  static constexpr int kBBytes = kTileN * kTileK / 2;                       // each of B1, B2
  static constexpr int kSfBytes = kMmasPerKTile * kSfAtomBytes;             // each of SFA, SFB1, SFB2
  static constexpr int kStageBytes = kABytes + 2 * kBBytes + 3 * kSfBytes;  // what TMA delivers per stage
  static constexpr int kReservedBytes = 2048;  // barriers, the TMEM base, alignment of the ring to 1024 bytes
  static constexpr int kStages = (kMaxSmemBytes - kReservedBytes) / kStageBytes;
  static_assert(kTileN == 64 || kTileN == 128, "tiles built so far");
  static_assert(kStages >= 2, "a pipeline needs two stages");

  // Tensor memory. The accumulators of both products lie side by side; kTileN = 64 leaves room for two pairs.
  static constexpr int kAccStages = kTileN == 64 ? 2 : 1;
  static constexpr int kAccColumns = 2 * kTileN;
};

}  // namespace dualgemm
