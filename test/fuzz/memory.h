// memory.h -- the tensors of one call for host memory: one block each, of the size that the manual asks for.
#pragma once

#include <deque>

#include "fuzz/block.h"
#include "fuzz/extents.h"

namespace dualgemm_fuzz {

class Memory {
 public:
  explicit Memory(Bytes& bytes) : bytes_(bytes) {}

  // Gives the pointer a block of its own; now and then none, or an odd address in it.
  template <class Pointer>
  void give(Pointer* pointer, size_t size) {
    *pointer = reinterpret_cast<Pointer>(block(size));
    if (bytes_.one_in(64)) *pointer = nullptr;
  }
  // Now and then moves two tensors into one block, anywhere in it, so that they may overlap; the first, to a
  // multiple of `alignment` bytes.
  template <class X, class Y>
  void give_together(X** x, size_t x_size, Y** y, size_t y_size, size_t alignment = 1) {
    const size_t size = x_size + y_size + alignment;
    if (!bytes_.one_in(4) || !*x || !*y || size > kMostBytes) return;
    uint8_t* const here = block(size);
    size_t first = bytes_.raw<uint16_t>() % (y_size + 1);
    while (reinterpret_cast<uintptr_t>(here + first) % alignment != 0) ++first;
    *x = reinterpret_cast<X*>(here + first);
    *y = reinterpret_cast<Y*>(here + bytes_.raw<uint16_t>() % (x_size + alignment + 1));
  }
  // Numbers of rows, near those that there are.
  void give_rows(const int32_t** group_rows, int32_t mode, int32_t groups, int32_t rows);

  // Clears bits in every n-th byte of a block, from this address on.
  void mask(const void* first, size_t n, uint8_t kept) {
    for (Buffer& buffer : buffers_) buffer.mask(first, n, kept);
  }

  // Does every block have its size?
  bool fits() const { return fits_; }
  bool unchanged() const;
  void restore();
  std::vector<std::vector<uint8_t>> contents() const;

 private:
  uint8_t* block(size_t size);

  Bytes& bytes_;
  bool fits_ = true;
  std::deque<Buffer> buffers_;
};

}  // namespace dualgemm_fuzz
