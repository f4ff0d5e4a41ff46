// config.h -- what one kernel instance is: tile, rings and the byte and column counts that follow from them.
// Plain C++ without CUDA types: the device code, host/ and the tests on a CPU all include it. Every derived
// number is computed here once and checked here.
#pragma once

#include <cstdint>

namespace dualgemm {

// Output element types a kernel instance can write.
enum class CType : int32_t { kBf16 = 0, kFp16 = 1 };

// Hardware limits, compute capability 10.x (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability").
inline constexpr int kMaxSmemBytes = 232448;  // 227 KiB of opt-in shared memory per CTA
inline constexpr int kTmemColumns = 512;      // tensor memory of one SM: 128 lanes x 512 columns x 32 bits

// Groups of one launch: their table lies in shared memory.
inline constexpr int kMaxGroups = 512;

// When the scale factors of a k-tile are copied to tensor memory: with the mma of each step, all before the
// first of them, or while the k-tile before is multiplied.
enum class ScaleCopy : int32_t { kPerStep, kPerKTile, kNextKTile };

// Which products a CTA computes while it walks along K: both, A * B1^T and then, from the start of K again,
// A * B2^T, or the first alone, written as it is.
enum class Products : int32_t { kTogether, kOneAfterOther, kFirstOnly };

// Where along K a tile starts: all at 0, or each CTA elsewhere, so that they ask for different bytes.
enum class KOrder : int32_t { kForward, kRotated };

// How results reach C: each lane stores its own, or puts them in shared memory for a bulk copy.
enum class Store : int32_t { kDirect, kBulk };

// How an instance does it. Depths are part of the choice of an instance; what follows them has the default
// that ships, and other values to measure against.
struct Options {
  int stages;             // k-tiles of A, B1, B2 in shared memory
  int scale_stages;       // slots of scale factors in shared memory
  int scale_k_tiles = 1;  // k-tiles in one slot: fewer and larger copies
  int acc_stages = 1;     // pairs of accumulators in tensor memory, 1 or 2
  bool grouped = false;   // several problems, whose rows are known on the device only
  ScaleCopy scale_copy = ScaleCopy::kPerStep;
  // With two mma per step: the second asks for the A that the collector of the tensor core holds since the
  // first. That mma of one thread execute in order although they have different accumulators is not
  // documented; public kernels that give right results on a B200 rely on it here.
  bool keep_a = false;
  Products products = Products::kTogether;
  bool one_mma = true;  // for both products, where one can: with 128 columns
  KOrder k_order = KOrder::kForward;
  Store store = Store::kDirect;
  bool shared_reciprocal = false;  // two results with one reciprocal, at the price that swiglu.cuh tells
};

// One instance. kTileM x kTileN is the tile of C that one CTA, or a pair of CTAs (cta_group::2), computes
// from kTileM rows of A and kTileN rows of B1 and of B2. Tensor memory has 128 lanes, so a CTA multiplies 128
// rows of the operand on the M side of the mma:
//   kTileM = 256   a pair; each CTA has 128 rows of A, and brings half of what is multiplied with them
//   kTileM = 128   one CTA; its lanes are rows of A, its accumulator columns are rows of B1 and B2
//   kTileM = 64    one CTA for few rows of A; the sides are swapped: lanes are 128 rows of B1 and B2, columns
//   are rows of A
// kSplitK CTAs or pairs of one cluster share a tile: each takes a part of K, and they add their accumulators
// up.
template <int kTileM_, int kTileN_, int kSplitK_, CType kC_, Options kOptions>
struct Config {
  static constexpr CType kC = kC_;
  static constexpr int kTileM = kTileM_;
  static constexpr int kTileN = kTileN_;
  static constexpr int kSplitK = kSplitK_;
  static constexpr int kTileK = 256;  // elements; 128 bytes of e2m1 = one row of a 128-byte-swizzled operand
  static constexpr int kMmaK = 64;    // K of one tcgen05.mma kind::mxf4nvf4
  static constexpr int kMmasPerKTile = kTileK / kMmaK;

  static constexpr bool kGrouped = kOptions.grouped;
  static constexpr ScaleCopy kScaleCopy = kOptions.scale_copy;
  static constexpr bool kKeepA = kOptions.keep_a;
  static constexpr Products kProducts = kOptions.products;
  static constexpr KOrder kKOrder = kOptions.k_order;
  static constexpr Store kStore = kOptions.store;
  static constexpr bool kSharedReciprocal = kOptions.shared_reciprocal;
  // Walks along K, and products of each.
  static constexpr int kPasses = kProducts == Products::kOneAfterOther ? 2 : 1;
  static constexpr int kPassProducts = kProducts == Products::kTogether ? 2 : 1;

  static constexpr int kLanes = 128;
  static constexpr bool kSwap = kTileM < kLanes;
  static constexpr int kCtaGroup = kTileM == 2 * kLanes ? 2 : 1;
  static constexpr int kClusterSize = kCtaGroup * kSplitK;
  static constexpr int kColumns = kSwap ? kTileM : kTileN;  // of the accumulator of one product
  static_assert(kTileM == 64 || kTileM == 128 || kTileM == 256, "swapped, one CTA or a pair");
  static_assert(kTileN == 128 || (kTileN == 64 && !kSwap) || (kTileN == 192 && kCtaGroup == 2),
                "tiles built so far");
  static_assert(kProducts == Products::kTogether || (kCtaGroup == 1 && !kSwap && kSplitK == 1),
                "one product at a time: for one CTA");
  static_assert(!kGrouped || kSplitK == 1, "a split has one tile per cluster, groups have any number");

  // kColumns = 128: ONE mma of N = 256 computes both products from B1 and B2 as one operand of 256 rows.
  // Elsewhere TWO mmas: with 64 columns the scale factors of B cannot be packed without overlapping copies,
  // and 2 * 192 is more than a mma has.
  static constexpr bool kOneMma = kOptions.one_mma && kColumns == 128 && kPassProducts == 2;
  static constexpr int kMmaM = kLanes * kCtaGroup;
  static constexpr int kMmaN = kOneMma ? 2 * kColumns : kColumns;

  // The B of a mma is split by rows between the CTAs of a pair. With one mma the first half is B1 and the
  // second B2, so each CTA brings one of them whole; with two, each CTA brings its half of the rows of both.
  static constexpr bool kOneBPerCta = kCtaGroup == 2 && kOneMma;
  static constexpr int kBBoxes = kOneBPerCta ? 1 : kPassProducts;
  static constexpr int kBBoxRows = kOneBPerCta ? kTileN : kTileN / kCtaGroup;
  static constexpr int kABoxRows = kTileM / kCtaGroup;

  // Shared memory: a ring of stages, each one k-tile of the operands, and a ring of slots, each the scale
  // factors of kScaleKTiles k-tiles. Scale factors come in atoms of 128 rows x 4 factors; 192 rows lie in two
  // blocks of 128.
  static constexpr int kSfAtomBytes = 512;
  static constexpr int kScaleBlockRows = 128;
  static constexpr int kSfbBlocks = kTileN > kScaleBlockRows ? 2 : 1;
  static constexpr int kStages = kOptions.stages;
  static constexpr int kABytes = kABoxRows * kTileK / 2;
  static constexpr int kBBoxBytes = kBBoxRows * kTileK / 2;
  static constexpr int kStageBytes = kABytes + kBBoxes * kBBoxBytes;
  static constexpr int kScaleStages = kOptions.scale_stages;
  static constexpr int kScaleKTiles = kOptions.scale_k_tiles;
  static constexpr int kSlotSteps = kScaleKTiles * kMmasPerKTile;
  static constexpr int kSfaBytes = kSlotSteps * kSfAtomBytes;
  static constexpr int kSfbBytes = kSfbBlocks * kSfaBytes;  // each of SFB1 and SFB2
  static constexpr int kSlotBytes = kSfaBytes + kPassProducts * kSfbBytes;
  static constexpr int kReservedBytes = 512;  // barriers and the TMEM base
  static constexpr int kGroupTableBytes = kGrouped ? 20 * (kMaxGroups + 1) : 0;
  static constexpr int kStagingPitch = 80;  // of a lane: 32 results, and room so that lanes differ in banks
  static constexpr int kStagingBytes = kStore == Store::kBulk ? 256 * kStagingPitch : 0;
  static constexpr int kRingBytes = kStages * kStageBytes + kScaleStages * kSlotBytes;
  static_assert(kRingBytes + kGroupTableBytes + kStagingBytes + kReservedBytes <= kMaxSmemBytes,
                "a CTA has this much");
  static_assert(kStore == Store::kDirect || (!kSwap && kSplitK == 1), "a lane has a row of C to copy");
  static_assert(kKOrder == KOrder::kForward || (kScaleKTiles == 1 && kClusterSize == 1),
                "k-tiles of a slot are neighbours, and the CTAs of a cluster walk together");
  static_assert(kScaleCopy != ScaleCopy::kNextKTile || kScaleStages >= 2, "two slots are in use at a time");

  // Tensor memory: the accumulators of both products lie side by side. Two pairs of 128 columns would fill
  // it; they share kSharedColumns instead (tmem_map.cuh).
  static constexpr int kAccumulators = kProducts == Products::kFirstOnly ? 1 : 2;
  static constexpr int kAccColumns = kAccumulators * kColumns;
  static constexpr int kAccStages = kOptions.acc_stages;
  static constexpr bool kOverlapped = kAccStages == 2 && 2 * kAccColumns == kTmemColumns;
  static constexpr int kSharedColumns = kOverlapped ? 64 : 0;
  static constexpr int kAccBarriers = kOverlapped ? 1 : kAccStages;
  static constexpr int kAllAccColumns = kAccStages * kAccColumns - kSharedColumns;
  static_assert(kAccStages == 1 || (kAccStages == 2 && kSplitK == 1), "a split has one tile per cluster");

  // Four columns hold the scale factors of 128 rows x 64 elements of K. The factors of a slot have columns of
  // their own where those of all slots fit beside the accumulators; elsewhere they pass through windows of
  // half a k-tile.
  static constexpr int kSfColumns = 4;
  static constexpr int kStepColumns = (1 + kPassProducts * kSfbBlocks) * kSfColumns;
  static constexpr bool kSlotColumnsFit =
      kAllAccColumns + kScaleStages * kSlotSteps * kStepColumns <= kTmemColumns;
  static constexpr int kWindowSteps = kSlotColumnsFit ? kSlotSteps : kMmasPerKTile / 2;
  static constexpr int kWindowColumns = kWindowSteps * kStepColumns;
  static constexpr int kWindows =
      kSlotColumnsFit ? kScaleStages : (kTmemColumns - kAllAccColumns) / kWindowColumns;
  static_assert(kWindows >= 2 || kScaleStages == 1, "one is filled while the other is read");
  static_assert(kSlotColumnsFit || kScaleCopy == ScaleCopy::kPerStep, "a window holds half a k-tile");
};

}  // namespace dualgemm
