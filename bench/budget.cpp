// budget.cpp -- see budget.h.
#include "budget.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "host/common/sf_layout.h"
#include "host/model/tiling.h"

namespace bench {
namespace {

using dualgemm::ceil_div;
using dualgemm::sf_bytes;

constexpr size_t kMuchWorkspace = size_t{1} << 40;

// The choice looks at the numbers alone, but the arguments are checked as for a launch.
const dualgemm::Instance& chosen(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  int32_t id;
  check(dualgemm_select_instance(&args, &device, &id), "dualgemm_select_instance");
  return dualgemm::instance(id - 1);
}

}  // namespace

void check(dualgemm_status_t status, const char* what) {
  if (status == DUALGEMM_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + dualgemm_status_name(status) + ": " +
                           dualgemm_last_error());
}

dualgemm_device_t described_b200() {
  dualgemm_device_t device = {sizeof(dualgemm_device_t), 10, 0, 148, 13000, 0, {}, 0, 0};
  std::snprintf(device.name, sizeof device.name, "NVIDIA B200 (described)");
  return device;
}

dualgemm_args_t sizes_of(const Shape& shape, const Epilogue& epilogue) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = shape.m;
  args.n = shape.n;
  args.k = shape.k;
  args.lda = args.ldb1 = ceil_div(shape.k, 32) * 32;
  args.products = shape.products;
  if (shape.products == 2) args.ldb2 = args.ldb1;
  args.ldc = epilogue.pitch(shape.n);
  args.a_dtype = shape.a_dtype;
  args.c_dtype = epilogue.dtype;
  if (shape.products == 2) args.activation = epilogue.activation;
  else args.linear_activation = epilogue.linear_activation;
  if (shape.grouped()) {
    args.group_mode = shape.mode;
    args.groups = shape.problems();
    args.expected_rows = static_cast<int32_t>(ceil_div(shape.rows(), args.groups));
  } else {
    args.batch = shape.batch;
  }
  return args;
}

dualgemm_args_t described_args(const Shape& shape, const Epilogue& epilogue) {
  dualgemm_args_t args = sizes_of(shape, epilogue);
  uintptr_t address = uintptr_t{1} << 40;
  for (const void** input : {&args.a, &args.b1, &args.b2, &args.sfa, &args.sfb1, &args.sfb2})
    *input = reinterpret_cast<const void*>(address += uintptr_t{1} << 40);
  args.c = reinterpret_cast<void*>(address += uintptr_t{1} << 40);
  if (!shape.packed_a()) args.sfa = nullptr;
  if (shape.products == 1) args.b2 = args.sfb2 = nullptr;
  args.workspace = reinterpret_cast<void*>(uintptr_t{1} << 56);  // behind the largest C
  args.workspace_size = kMuchWorkspace;
  if (args.c_dtype == DUALGEMM_DTYPE_NVFP4)
    args.sfc = reinterpret_cast<void*>(address + (uintptr_t{1} << 40));
  if (args.group_mode != DUALGEMM_GROUP_NONE)
    args.group_rows = reinterpret_cast<const int32_t*>(uintptr_t{1} << 40);
  return args;
}

Budget budget_of(const Shape& shape, const Epilogue& epilogue, const dualgemm_device_t& device) {
  const dualgemm_args_t args = described_args(shape, epilogue);
  Budget b{};
  b.instance = &chosen(args, device);
  const dualgemm::Plan& plan = b.instance->plan;
  const dualgemm::TilePlan& tile = plan.tile;
  const int64_t weight_bytes = shape.products * (int64_t{shape.n} * shape.k / 2 + sf_bytes(shape.n, shape.k));
  for (int32_t problem = 0; problem < shape.problems(); ++problem) {
    const int32_t rows = shape.rows(problem);
    if (rows == 0) continue;
    b.tiles += m_tiles(tile, rows) * n_tiles(tile, shape.n);
    const int64_t c_bytes =
        int64_t{rows} * shape.n * epilogue.bits() / 8 + (epilogue.blocks() ? sf_bytes(rows, shape.n) : 0);
    b.dram_bytes += int64_t{rows} * shape.k * shape.a_bits() / 8 +
                    (shape.packed_a() ? sf_bytes(rows, shape.k) : 0) + weight_bytes + c_bytes;
  }
  b.cluster = plan.cluster_size();
  const int64_t clusters = grid_clusters(plan, b.tiles, dualgemm::machine_of(args, device));
  b.ctas = clusters * b.cluster;
  b.tiles_per_sm = ceil_div(b.tiles, std::max<int64_t>(1, clusters));
  // A CTA of the cluster does its part of K for a tile. Boxes count in full at the edges.
  const int64_t all_k_tiles = dualgemm::k_tiles(tile, shape.k);
  const int64_t k_tiles = ceil_div(all_k_tiles, tile.split_k);
  // An A that comes in 16 bits is not among the operands.
  const int64_t own_a = plan.operands.a_bytes == 0 ? int64_t{2} * tile.m * tile.k : 0;
  b.fill_bytes = b.tiles_per_sm * k_tiles *
                 (plan.operands.stage_bytes + plan.scales.stage_bytes / plan.scales.k_tiles + own_a);
  // The tensor core skips steps past the end of K, which the last part has. It alone counts where it has
  // more k-tiles than the others.
  const int32_t step_k = tile.k / plan.mma.steps;
  const int64_t skipped = all_k_tiles * plan.mma.steps - ceil_div(shape.k, step_k);
  const bool last_counts = tile.split_k == 1 || all_k_tiles % tile.split_k == 1;
  const int64_t steps = k_tiles * plan.mma.steps - (last_counts ? skipped : 0);
  const int64_t step_flops = 2ll * tile.m * plan.mma.products * tile.n * step_k / plan.mma.cta_group;
  b.tensor_clocks = b.tiles_per_sm * steps * step_flops / tensor_rate(device).flops_per_clock;
  b.flops = shape.flops();
  return b;
}

}  // namespace bench
