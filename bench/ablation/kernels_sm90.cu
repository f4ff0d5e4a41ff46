// kernels_sm90.cu -- the same for compute capability 9.0: instances of the library's source that compute one
// product at a time. A warpgroup has twice the columns of one product, and a CTA the accumulators of the
// shipping tile of half the columns; their rings are as deep as fit.
#include "bench/ablation/kernels.h"
#include "bench/ablation/product_loop.cuh"
#include "kernel/sm90/instance.cuh"

namespace bench {
namespace {

using namespace dualgemm;
using sm90::Options;

constexpr sm90::Products kOneAfterOther{.accumulators = 2, .together = 1};

// Both, the second from the start of K again.
template <Options kOptions>
struct Sequential : sm90::Parts<Sequential<kOptions>, kOptions, Fp16, PlainSwiglu, kOneAfterOther> {
  static constexpr const char* kVariant = "seq";
  using KLoop = ProductLoop<Sequential>;
  using LoadWeights = LoadOneWeight<Sequential>;
};

template <template <Options> class Kernel, Options... kOptions>
consteval InstanceList list() {
  return list_of<sm90::Entry>(List<Kernel<kOptions>...>{});
}

// The CTAs of a tile of 64 columns share its K, and so do two warpgroups of each.
constexpr Options narrow(int rows, int split_k, int stages, int prepare_warps) {
  return {.tile_m = rows,
          .tile_n = 64,
          .split_k = split_k,
          .k_groups = 2,
          .stages = stages,
          .prepare_warps = prepare_warps};
}
constexpr Options wide(int rows, int split_k, int stages, int prepare_warps) {
  return {
      .tile_m = rows, .tile_n = 128, .split_k = split_k, .stages = stages, .prepare_warps = prepare_warps};
}
// A comes from a pass.
constexpr Options by_panels(int rows, int split_k, int stages, int panels) {
  return {.tile_m = rows,
          .tile_n = 128,
          .split_k = split_k,
          .stages = stages,
          .panel_stages = panels,
          .prepare_warps = 0};
}
constexpr Options k8 = wide(8, 1, 8, 2), k8Narrow2 = narrow(8, 2, 12, 2), k8Narrow4 = narrow(8, 4, 8, 2);
constexpr Options k16 = wide(16, 1, 7, 4), k16Narrow2 = narrow(16, 2, 9, 4), k16Narrow4 = narrow(16, 4, 8, 4);
constexpr Options k32 = wide(32, 1, 5, 8), k32Narrow2 = narrow(32, 2, 6, 8), k32Narrow4 = narrow(32, 4, 6, 8);
constexpr Options k64 = by_panels(64, 1, 6, 10), k64Split2 = wide(64, 2, 4, 0),
                  k64Narrow2 = narrow(64, 2, 5, 0), k64Narrow4 = narrow(64, 4, 5, 0);
constexpr Options k128 = by_panels(128, 1, 4, 8), k128Split2 = by_panels(128, 2, 3, 10);

}  // namespace

// With 256 rows of A the accumulators of both products would not fit.
extern constinit const InstanceList kSequentialSm90 =
    list<Sequential, k8, k8Narrow2, k8Narrow4, k16, k16Narrow2, k16Narrow4, k32, k32Narrow2, k32Narrow4, k64,
         k64Split2, k64Narrow2, k64Narrow4, k128, k128Split2>();

}  // namespace bench
