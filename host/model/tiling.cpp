// tiling.cpp -- see tiling.h.

#include "host/model/tiling.h"

#include <algorithm>
#include <cmath>

#include "host/common/sf_layout.h"

namespace dualgemm {

Machine machine_of(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  const bool limited = args.max_sms > 0 && args.max_sms < device.sm_count;
  return {limited ? args.max_sms : device.sm_count, device.clusters_of_2, device.clusters_of_4, limited,
          device.memory_gb_s};
}

int64_t m_tiles(const TilePlan& tile, int64_t rows) { return ceil_div(rows, tile.m); }
int64_t n_tiles(const TilePlan& tile, int64_t columns) { return ceil_div(columns, tile.n); }
int64_t k_tiles(const TilePlan& tile, int64_t k) { return ceil_div(k, tile.k); }

int64_t tile_bound(const Problem& problem, const TilePlan& tile) {
  const int64_t across = n_tiles(tile, problem.args.n);
  // Each group with rows has one last tile that may be only partly filled; all other tiles are full.
  if (problem.group_offsets()) return across * (problem.args.m / tile.m + problem.groups_with_rows());
  return across * m_tiles(tile, problem.args.m) * problem.problems;
}

double mean_m_tiles(const Shape& shape, const TilePlan& tile) {
  if (!shape.grouped) return static_cast<double>(m_tiles(tile, shape.m));
  const int64_t rows = 2 * int64_t{shape.m} - 1, full = rows / tile.m, rest = rows % tile.m;
  const int64_t sum = tile.m * full * (full + 1) / 2 + rest * (full + 1);  // of m_tiles(x), x = 1 .. rows
  return static_cast<double>(sum) / static_cast<double>(rows);
}

int64_t mean_tiles(const Shape& shape, const TilePlan& tile) {
  const auto others = static_cast<double>(n_tiles(tile, shape.n) * shape.problems);
  return static_cast<int64_t>(std::ceil(mean_m_tiles(shape, tile) * others));
}

namespace {

// Counts the clusters of `size` CTAs that fit into the parts of an architecture's largest chip.
int32_t clusters_of_parts(const Architecture& architecture, int32_t size, int32_t ctas_per_sm) {
  int32_t clusters = 0;
  for (const int32_t sms : architecture.parts) clusters += sms * ctas_per_sm / size;
  return clusters;
}

}  // namespace

bool runs_clusters(const Machine& machine, int32_t size) {
  return size == 1 || (machine.clusters_of_2 >= 0 && (size == 2 || machine.clusters_of_4 >= 0));
}

int32_t clusters_at_once(const Machine& machine, Arch arch, int32_t size, int32_t ctas_per_sm) {
  // The CTAs of one cluster lie on different SMs. CTAs of different clusters may share an SM.
  if (size > machine.sms || !runs_clusters(machine, size)) return 0;
  const int64_t by_sms = machine.sms * ctas_per_sm / size;
  int64_t at_once = by_sms;
  if (size == 2 && machine.clusters_of_2 > 0) {
    at_once = int64_t{machine.clusters_of_2} * ctas_per_sm;
  } else if (size > 2) {
    const Architecture& largest = limits_of(arch);
    const int64_t of_parts = clusters_of_parts(largest, size, ctas_per_sm);
    at_once = machine.clusters_of_4 > 0 ? of_parts * machine.clusters_of_4 / clusters_of_parts(largest, 4, 1)
                                        : of_parts * machine.sms / largest.sms;
    at_once = std::max(int64_t{1}, at_once);
  }
  return static_cast<int32_t>(std::min(by_sms, at_once));
}

int32_t clusters_at_once(const Machine& machine, const Plan& plan) {
  return clusters_at_once(machine, plan.arch, plan.cluster_size(), machine.limited ? 1 : plan.ctas_per_sm);
}

int64_t most_stream_ctas(int64_t tiles) { return std::min<int64_t>(kMostStreamCtas, tiles * kMostMembers); }

int64_t grid_clusters(const Plan& plan, int64_t tiles, const Machine& machine) {
  const int64_t at_once = std::max(1, clusters_at_once(machine, plan));
  if (plan.tile.stream_k) return std::min(at_once, most_stream_ctas(tiles));
  return plan.tile.split_k > 1 ? tiles : std::min(tiles, at_once);
}

int64_t grid_size(const Problem& problem, const Plan& plan, const Machine& machine) {
  return grid_clusters(plan, tile_bound(problem, plan.tile), machine) * plan.cluster_size();
}

}  // namespace dualgemm
