// wgmma.cpp -- the descriptors, layouts and footprints of wgmma.mma_async.
#include "sim/engine/wgmma.h"

#include <cstring>

#include "sim/fault.h"
#include "sim/text.h"

namespace sim {

// Says which rows of a matrix are meant, and where they lie.
struct Rows {
  uint64_t descriptor;
  bool mn_major;
  uint32_t first, count;
  uint32_t element_bytes;
};

// Calls visit(address, row, k) for every chunk of the rows, where row and k are those of its first element;
// the others follow along K, or along M or N when the operand is MN-major.
template <class Visit>
static void for_chunks(const Rows& rows, Visit&& visit) {
  const SmemDescriptor d = decode_wgmma_descriptor(rows.descriptor);
  const uint32_t depth = kWgmmaRowBytes / rows.element_bytes, per_chunk = kChunk / rows.element_bytes;
  const uint32_t end = rows.first + rows.count;
  if (rows.mn_major) {
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t row = rows.first; row < end; row += per_chunk)
        visit(mn_major_address(d, row / per_chunk, k), row, k);
  } else {
    for (uint32_t row = rows.first; row < end; ++row)
      for (uint32_t k = 0; k < depth; k += per_chunk) visit(k_major_address(d, row, k / per_chunk), row, k);
  }
}

static Rows rows_of(const WgmmaOp& op, bool of_b, uint32_t first, uint32_t count) {
  return {of_b ? op.b_desc : op.a_desc, of_b ? op.b_mn_major : op.a_mn_major, first, count,
          static_cast<uint32_t>(element_bytes(op.formats.a))};
}

static std::vector<ByteRange> footprint(const Rows& rows) {
  std::vector<uint32_t> chunks;
  for_chunks(rows, [&](uint32_t address, uint32_t, uint32_t) { chunks.push_back(address); });
  return merged_chunks(std::move(chunks));
}

static void read_operand(const WgmmaOp& op, bool of_b, const Bytes& smem, uint32_t count, float* out) {
  const Rows rows = rows_of(op, of_b, 0, count);
  const uint32_t depth = static_cast<uint32_t>(op.depth()), size = rows.element_bytes;
  for_chunks(rows, [&](uint32_t address, uint32_t row, uint32_t k) {
    const uint8_t* bytes = smem.view(address, kChunk);
    for (uint32_t e = 0; e < kChunk / size; ++e) {
      uint32_t code = 0;
      std::memcpy(&code, bytes + size * e, size);
      out[rows.mn_major ? (row + e) * depth + k : row * depth + k + e] = wgmma_element(op, code, of_b);
    }
  });
}

SmemDescriptor decode_wgmma_descriptor(uint64_t bits) {
  const auto fail = [bits](FaultKind kind, const std::string& text) {
    throw Fault(kind, "matrix descriptor " + hex(bits) + ": " + text);
  };
  for (const auto& [first, last] : {std::pair{14, 15}, {30, 31}, {46, 48}, {52, 61}})
    if (field(bits, first, last) != 0)
      fail(FaultKind::kProtocol,
           "bits " + std::to_string(first) + "-" + std::to_string(last) + " have no meaning on sm_90");
  // The ISA gives the value of the field, but not the address of an element under it.
  if (field(bits, 49, 51) != 0) fail(FaultKind::kUnsupported, "matrix base offset other than 0");

  constexpr uint32_t kSpans[] = {0, 128, 64, 32};
  SmemDescriptor d;
  d.start = field(bits, 0, 13) * 16;
  d.leading = field(bits, 16, 29) * 16;
  d.stride = field(bits, 32, 45) * 16;
  d.span = kSpans[field(bits, 62, 63)];
  if (!in_first_row_of_pattern(d) && !starts_inside_pattern(d))
    fail(FaultKind::kProtocol, "start address " + std::to_string(d.start) + " is not in the first row of a " +
                                   std::to_string(d.span * 8) +
                                   "-byte aligned swizzle pattern, but the base offset is 0");
  return d;
}

void check_wgmma(const WgmmaOp& op) {
  if (op.n < 8 || op.n > 256 || op.n % 8 != 0)
    throw Fault(FaultKind::kProtocol, "wgmma of N = " + std::to_string(op.n));
  if (!op.a_in_registers) decode_wgmma_descriptor(op.a_desc);
  decode_wgmma_descriptor(op.b_desc);
}

std::vector<ByteRange> wgmma_bytes_of_a(const WgmmaOp& op, int warp) {
  if (op.a_in_registers) return {};
  return footprint(rows_of(op, false, static_cast<uint32_t>(warp * kWgmmaWarpRows), kWgmmaWarpRows));
}

std::vector<ByteRange> wgmma_bytes_of_b(const WgmmaOp& op) {
  return footprint(rows_of(op, true, 0, static_cast<uint32_t>(op.n)));
}

float wgmma_element(const WgmmaOp& op, uint32_t code, bool of_b) {
  const float value = dense_to_f32(of_b ? op.formats.b : op.formats.a, code);
  return (of_b ? op.negate_b : op.negate_a) ? -value : value;
}

void read_wgmma_a(const WgmmaOp& op, const Bytes& smem, float* a) {
  read_operand(op, false, smem, kWgmmaRows, a);
}

void read_wgmma_b(const WgmmaOp& op, const Bytes& smem, float* b) {
  read_operand(op, true, smem, static_cast<uint32_t>(op.n), b);
}

}  // namespace sim
