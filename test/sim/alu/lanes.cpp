// lanes.cpp -- the whole-warp loops, found by exact spelling. Integers only wrap and compare; f32 uses the
// host's rounding to nearest even and returns the canonical NaN, as the lane functions do. A reciprocal is
// computed as in the lane functions, too: as a quotient in double, rounded once.
#include "sim/alu/lanes.h"

#include <bit>
#include <cmath>
#include <sstream>
#include <string>
#include <unordered_map>

namespace sim {
namespace {

constexpr int kLanes = 32;

// The processor decides which version of a loop runs.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define SIM_VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SIM_VERSIONS
#endif
#define SIM_LOOP(spellings, name, expression)                                                      \
  SIM_VERSIONS void name(uint64_t* out, const uint64_t* a, const uint64_t* b, const uint64_t* c) { \
    (void)b;                                                                                       \
    (void)c;                                                                                       \
    for (int i = 0; i < kLanes; ++i) out[i] = (expression);                                        \
  }                                                                                                \
  const Spelled name##_spelled{spellings, name};

std::unordered_map<std::string, LaneLoop> loops;  // by their spellings

struct Spelled {
  Spelled(const char* spellings, LaneLoop loop) {
    std::istringstream words(spellings);
    for (std::string word; words >> word;) loops[word] = loop;
  }
};

int32_t s32(uint64_t v) { return int32_t(uint32_t(v)); }
uint32_t u32(uint64_t v) { return uint32_t(v); }
float f32(uint64_t v) { return std::bit_cast<float>(uint32_t(v)); }
uint32_t bits(float v) { return v != v ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(v); }

int64_t s64(uint64_t v) { return int64_t(v); }
float flushed(float v) { return std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }
uint32_t bf16(float v) {  // to nearest even
  const uint32_t all = std::bit_cast<uint32_t>(v);
  return v != v ? 0x7FFF : (all + 0x7FFF + (all >> 16 & 1)) >> 16;
}

SIM_LOOP("add.s32 add.u32", add32, u32(a[i] + b[i]))
SIM_LOOP("sub.s32 sub.u32", sub32, u32(a[i] - b[i]))
SIM_LOOP("mul.lo.s32 mul.lo.u32", mul32, u32(u32(a[i]) * u32(b[i])))
SIM_LOOP("mad.lo.s32 mad.lo.u32", mad32, u32(u32(a[i]) * u32(b[i]) + u32(c[i])))
SIM_LOOP("add.s64 add.u64", add64, a[i] + b[i])
SIM_LOOP("sub.s64 sub.u64", sub64, a[i] - b[i])
SIM_LOOP("mul.wide.u32", mul_wide_u32, uint64_t(u32(a[i])) * u32(b[i]))
SIM_LOOP("mul.wide.s32", mul_wide_s32, uint64_t(int64_t(s32(a[i])) * s32(b[i])))
SIM_LOOP("and.b32 and.b64 and.pred", bit_and, a[i] & b[i])
SIM_LOOP("or.b32 or.b64 or.pred", bit_or, a[i] | b[i])
SIM_LOOP("xor.b32 xor.b64", bit_xor, a[i] ^ b[i])
SIM_LOOP("shl.b32", shl32, u32(b[i]) > 31 ? 0 : u32(u32(a[i]) << (u32(b[i]) & 31)))
SIM_LOOP("shr.u32 shr.b32", shr32, u32(b[i]) > 31 ? 0 : u32(a[i]) >> (u32(b[i]) & 31))
SIM_LOOP("shr.s32", shr_s32, u32(s32(a[i]) >> (u32(b[i]) > 31 ? 31 : u32(b[i]))))
SIM_LOOP("shl.b64", shl64, u32(b[i]) > 63 ? 0 : a[i] << (u32(b[i]) & 63))
SIM_LOOP("mul.lo.s64 mul.lo.u64", mul64, a[i] * b[i])
SIM_LOOP("mad.lo.s64 mad.lo.u64", mad64, a[i] * b[i] + c[i])
SIM_LOOP("min.s32", min_s32, u32(s32(a[i]) < s32(b[i]) ? s32(a[i]) : s32(b[i])))
SIM_LOOP("max.s32", max_s32, u32(s32(a[i]) > s32(b[i]) ? s32(a[i]) : s32(b[i])))
SIM_LOOP("min.u32", min_u32, u32(a[i]) < u32(b[i]) ? u32(a[i]) : u32(b[i]))
SIM_LOOP("max.u32", max_u32, u32(a[i]) > u32(b[i]) ? u32(a[i]) : u32(b[i]))
SIM_LOOP("not.pred", not_pred, ~a[i] & 1)
SIM_LOOP("cvt.u32.u64 cvt.u64.u32", low32, u32(a[i]))
SIM_LOOP("cvt.s64.s32", widen_s32, uint64_t(s64(s32(a[i]))))
SIM_LOOP("cvt.rn.bf16x2.f32", bf16x2, uint64_t(bf16(f32(a[i]))) << 16 | bf16(f32(b[i])))
SIM_LOOP("rcp.approx.ftz.f32", rcp_ftz, bits(flushed(float(1.0 / double(flushed(f32(a[i])))))))
SIM_LOOP("selp.b32 selp.u32 selp.s32 selp.f32 selp.b64", select, c[i] ? a[i] : b[i])
SIM_LOOP("setp.eq.s32 setp.eq.u32 setp.eq.b32", eq32, u32(a[i]) == u32(b[i]))
SIM_LOOP("setp.eq.s16", eq16, uint16_t(a[i]) == uint16_t(b[i]))
SIM_LOOP("setp.ne.s16", ne16, uint16_t(a[i]) != uint16_t(b[i]))
SIM_LOOP("setp.eq.s64 setp.eq.b64", eq64, a[i] == b[i])
SIM_LOOP("setp.ne.s64 setp.ne.b64", ne64, a[i] != b[i])
SIM_LOOP("setp.ne.s32 setp.ne.u32 setp.ne.b32", ne32, u32(a[i]) != u32(b[i]))
SIM_LOOP("setp.lt.s32", lt_s32, s32(a[i]) < s32(b[i]))
SIM_LOOP("setp.le.s32", le_s32, s32(a[i]) <= s32(b[i]))
SIM_LOOP("setp.gt.s32", gt_s32, s32(a[i]) > s32(b[i]))
SIM_LOOP("setp.ge.s32", ge_s32, s32(a[i]) >= s32(b[i]))
SIM_LOOP("setp.lt.u32", lt_u32, u32(a[i]) < u32(b[i]))
SIM_LOOP("setp.le.u32", le_u32, u32(a[i]) <= u32(b[i]))
SIM_LOOP("setp.gt.u32", gt_u32, u32(a[i]) > u32(b[i]))
SIM_LOOP("setp.ge.u32", ge_u32, u32(a[i]) >= u32(b[i]))
SIM_LOOP("add.f32 add.rn.f32", add_f32, bits(f32(a[i]) + f32(b[i])))
SIM_LOOP("sub.f32 sub.rn.f32", sub_f32, bits(f32(a[i]) - f32(b[i])))
SIM_LOOP("mul.f32 mul.rn.f32", mul_f32, bits(f32(a[i]) * f32(b[i])))
SIM_LOOP("fma.rn.f32", fma_f32, bits(std::fma(f32(a[i]), f32(b[i]), f32(c[i]))))
SIM_LOOP("setp.eq.f32", eq_f32, f32(a[i]) == f32(b[i]))
SIM_LOOP("setp.lt.f32", lt_f32, f32(a[i]) < f32(b[i]))
SIM_LOOP("setp.le.f32", le_f32, f32(a[i]) <= f32(b[i]))
SIM_LOOP("setp.gt.f32", gt_f32, f32(a[i]) > f32(b[i]))
SIM_LOOP("setp.ge.f32", ge_f32, f32(a[i]) >= f32(b[i]))

#undef SIM_LOOP

}  // namespace

LaneLoop find_lane_loop(const ptx::Statement& statement) {
  std::string spelling = statement.opcode;
  for (const std::string& qualifier : statement.qualifiers) spelling += "." + qualifier;
  const auto found = loops.find(spelling);
  return found == loops.end() ? nullptr : found->second;
}

}  // namespace sim
