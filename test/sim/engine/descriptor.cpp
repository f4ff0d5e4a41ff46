// descriptor.cpp -- bit tables of the matrix and instruction descriptors. Reserved bits must be zero: a
// descriptor that sets one was built for another kind or another architecture. These are left out and refused
// by name: the 128-byte swizzle with 32-byte atoms, base offsets, absolute LBO, sparsity, K = 96, and
// cta_group::2 with M = 128 for block-scaled kinds, whose scale-factor layout nobody has published.
#include "sim/engine/descriptor.h"

#include <string>

#include "sim/fault.h"
#include "sim/text.h"

namespace sim {
namespace {

class Checker {
 public:
  Checker(const char* what, uint64_t bits) : what_(what), bits_(bits) {}

  void zero(int first, int last) const {
    if (field(bits_, first, last) != 0)
      protocol("reserved bits " + std::to_string(first) + "-" + std::to_string(last) + " are not zero");
  }
  [[noreturn]] void protocol(const std::string& text) const { fail(FaultKind::kProtocol, text); }
  [[noreturn]] void unsupported(const std::string& text) const { fail(FaultKind::kUnsupported, text); }

 private:
  [[noreturn]] void fail(FaultKind kind, const std::string& text) const {
    throw Fault(kind, std::string(what_) + " " + hex(bits_) + ": " + text);
  }
  const char* what_;
  uint64_t bits_;
};

uint32_t swizzled(uint32_t address, uint32_t span) {
  const uint32_t mask = span == 0 ? 0 : span / 16 - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

void require_shape(const Checker& check, const MmaShape& s, const MmaOp& op) {
  const std::string shape = "M = " + std::to_string(s.m) + ", N = " + std::to_string(s.n) +
                            ", cta_group::" + std::to_string(op.cta_group);
  bool m_legal, n_legal;
  if (block_scaled(op.kind)) {
    m_legal = op.cta_group == 1 ? s.m == 128 : s.m == 128 || s.m == 256;
    const int step = op.cta_group == 1 ? 8 : 16;
    n_legal = s.n >= step && s.n <= 256 && s.n % step == 0;
  } else {
    m_legal = op.cta_group == 1 ? s.m == 64 || s.m == 128 : s.m == 128 || s.m == 256;
    const int step = op.cta_group == 2 ? 32 : s.m == 64 ? 8 : 16;
    n_legal = s.n >= step && s.n <= 256 && s.n % step == 0;
  }
  if (!m_legal) check.protocol(shape + ": illegal M for this kind");
  if (!n_legal) check.protocol(shape + ": illegal N for this kind");
}

MmaShape decode_block_scaled(const Checker& check, const MmaOp& op) {
  const uint32_t bits = op.idesc;
  check.zero(0, 1);
  check.zero(3, 3);
  check.zero(6, 6);
  check.zero(12, 12);
  check.zero(24, 26);
  if (field(bits, 2, 2) != 0) check.unsupported("sparse MMA");
  if (field(bits, 31, 31) != 0) check.unsupported("K = 96 (sm_103a only)");

  MmaShape s;
  s.k = 64;
  s.m = static_cast<int>(field(bits, 27, 28)) * 128;
  s.n = static_cast<int>(field(bits, 17, 22)) * 8;
  s.a_type = static_cast<int>(field(bits, 7, 9));
  s.b_type = static_cast<int>(field(bits, 10, 11));
  constexpr int kE2m1 = 1;
  if (s.a_type != kE2m1 || s.b_type != kE2m1) check.protocol("A and B types must be E2M1 (code 1)");
  s.negate_a = field(bits, 13, 13) != 0;
  s.negate_b = field(bits, 14, 14) != 0;
  if (field(bits, 15, 16) != 0) check.protocol("4-bit operands are K-major only: transpose bits must be 0");
  s.ue8m0 = field(bits, 23, 23) != 0;
  s.sfa_id = static_cast<int>(field(bits, 29, 30));
  s.sfb_id = static_cast<int>(field(bits, 4, 5));

  const bool block16 = op.scale_block == ScaleBlock::kBlock16;
  if (op.scale_block == ScaleBlock::kNone) check.protocol("a block-scaled kind without a scale block size");
  if (!s.ue8m0 && (op.kind == MmaKind::kMxf4 || !block16))
    check.protocol("UE4M3 scales exist for kind::mxf4nvf4 with block16 only");
  if (op.kind == MmaKind::kMxf4 && block16) check.protocol("kind::mxf4 has scale blocks of 32 only");
  for (int id : {s.sfa_id, s.sfb_id}) {
    if (block16 && id != 0) check.protocol("scale-factor ids must be 0 with block16");
    if (id % 2 != 0) check.protocol("scale-factor ids must be 0 or 2 with block32");
  }
  require_shape(check, s, op);
  if (op.cta_group == 2 && s.m == 128)
    check.unsupported("block-scaled M = 128 with cta_group::2: its scale-factor layout is not established");
  if (op.a_in_tmem) check.unsupported("block-scaled A in tensor memory");
  return s;
}

MmaShape decode_dense(const Checker& check, const MmaOp& op) {
  const uint32_t bits = op.idesc;
  if (field(bits, 0, 2) != 0) check.unsupported("sparse MMA");
  check.zero(3, 3);  // saturation: integer kinds only
  check.zero(6, 6);
  check.zero(23, 23);
  check.zero(29, 31);  // 30-31: the shift of .ws forms
  if (op.scale_block != ScaleBlock::kNone) check.protocol("a dense kind with a scale block size");

  MmaShape s;
  const bool f16 = op.kind == MmaKind::kF16;
  s.k = f16 ? 16 : 8;
  s.m = static_cast<int>(field(bits, 24, 28)) * 16;
  s.n = static_cast<int>(field(bits, 17, 22)) * 8;
  const uint32_t d_type = field(bits, 4, 5);
  if (d_type > 1 || (!f16 && d_type != 1))
    check.protocol("D type " + std::to_string(d_type) + " is not of this kind");
  s.d_is_f16 = d_type == 0;
  s.a_type = static_cast<int>(field(bits, 7, 9));
  s.b_type = static_cast<int>(field(bits, 10, 12));
  constexpr int kTf32 = 2;
  for (int type : {s.a_type, s.b_type})
    if (f16 ? type > 1 : type != kTf32)
      check.protocol("operand type " + std::to_string(type) + " is not of this kind");
  if (s.a_type != s.b_type) check.unsupported("operands of different types");
  if (s.d_is_f16 && s.a_type != 0) check.protocol("f16 accumulators need f16 operands");
  s.negate_a = field(bits, 13, 13) != 0;
  s.negate_b = field(bits, 14, 14) != 0;
  s.a_mn_major = field(bits, 15, 15) != 0;
  s.b_mn_major = field(bits, 16, 16) != 0;
  if (!f16 && (s.a_mn_major || s.b_mn_major)) check.unsupported("MN-major tf32 operand");
  require_shape(check, s, op);
  if (op.a_in_tmem) {
    if (!f16) check.unsupported("tf32 A in tensor memory");
    if (s.a_mn_major) check.protocol("A in tensor memory cannot be transposed");
    if (s.rows_per_cta(op.cta_group) != 128) check.unsupported("A in tensor memory with fewer than 128 rows");
  }
  return s;
}

}  // namespace

SmemDescriptor decode_smem_descriptor(uint64_t bits) {
  const Checker check("matrix descriptor", bits);
  check.zero(14, 15);
  check.zero(30, 31);
  check.zero(53, 60);
  if (field(bits, 46, 48) != 1) check.protocol("bits 46-48 must be 0b001");
  if (field(bits, 49, 51) != 0) check.unsupported("matrix base offset other than 0");
  if (field(bits, 52, 52) != 0) check.unsupported("absolute leading-dimension mode (sm_103a only)");

  SmemDescriptor d;
  d.start = field(bits, 0, 13) * 16;
  d.leading = field(bits, 16, 29) * 16;
  d.stride = field(bits, 32, 45) * 16;
  switch (field(bits, 61, 63)) {
    case 0: d.span = 0; break;
    case 1: check.unsupported("128-byte swizzle of 32-byte atoms");
    case 2: d.span = 128; break;
    case 4: d.span = 64; break;
    case 6: d.span = 32; break;
    default: check.protocol("swizzle mode " + std::to_string(field(bits, 61, 63)) + " does not exist");
  }
  if (!in_first_row_of_pattern(d))
    check.protocol("start address " + std::to_string(d.start) + " is not in the first row of a " +
                   std::to_string(d.span * 8) + "-byte aligned swizzle pattern, but the base offset is 0");
  return d;
}

uint32_t k_major_address(const SmemDescriptor& d, uint32_t row, uint32_t chunk) {
  const uint32_t group = d.start + row / 8 * d.stride;
  if (d.span == 0) return group + row % 8 * 16 + chunk * d.leading;
  return swizzled(group + row % 8 * d.span + chunk * 16, d.span);
}

uint32_t mn_major_address(const SmemDescriptor& d, uint32_t chunk, uint32_t k) {
  if (d.span == 0) return d.start + chunk * d.stride + k / 8 * d.leading + k % 8 * 16;
  const uint32_t per_span = d.span / 16;
  return swizzled(
      d.start + chunk / per_span * d.leading + k / 8 * d.stride + k % 8 * d.span + chunk % per_span * 16,
      d.span);
}

MmaShape decode_shape(const MmaOp& op) {
  const Checker check("instruction descriptor", op.idesc);
  if (op.cta_group != 1 && op.cta_group != 2) check.protocol("cta_group must be 1 or 2");
  return block_scaled(op.kind) ? decode_block_scaled(check, op) : decode_dense(check, op);
}

}  // namespace sim
