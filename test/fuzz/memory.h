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
  // Numbers of rows, near those that there are.
  void give_rows(const int32_t** group_rows, int32_t mode, int32_t groups, int32_t rows);

  // Clears bits in every n-th byte of a block, from the first one on.
  void mask(size_t block, size_t n, size_t first, uint8_t kept) { buffers_[block].mask(n, first, kept); }

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
