// kernels.cu -- kernels that the library does not ship: instances of its source that do one thing
// differently.
#include "bench/ablation/kernels.h"

#include "bench/ablation/bulk_store.cuh"
#include "bench/ablation/k_order.cuh"
#include "bench/ablation/one_product.cuh"
#include "bench/ablation/scale_copy.cuh"
#include "bench/ablation/shared_reciprocal.cuh"
#include "kernel/sm100/instance.cuh"

namespace bench {
namespace {

using namespace dualgemm;
using sm100::Options;

// This is a kernel with these options that inherits the parts of the shipping ones; what differs stands in
// Self.
template <class Self, Options kOptions>
struct Variant : sm100::Parts<Self> {
  static constexpr Plan kPlan = sm100::plan_of(kOptions);
  static_assert(sm100::possible<kOptions, kPlan>());
  using Output = Fp16;
  using Arithmetic = PlainSwiglu;
};

// This is the tile of the shipping m256n64k256, whose rings are {7, 4, 2}.
constexpr Options narrow_pair(int stages, int scale_stages, int scale_k_tiles) {
  return {.tile_m = 256,
          .tile_n = 64,
          .stages = stages,
          .scale_stages = scale_stages,
          .scale_k_tiles = scale_k_tiles,
          .keep_a = true};
}
constexpr Options kNarrowPair = narrow_pair(7, 4, 2);
constexpr Options reading_a_twice(Options options) {
  options.keep_a = false;
  return options;
}

struct Depth6 : Variant<Depth6, narrow_pair(6, 4, 2)> {
  static constexpr const char* kVariant = "depth6";
};
struct Depth5 : Variant<Depth5, narrow_pair(5, 4, 2)> {
  static constexpr const char* kVariant = "depth5";
};
struct Depth4 : Variant<Depth4, narrow_pair(4, 4, 2)> {
  static constexpr const char* kVariant = "depth4";
};
struct Depth3 : Variant<Depth3, narrow_pair(3, 4, 2)> {
  static constexpr const char* kVariant = "depth3";
};
struct Depth2 : Variant<Depth2, narrow_pair(2, 4, 2)> {
  static constexpr const char* kVariant = "depth2";
};
struct Depth1 : Variant<Depth1, narrow_pair(1, 4, 2)> {
  static constexpr const char* kVariant = "depth1";
};
struct Depth6Bulk : Variant<Depth6Bulk, narrow_pair(6, 4, 2)> {
  static constexpr const char* kVariant = "depth6_bulk";
  using Output = Fp16Bulk;
};
struct OneKTilePerScaleStage : Variant<OneKTilePerScaleStage, narrow_pair(7, 7, 1)> {
  static constexpr const char* kVariant = "scale1";
};
struct FourKTilesPerScaleStage : Variant<FourKTilesPerScaleStage, narrow_pair(7, 2, 4)> {
  static constexpr const char* kVariant = "scale4";
};
struct CopyFirst : Variant<CopyFirst, kNarrowPair> {
  static constexpr const char* kVariant = "copy_first";
  using ScaleCopies = CopyKTileFirst;
};
struct CopyNext : Variant<CopyNext, kNarrowPair> {
  static constexpr const char* kVariant = "copy_next";
  using ScaleCopies = CopyKTileAhead<kNarrowPair.scale_stages>;
};
struct ReadATwice : Variant<ReadATwice, reading_a_twice(kNarrowPair)> {
  static constexpr const char* kVariant = "read_a_twice";
};
struct SharedRcp : Variant<SharedRcp, kNarrowPair> {
  static constexpr const char* kVariant = "shared_rcp";
  using Arithmetic = Plain<SharedReciprocal<ApproximateMath>>;
};

// The shipping m128n64k256 has two pairs of accumulators and starts at K = 0.
constexpr Options kNarrow{
    .tile_m = 128, .tile_n = 64, .stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true};
constexpr Options kNarrowOnePair{.tile_m = 128, .tile_n = 64, .stages = 6, .scale_stages = 5, .keep_a = true};
struct Rotated : Variant<Rotated, kNarrow> {
  static constexpr const char* kVariant = "rotated";
  using KLoop = RotatedLoop<Rotated>;
};
struct OnePair : Variant<OnePair, kNarrowOnePair> {
  static constexpr const char* kVariant = "acc1";
};

// This is a kernel that computes the products of a tile otherwise than the shipping ones.
template <class Self, Options kOptions, Products kProducts>
struct ProductsVariant : Variant<Self, kOptions> {
  static constexpr Plan kPlan = sm100::plan_of(kOptions, kProducts);
  static_assert(sm100::possible<kOptions, kPlan>());
};

// These have 128 columns, with two mma of N = 128 for one of N = 256.
constexpr Products kTwoMmas{.accumulators = 2, .together = 2, .per_step = 2};
constexpr Options kWide{.tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 5};
constexpr Options kWidePair{.tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5};
struct TwoMmas : ProductsVariant<TwoMmas, kWide, kTwoMmas> {
  static constexpr const char* kVariant = "two_mma";
};
struct TwoMmasPair : ProductsVariant<TwoMmasPair, kWidePair, kTwoMmas> {
  static constexpr const char* kVariant = "two_mma";
};

// This computes a tile of 128 x 128 one product at a time: a k-tile has one B, so more of them fit than of
// the shipping kernel's.
constexpr Options kOneB{.tile_m = 128, .tile_n = 128, .stages = 6, .scale_stages = 7};
struct Sequential : ProductsVariant<Sequential, kOneB, kOneAfterOther> {
  static constexpr const char* kVariant = "sequential";
  using KLoop = ProductLoop<Sequential>;
  using LoadWeights = LoadOneWeight<Sequential>;
  using Multiply = OneProduct<Sequential>;
};

}  // namespace

extern constinit const InstanceList kAblations =
    list_of<sm100::Entry>(List<Depth6, Depth5, Depth4, Depth3, Depth2, Depth1, Depth6Bulk,
                               OneKTilePerScaleStage, FourKTilesPerScaleStage, CopyFirst, CopyNext,
                               ReadATwice, SharedRcp, Rotated, OnePair, TwoMmas, TwoMmasPair, Sequential>{});

}  // namespace bench
