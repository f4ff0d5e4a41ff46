// poison.h -- what is known of values that nobody wrote: which bits of a register or of local memory are
// missing, and how they came to be so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/decode/program.h"
#include "sim/mem/bytes.h"

namespace sim {

// Says how a lane's register came to hold poison.
struct Poison {
  const Inst* inst;   // that put it there
  std::string cause;  // "register %r1, which was never written"
  // A load brought it together with bytes with a value, and since then it was only moved: it may be padding.
  bool copied = false;
};

// If one register has poison from two places, the origin is that of the poison which was not only moved.
void merge_origin(std::shared_ptr<const Poison>* into, const std::shared_ptr<const Poison>& more);
// Returns the origin of what was computed of such poison.
std::shared_ptr<const Poison> computed(const std::shared_ptr<const Poison>& from);

constexpr uint64_t kWhole = ~uint64_t(0);  // all bits of a register, however many it has

// A Hole is what a lane's register lacks: the bits that are poison.
struct Hole {
  std::shared_ptr<const Poison> origin;
  uint64_t unknown;
};

// Bits are what a value that may have a hole holds: zero where nothing is known.
struct Bits {
  uint64_t known = 0, unknown = 0;
};

// A byte of local memory that holds poison, and what is known of it.
struct SpilledByte {
  std::shared_ptr<const Poison> origin;
  uint8_t known = 0, unknown = 0xFF;
};

// What a load found that has holes.
struct Load {
  Space space;
  uint64_t address;
  const uint8_t* data;
  const Holes& holes;
};

}  // namespace sim
