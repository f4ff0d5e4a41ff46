// instances.cuh -- from options to the entries of the table of instances (instance_list.cuh), for compute
// capability 10.x.
#pragma once

#include "kernel/instance_list.cuh"
#include "kernel/sm100/instance.cuh"

namespace dualgemm::sm100 {

template <Options kOptions, class Arithmetic = InstanceArithmetic<kOptions.products>>
using Kernel = Traits<kOptions, typename Arithmetic::Output, Arithmetic>;

// One list of all instances of these sets of options, in the order of the sets.
template <Options... kOptions>
inline constexpr InstanceList kInstances = list_of<Entry>(List<Kernel<kOptions>...>{});

}  // namespace dualgemm::sm100
