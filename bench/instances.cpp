// instances.cpp -- see instances.h.
#include "instances.h"

#include <cuda_runtime_api.h>

#include <span>
#include <stdexcept>
#include <string>

#include "host/common/names.h"
#include "kernel/instance.h"

namespace bench {
namespace {

using nlohmann::json;
using namespace dualgemm;

json to_json(const TilePlan& x) {
  return {{"m", x.m}, {"n", x.n}, {"k", x.k}, {"split_k", x.split_k}, {"grouped", x.grouped}};
}

json to_json(const OperandPlan& x) {
  return {{"stages", x.stages},          {"a_box_rows", x.a_box_rows}, {"b_box_rows", x.b_box_rows},
          {"b_boxes", x.b_boxes},        {"a_bytes", x.a_bytes},       {"b_box_bytes", x.b_box_bytes},
          {"stage_bytes", x.stage_bytes}};
}

json to_json(const ScalePlan& x) {
  return {{"stages", x.stages},          {"k_tiles", x.k_tiles},     {"steps", x.steps},
          {"sfb_blocks", x.sfb_blocks},  {"sfa_bytes", x.sfa_bytes}, {"sfb_bytes", x.sfb_bytes},
          {"stage_bytes", x.stage_bytes}};
}

json to_json(const MmaPlan& x) {
  return {{"cta_group", x.cta_group},
          {"swap_ab", x.swap_ab},
          {"m", x.m},
          {"n", x.n},
          {"steps", x.steps},
          {"products", x.products},
          {"accumulators", x.accumulators},
          {"per_step", x.per_step},
          {"columns", x.columns},
          {"keep_a", x.keep_a}};
}

json to_json(const TmemPlan& x) {
  return {{"acc_stages", x.acc_stages},
          {"acc_columns", x.acc_columns},
          {"shared_columns", x.shared_columns},
          {"acc_barriers", x.acc_barriers},
          {"scales", x.scales},
          {"step_columns", x.step_columns},
          {"resident_scales", x.resident_scales},
          {"windows", x.windows},
          {"window_steps", x.window_steps},
          {"window_columns", x.window_columns},
          {"used", x.used},
          {"allocated", x.allocated}};
}

json to_json(const EpiloguePlan& x) { return {{"warps", x.warps}, {"chunk_columns", x.chunk_columns}}; }

json to_json(const A16Plan& x) {
  return {{"warps", x.warps},
          {"from_pass", x.from_pass},
          {"bytes", x.bytes},
          {"stages", x.stages},
          {"stage_bytes", x.stage_bytes}};
}

json to_json(const ConsumerPlan& x) {
  return {{"column_groups", x.column_groups},
          {"k_groups", x.k_groups},
          {"columns", x.columns},
          {"share_rows", x.share_rows}};
}

json to_json(const RegisterPlan& x) {
  return {{"launch", x.launch}, {"feed", x.feed}, {"consume", x.consume}};
}

json to_json(const Plan& x) {
  return {{"arch", limits_of(x.arch).target},
          {"a_type", dtype_name(static_cast<int32_t>(x.a_type))},
          {"tile", to_json(x.tile)},
          {"operands", to_json(x.operands)},
          {"scales", to_json(x.scales)},
          {"mma", to_json(x.mma)},
          {"tmem", to_json(x.tmem)},
          {"epilogue", to_json(x.epilogue)},
          {"a16", to_json(x.a16)},
          {"consumers", to_json(x.consumers)},
          {"registers", to_json(x.registers)},
          {"threads", x.threads},
          {"ctas_per_sm", x.ctas_per_sm},
          {"cluster_size", x.cluster_size()}};
}

json to_json(const EpilogueKind& x) {
  json outputs = json::array();
  for (const OutputKind& output : std::span(x.outputs, static_cast<size_t>(x.output_count)))
    outputs.push_back({{"name", output.name}, {"bits", output.bits}, {"store_bytes", output.store_bytes}});
  return {{"general", x.general}, {"outputs", outputs}};
}

// Returns the name as it stands in the machine code.
std::string entry_name(const Instance& instance) {
  const char* name = nullptr;
  if (const cudaError_t error = cudaFuncGetName(&name, reinterpret_cast<const void*>(instance.kernel)))
    throw std::runtime_error(std::string("cudaFuncGetName: ") + cudaGetErrorString(error));
  return name;
}

}  // namespace

json instances_json() {
  json all = json::array();
  for (const Instance& instance : instances())
    all.push_back({{"name", instance.name},
                   {"entry", entry_name(instance)},
                   {"plan", to_json(instance.plan)},
                   {"epilogue", to_json(instance.epilogue)},
                   {"smem_bytes", instance.smem_bytes}});
  return all;
}

}  // namespace bench
