// instances.cuh -- from options to the entries of the table of instances (instance_list.cuh), for compute
// capability 9.0.
#pragma once

#include "kernel/instance_list.cuh"
#include "kernel/sm90/instance.cuh"
#include "kernel/sm90/tiles.cuh"

namespace dualgemm::sm90 {

template <Options kOptions, class... Output>
auto with_outputs(List<Output...>)
    -> List<Traits<kOptions, Output, InstanceArithmetic<kOptions.products>>...>;

// A plain instance for an A of 16 bits writes a C of A's type; an instance that writes another type is
// general. A general one needs a tile that lies in blocks of 128 rows (output_nvfp4.cuh); other tiles have
// only the plain one.
template <Options kOptions>
using OutputsOf = std::conditional_t<
    kGeneralInstances && !in_blocks(kOptions.tile_m), List<>,
    std::conditional_t<kGeneralInstances || kOptions.a_type == CType::kNvfp4,
                       typename InstanceArithmetic<kOptions.products>::Outputs,
                       List<std::conditional_t<kOptions.a_type == CType::kBf16, Bf16, Fp16>>>>;

// The list of each set of options with each output, options outermost.
template <Options... kOptions>
inline constexpr InstanceList kInstances =
    list_of<Entry>(typename Joined<decltype(with_outputs<kOptions>(OutputsOf<kOptions>{}))...>::Type{});

}  // namespace dualgemm::sm90
