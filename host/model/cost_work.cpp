// cost_work.cpp -- see cost_work.h.
#include "host/model/cost_work.h"

#include <algorithm>
#include <cmath>

#include "host/common/sf_layout.h"

namespace dualgemm {

double Work::dram_bytes() const {
  const double bands = mean_m_tiles(shape, p.tile) / p.band_tiles();
  const double weights = p.mma.accumulators * shape.k * bytes_of_b() * shape.n;
  const double a_bytes = shape.k * bytes_of_a();
  const double band = a_bytes * std::min(bands, 1.0) * p.band_tiles() * p.tile.m;
  const double passes = weights + band > t.l2_bytes ? std::ceil(bands) : 1;
  const double written = (written_bits() + added_bits()) / 8 * shape.m * shape.n;
  return shape.problems * (a_bytes * shape.m + weights * passes + written);
}

double Work::fill_us(double active) const {
  const auto bytes = static_cast<double>(fill_bytes());
  const double scale_copies = 1 + static_cast<double>(p.mma.products) / p.mma.cta_group;
  // An A that comes by panels has four of these in 16 bits, two in FP8, and no factors.
  const double panels = p.panels_of_a() ? p.tile.k / p.panel_k() - 2 : 0;
  const double copies = 1 + panels + p.operands.b_boxes + scale_copies / p.scales.k_tiles;
  return std::max(bytes / t.fill_per_sm + copies * t.per_copy, bytes * active / t.fill_all_sms);
}

double Work::results() const {
  return std::min(p.tile.m, shape.m) * static_cast<double>(p.tile.n) / p.cluster_size();
}

double Work::special_cycles() const {
  if (shape.exact) return 0;
  return results() * special_functions(shape.activation) /
         (p.epilogue.warps < 8 ? t.special_of_four : t.special);
}

work::Instructions Work::general_work() const {
  const double steps = work::kFrame + shape.biases * work::kBias +
                       (shape.a_row_scale ? work::kARowScale : 0) +
                       (shape.c_row_scale ? work::kCRowScale : 0) + (shape.amax ? work::kAmax : 0) +
                       (shape.d_bits > 0 ? work::kBothD * p.mma.accumulators / 2 : 0) +
                       (shape.c_add ? work::kCAdd : 0) + work::output_instructions(c.type, p.mma.swap_ab);
  if (shape.exact) {
    const work::Instructions exact = work::exact_instructions(shape.activation);
    return {steps + exact.all, exact.fp64};
  }
  const double covered = special_functions(shape.activation) * work::kCoveredBySpecial;
  return {std::max(0.0, steps + work::activation_instructions(shape.activation) - covered)};
}

// A warp waits for the bias of every column. In each tile it also waits for the first bytes of every vector,
// which come from DRAM.
double Work::general_cycles() const {
  if (!general) return 0;
  const work::Instructions issued = general_work();
  const int32_t vectors = shape.biases + (shape.a_row_scale ? 1 : 0) + (shape.c_row_scale ? 1 : 0);
  const double waits = shape.biases * t.l1_load / (32 * p.epilogue.warps);
  return results() * (issued.all / t.instructions + issued.fp64 / t.fp64 + waits) + vectors * t.load;
}

double Work::store_cycles() const {
  const double stores = results() * c.bits / 8 / c.store_bytes;
  const double of_factors = c.type == CType::kNvfp4 ? results() / kSfBlock : 0;
  const double of_d = results() * (shape.d_bits + added_bits()) / 8 / kSectorBytes;
  return stores * (c.store_bytes < kSectorBytes ? t.store_part : t.store) + of_factors * t.store_part +
         of_d * t.store;
}

double Work::exchange_us(int32_t meetings, double received) const {
  if (p.tile.split_k == 1) return 0;
  return us(meetings * t.cluster_barrier + t.exchange + t.exchange_per_kb * received / 1024);
}

}  // namespace dualgemm
