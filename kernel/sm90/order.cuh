// order.cuh -- 16-bit elements of A in the order of K (expand.cuh). A chunk is 16 bytes, eight neighbours
// from a multiple of 8 on, as many elements as one word of e2m1 has. Four chunks 64 elements apart, one for
// each number in a quad of lanes, are 32 neighbouring places, four columns of 16 bytes:
//
//   word of a chunk    0     1     2     3          column 2 step + upper, word `quad`
//   elements           0 1   2 3   4 5   6 7   -->  elements 2 upper + step and 4 more, of that quad's chunk
#pragma once

#include <cstdint>

#include "kernel/sm90/plan.h"
#include "ptx/host_device.h"

namespace dualgemm::sm90 {

// Returns a word of column 2 `step` + `upper`. `low` and `high` are the words `upper` and `upper` + 2 of a
// chunk, and `step` says which half of each is taken.
DUALGEMM_HOST_DEVICE constexpr uint32_t order_pair(uint32_t low, uint32_t high, int step) {
  return step == 0 ? (low & 0xFFFF) | high << 16 : low >> 16 | (high & 0xFFFF0000);
}

// Makes the four columns out of four chunks, one for each number in a quad. A chunk is of a type with words
// x, y, z, w.
template <class Chunk>
DUALGEMM_HOST_DEVICE constexpr void order_chunks(const Chunk (&chunk)[4], Chunk (&column)[4]) {
  for (int step = 0; step < 2; ++step)
    for (int upper = 0; upper < 2; ++upper) {
      const auto pair = [&](int quad) {
        const Chunk& x = chunk[quad];
        return upper == 0 ? order_pair(x.x, x.z, step) : order_pair(x.y, x.w, step);
      };
      column[2 * step + upper] = {pair(0), pair(1), pair(2), pair(3)};
    }
}

}  // namespace dualgemm::sm90
