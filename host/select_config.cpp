// select_config.cpp -- candidates and the comparator that ranks them.

#include "host/select_config.h"

#include "host/sf_layout.h"

namespace dualgemm {
namespace {

// Bytes one tile pulls into the shared memory of one SM per 64 elements of K. Every candidate walks the whole
// of K, so the common factor K / 64 is left out. A pair of CTAs splits A and B, and each has all scale
// factors of B.
int64_t fill_bytes(const Instance& instance) {
  const int64_t operands = (instance.tile_m + 2 * instance.tile_n) / instance.cta_group * kSfAtomElems / 2;
  const int64_t scales =
      (sf_row_blocks(instance.a_box_rows) + 2 * sf_row_blocks(instance.tile_n)) * kSfAtomBytes;
  return operands + scales;
}

struct Cost {
  int64_t busiest_sm;  // bytes the SM with the most tiles pulls into its shared memory
  int64_t all_sms;     // bytes all SMs together pull
};

Cost cost_of(const Instance& instance, Shape shape, int32_t sm_count) {
  const int64_t tiles = tile_count(instance, shape);
  const int64_t bytes = fill_bytes(instance);
  return {ceil_div(tiles, sm_count / instance.cta_group) * bytes, tiles * instance.cta_group * bytes};
}

// Filling shared memory limits this kernel more often than anything else: a 128 x 128 tile streams 13.5 KiB
// per 64 elements of K through one SM for 128 tensor-core cycles of work. So the launch takes as long as the
// SM that has to fill the most. That one number weighs both of the things tile width trades:
//   - a narrow tile makes more tiles, which keeps more SMs busy while the problem is smaller than the GPU;
//   - a wide tile re-reads A less often, which wins once every SM has work.
// Between equals the smaller total wins, since it leaves more of L2 and DRAM to whoever shares them. A
// remaining tie is two identical costs: the first in the table, so that the order of kInstances is the last
// word.
bool better(const Cost& left, const Cost& right) {
  if (left.busiest_sm != right.busiest_sm) return left.busiest_sm < right.busiest_sm;
  return left.all_sms < right.all_sms;
}

}  // namespace

int64_t tile_count(const Instance& instance, Shape shape) {
  return ceil_div(shape.m, instance.tile_m) * ceil_div(shape.n, instance.tile_n);
}

int32_t select_config(Shape shape, CType c_type, int32_t sm_count) {
  int32_t best = -1;
  Cost best_cost{};
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    if (kInstances[i].c_type != c_type || kInstances[i].cta_group > sm_count) continue;
    const Cost cost = cost_of(kInstances[i], shape, sm_count);
    if (best < 0 || better(cost, best_cost)) {
      best = i;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace dualgemm
