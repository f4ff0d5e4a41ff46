// instances.cpp -- see instances.h.
#include "instances.h"

#include <cuda_runtime_api.h>

#include <span>
#include <stdexcept>
#include <string>

#include "host/common/names.h"
#include "kernel/instance.h"

// The parts of a plan, by the names of their fields.
namespace dualgemm {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TilePlan, m, n, k, split_k, grouped)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OperandPlan, stages, a_box_rows, b_box_rows, b_boxes, a_bytes, b_box_bytes,
                                   stage_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ScalePlan, stages, k_tiles, steps, sfb_blocks, sfa_bytes, sfb_bytes,
                                   stage_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MmaPlan, cta_group, swap_ab, m, n, steps, products, accumulators, per_step,
                                   columns, keep_a)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TmemPlan, acc_stages, acc_columns, shared_columns, acc_barriers, scales,
                                   step_columns, resident_scales, windows, window_steps, window_columns, used,
                                   allocated)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EpiloguePlan, warps, chunk_columns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(A16Plan, warps, from_pass, bytes, stages, stage_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConsumerPlan, column_groups, k_groups, columns, share_rows, exchanged_rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RegisterPlan, launch, feed, consume)
}  // namespace dualgemm

namespace bench {

using nlohmann::json;
using namespace dualgemm;

static json plan_json(const Plan& x) {
  return {{"arch", limits_of(x.arch).target},
          {"a_type", dtype_name(static_cast<int32_t>(x.a_type))},
          {"tile", x.tile},
          {"operands", x.operands},
          {"scales", x.scales},
          {"mma", x.mma},
          {"tmem", x.tmem},
          {"epilogue", x.epilogue},
          {"a16", x.a16},
          {"consumers", x.consumers},
          {"registers", x.registers},
          {"threads", x.threads},
          {"ctas_per_sm", x.ctas_per_sm},
          {"cluster_size", x.cluster_size()}};
}

static json epilogue_json(const EpilogueKind& x) {
  json outputs = json::array();
  for (const OutputKind& output : std::span(x.outputs, static_cast<size_t>(x.output_count)))
    outputs.push_back({{"name", output.name}, {"bits", output.bits}, {"store_bytes", output.store_bytes}});
  return {{"general", x.general}, {"outputs", outputs}};
}

// Returns the name as it stands in the machine code, or null: a GPU names no kernel of another architecture.
static json entry_name(const Instance& instance) {
  const char* name = nullptr;
  const cudaError_t error = cudaFuncGetName(&name, reinterpret_cast<const void*>(instance.kernel));
  if (error == cudaErrorNoKernelImageForDevice) {
    cudaGetLastError();  // nobody is to find this error
    return nullptr;
  }
  if (error) throw std::runtime_error(std::string("cudaFuncGetName: ") + cudaGetErrorString(error));
  return name;
}

json instances_json() {
  json all = json::array();
  for (const Instance& instance : instances())
    all.push_back({{"name", instance.name},
                   {"entry", entry_name(instance)},
                   {"plan", plan_json(instance.plan)},
                   {"epilogue", epilogue_json(instance.epilogue)},
                   {"smem_bytes", instance.smem_bytes}});
  return all;
}

}  // namespace bench
