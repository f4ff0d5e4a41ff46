// sixteen_bit.cuh -- the instances for an A of 16 bits, the same for bf16 and fp16. Plain instances have most
// tiles of the instances for an A in NVFP4 (tiles.cuh), and general instances a few of them.
#pragma once

#include "kernel/sm90/instances.cuh"

namespace dualgemm::sm90 {

// A stage has neither an A in NVFP4 nor factors of A, which leaves shared memory for one more stage in some
// tiles.
template <CType kType>
consteval InstanceList sixteen_bit_instances() {
  constexpr Options kMore64 = of_type<kType>(with_stages(kM64N64, 4));
  if constexpr (kGeneralInstances)
    return kInstances<of_type<kType>(kM16N128), of_type<kType>(kM16N64s2), of_type<kType>(kM16N128g), kMore64,
                      of_type<kType>(kM64N64g), of_type<kType>(kM128N64x), of_type<kType>(kM128N64xg),
                      of_type<kType>(kM256N64x)>;
  else
    return kInstances<of_type<kType>(kM16N128), of_type<kType>(kM16N64s2), of_type<kType>(kM16N32s2),
                      of_type<kType>(kM16N128g), of_type<kType>(kM32N128), of_type<kType>(grouped(kM32N128)),
                      of_type<kType>(with_stages(kM32N64s2, 6)), kMore64, of_type<kType>(kM64N64g),
                      of_type<kType>(with_stages(kM64N64s2, 4)), of_type<kType>(kM64N64s2x),
                      of_type<kType>(kM64N128x), of_type<kType>(kM64N128xg), of_type<kType>(kM128N64),
                      of_type<kType>(kM128N64x), of_type<kType>(kM128N64xg), of_type<kType>(kM128N64skx),
                      of_type<kType>(kM128N64s2x), of_type<kType>(kM192N64skx), of_type<kType>(kM256N64x)>;
}

}  // namespace dualgemm::sm90
