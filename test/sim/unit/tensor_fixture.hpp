// tensor_fixture.hpp -- a kernel of one CTA or a pair that takes the whole tensor core path: allocate, copy
// scales, multiply twice, commit, wait, load, store. Its operands are described in tcgen05_test.cpp.
#pragma once

#include "sim/unit/machine_fixture.hpp"

namespace sim_test {

struct Shape {
  const char* group;  // "1" or "2"
  const char* idesc;
  const char* commit;       // up to the operands
  const char* commit_mask;  // ", %h1" or nothing
  int columns;              // of D
};
inline const Shape kSingle = {"1", "0x08020480",
                              "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", "", 8};
inline const Shape kPair = {
    "2", "0x10040480",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64", ", %h1", 16};

inline std::string replace_all(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Shared memory has, from a 1024-byte boundary, A 16384, B 1024, SFA 512, SFB 512, barrier 8, allocation
// result 4. Tensor memory has D from column 0, SFA at 16, SFB at 20.
inline std::string multiply(const Shape& shape, const std::string& wait, const std::string& release) {
  std::string text = R"(
  .reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %r<64>; .reg .b64 %rd<32>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r3, %cluster_ctarank; mov.b16 %h1, 3;
  add.u32 %r4, %r2, 16384; add.u32 %r5, %r2, 17408; add.u32 %r6, %r2, 17920; add.u32 %r7, %r2, 18432;
  // A: 1.0 in the even CTA, 2.0 in the odd one
  mul.lo.u32 %r10, %r3, 0x22222222; add.u32 %r10, %r10, 0x22222222;
  shl.b32 %r11, %r1, 7; add.u32 %r11, %r2, %r11; mov.u32 %r12, 0;
FILL_A:
  st.shared.u32 [%r11], %r10; add.u32 %r11, %r11, 4; add.u32 %r12, %r12, 1;
  setp.lt.u32 %p1, %r12, 32;
  @%p1 bra FILL_A;
  // B: eight rows, 32 words each, by the first eight threads
  setp.ge.u32 %p2, %r1, 8;
  @%p2 bra FILLED_B;
  mul.lo.u32 %r13, %r3, 7; xor.b32 %r13, %r13, %r1; mul.lo.u32 %r13, %r13, 0x11111111;
  shl.b32 %r11, %r1, 7; add.u32 %r11, %r4, %r11; mov.u32 %r12, 0;
FILL_B:
  st.shared.u32 [%r11], %r13; add.u32 %r11, %r11, 4; add.u32 %r12, %r12, 1;
  setp.lt.u32 %p1, %r12, 32;
  @%p1 bra FILL_B;
FILLED_B:
  // scales: word t holds rows of block t % 4
  and.b32 %r14, %r1, 2; setp.eq.u32 %p3, %r14, 0; selp.b32 %r15, 0x38383838, 0x40404040, %p3;
  shl.b32 %r16, %r1, 2; add.u32 %r17, %r5, %r16; st.shared.u32 [%r17], %r15;
  add.u32 %r17, %r6, %r16; mov.u32 %r15, 0x38383838; st.shared.u32 [%r17], %r15;
  fence.proxy.async.shared::cta;
  setp.ne.u32 %p4, %r1, 0;
  @!%p4 mbarrier.init.shared::cta.b64 [%r7], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.ge.u32 %p5, %r1, 32;
  @%p5 bra ALLOCATED;
  tcgen05.alloc.cta_group::@G.sync.aligned.shared::cta.b32 [%r7+8], 32;
  tcgen05.relinquish_alloc_permit.cta_group::@G.sync.aligned;
ALLOCATED:
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r20, [%r7+8];
  setp.ne.u32 %p6, %r3, 0; or.pred %p6, %p6, %p4;
  @%p6 bra ISSUED;
  add.u32 %r21, %r20, 16; add.u32 %r22, %r20, 20;
  and.b32 %r30, %r2, 0x3FFFF; shr.u32 %r30, %r30, 4; cvt.u64.u32 %rd2, %r30; or.b64 %rd2, %rd2, 0x4000404000000000;
  and.b32 %r31, %r4, 0x3FFFF; shr.u32 %r31, %r31, 4; cvt.u64.u32 %rd3, %r31; or.b64 %rd3, %rd3, 0x4000404000000000;
  and.b32 %r32, %r5, 0x3FFFF; shr.u32 %r32, %r32, 4; cvt.u64.u32 %rd4, %r32; or.b64 %rd4, %rd4, 0x0000400800000000;
  and.b32 %r33, %r6, 0x3FFFF; shr.u32 %r33, %r33, 4; cvt.u64.u32 %rd5, %r33; or.b64 %rd5, %rd5, 0x0000400800000000;
  tcgen05.cp.cta_group::@G.32x128b.warpx4 [%r21], %rd4;
  tcgen05.cp.cta_group::@G.32x128b.warpx4 [%r22], %rd5;
  mov.u32 %r34, @IDESC;
  setp.ne.u32 %p7, %r34, %r34;
  tcgen05.mma.cta_group::@G.kind::mxf4nvf4.block_scale.block16 [%r20], %rd2, %rd3, %r34, [%r21], [%r22], %p7;
  setp.eq.u32 %p8, %r34, %r34;
  tcgen05.mma.cta_group::@G.kind::mxf4nvf4.block_scale.block16 [%r20], %rd2, %rd3, %r34, [%r21], [%r22], %p8;
  @COMMIT [%r7]@MASK;
ISSUED:
  @WAIT
  tcgen05.fence::after_thread_sync;
  bar.sync 0;
  and.b32 %r40, %r1, 0x60; shl.b32 %r40, %r40, 16; add.u32 %r40, %r20, %r40;
  tcgen05.ld.sync.aligned.32x32b.x@N.b32 {@REGS}, [%r40];
  tcgen05.wait::ld.sync.aligned;
  mov.u32 %r8, %ctaid.x; shl.b32 %r8, %r8, 7; add.u32 %r8, %r8, %r1;
  mul.wide.u32 %rd6, %r8, @BYTES; add.u64 %rd6, %rd1, %rd6;
@STORES
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p5 bra END;
  @RELEASE
END:
  ret;)";
  std::string registers, stores;
  for (int i = 0; i < shape.columns; ++i) {
    registers += (i == 0 ? "%r" : ", %r") + std::to_string(44 + i);
    stores += "  st.global.u32 [%rd6+" + std::to_string(4 * i) + "], %r" + std::to_string(44 + i) + ";\n";
  }
  text = replace_all(text, "@WAIT", wait);
  text = replace_all(text, "@RELEASE", release);
  text = replace_all(text, "@IDESC", shape.idesc);
  text = replace_all(text, "@COMMIT", shape.commit);
  text = replace_all(text, "@MASK", shape.commit_mask);
  text = replace_all(text, "@REGS", registers);
  text = replace_all(text, "@STORES", stores);
  text = replace_all(text, "@BYTES", std::to_string(4 * shape.columns));
  text = replace_all(text, "@N", std::to_string(shape.columns));
  text = replace_all(text, "@G", shape.group);
  return kernel_text(".param .u64 out", text, ".extern .shared .align 1024 .b8 smem[];");
}

inline const char* const kWaitForMma = R"(mov.u32 %r41, 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r7], %r41;
  @!%p9 bra WAIT;)";
inline const char* const kFree = "tcgen05.dealloc.cta_group::@G.sync.aligned.b32 %r20, 32;";

}  // namespace sim_test
