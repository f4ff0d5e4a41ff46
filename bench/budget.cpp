// budget.cpp -- see budget.h.
#include "budget.h"

#include <algorithm>
#include <cstdio>

#include "host/common/sf_layout.h"
#include "host/model/tiling.h"

namespace bench {
namespace {

using dualgemm::ceil_div;
using dualgemm::sf_bytes;

// The choice looks at the numbers alone, but the arguments are checked as for a launch.
const dualgemm::Instance& chosen(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  int32_t id;
  check(dualgemm_select_instance(&args, &device, &id), "dualgemm_select_instance");
  return dualgemm::instance(id - 1);
}

}  // namespace

dualgemm_device_t described_b200() {
  dualgemm_device_t device = {sizeof(dualgemm_device_t), 10, 0, 148, 13000, 0, {}, 0, 0, 0};
  std::snprintf(device.name, sizeof device.name, "NVIDIA B200 (described)");
  return device;
}

Budget budget_of(const Shape& shape, const Epilogue& epilogue, const dualgemm_device_t& device) {
  const dualgemm_args_t args = described_args(shape, epilogue);
  Budget b{};
  b.instance = &chosen(args, device);
  const dualgemm::Plan& plan = b.instance->plan;
  const dualgemm::TilePlan& tile = plan.tile;
  const int64_t exponent_bytes = shape.fp8_a() ? sizeof(int16_t) : 0,
                factor_bytes = shape.fp8_a() ? sizeof(float) : 0;
  const int64_t weight_bytes =
      shape.products * (int64_t{shape.n} * shape.k / 2 + sf_bytes(shape.n, shape.k, shape.b_block()) +
                        shape.n * exponent_bytes);
  for (int32_t problem = 0; problem < shape.problems(); ++problem) {
    const int32_t rows = shape.rows(problem);
    if (rows == 0) continue;
    b.tiles += m_tiles(tile, rows) * n_tiles(tile, shape.n);
    const int64_t c_bytes =
        int64_t{rows} * shape.n * epilogue.bits() / 8 + (epilogue.blocks() ? sf_bytes(rows, shape.n) : 0);
    b.dram_bytes += int64_t{rows} * shape.k * shape.a_bits() / 8 +
                    (shape.packed_a() ? sf_bytes(rows, shape.k) : 0) + rows * factor_bytes + weight_bytes +
                    c_bytes;
  }
  b.cluster = plan.cluster_size();
  const int64_t clusters = grid_clusters(plan, b.tiles, dualgemm::machine_of(args, device));
  b.ctas = clusters * b.cluster;
  b.tiles_per_sm = ceil_div(b.tiles, std::max<int64_t>(1, clusters));
  // A CTA of the cluster does its part of K for a tile. Boxes count in full at the edges.
  const int64_t all_k_tiles = dualgemm::k_tiles(tile, shape.k);
  const int64_t k_tiles = ceil_div(all_k_tiles, tile.split_k);
  // An A that wgmma reads as it comes is not among the operands.
  const int64_t own_a = plan.operands.a_bytes == 0 ? int64_t{plan.a_element_bytes()} * tile.m * tile.k : 0;
  b.fill_bytes = b.tiles_per_sm * k_tiles *
                 (plan.operands.stage_bytes + plan.scales.stage_bytes / plan.scales.k_tiles + own_a);
  // The tensor core skips steps past the end of K, which the last part has. It alone counts where it has
  // more k-tiles than the others.
  const int32_t step_k = tile.k / plan.mma.steps;
  const int64_t skipped = all_k_tiles * plan.mma.steps - ceil_div(shape.k, step_k);
  const bool last_counts = tile.split_k == 1 || all_k_tiles % tile.split_k == 1;
  const int64_t steps = k_tiles * plan.mma.steps - (last_counts ? skipped : 0);
  const int64_t step_flops = 2ll * tile.m * plan.mma.products * tile.n * step_k / plan.mma.cta_group;
  b.tensor_clocks = b.tiles_per_sm * steps * step_flops / tensor_rate(device, shape.a_dtype).flops_per_clock;
  b.flops = shape.flops();
  return b;
}

}  // namespace bench
