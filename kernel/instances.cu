// instances.cu -- the kernels that exist: one line per instance, and the table through which host/ sees them.
#include "kernel/instances.h"

#include "kernel/instance.cuh"

namespace dualgemm {

namespace {

constexpr CType kFp16 = CType::kFp16, kBf16 = CType::kBf16;

// Depths of the rings: as deep as shared memory allows, and deep enough in scale factors for the same part of
// K. The fill of a 256 x 64 tile is bound by the number of copies, so its slots hold two k-tiles. Where two
// narrow mma share A they are bound by reading it: a public kernel gained 5 to 10 % on a B200 by keeping it.
constexpr Options kDecode{.stages = 5, .scale_stages = 4, .acc_stages = 2};
constexpr Options kDecodeSplit{.stages = 5, .scale_stages = 4};
constexpr Options kNarrow{.stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true};
constexpr Options kNarrowSplit{.stages = 6, .scale_stages = 5, .keep_a = true};
constexpr Options kSquare{.stages = 4, .scale_stages = 5};
constexpr Options kNarrowPair{.stages = 7, .scale_stages = 4, .scale_k_tiles = 2, .keep_a = true};
constexpr Options kPair{.stages = 6, .scale_stages = 5};
constexpr Options kOverlappedPair{.stages = 6, .scale_stages = 5, .acc_stages = 2};
constexpr Options kWidePair{.stages = 4, .scale_stages = 4};
constexpr Options kGroupedDecode{.stages = 4, .scale_stages = 5, .acc_stages = 2, .grouped = true};
constexpr Options kGroupedSquare{.stages = 4, .scale_stages = 4, .grouped = true};
constexpr Options kGroupedPair{.stages = 5, .scale_stages = 5, .acc_stages = 2, .grouped = true};

}  // namespace

const Instance kInstances[kInstanceCount] = {
    instance<Config<64, 128, 1, kFp16, kDecode>>("m64n128k256_fp16"),
    instance<Config<64, 128, 1, kBf16, kDecode>>("m64n128k256_bf16"),
    instance<Config<64, 128, 4, kFp16, kDecodeSplit>>("m64n128k256s4_fp16"),
    instance<Config<64, 128, 4, kBf16, kDecodeSplit>>("m64n128k256s4_bf16"),
    instance<Config<128, 64, 1, kFp16, kNarrow>>("m128n64k256_fp16"),
    instance<Config<128, 64, 1, kBf16, kNarrow>>("m128n64k256_bf16"),
    instance<Config<128, 64, 2, kFp16, kNarrowSplit>>("m128n64k256s2_fp16"),
    instance<Config<128, 64, 2, kBf16, kNarrowSplit>>("m128n64k256s2_bf16"),
    instance<Config<128, 64, 4, kFp16, kNarrowSplit>>("m128n64k256s4_fp16"),
    instance<Config<128, 64, 4, kBf16, kNarrowSplit>>("m128n64k256s4_bf16"),
    instance<Config<128, 128, 1, kFp16, kSquare>>("m128n128k256_fp16"),
    instance<Config<128, 128, 1, kBf16, kSquare>>("m128n128k256_bf16"),
    instance<Config<256, 64, 1, kFp16, kNarrowPair>>("m256n64k256_fp16"),
    instance<Config<256, 64, 1, kBf16, kNarrowPair>>("m256n64k256_bf16"),
    instance<Config<256, 128, 1, kFp16, kPair>>("m256n128k256_fp16"),
    instance<Config<256, 128, 1, kBf16, kPair>>("m256n128k256_bf16"),
    instance<Config<256, 128, 1, kFp16, kOverlappedPair>>("m256n128k256o_fp16"),
    instance<Config<256, 128, 1, kBf16, kOverlappedPair>>("m256n128k256o_bf16"),
    instance<Config<256, 128, 2, kFp16, kPair>>("m256n128k256s2_fp16"),
    instance<Config<256, 128, 2, kBf16, kPair>>("m256n128k256s2_bf16"),
    instance<Config<256, 192, 1, kFp16, kWidePair>>("m256n192k256_fp16"),
    instance<Config<256, 192, 1, kBf16, kWidePair>>("m256n192k256_bf16"),
    instance<Config<64, 128, 1, kFp16, kGroupedDecode>>("m64n128k256g_fp16"),
    instance<Config<64, 128, 1, kBf16, kGroupedDecode>>("m64n128k256g_bf16"),
    instance<Config<128, 128, 1, kFp16, kGroupedSquare>>("m128n128k256g_fp16"),
    instance<Config<128, 128, 1, kBf16, kGroupedSquare>>("m128n128k256g_bf16"),
    instance<Config<256, 128, 1, kFp16, kGroupedPair>>("m256n128k256og_fp16"),
    instance<Config<256, 128, 1, kBf16, kGroupedPair>>("m256n128k256og_bf16"),
};

}  // namespace dualgemm
