// cost_model.cpp -- see cost_model.h.
#include "host/model/cost_model.h"

#include "host/common/sf_layout.h"
#include "host/model/cost_work.h"

namespace dualgemm {

bool cost_of(const Instance& i, Shape shape, const Machine& machine, Cost* cost,
             const CostConstants& constants) {
  const Plan& plan = i.plan;
  const int64_t at_once = clusters_at_once(machine, plan);
  const EpilogueKind& epilogue = i.epilogue;
  const OutputKind* const output = epilogue.general ? epilogue.output(shape.c_type) : epilogue.outputs;
  if (at_once == 0 || shape.grouped != plan.tile.grouped || !output) return false;

  const Work work{plan, epilogue.general, *output, shape, constants};
  Cost c{};
  c.tiles = mean_tiles(shape, plan.tile);
  c.waves = ceil_div(c.tiles, at_once);
  // With split-K every tile has a cluster of its own. The grid of a launch with several waves would take more
  // SMs at once than max_sms allows.
  const bool in_waves = limits_of(plan.arch).split_k_in_waves && !machine.limited;
  if (plan.tile.split_k > 1 && c.waves > 1 && !in_waves) return false;
  c.k_tiles = static_cast<double>(ceil_div(k_tiles(plan.tile, shape.k), plan.tile.split_k));
  c.fill_bytes = work.fill_bytes();
  cost_table(plan.arch).complete(work, machine, &c);
  *cost = c;
  return true;
}

bool cost_of(const Instance& instance, Shape shape, const Machine& machine, Cost* cost) {
  return cost_of(instance, shape, machine, cost, cost_constants(instance.plan.arch, machine.memory_gb_s));
}

}  // namespace dualgemm
