// protocol_machine_test.cpp -- the protocol checker on the machine: a two-stage ring of bulk copies, right
// and with one planted bug at a time, and what each bug is called.
#include "sim/check/certificate.h"
#include "sim/check/protocol.h"
#include "sim/check/race.h"
#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace protocol_machine_test {

using namespace sim_test;

// Warp 0 lane 0 copies six blocks of 512 bytes into two stages; warp 1 adds them up, 16 bytes a lane. The
// barriers lie after the stages: full at 1024 and 1032, empty at 1040 and 1048.
const char* const kRing = R"(
  .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r20, 0; mov.u32 %r21, 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [%r2+1024], 1;
  mbarrier.init.shared::cta.b64 [%r2+1032], 1;
  mbarrier.init.shared::cta.b64 [%r2+1040], 1;
  mbarrier.init.shared::cta.b64 [%r2+1048], 1;
READY:
  bar.sync 0;
  setp.lt.u32 %p2, %r1, 32;
  @!%p2 bra CONSUME;
  @%p1 bra DONE;
PRODUCE:
  and.b32 %r3, %r20, 1; shr.u32 %r4, %r20, 1; and.b32 %r4, %r4, 1;
  xor.b32 %r5, %r4, 1;
  shl.b32 %r6, %r3, 3; add.u32 %r6, %r2, %r6; add.u32 %r7, %r6, 1024; add.u32 %r8, %r6, 1040;
WAIT_EMPTY:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r8], %r5;
  @!%p3 bra WAIT_EMPTY;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], 512;
  shl.b32 %r9, %r3, 9; add.u32 %r9, %r2, %r9;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 512, [%r7];
  add.u64 %rd1, %rd1, 512; add.u32 %r20, %r20, 1;
  setp.lt.u32 %p4, %r20, 6;
  @%p4 bra PRODUCE;
  bra DONE;
CONSUME:
  sub.u32 %r10, %r1, 32; shl.b32 %r11, %r10, 4; add.u32 %r11, %r2, %r11;
  setp.ne.u32 %p5, %r10, 0;
CONSUME_NEXT:
  and.b32 %r3, %r20, 1; shr.u32 %r4, %r20, 1; and.b32 %r4, %r4, 1;
  shl.b32 %r6, %r3, 3; add.u32 %r6, %r2, %r6; add.u32 %r7, %r6, 1024; add.u32 %r8, %r6, 1040;
WAIT_FULL:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r7], %r4;
  @!%p3 bra WAIT_FULL;
  shl.b32 %r9, %r3, 9; add.u32 %r9, %r11, %r9;
  ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r9];
  add.u32 %r21, %r21, %r12; add.u32 %r21, %r21, %r13; add.u32 %r21, %r21, %r14; add.u32 %r21, %r21, %r15;
  bar.warp.sync 0xffffffff;
  @%p5 bra RELEASED;
  mbarrier.arrive.shared::cta.b64 _, [%r8];
RELEASED:
  bar.warp.sync 0xffffffff;
  add.u32 %r20, %r20, 1;
  setp.lt.u32 %p4, %r20, 6;
  @%p4 bra CONSUME_NEXT;
  mul.wide.u32 %rd3, %r10, 4; add.u64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r21;
DONE:
  ret;
)";

struct Edit {
  const char* what;
  const char* with;
  int nth = 0;  // occurrence
};

static std::string edited(const Edit& edit) {
  std::string text = kRing;
  if (edit.what == nullptr) return text;
  size_t at = text.find(edit.what);
  for (int i = 0; i < edit.nth; ++i) at = text.find(edit.what, at + 1);
  REQUIRE(at != std::string::npos);
  return text.replace(at, std::string(edit.what).size(), edit.with);
}

struct Outcome {
  std::vector<sim::Finding> findings;
  std::string fault;
  std::vector<uint32_t> out;
  sim::Certificate certificate;

  std::string rules() const {
    std::string text;
    for (const sim::Finding& f : findings) text += (text.empty() ? "" : " ") + std::string(f.rule->id);
    return text;
  }
  std::string everything() const {
    std::string text = "fault: " + fault + "\n";
    for (const sim::Finding& f : findings) {
      text += std::string(f.rule->id) + ": " + f.summary + "\n";
      for (const std::string& note : f.notes) text += "    " + note + "\n";
    }
    return text;
  }
};

static Outcome run(const std::string& body) {
  Outcome outcome;
  sim::ProtocolChecker checker([&](sim::Finding f) { outcome.findings.push_back(std::move(f)); });
  sim::RaceChecker clocks([](sim::Finding) {});  // its findings are its own tests' business
  sim::Certifier certifier(clocks, [](sim::Finding) {});
  sim::Observers watchers;
  watchers.add(clocks);
  watchers.add(checker);
  watchers.add(certifier);
  Machine machine;
  std::vector<uint32_t> in(6 * 128);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i);
  uint32_t* from = machine.make(in);
  uint32_t* to = machine.make<uint32_t>(32);
  sim::LaunchOptions options;
  options.observer = &watchers;
  try {
    machine.run(kernel_text(".param .u64 in, .param .u64 out", body, ".shared .align 1024 .b8 smem[1056];"),
                shape(1, 64), {&from, &to}, options);
    outcome.out = machine.fetch(to, 32);
  } catch (const sim::Fault& fault) {
    outcome.fault = fault.what();
  }
  outcome.certificate = certifier.certificate();
  return outcome;
}

TEST_CASE("protocol on the machine: a right ring is silent", "[protocol]") {
  const Outcome outcome = run(edited({}));
  INFO(outcome.everything());
  CHECK(outcome.fault == "");
  CHECK(outcome.rules() == "");
  REQUIRE(outcome.out.size() == 32);
  CHECK(outcome.out[0] == 4 * (0 + 128 + 256 + 384 + 512 + 640) + 6 * 6);
}

TEST_CASE("protocol on the machine: every planted bug has its name", "[protocol]") {
  struct Case {
    const char* name;
    Edit edit;
    const char* rules;  // of all findings
    const char* says;   // in the summary or a note of one of them
  };
  static const Case cases[] = {
      {"plain arrive instead of expect_tx",
       {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], 512",
        "mbarrier.arrive.shared::cta.b64 _, [%r7]"},
       "mbarrier-copy-before-observed mbarrier-copy-before-observed deadlock",
       "although nobody saw phase 0 complete, which expected 0 bytes"},
      {"fewer bytes expected",
       {"[%r7], 512;", "[%r7], 0;"},
       "mbarrier-copy-before-observed mbarrier-copy-before-observed deadlock",
       "expected 0 bytes"},
      {"more bytes expected",
       {"[%r7], 512;", "[%r7], 768;"},
       "deadlock",
       "no copy in flight brings the missing 256 bytes"},
      {"consumer starts with parity 1",
       {"and.b32 %r4, %r4, 1;", "and.b32 %r4, %r4, 1; xor.b32 %r4, %r4, 1;", 1},
       "deadlock",
       "it saw no phase yet, phase 0 is complete, and parity 1 asks for the one after it"},
      {"producer starts with parity 0",
       {"xor.b32 %r5, %r4, 1", "mov.b32 %r5, %r4"},
       "deadlock",
       "a wait for a stage that is free at first has to ask for parity 1"},
      {"consumer's parity not flipped",
       {"and.b32 %r4, %r4, 1;", "mov.b32 %r4, 0;", 1},
       "deadlock",
       "parity not flipped?"},
      {"consumer stops early",
       {"setp.lt.u32 %p4, %r20, 6", "setp.lt.u32 %p4, %r20, 5", 1},
       "mbarrier-bytes-unobserved copy-never-read",
       "which nobody saw complete before its end"},
      {"release of the wrong stage",
       {"[%r8];", "[%r2+1040];"},
       "mbarrier-arrive-before-observed deadlock",
       "lacks 1 arrival"},
      {"half of every stage read",
       {"add.u32 %r9, %r11, %r9", "and.b32 %r11, %r11, 0xfffffeff; add.u32 %r9, %r11, %r9"},
       "copy-partly-read",
       "6 of 6 destinations"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = run(edited(c.edit));
    INFO(c.name << "\n" << outcome.everything());
    CHECK(outcome.rules() == c.rules);
    bool said = false;
    for (const sim::Finding& f : outcome.findings) {
      said = said || f.summary.find(c.says) != std::string::npos;
      for (const std::string& note : f.notes) said = said || note.find(c.says) != std::string::npos;
    }
    CHECK(said);
  }
}

TEST_CASE("certificate on the machine: a ring is certified as long as every lane's wait is followed",
          "[protocol]") {
  const Outcome right = run(edited({}));
  REQUIRE(right.certificate.barriers.size() == 4);
  for (const auto& b : right.certificate.barriers) {
    INFO(b.barrier.offset << ": " << b.reason);
    CHECK(b.certified());
    CHECK(b.phases == 3);
  }
  // If bar.warp.sync is missing, other lanes than the one that releases the stage may still have to wait for
  // the stage.
  const Outcome loose = run(edited({"bar.warp.sync 0xffffffff;", ""}));
  REQUIRE(loose.certificate.barriers.size() == 4);
  CHECK(loose.certificate.certified() == 2);
  CHECK(loose.certificate.barriers[0].reason ==
        "the wait of CTA 0 warp 1 lane 1 for phase 0 comes before nothing that phase 1 needs");
}

}  // namespace protocol_machine_test
