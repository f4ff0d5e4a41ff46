// cost_sm90.cpp -- the equations for compute capability 9.0: the warps that multiply also expand the weights
// and finish the tile, and several CTAs may share an SM.
#include <algorithm>
#include <cmath>

#include "host/common/sf_layout.h"
#include "host/model/cost_work.h"

namespace dualgemm {
namespace {

// A k-tile takes about as long as the slowest of three: multiplying, DRAM, and the ring of operands. The
// closer their times are to each other, the less they hide each other. So the time of a k-tile is the root of
// this degree of the sum of their powers of this degree. The degree is fitted (kH100Costs says to what).
constexpr double kDegree = 4;

// Rows of A are the columns of a wgmma. A wgmma of more columns than this runs longer and hides more of the
// expansion of the next weights: the part that is not hidden is inversely proportional to the number of
// columns (fit). Tiles of more rows than this have only two stages, so that less other work is done while
// warps prepare A. So the time for each element of A rises with the number of rows: in proportion to it where
// an A of 16 bits is put in order, and in proportion to its square root where an NVFP4 A is expanded.
constexpr int32_t kFewColumns = 64;

struct Sm90 : Work {
  int32_t busy;        // how many CTAs run at the same time on the SM that has the most of them
  bool several_tiles;  // whether a CTA computes more than one tile

  // Returns the number of columns of a wgmma that multiplies so many rows of A, divided by kFewColumns, but
  // at least 1.
  static double many_columns(int32_t rows) { return std::max(1.0, 1.0 * rows / kFewColumns); }
  // Returns the elements of B1, and of B2, in a k-tile.
  double weights() const { return 1.0 * p.mma.products * p.tile.n * p.tile.k; }

  // Returns the time in which the warps of an SM expand the weights of one k-tile of each of its CTAs. It
  // includes the expansion of A, or putting A in order, if the kernel does that.
  double expand_us() const {
    const double activations = p.a16.warps > 0 ? static_cast<double>(p.tile.m) * p.tile.k : 0;
    const double weight = t.expand_weight * (p.a_type == CType::kBf16 ? t.expand_bf16
                                             : p.mxfp4_b()            ? t.expand_mxfp4
                                                                      : 1);
    const double columns = many_columns(p.tile.m);
    const double activation =
        p.orders_a() ? t.order_activation * columns : t.expand_activation * std::sqrt(columns);
    return us(busy * (weights() * weight + activations * activation));
  }
  // Returns the time in which the tensor cores of an SM multiply one k-tile of each of its CTAs, with so many
  // rows of A. A wgmma of FP8 multiplies twice as many elements of K as one of 16 bits in the same time.
  double wgmma_us(int32_t rows) const {
    const double rate = t.multiply_adds * 2 / p.a_element_bytes();
    return us(busy * weights() * std::max<double>(rows, t.least_columns) / rate);
  }
  // Returns the time of expanding and multiplying, which overlap in part. It is at least the time of a
  // warpgroup that goes through its share of a k-tile step by step and waits for each expansion and each
  // wgmma.
  double multiply_us(int32_t rows) const {
    const double expand = expand_us(), wgmma = wgmma_us(rows);
    const double beside = t.beside / many_columns(rows);
    const double both = std::max(expand, wgmma) + beside * std::min(expand, wgmma);
    return std::max(both, us(t.chain * p.mma.steps / p.consumers.k_groups));
  }

  int32_t few_rows() const { return general ? p.tile.m : p.few_rows(); }
  // Returns the mean fraction of the tiles of a CTA that have at most few_rows() rows. If each CTA has only
  // one tile, it is none: the launch then takes as long as a full tile.
  double part_with_few() const {
    const int32_t few = few_rows();
    if (few == p.tile.m || !several_tiles) return 0;
    return shape.grouped ? part_with_few_in_groups(few) : part_with_few_in_matrix(few);
  }
  // The rows of a group are taken as spread evenly over 1 .. 2 m - 1.
  double part_with_few_in_groups(int32_t few) const {
    const int64_t rows = 2 * int64_t{shape.m} - 1, full = rows / p.tile.m, rest = rows % p.tile.m;
    const int64_t with_few = full * few + std::min<int64_t>(rest, few);
    return static_cast<double>(with_few) / (static_cast<double>(rows) * mean_m_tiles(shape, p.tile));
  }
  double part_with_few_in_matrix(int32_t few) const {
    const int64_t tiles = m_tiles(p.tile, shape.m);
    return shape.m - (tiles - 1) * p.tile.m <= few ? 1.0 / static_cast<double>(tiles) : 0;
  }
  // Returns the mean of what a tile with all rows, and one with few, take.
  template <class OfRows>
  double mean_of(const OfRows& of_rows) const {
    const double few = part_with_few();
    return (1 - few) * of_rows(p.tile.m) + few * of_rows(few_rows());
  }
  // Returns the time in which L2 sends a k-tile to each of the `active` CTAs with split-K, and 0 without.
  // With split-K the CTAs of a cluster, which are neighbours, read different places of K, so that what one of
  // them reads of A is of no use to the next.
  double apart_us(double active) const {
    return p.tile.split_k == 1 ? 0 : static_cast<double>(fill_bytes()) * active / t.fill_apart;
  }
  // Returns the mean fraction of the rows of a tile that exist. It is below 1 for groups, because the last
  // tile of a group is seldom full.
  double existing_rows() const {
    return shape.grouped ? shape.m / mean_m_tiles(shape, p.tile) / std::min(p.tile.m, shape.m) : 1;
  }
  // Returns the time in which a tile is finished. Meanwhile the CTA multiplies nothing, though another CTA of
  // the SM may. Rows that do not exist are not stored. In a plain instance they still go through shared
  // memory as the others do, but of a tile with at most few_rows() rows only the first few_rows() do.
  double finish_us() const {
    const double rows =
        general ? std::min(p.tile.m, shape.m) * existing_rows() : mean_of([](int32_t x) { return x; });
    const double staged = rows * p.tile.n / p.cluster_size();
    return us(t.turn + busy * (arithmetic_cycles() + store_cycles() * existing_rows() + staged * t.finish));
  }
  // Returns the time of a pass over A before the kernel.
  double pass_us() const {
    if (!p.prepared_a()) return 0;
    const double bytes = bytes_of_a() + 2;  // of an element, read and written
    return t.pass + bytes * shape.problems * shape.m * shape.k / t.pass_bytes;
  }

  // Returns the time of the exchange of sums where K is split. `meet` is fit beside two meetings of the
  // cluster, and beside the bytes of the results that there are.
  double split_us() const {
    if (p.tile.split_k == 1) return 0;
    const double received = results() * p.mma.accumulators * sizeof(float) * (p.tile.split_k - 1);
    return exchange_us(2, received) + t.meet;
  }
};

}  // namespace

void cost_sm90(const Work& shared, const Machine& machine, Cost* cost) {
  Cost& c = *cost;
  const auto waves = static_cast<double>(c.waves), tiles = static_cast<double>(c.tiles);
  double active = tiles * shared.p.cluster_size() / waves;
  double exchanged = 0;  // k-tiles that take as long as the exchange of the parts of a team
  if (shared.p.tile.stream_k) {
    const auto ctas = static_cast<uint32_t>(grid_clusters(shared.p, c.tiles, machine));
    const auto all = static_cast<uint32_t>(c.tiles), of_tile = static_cast<uint32_t>(c.k_tiles);
    const Teams teams = teams_for(all, of_tile, ctas);
    c.k_tiles = (all / ctas * of_tile + longest_span(teams, all % ctas, of_tile)) / waves;
    exchanged = teams.members > 1 ? kKTilesOfExchange : 0;
    active = tiles * of_tile / (waves * c.k_tiles);  // in the mean
  }
  const int32_t most = machine.limited ? 1 : shared.p.ctas_per_sm;
  const auto in_one_wave = static_cast<int32_t>(std::ceil(active / machine.sms));
  const Sm90 work{shared, c.waves > 1 ? most : std::clamp(in_one_wave, 1, most), c.waves > 1};
  c.fill_us = std::max(work.fill_us(active) * work.busy, work.apart_us(active));
  c.tensor_us = work.mean_of([&](int32_t rows) { return work.multiply_us(rows); });
  c.dram_us = work.dram_bytes() / work.t.dram / (c.k_tiles * waves);
  c.latency_us = work.t.round / work.p.operands.stages;
  c.epilogue_us = c.exposed_us = work.finish_us();

  const double supply = std::max(c.latency_us, c.fill_us);
  const double k_tile = std::pow(
      std::pow(c.tensor_us, kDegree) + std::pow(c.dram_us, kDegree) + std::pow(supply, kDegree), 1 / kDegree);
  c.fixed_us = work.t.fixed + work.pass_us();
  c.start_us = work.t.latency + work.t.begin + work.us(work.t.wake + (work.p.tile.grouped ? work.t.load : 0));
  c.exchange_us = work.split_us() + exchanged * k_tile;
  // With split-K the CTAs of a wave begin anew.
  const double between = c.exposed_us + (work.p.tile.split_k > 1 ? (c.start_us + c.exchange_us) / most : 0);
  c.tiles_us = waves * c.k_tiles * k_tile + (waves - 1) * between;
  c.total_us = c.fixed_us + c.start_us + c.tiles_us + c.epilogue_us + c.exchange_us;
}

}  // namespace dualgemm
