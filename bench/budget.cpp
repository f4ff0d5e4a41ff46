// budget.cpp -- see budget.h.
#include "budget.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Scale factors arrive in whole atoms: 128 rows x 64 elements, 512 bytes.
constexpr int64_t scale_bytes(int64_t rows, int64_t k) { return ceil_div(rows, 128) * ceil_div(k, 64) * 512; }

}  // namespace

void check(dualgemm_status_t status, const char* what) {
  if (status == DUALGEMM_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + dualgemm_status_name(status) + ": " +
                           dualgemm_last_error());
}

dualgemm_device_t described_b200() {
  dualgemm_device_t device = {10, 0, 148, 13000, 0, {}, 0, 0};
  std::snprintf(device.name, sizeof device.name, "NVIDIA B200 (described)");
  return device;
}

dualgemm_args_t sizes_of(const Shape& shape, dualgemm_dtype_t dtype) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = shape.m;
  args.n = shape.n;
  args.k = shape.k;
  args.lda = args.ldb1 = args.ldb2 = ceil_div(shape.k, 32) * 32;
  args.c_dtype = dtype;
  if (shape.grouped()) {
    args.group_mode = shape.mode;
    args.groups = shape.problems();
    args.expected_rows = static_cast<int32_t>(ceil_div(shape.rows(), args.groups));
  } else {
    args.batch = shape.batch;
  }
  return args;
}

Budget budget_of(const Shape& shape, dualgemm_dtype_t dtype, const dualgemm_device_t& device) {
  dualgemm_args_t args = sizes_of(shape, dtype);
  // The choice looks at the numbers alone, but the arguments are checked as for a launch: distinct aligned
  // addresses, never followed.
  const void** const inputs[6] = {&args.a, &args.b1, &args.b2, &args.sfa, &args.sfb1, &args.sfb2};
  uintptr_t address = uintptr_t{1} << 40;
  for (const void** input : inputs) *input = reinterpret_cast<const void*>(address += uintptr_t{1} << 40);
  args.c = reinterpret_cast<void*>(address + (uintptr_t{1} << 40));
  if (shape.grouped()) args.group_rows = reinterpret_cast<const int32_t*>(uintptr_t{1} << 40);

  int32_t id;
  Budget b;
  check(dualgemm_select_config(&args, &device, &id), "dualgemm_select_config");
  check(dualgemm_config_info(id, &b.config), "dualgemm_config_info");
  const dualgemm_config_info_t& c = b.config;
  b.tiles = b.dram_bytes = 0;
  const int64_t n_bytes = 2 * (int64_t{shape.n} * shape.k / 2 + scale_bytes(shape.n, shape.k));  // B1 and B2
  for (int32_t problem = 0; problem < shape.problems(); ++problem) {
    const int64_t rows = shape.rows(problem);
    if (rows == 0) continue;
    b.tiles += ceil_div(rows, c.tile_m) * ceil_div(shape.n, c.tile_n);
    b.dram_bytes += rows * shape.k / 2 + scale_bytes(rows, shape.k) + n_bytes + 2 * rows * shape.n;
  }
  b.cluster = c.cta_group * c.split_k;
  // A cluster that splits K has one tile; CTAs and pairs take several in turn.
  int64_t at_once = c.split_k > 1 ? b.tiles : std::max<int64_t>(1, device.sm_count / b.cluster);
  // Not every SM of a chip has a neighbour to pair with.
  if (b.cluster == 2 && c.split_k == 1 && device.clusters_of_2 > 0)
    at_once = std::min<int64_t>(at_once, device.clusters_of_2);
  b.ctas = std::min(b.tiles, at_once) * b.cluster;
  b.tiles_per_sm = ceil_div(b.tiles, at_once);
  // What one CTA of the cluster does for a tile: its part of K, and in a pair half of the rows. Boxes count
  // in full at the edges; scale factors come in atoms of 128 rows: one of A, and of B1 and B2 as many as hold
  // the rows of a tile.
  const int64_t all_k_tiles = ceil_div(shape.k, c.tile_k);
  const int64_t k_tiles = ceil_div(all_k_tiles, c.split_k);
  const int64_t rows = (int64_t{c.tile_m} + 2ll * c.tile_n) / c.cta_group;
  const int64_t scales = scale_bytes(128, c.tile_k) + 2 * scale_bytes(c.tile_n, c.tile_k);
  b.fill_bytes = b.tiles_per_sm * k_tiles * (rows * c.tile_k / 2 + scales);
  // The tensor core works in steps of 64 elements of K and skips those past the end, which the last part has.
  // It alone counts where it has more k-tiles than the others.
  const int64_t skipped = all_k_tiles * c.tile_k / 64 - ceil_div(shape.k, 64);
  const bool last_counts = c.split_k == 1 || all_k_tiles % c.split_k == 1;
  const int64_t steps = k_tiles * c.tile_k / 64 - (last_counts ? skipped : 0);
  const int64_t step_flops = 2ll * c.tile_m * 2 * c.tile_n * 64 / c.cta_group;
  b.tensor_clocks = b.tiles_per_sm * steps * step_flops / kFlopsPerClock;
  b.flops = 4.0 * static_cast<double>(shape.rows()) * shape.n * shape.k;
  return b;
}

}  // namespace bench
