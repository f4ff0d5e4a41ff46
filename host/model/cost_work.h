// cost_work.h -- what an instance and a shape need on every architecture, whichever machine runs them: bytes,
// the arithmetic and the stores of an epilogue, the exchange of split-K. Every number about the kernel comes
// from its plan, every other from cost_constants.h.
#pragma once

#include <cstdint>

#include "host/model/cost_model.h"
#include "host/model/epilogue_work.h"
#include "host/model/tiling.h"
#include "kernel/epilogue/kinds.h"

namespace dualgemm {

struct Work {
  const Plan& p;
  bool general;
  const OutputKind& c;
  const Shape& shape;
  const CostConstants& t;

  double us(double cycles) const { return cycles / t.clock; }
  // Returns the bytes of the scale factors of one k-tile.
  int64_t scale_bytes() const { return p.scales.stage_bytes / p.scales.k_tiles; }
  // Returns the bytes that an element of A takes in memory, factors included.
  double bytes_of_a() const { return p.packed_a() ? 9.0 / 16 : 2; }
  // An A that comes in 16 bits is not in the ring of operands.
  int64_t fill_bytes() const {
    return p.operands.stage_bytes + scale_bytes() + (p.operands.a_bytes == 0 ? 2 * p.tile.m * p.tile.k : 0);
  }

  // Returns what one result reads of c_add.
  int32_t added_bits() const { return shape.c_add ? c.bits : 0; }

  // Returns the bytes to and from DRAM: A once, C and what else is written once, B1 and B2 once, or once
  // for each band of tiles when a pass over them pushes the first rows out of L2 again. An element in NVFP4
  // takes half a byte and a sixteenth.
  double dram_bytes() const;

  // Returns the time of a k-tile's bytes and of the copies that bring them, while `active` CTAs are at work.
  // Of the scale factors of B1 and B2 each CTA of a pair brings one, for both CTAs.
  double fill_us(double active) const;

  // Returns what one result takes in memory. Sixteen of an NVFP4 C have a factor of eight bits in common.
  double written_bits() const { return c.bits + (c.type == CType::kNvfp4 ? 0.5 : 0.0) + shape.d_bits; }
  double results() const;  // of one CTA and tile
  // Returns the cycles of an SM for the special functions of a tile, and for what a general epilogue adds to
  // them, as if nothing overlapped.
  double arithmetic_cycles() const { return special_cycles() + general_cycles(); }
  double store_cycles() const;

  // Returns the time of so many meetings of the cluster, and of the exchange of sums where K is split.
  // `received` are the bytes of the CTA that receives the most.
  double exchange_us(int32_t meetings, double received) const;

 private:
  double special_cycles() const;
  work::Instructions general_work() const;  // for one result, beside what the special functions cover
  double general_cycles() const;
};

}  // namespace dualgemm
