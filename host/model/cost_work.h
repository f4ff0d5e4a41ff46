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
  double bytes_of_a() const { return p.packed_a() ? 9.0 / 16 : p.a_element_bytes(); }
  // Returns the bytes that an element of B1 or B2 takes in memory: half a byte, and its part of a factor.
  double bytes_of_b() const { return p.mxfp4_b() ? 17.0 / 32 : 9.0 / 16; }
  // An A that wgmma reads as it comes is not in the ring of operands.
  int64_t fill_bytes() const {
    return p.operands.stage_bytes + scale_bytes() +
           (p.operands.a_bytes == 0 ? p.a_element_bytes() * p.tile.m * p.tile.k : 0);
  }

  // Returns what one result reads of c_add.
  int32_t added_bits() const { return shape.c_add ? c.bits : 0; }

  // Returns the bytes to and from DRAM: A once, C and the other outputs once, and B1 and B2 once, or once for
  // each band of tiles if a pass over them pushes their first rows out of L2.
  double dram_bytes() const;

  // Returns the time of a k-tile's bytes and of the copies that bring them, while `active` CTAs are at work.
  // In a pair of CTAs one CTA brings SFB1 and the other SFB2, each for both CTAs.
  double fill_us(double active) const;

  // Returns the bits that are written for one result. In NVFP4 sixteen results share a factor of eight bits.
  double written_bits() const { return c.bits + (c.type == CType::kNvfp4 ? 0.5 : 0.0) + shape.d_bits; }
  double results() const;  // of one CTA and tile
  // Returns the cycles of an SM for the special functions of a tile, and for what a general epilogue adds to
  // them, as if nothing overlapped.
  double arithmetic_cycles() const { return special_cycles() + general_cycles(); }
  double store_cycles() const;

  // Returns the time of `meetings` meetings of the cluster and of the exchange of sums, if K is split.
  // `received` is the number of bytes that the busiest receiver gets.
  double exchange_us(int32_t meetings, double received) const;

 private:
  double special_cycles() const;
  work::Instructions general_work() const;  // for one result, beside what the special functions cover
  double general_cycles() const;
};

}  // namespace dualgemm
