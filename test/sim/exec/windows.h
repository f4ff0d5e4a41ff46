// windows.h -- the windows of the address space in which a thread sees shared and local memory.
//
// In the shared window of a CTA, [0, 1024) is reserved, as on the hardware, and so are the bytes by which the
// policy shifts the window; static variables follow, then dynamic memory. A shared address is
// (rank in cluster << 24) | offset, so `address & 0xFEFFFFFF` names the even CTA of a pair.
#pragma once

#include <cstdint>

#include "sim/machine.h"

namespace sim {

constexpr uint32_t kReservedShared = Machine::kReservedSmemPerBlock;
constexpr uint32_t kRankShift = 24;
// These windows of generic addresses never meet host pointers, whose top 16 bits are clear.
constexpr uint64_t kSharedWindow = uint64_t(1) << 56;
constexpr uint64_t kLocalWindow = uint64_t(2) << 56;

}  // namespace sim
