// layout.cpp -- what elements and factors may be:
//
//     elements   U8 or I8 [n, k/2], two in a byte; F4 [n, k], which are the same bytes; with three dimensions
//                [e, n, k/2]; of gpt-oss [e, n, k/32, 16]
//     factors    NVFP4: F8_E4M3, or their bytes as U8, [n, k/16]; MXFP4: F8_E8M0, or U8, [n, k/32]
//     transposed NVFP4 in bytes, [e, k/2, n] and [e, k/16, n]: two elements of a byte are neighbours along k
//     ComfyUI    U8 [n, k/2] with the nibbles the other way round; factors in 128x4 atoms, which have the
//                shape of rows with n and k/16 rounded up to 128 and to 4
//
// As bytes an E4M3 and an E8M0 look alike: how many there are tells them apart.

#include "example/checkpoint/layout.h"

#include "example/checkpoint/comfy.h"
#include "example/checkpoint/names.h"
#include "example/checkpoint/numbers.h"

namespace checkpoint {
namespace {

constexpr uint64_t kMostExtent = uint64_t{1} << 30;  // of a tensor; N and K of a launch are an int32_t

using Shape = std::vector<uint64_t>;

void check_extents(const StoredTensor& tensor, Form form) {
  if (form == Form::kBlocks && (tensor.shape.size() != 4 || tensor.shape[3] != 16))
    refuse(tensor, "is not [e, rows, k/32, 16]: gpt-oss's blocks have 16 bytes of 32 elements");
  if (form != Form::kBlocks && tensor.shape.size() != 2 && tensor.shape.size() != 3)
    refuse(tensor, "has neither 2 nor 3 dimensions");
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] == 0 || tensor.shape[i] > kMostExtent)
      refuse(tensor, "has " + std::to_string(tensor.shape[i]) + " as its dimension " + std::to_string(i) +
                         ", which is not 1 to 2^30");
}

uint64_t experts_of(const StoredTensor& tensor, const Shape& shape) {
  const uint64_t experts = shape.size() == 3 ? shape[0] : 1;
  if (experts > kMostExperts) refuse(tensor, "has more than 1,024 experts");
  return experts;
}

uint64_t check_k(const StoredTensor& tensor, uint64_t bytes) {  // before any of them is touched
  if (2 * bytes > kMostExtent) refuse(tensor, "has K = " + std::to_string(2 * bytes) + ", more than 2^30");
  return 2 * bytes;
}

// The shape as bytes of two elements: [n, k/2] or [e, n, k/2].
Shape shape_in_bytes(const StoredTensor& tensor) {
  Shape shape = tensor.shape;
  if (tensor.dtype == "F4") {
    if (shape.back() % 2 != 0) refuse(tensor, "has an odd K");
    shape.back() /= 2;
  }
  if (shape.size() == 4) return {shape[0], shape[1], shape[2] * 16};
  return shape;
}

// [e, columns, rows] as [e, rows, columns].
const uint8_t* transpose(const StoredTensor& tensor, uint64_t experts, Moved& moved) {
  const uint64_t columns = tensor.shape[1], rows = tensor.shape[2];
  std::vector<uint8_t>& to = moved.emplace_back(tensor.bytes.size());
  for (uint64_t e = 0; e < experts; ++e)
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t column = 0; column < columns; ++column)
        to[(e * rows + row) * columns + column] = tensor.bytes[(e * columns + column) * rows + row];
  return to.data();
}

// Is dimension `wide` that of k, with so many bytes of elements to a factor, and are all others equal?
bool are_like(const Shape& elements, const Shape& factors, size_t wide, uint64_t bytes) {
  if (factors.size() != elements.size()) return false;
  for (size_t i = 0; i < factors.size(); ++i)
    if (elements[i] != (i == wide ? bytes : 1) * factors[i]) return false;
  return true;
}

Shape shape_of_atoms(uint64_t n, uint64_t k) { return {(n + 127) / 128 * 128, (k / 16 + 3) / 4 * 4}; }

Planes read_comfy(const StoredTensor& elements, const StoredTensor& factors, Moved& moved) {
  if (elements.dtype != "U8" || elements.shape.size() != 2)
    refuse(elements, "is marked as ComfyUI's NVFP4, which is U8 [n, k/2]");
  const uint64_t n = elements.shape[0], k = check_k(elements, elements.shape[1]);
  const bool bytes = factors.dtype == "F8_E4M3" || factors.dtype == "U8";
  if (!bytes || k % 16 != 0 || factors.shape != shape_of_atoms(n, k))
    refuse(factors, "is not the F8_E4M3 factors, in 128x4 atoms, of ComfyUI's " + describe(elements));
  Planes planes{Encoding::kNvfp4, 1, n, k, nullptr, nullptr};
  planes.elements = moved.emplace_back(swap_nibbles(elements.bytes)).data();
  planes.factors = moved.emplace_back(rows_of_atoms(factors.bytes, n, k)).data();
  return planes;
}

[[noreturn]] void refuse_factors(const StoredTensor& factors, const StoredTensor& elements, uint64_t n,
                                 uint64_t k) {
  const bool atoms = k % 16 == 0 && factors.shape == shape_of_atoms(n, k);
  refuse(factors, "is not NVFP4, which has an F8_E4M3 factor, or its byte, for each 16 elements of " +
                      describe(elements) + ", nor MXFP4, which has an F8_E8M0 one for each 32" +
                      (atoms ? ": its shape is that of 128x4 atoms, as in ComfyUI's files, but nothing marks "
                               "them, neither comfy_quant nor _quantization_metadata"
                             : ""));
}

}  // namespace

const char* name_of(Encoding encoding) { return encoding == Encoding::kMxfp4 ? "MXFP4" : "NVFP4"; }

void check_elements(const StoredTensor& elements, Form form) {
  check_extents(elements, form);
  if (elements.dtype != "U8" && elements.dtype != "I8" && elements.dtype != "F4")
    refuse(elements, elements.ggml_type
                         ? "is of a GGUF, whose weights hold their factors"
                         : "is not NVFP4 or MXFP4, which have bytes (U8) of two elements, or F4");
}

Planes read_planes(const StoredTensor& elements, const StoredTensor& factors, Form form, Moved& moved) {
  const Shape shape = shape_in_bytes(elements);
  Planes planes{Encoding::kNvfp4, experts_of(elements, shape), 0, 0, nullptr, nullptr};
  if (form == Form::kComfyUi) {
    planes = read_comfy(elements, factors, moved);
    check_factors(factors, planes);
    return planes;
  }
  const size_t last = shape.size() - 1;
  const bool byte = factors.dtype == "U8";
  const bool sixteen = form == Form::kPlain && (byte || factors.dtype == "F8_E4M3"),
             thirty_two = byte || factors.dtype == "F8_E8M0";
  planes.elements = elements.bytes.data();
  planes.factors = factors.bytes.data();
  planes.rows = shape[last - 1];
  if (sixteen && are_like(shape, factors.shape, last, 8)) {
    planes.k = check_k(elements, shape[last]);
  } else if (thirty_two && are_like(shape, factors.shape, last, 16)) {
    planes.encoding = Encoding::kMxfp4;
    planes.k = check_k(elements, shape[last]);
  } else if (sixteen && last == 2 && elements.dtype != "F4" && are_like(shape, factors.shape, 1, 8)) {
    planes.rows = shape[2];
    planes.k = check_k(elements, shape[1]);
    planes.transposed = true;
    planes.elements = transpose(elements, planes.experts, moved);
    planes.factors = transpose(factors, planes.experts, moved);
  } else {
    refuse_factors(factors, elements, shape[last - 1], 2 * shape[last]);
  }
  check_factors(factors, planes);
  return planes;
}

Planes read_gguf_planes(const StoredTensor& elements) {
  check_extents(elements, Form::kPlain);
  const Shape& shape = elements.shape;
  Planes planes{Encoding::kGguf, experts_of(elements, shape), shape[shape.size() - 2],
                shape.back(),    elements.bytes.data(),       nullptr};
  check_factors(elements, planes);
  return planes;
}

}  // namespace checkpoint
