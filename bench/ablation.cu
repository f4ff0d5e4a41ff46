// ablation.cu -- kernels that the library does not ship: instances of its source that do one thing
// differently, and the activation kernel of the two-pass way.
#include "bench/ablation_kernels.h"

#include "kernel/instance.cuh"

namespace bench {
namespace {

using namespace dualgemm;

constexpr CType kFp16 = CType::kFp16;

// The tile of the shipping m256n64k256, whose rings are {7, 4, 2}.
constexpr Options narrow_pair(int stages, int scale_stages, int scale_k_tiles) {
  return {.stages = stages, .scale_stages = scale_stages, .scale_k_tiles = scale_k_tiles, .keep_a = true};
}
constexpr Options with(Options options, ScaleCopy copy) {
  options.scale_copy = copy;
  return options;
}
constexpr Options with(Options options, Store store) {
  options.store = store;
  return options;
}
constexpr Options reading_a_twice(Options options) {
  options.keep_a = false;
  return options;
}
constexpr Options sharing_reciprocals(Options options) {
  options.shared_reciprocal = true;
  return options;
}
constexpr Options kNarrowPair = narrow_pair(7, 4, 2);

// The shipping m128n64k256 has two pairs of accumulators and walks forward.
constexpr Options kRotated{
    .stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true, .k_order = KOrder::kRotated};
constexpr Options kOnePair{.stages = 6, .scale_stages = 5, .keep_a = true};

// 128 columns, with two mma of N = 128 for one of N = 256.
constexpr Options kTwoMmas{.stages = 4, .scale_stages = 5, .one_mma = false};
constexpr Options kTwoMmasPair{.stages = 6, .scale_stages = 5, .one_mma = false};

// 128 x 128 with one product at a time: a k-tile has one B,
// so more of them fit than of the shipping kernel's.
constexpr Options kSequential{.stages = 6, .scale_stages = 7, .products = Products::kOneAfterOther};
constexpr Options kFirstOnly{
    .stages = 6, .scale_stages = 7, .acc_stages = 2, .products = Products::kFirstOnly};

constexpr int kActivationThreads = 256;

// Two fp16 as floats.
__device__ Pair floats(uint32_t halves) {
  Pair result;
  asm("{\n\t"
      ".reg .b16 low, high;\n\t"
      "mov.b32 {low, high}, %2;\n\t"
      "cvt.f32.f16 %0, low;\n\t"
      "cvt.f32.f16 %1, high;\n\t"
      "}"
      : "=f"(result.first), "=f"(result.second)
      : "r"(halves));
  return result;
}

// Eight outputs of one thread: the intermediates are read, and C is written, 16 bytes at a time.
__global__ void __launch_bounds__(kActivationThreads)
    activation(const uint4* gates, const uint4* ups, uint4* c, int64_t vectors) {
  const int64_t i = int64_t{blockIdx.x} * kActivationThreads + threadIdx.x;
  if (i >= vectors) return;
  const uint4 g = gates[i], u = ups[i];
  const auto results = [](uint32_t gates2, uint32_t ups2) {
    const Pair gate = floats(gates2), up = floats(ups2);
    return pack<kFp16>(swiglu<ApproximateMath>(gate.first, up.first),
                       swiglu<ApproximateMath>(gate.second, up.second));
  };
  c[i] = {results(g.x, u.x), results(g.y, u.y), results(g.z, u.z), results(g.w, u.w)};
}

}  // namespace

const Instance kAblations[kAblationCount] = {
    instance<Config<256, 64, 1, kFp16, narrow_pair(6, 4, 2)>>("m256n64k256_depth6_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(5, 4, 2)>>("m256n64k256_depth5_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(4, 4, 2)>>("m256n64k256_depth4_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(3, 4, 2)>>("m256n64k256_depth3_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(2, 4, 2)>>("m256n64k256_depth2_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(1, 4, 2)>>("m256n64k256_depth1_fp16"),
    instance<Config<256, 64, 1, kFp16, with(narrow_pair(6, 4, 2), Store::kBulk)>>(
        "m256n64k256_depth6_bulk_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(7, 7, 1)>>("m256n64k256_slot1_fp16"),
    instance<Config<256, 64, 1, kFp16, narrow_pair(7, 2, 4)>>("m256n64k256_slot4_fp16"),
    instance<Config<256, 64, 1, kFp16, with(kNarrowPair, ScaleCopy::kPerKTile)>>(
        "m256n64k256_copy_first_fp16"),
    instance<Config<256, 64, 1, kFp16, with(kNarrowPair, ScaleCopy::kNextKTile)>>(
        "m256n64k256_copy_next_fp16"),
    instance<Config<256, 64, 1, kFp16, reading_a_twice(kNarrowPair)>>("m256n64k256_read_a_twice_fp16"),
    instance<Config<256, 64, 1, kFp16, sharing_reciprocals(kNarrowPair)>>("m256n64k256_shared_rcp_fp16"),
    instance<Config<128, 64, 1, kFp16, kRotated>>("m128n64k256_rotated_fp16"),
    instance<Config<128, 64, 1, kFp16, kOnePair>>("m128n64k256_acc1_fp16"),
    instance<Config<128, 128, 1, kFp16, kTwoMmas>>("m128n128k256_two_mma_fp16"),
    instance<Config<256, 128, 1, kFp16, kTwoMmasPair>>("m256n128k256_two_mma_fp16"),
    instance<Config<128, 128, 1, kFp16, kSequential>>("m128n128k256_sequential_fp16"),
    instance<Config<128, 128, 1, kFp16, kFirstOnly>>("m128n128k256_first_fp16"),
};

cudaError_t launch_activation(const void* gates, const void* ups, void* c, int64_t elements,
                              cudaStream_t stream) {
  const int64_t vectors = elements / 8;
  const auto blocks = static_cast<unsigned>((vectors + kActivationThreads - 1) / kActivationThreads);
  activation<<<blocks, kActivationThreads, 0, stream>>>(
      static_cast<const uint4*>(gates), static_cast<const uint4*>(ups), static_cast<uint4*>(c), vectors);
  return cudaGetLastError();
}

}  // namespace bench
