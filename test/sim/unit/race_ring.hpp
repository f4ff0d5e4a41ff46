// race_ring.hpp -- the places that tests of the race checker read and write, and a ring of tiles with its
// waits. The producer is warp 4 (TMA), the mma is warp 5, the workers are warps 0 to 3.
#pragma once

#include <string>

#include "sim/unit/race_events.hpp"

namespace race_test {

inline const Thread kTma = at(0, 4), kMma = at(0, 5);
inline const MbarrierRef kFull = Events::bar(0), kEmpty = Events::bar(1);
inline const Region kTile = shared(0, 0x2000, 4096);
inline const Region kD = tensor(0, 0, 128);
inline constexpr int64_t kBytes = 4096;

// A tile is loaded, multiplied, its stage is freed and loaded again.
struct Ring {
  bool wait_full = true, wait_empty = true, commit = true;
  MbarrierRef freed = kEmpty;
  std::string run() const {
    Events e;
    const uint64_t first = e.load(kTma, kTile, kFull);
    e.arrive(kTma, kFull, 0);
    e.landed(first, kFull, 0, kBytes);
    if (wait_full) e.wait(kMma, kFull, 0);
    e.mma(kMma, {kTile}, kD);
    if (commit) e.commit(kMma, freed, 0);
    else e.arrive(kMma, freed, 0);
    if (wait_empty) e.wait(kTma, kEmpty, freed == kEmpty ? 0 : kNoPhase);
    e.load(kTma, kTile, kFull);
    return e.broken();
  }
};

}  // namespace race_test
