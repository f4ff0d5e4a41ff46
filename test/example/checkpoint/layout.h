// layout.h -- elements and factors of one tensor of weights: of which encoding they are, and where the rows
// lie.
#pragma once

#include <deque>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

enum class Encoding {
  kNvfp4,  // rows of elements, the first of two in the low nibble; rows of E4M3 factors, for each 16 elements
  kMxfp4,  // the same with E8M0 factors, for each 32
  kGguf    // NVFP4 in blocks: four factors and the elements that belong to them
};

// Bytes that had to be moved before they could be rows. Their addresses stay.
using Moved = std::deque<std::vector<uint8_t>>;

struct Planes {
  Encoding encoding;
  uint64_t experts, rows, k;
  const uint8_t *elements, *factors;  // [experts, rows], without gaps; of GGUF the factors are nullptr
  bool transposed = false;            // in the file

  uint64_t element_bytes() const { return encoding == Encoding::kGguf ? k / 64 * 36 : k / 2; }  // of a row
  uint64_t factor_bytes() const { return k / (encoding == Encoding::kMxfp4 ? 32 : 16); }
};

const char* name_of(Encoding encoding);

// What names and marks say, and no shape does.
enum class Form { kPlain, kComfyUi, kBlocks };

// Refuses elements that are not of four bits, or not two in a byte. Comes before read_planes.
void check_elements(const StoredTensor& elements, Form form);

// Finds out from types and shapes, which have to determine it. Throws FormatError, which begins with a
// tensor's name, where they do not, or where a factor is no number that a launch can use.
Planes read_planes(const StoredTensor& elements, const StoredTensor& factors, Form form, Moved& moved);
Planes read_gguf_planes(const StoredTensor& elements);

}  // namespace checkpoint
