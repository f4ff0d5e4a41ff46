// constants.h -- every constant of the cost model by name, and how each becomes known on a GPU. A constant
// that is added there has to be added here, or this header does not compile.
#pragma once

#include <iterator>
#include <string_view>

#include "host/model/cost_constants.h"

namespace bench {

enum class Known {
  kNot,       // the model of this architecture has no such term
  kMeasured,  // a microbenchmark measures it
  kInPart,  // a microbenchmark measures a part of it, or under other conditions; whole launches tell the rest
  kFitted,  // only times of whole launches tell (calibrate.cpp)
  kCounted,  // in machine code
};

struct ModelConstant {
  std::string_view name;
  double dualgemm::CostConstants::*value;
  Known sm90, sm100;

  Known known(dualgemm::Arch arch) const { return arch == dualgemm::Arch::kSm90 ? sm90 : sm100; }
};

#define CONSTANT(name, sm90, sm100) \
  { #name, &dualgemm::CostConstants::name, Known::sm90, Known::sm100 }
inline constexpr ModelConstant kModelConstants[] = {
    CONSTANT(clock, kMeasured, kMeasured),
    CONSTANT(fill_per_sm, kInPart, kMeasured),
    CONSTANT(fill_all_sms, kMeasured, kMeasured),
    CONSTANT(per_copy, kMeasured, kMeasured),
    CONSTANT(dram, kInPart, kMeasured),
    CONSTANT(l2_bytes, kMeasured, kMeasured),
    CONSTANT(latency, kMeasured, kMeasured),
    CONSTANT(per_byte, kNot, kMeasured),
    CONSTANT(scale_copy, kNot, kMeasured),
    CONSTANT(scale_copy_short, kNot, kMeasured),
    CONSTANT(commit, kNot, kMeasured),
    CONSTANT(wake, kMeasured, kMeasured),
    CONSTANT(fixed, kInPart, kInPart),
    CONSTANT(cluster_barrier, kMeasured, kMeasured),
    CONSTANT(load, kMeasured, kMeasured),
    CONSTANT(tensor_read, kNot, kMeasured),
    CONSTANT(tensor_bytes, kNot, kMeasured),
    CONSTANT(special, kMeasured, kMeasured),
    CONSTANT(special_of_four, kMeasured, kMeasured),
    CONSTANT(instructions, kMeasured, kMeasured),
    CONSTANT(fp64, kMeasured, kMeasured),
    CONSTANT(l1_load, kMeasured, kMeasured),
    CONSTANT(store, kMeasured, kMeasured),
    CONSTANT(store_part, kMeasured, kMeasured),
    CONSTANT(exchange, kMeasured, kMeasured),
    CONSTANT(exchange_per_kb, kMeasured, kMeasured),
    CONSTANT(expand_weight, kFitted, kNot),
    CONSTANT(expand_bf16, kCounted, kNot),
    CONSTANT(expand_mxfp4, kCounted, kNot),
    CONSTANT(expand_activation, kFitted, kNot),
    CONSTANT(order_activation, kFitted, kNot),
    CONSTANT(multiply_adds, kMeasured, kNot),
    CONSTANT(least_columns, kInPart, kNot),
    CONSTANT(begin, kFitted, kNot),
    CONSTANT(beside, kFitted, kNot),
    CONSTANT(chain, kFitted, kNot),
    CONSTANT(round, kFitted, kNot),
    CONSTANT(turn, kFitted, kNot),
    CONSTANT(finish, kFitted, kNot),
    CONSTANT(meet, kFitted, kNot),
    CONSTANT(fill_apart, kInPart, kNot),
    CONSTANT(pass, kFitted, kNot),
    CONSTANT(pass_bytes, kFitted, kNot),
};
#undef CONSTANT

// Beside these numbers there is one function, b200_mma_cycles, which measurements call mma_cycles.
static_assert(sizeof(dualgemm::CostConstants) ==
                  std::size(kModelConstants) * sizeof(double) + sizeof(dualgemm::CostConstants::mma_cycles),
              "kModelConstants: the cost model has a constant that is not listed here");

constexpr std::string_view text(Known known) {
  switch (known) {
    case Known::kNot: return "nothing";
    case Known::kMeasured: return "measurement";
    case Known::kInPart: return "measured in part";
    case Known::kFitted: return "fit to launches";
    case Known::kCounted: return "machine code";
  }
  return "";
}

// Returns how far the sources of a constant allow it to be off; nothing where there is no range.
inline const dualgemm::CostRange* range_of(const ModelConstant& constant, dualgemm::Arch arch) {
  for (const dualgemm::CostRange& range : dualgemm::cost_table(arch).ranges)
    if (range.constant == constant.value) return &range;
  return nullptr;
}

}  // namespace bench
