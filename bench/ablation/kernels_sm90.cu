// kernels_sm90.cu -- the same for compute capability 9.0: instances of the library's source that compute one
// product at a time, with the tiles and the rings of the library's plain instances of one product. A
// warpgroup has twice the columns of one product, and a CTA the accumulators of the shipping tile of half the
// columns.
#define DUALGEMM_GENERAL 0
#include "bench/ablation/kernels.h"
#include "bench/ablation/product_loop.cuh"
#include "kernel/sm90/one_product.cuh"

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

template <Options... kOptions>
consteval InstanceList list() {
  return list_of<sm90::Entry>(List<Sequential<kOptions>...>{});
}

}  // namespace

// With 256 rows of A the accumulators of both products would not fit.
extern constinit const InstanceList kSequentialSm90 =
    list<sm90::kOneM8N128, sm90::kOneM8N64s2, sm90::kOneM8N64s4, sm90::kOneM16N128, sm90::kOneM16N64s2,
         sm90::kOneM16N64s4, sm90::kOneM32N128, sm90::kOneM32N64s2, sm90::kOneM32N64s4, sm90::kOneM64N128x,
         sm90::kOneM64N128s2x, sm90::kOneM64N64s4x, sm90::kOneM128N128x, sm90::kOneM128N128s2x>();

}  // namespace bench
