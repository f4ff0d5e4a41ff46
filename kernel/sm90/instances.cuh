// instances.cuh -- from options to the entries of the table of instances (instance_list.cuh), for compute
// capability 9.0.
#pragma once

#include "kernel/instance_list.cuh"
#include "kernel/sm90/instance.cuh"
#include "kernel/sm90/tiles.cuh"

namespace dualgemm::sm90 {

// The kernels of a set of options, as a list of Traits. A plain kernel for an A of 16 bits writes a C of A's
// type; a kernel that writes another type is general. A general one needs a tile that lies in blocks of 128
// rows (output_nvfp4.cuh); other tiles have only the plain one. Tiles of 256 rows have a plain kernel for
// each type of C. With two products a kernel for both has a register too few; with a branch around the
// epilogue in place of that register, 2048 rows of 2048 x 7168 took 8 % longer on an H100.
template <Options kOptions>
auto kernels_of() {
  using Arithmetic = InstanceArithmetic<kOptions.products>;
  using TypeOfA = std::conditional_t<kOptions.a_type == CType::kBf16, Bf16, Fp16>;
  if constexpr (kGeneralInstances && !in_blocks(kOptions.tile_m)) return List<>{};
  else if constexpr (!kGeneralInstances &&
                     (kOptions.a_type == CType::kBf16 || kOptions.a_type == CType::kFp16))
    return List<Traits<kOptions, TypeOfA, Arithmetic>>{};
  else if constexpr (!kGeneralInstances && kOptions.tile_m == 256)
    return List<Traits<kOptions, Fp16, Arithmetic>, Traits<kOptions, Bf16, Arithmetic>>{};
  else return List<Traits<kOptions, typename Arithmetic::Output, Arithmetic>>{};
}

// One list of all instances of these sets of options, in the order of the sets.
template <Options... kOptions>
inline constexpr InstanceList kInstances =
    list_of<Entry>(typename Joined<decltype(kernels_of<kOptions>())...>::Type{});

}  // namespace dualgemm::sm90
