// tuned.cpp -- see tuned.h.

#include "host/model/tuned.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dualgemm {
namespace {

// Between tuned numbers of rows an instance is taken only if the model expects it to take at most this
// fraction longer than the fastest: few choices of the model were seen to cost more (host/MODEL.md).
constexpr double kTrusted = 0.05;

auto order_of(const TunedWeights& x) {
  return std::tuple(x.kind.products, x.kind.a_type, x.kind.c_type, x.kind.general, x.grouped, x.problems, x.n,
                    x.k);
}

// Returns the expected time of an instance, or infinity if the model knows none.
double expected_us(const Instance& instance, const Shape& shape, const Machine& machine) {
  Cost cost;
  return cost_of(instance, shape, machine, &cost) ? cost.total_us : std::numeric_limits<double>::infinity();
}

// Returns the expected time of the fastest instance, whatever workspace the launch has. So an entry whose
// instance needs no workspace is taken without a workspace if it is taken with one.
double least_expected_us(const InstanceKind& kind, const Shape& shape, const Machine& machine) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [instance, index] : instances_of(kind, shape.grouped))
    least = std::min(least, expected_us(*instance, shape, machine));
  return least;
}

bool can_run(const Instance& instance, const Machine& machine, Allowed allowed) {
  return takes_part(instance.plan, allowed) && clusters_at_once(machine, instance.plan) > 0;
}

}  // namespace

bool comes_before(const TunedEntry& left, const TunedEntry& right) {
  return std::tuple(order_of(left.weights), left.rows) < std::tuple(order_of(right.weights), right.rows);
}

int32_t select_tuned(std::span<const TunedEntry> entries, const TunedWeights& weights, int64_t rows,
                     Shape shape, const Machine& machine, Allowed allowed) {
  shape.c_type = weights.kind.c_type;
  const auto above =
      std::lower_bound(entries.begin(), entries.end(), TunedEntry{weights, rows, 0, 0}, comes_before);
  if (above == entries.end() || !(above->weights == weights)) return -1;
  if (above->rows == rows) return can_run(instance(above->index), machine, allowed) ? above->index : -1;
  if (above == entries.begin()) return -1;
  const auto below = above - 1;
  if (!(below->weights == weights)) return -1;
  const auto real = [](int64_t number) { return static_cast<double>(number); };
  const bool below_first = real(rows) * real(rows) <= real(below->rows) * real(above->rows);
  const double most_us = least_expected_us(weights.kind, shape, machine) * (1 + kTrusted);
  for (const auto& entry : {below_first ? below : above, below_first ? above : below}) {
    const Instance& tuned = instance(entry->index);
    if (expected_us(tuned, shape, machine) <= most_us && can_run(tuned, machine, allowed))
      return entry->index;
  }
  return -1;
}

}  // namespace dualgemm
