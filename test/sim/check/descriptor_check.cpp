// descriptor_check.cpp -- see the header. The machine refuses descriptors that are wrong by themselves.
#include "sim/check/descriptor_check.h"

#include "sim/check/protocol_text.h"
#include "sim/engine/descriptor.h"
#include "sim/engine/wgmma.h"
#include "sim/fault.h"

namespace sim::protocol {

constexpr uint32_t kMapFloat16 = 6, kMapBfloat16 = 9;  // CUtensorMapDataType
constexpr uint32_t kF16 = 0, kBf16 = 1, kOther = 2;    // the first two of the instruction descriptor

static uint32_t type_of(DenseFormat format) {
  return format == DenseFormat::kF16 ? kF16 : format == DenseFormat::kBf16 ? kBf16 : kOther;
}

static std::string swizzle_name(uint32_t span) {
  return span == 0 ? "no swizzle" : std::to_string(span) + "-byte swizzle";
}

static std::string swizzle_name(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return swizzle_name(0u);
    case Swizzle::k32B: return swizzle_name(32u);
    case Swizzle::k64B: return swizzle_name(64u);
    case Swizzle::k128B: return swizzle_name(128u);
    default: return "128-byte swizzle of larger atoms";
  }
}

static bool agree(Swizzle swizzle, uint32_t span) { return swizzle_name(swizzle) == swizzle_name(span); }

void DescriptorCheck::report(const char* rule_id, const AsyncIssue& issue, const Operand& operand,
                             std::string summary, const SharedImage::Copy& copy, uint64_t cta,
                             uint64_t address) {
  if (!said_.emplace(issue.inst, rule_id, operand.name).second) return;
  Finding out = finding(rule_id, std::move(summary), site(issue));
  out.has_earlier = out.has_region = true;
  out.earlier = copy.by;
  out.region.memory = Memory::kShared;
  out.region.cta = cta;
  out.region.address = address;
  out.region.bytes = uint32_t(copy.address + copy.bytes - address);
  sink_(std::move(out));
}

void DescriptorCheck::issue(const AsyncIssue& issue) {
  if (issue.wgmma != nullptr) {
    const WgmmaOp& op = *issue.wgmma;
    const uint32_t a_type = type_of(op.formats.a), b_type = type_of(op.formats.b);
    if (!op.a_in_registers)
      check(issue, {"matrix A", op.a_desc, kWgmmaRows, op.a_mn_major, a_type}, issue.thread.cta);
    check(issue, {"matrix B", op.b_desc, uint32_t(op.n), op.b_mn_major, b_type}, issue.thread.cta);
    return;
  }
  const bool mma = issue.kind == AsyncIssue::Kind::kMma;
  if (!mma && issue.kind != AsyncIssue::Kind::kTmemCopy) return;
  std::set<uint64_t> ctas;
  for (const Region& region : issue.reads)
    if (region.memory == Memory::kShared) ctas.insert(region.cta);
  const uint32_t group = issue.cta_group == 2 ? 2 : 1;
  for (const uint64_t cta : ctas) {
    if (!mma) {
      check(issue, {"the source", issue.b_desc, 8, false, 0}, cta);
      continue;
    }
    // M, N and the operand types sit where the tables of the two families of kinds put them.
    const uint32_t m = issue.scaled ? field(issue.idesc, 27, 28) * 128 : field(issue.idesc, 24, 28) * 16;
    const uint32_t n = field(issue.idesc, 17, 22) * 8;
    const uint32_t a_type = field(issue.idesc, 7, 9);
    const uint32_t b_type = field(issue.idesc, 10, issue.scaled ? 11 : 12);
    if (!issue.a_in_tmem)
      check(issue, {"matrix A", issue.a_desc, m / group, field(issue.idesc, 15, 15) != 0, a_type}, cta);
    check(issue, {"matrix B", issue.b_desc, n / group, field(issue.idesc, 16, 16) != 0, b_type}, cta);
  }
}

void DescriptorCheck::check(const AsyncIssue& issue, const Operand& operand, uint64_t cta) {
  SmemDescriptor d;
  try {
    d = issue.wgmma != nullptr ? decode_wgmma_descriptor(operand.descriptor)
                               : decode_smem_descriptor(operand.descriptor);
  } catch (const Fault&) {
    return;  // the machine refuses it
  }
  const uint32_t groups = operand.mn_major ? 1 : (operand.rows + 7) / 8;
  const SharedImage::Copy* last = nullptr;
  for (uint32_t group = 0; group < groups; ++group) {
    const uint64_t address = d.start + uint64_t(group) * d.stride;
    const SharedImage::Copy* copy = image_.find(cta, address);
    if (copy == nullptr || !copy->has_map) {
      last = nullptr;
      continue;
    }
    if (copy == last && d.span != 0 && d.stride != 8 * d.span)
      report("descriptor-stride", issue, operand,
             std::string(operand.name) + " steps " + plural(d.stride, "byte") +
                 " from 8 rows to the next, but 8 rows of the box that wrote it take " +
                 std::to_string(8 * d.span),
             *copy, cta, address);
    if (copy != last) check_copy(issue, operand, *copy, cta, address, d.span);
    last = copy;
  }
}

void DescriptorCheck::check_copy(const AsyncIssue& issue, const Operand& operand,
                                 const SharedImage::Copy& copy, uint64_t cta, uint64_t address,
                                 uint32_t span) {
  if (!agree(copy.map.swizzle, span))
    report("descriptor-swizzle", issue, operand,
           std::string(operand.name) + " is read with " + swizzle_name(span) +
               ", but the tensor map that wrote its bytes has " + swizzle_name(copy.map.swizzle),
           copy, cta, address);
  if (issue.kind == AsyncIssue::Kind::kTmemCopy || issue.scaled) return;
  const bool half = copy.map.type == kMapFloat16 && operand.type == kBf16;
  const bool brain = copy.map.type == kMapBfloat16 && operand.type == kF16;
  if (half || brain)
    report("descriptor-number-format", issue, operand,
           std::string(operand.name) + " is read as " + (half ? "bf16" : "f16") +
               ", but the tensor map that wrote its bytes holds " + (half ? "f16" : "bf16"),
           copy, cta, address);
}

}  // namespace sim::protocol
