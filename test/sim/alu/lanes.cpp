// lanes.cpp -- the whole-warp loops, found by exact spelling. Integers only wrap and compare; f32 uses the
// host's rounding to nearest even and returns the canonical NaN, as the lane functions do, and a reciprocal
// is theirs, too: a quotient in double, rounded once.
#include "sim/alu/lanes.h"

#include <bit>
#include <cmath>
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
#define SIM_LOOP(name, expression)                                                                 \
  SIM_VERSIONS void name(uint64_t* out, const uint64_t* a, const uint64_t* b, const uint64_t* c) { \
    (void)b;                                                                                       \
    (void)c;                                                                                       \
    for (int i = 0; i < kLanes; ++i) out[i] = (expression);                                        \
  }

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

SIM_LOOP(add32, u32(a[i] + b[i]))
SIM_LOOP(sub32, u32(a[i] - b[i]))
SIM_LOOP(mul32, u32(u32(a[i]) * u32(b[i])))
SIM_LOOP(mad32, u32(u32(a[i]) * u32(b[i]) + u32(c[i])))
SIM_LOOP(add64, a[i] + b[i])
SIM_LOOP(sub64, a[i] - b[i])
SIM_LOOP(mul_wide_u32, uint64_t(u32(a[i])) * u32(b[i]))
SIM_LOOP(mul_wide_s32, uint64_t(int64_t(s32(a[i])) * s32(b[i])))
SIM_LOOP(bit_and, a[i] & b[i])
SIM_LOOP(bit_or, a[i] | b[i])
SIM_LOOP(bit_xor, a[i] ^ b[i])
SIM_LOOP(shl32, u32(b[i]) > 31 ? 0 : u32(u32(a[i]) << (u32(b[i]) & 31)))
SIM_LOOP(shr32, u32(b[i]) > 31 ? 0 : u32(a[i]) >> (u32(b[i]) & 31))
SIM_LOOP(shr_s32, u32(s32(a[i]) >> (u32(b[i]) > 31 ? 31 : u32(b[i]))))
SIM_LOOP(shl64, u32(b[i]) > 63 ? 0 : a[i] << (u32(b[i]) & 63))
SIM_LOOP(mul64, a[i] * b[i])
SIM_LOOP(mad64, a[i] * b[i] + c[i])
SIM_LOOP(min_s32, u32(s32(a[i]) < s32(b[i]) ? s32(a[i]) : s32(b[i])))
SIM_LOOP(max_s32, u32(s32(a[i]) > s32(b[i]) ? s32(a[i]) : s32(b[i])))
SIM_LOOP(min_u32, u32(a[i]) < u32(b[i]) ? u32(a[i]) : u32(b[i]))
SIM_LOOP(max_u32, u32(a[i]) > u32(b[i]) ? u32(a[i]) : u32(b[i]))
SIM_LOOP(not_pred, ~a[i] & 1)
SIM_LOOP(low32, u32(a[i]))
SIM_LOOP(widen_s32, uint64_t(s64(s32(a[i]))))
SIM_LOOP(bf16x2, uint64_t(bf16(f32(a[i]))) << 16 | bf16(f32(b[i])))
SIM_LOOP(rcp_ftz, bits(flushed(float(1.0 / double(flushed(f32(a[i])))))))
SIM_LOOP(select, c[i] ? a[i] : b[i])
SIM_LOOP(eq32, u32(a[i]) == u32(b[i]))
SIM_LOOP(eq16, uint16_t(a[i]) == uint16_t(b[i]))
SIM_LOOP(ne16, uint16_t(a[i]) != uint16_t(b[i]))
SIM_LOOP(eq64, a[i] == b[i])
SIM_LOOP(ne64, a[i] != b[i])
SIM_LOOP(ne32, u32(a[i]) != u32(b[i]))
SIM_LOOP(lt_s32, s32(a[i]) < s32(b[i]))
SIM_LOOP(le_s32, s32(a[i]) <= s32(b[i]))
SIM_LOOP(gt_s32, s32(a[i]) > s32(b[i]))
SIM_LOOP(ge_s32, s32(a[i]) >= s32(b[i]))
SIM_LOOP(lt_u32, u32(a[i]) < u32(b[i]))
SIM_LOOP(le_u32, u32(a[i]) <= u32(b[i]))
SIM_LOOP(gt_u32, u32(a[i]) > u32(b[i]))
SIM_LOOP(ge_u32, u32(a[i]) >= u32(b[i]))
SIM_LOOP(add_f32, bits(f32(a[i]) + f32(b[i])))
SIM_LOOP(sub_f32, bits(f32(a[i]) - f32(b[i])))
SIM_LOOP(mul_f32, bits(f32(a[i]) * f32(b[i])))
SIM_LOOP(fma_f32, bits(std::fma(f32(a[i]), f32(b[i]), f32(c[i]))))
SIM_LOOP(eq_f32, f32(a[i]) == f32(b[i]))
SIM_LOOP(lt_f32, f32(a[i]) < f32(b[i]))
SIM_LOOP(le_f32, f32(a[i]) <= f32(b[i]))
SIM_LOOP(gt_f32, f32(a[i]) > f32(b[i]))
SIM_LOOP(ge_f32, f32(a[i]) >= f32(b[i]))

#undef SIM_LOOP

const std::unordered_map<std::string, LaneLoop> kLoops = {
    {"add.s32", add32},
    {"add.u32", add32},
    {"sub.s32", sub32},
    {"sub.u32", sub32},
    {"mul.lo.s32", mul32},
    {"mul.lo.u32", mul32},
    {"mad.lo.s32", mad32},
    {"mad.lo.u32", mad32},
    {"add.s64", add64},
    {"add.u64", add64},
    {"sub.s64", sub64},
    {"sub.u64", sub64},
    {"mul.wide.u32", mul_wide_u32},
    {"mul.wide.s32", mul_wide_s32},
    {"and.b32", bit_and},
    {"or.b32", bit_or},
    {"xor.b32", bit_xor},
    {"and.b64", bit_and},
    {"or.b64", bit_or},
    {"xor.b64", bit_xor},
    {"shl.b32", shl32},
    {"shr.u32", shr32},
    {"shr.b32", shr32},
    {"shr.s32", shr_s32},
    {"shl.b64", shl64},
    {"mul.lo.s64", mul64},
    {"mul.lo.u64", mul64},
    {"mad.lo.s64", mad64},
    {"mad.lo.u64", mad64},
    {"min.s32", min_s32},
    {"max.s32", max_s32},
    {"min.u32", min_u32},
    {"max.u32", max_u32},
    {"not.pred", not_pred},
    {"and.pred", bit_and},
    {"or.pred", bit_or},
    {"cvt.u32.u64", low32},
    {"cvt.u64.u32", low32},
    {"cvt.s64.s32", widen_s32},
    {"cvt.rn.bf16x2.f32", bf16x2},
    {"rcp.approx.ftz.f32", rcp_ftz},
    {"selp.b32", select},
    {"selp.u32", select},
    {"selp.s32", select},
    {"selp.f32", select},
    {"selp.b64", select},
    {"setp.eq.s32", eq32},
    {"setp.eq.u32", eq32},
    {"setp.eq.b32", eq32},
    {"setp.eq.s16", eq16},
    {"setp.ne.s16", ne16},
    {"setp.eq.s64", eq64},
    {"setp.eq.b64", eq64},
    {"setp.ne.s64", ne64},
    {"setp.ne.b64", ne64},
    {"setp.ne.s32", ne32},
    {"setp.ne.u32", ne32},
    {"setp.ne.b32", ne32},
    {"setp.lt.s32", lt_s32},
    {"setp.le.s32", le_s32},
    {"setp.gt.s32", gt_s32},
    {"setp.ge.s32", ge_s32},
    {"setp.lt.u32", lt_u32},
    {"setp.le.u32", le_u32},
    {"setp.gt.u32", gt_u32},
    {"setp.ge.u32", ge_u32},
    {"add.f32", add_f32},
    {"add.rn.f32", add_f32},
    {"sub.f32", sub_f32},
    {"sub.rn.f32", sub_f32},
    {"mul.f32", mul_f32},
    {"mul.rn.f32", mul_f32},
    {"fma.rn.f32", fma_f32},
    {"setp.eq.f32", eq_f32},
    {"setp.lt.f32", lt_f32},
    {"setp.le.f32", le_f32},
    {"setp.gt.f32", gt_f32},
    {"setp.ge.f32", ge_f32},
};

}  // namespace

LaneLoop find_lane_loop(const ptx::Statement& statement) {
  std::string spelling = statement.opcode;
  for (const std::string& qualifier : statement.qualifiers) spelling += "." + qualifier;
  const auto found = kLoops.find(spelling);
  return found == kLoops.end() ? nullptr : found->second;
}

}  // namespace sim
