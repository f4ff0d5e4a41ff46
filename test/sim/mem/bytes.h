// bytes.h -- a flat run of memory with one validity flag per byte. A byte that nobody wrote is poison, and
// reading it is a fault; all memory starts as poison. The shared memory of a CTA is one such run; the
// destination of an asynchronous copy is poison while the copy is in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

class Bytes {
 public:
  Bytes(size_t size, std::string name) : data_(size), valid_(size, 0), name_(std::move(name)) {}
  size_t size() const { return data_.size(); }

  void read(uint64_t offset, void* out, size_t n) const;  // Fault kBounds, kPoison
  void write(uint64_t offset, const void* in, size_t n);  // Fault kBounds
  void poison(uint64_t offset, size_t n);                 // Fault kBounds
  bool valid(uint64_t offset, size_t n) const;            // every byte written; false when out of bounds
  // This is a checked direct view for the tensor core: bounds and validity are tested once for the whole run.
  const uint8_t* view(uint64_t offset, size_t n) const;  // Fault kBounds, kPoison

 private:
  std::vector<uint8_t> data_;
  std::vector<uint8_t> valid_;  // 0 poison, 0xFF written: one byte each, so that runs are memset and memcmp
  std::string name_;
};

}  // namespace sim
