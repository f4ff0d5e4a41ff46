// instances.cuh -- from options to the entries of the table of instances (instance_list.cuh), for compute
// capability 10.x.
#pragma once

#include "kernel/instance_list.cuh"
#include "kernel/sm100/instance.cuh"

namespace dualgemm::sm100 {

template <Options kOptions, class... Output>
auto with_outputs(List<Output...>)
    -> List<Traits<kOptions, Output, InstanceArithmetic<kOptions.products>>...>;

// The list of each set of options with each output, options outermost.
template <Options... kOptions>
inline constexpr InstanceList kInstances =
    list_of<Entry>(typename Joined<decltype(with_outputs<kOptions>(
                       typename InstanceArithmetic<kOptions.products>::Outputs{}))...>::Type{});

}  // namespace dualgemm::sm100
