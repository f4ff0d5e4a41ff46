// extents.h -- how many bytes a tensor has, as the manual says it, for numbers that may be anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dualgemm_fuzz {

using Wide = __int128;

// Larger ones are not tried in real memory.
constexpr size_t kMostBytes = 8 << 10;

// Nothing where the product of the numbers is negative; more than kMostBytes where it is larger.
inline size_t bytes_of(Wide bytes) {
  return static_cast<size_t>(std::clamp<Wide>(bytes, 0, Wide{kMostBytes} + 1));
}

inline Wide divided_up(Wide value, Wide divisor) { return (value + divisor - 1) / divisor; }

// How a structure says that rows lie: 0 is compact.
struct Rows {
  int64_t matrices, rows, row_elements, pitch, stride;
  int64_t bits;

  size_t bytes() const {
    if (matrices < 1 || rows < 1 || row_elements < 0) return 0;
    const Wide step = pitch == 0 ? row_elements : pitch;
    const Wide next = stride == 0 ? rows * step : Wide{stride};
    const Wide elements = (matrices - 1) * next + (rows - 1) * step + row_elements;
    return bytes_of(elements > Wide{kMostBytes} * 8 ? elements : divided_up(elements * bits, 8));
  }
};

// Factors of all matrices. With OFFSETS there is one, which has room for the blocks that groups have at most.
struct Factors {
  int64_t problems, rows, k, stride;
  bool offsets;

  size_t bytes() const {
    if (problems < 1 || rows < 1 || k < 0) return 0;
    const Wide block = divided_up(k, 64) * 512;
    const Wide blocks = offsets ? std::max<Wide>(1, (rows + Wide{127} * std::min(rows, problems)) / 128)
                                : divided_up(rows, 128);
    const Wide matrices = offsets ? 1 : problems;
    return bytes_of((matrices - 1) * (stride == 0 ? blocks * block : Wide{stride}) + blocks * block);
  }
};

}  // namespace dualgemm_fuzz
