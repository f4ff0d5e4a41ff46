// defects_test.cpp -- every planted defect is named by the checkers, and its correct twin is not. In the
// default schedule a defect must give the diagnosis written here and nothing of class E or S but what follows
// from it; no other schedule may be silent about it. A correct fixture must compute the right values and give
// no finding of class E or S in any schedule.
//
// The number of a defect is its place in the simulator's list of planted bugs; "-" stands for the classics.
#include "defects/defects.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/judge/judge.h"
#include "sim/schedule/schedule.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"

using namespace defects;

namespace {

struct Diagnosis {
  char severity;
  std::string rule;
  std::string summary;              // * stands for any text
  std::vector<std::string> beside;  // rules that the same defect breaks too
};

struct Schedule {
  std::string mode;
  uint64_t seed;
};

struct Judged {
  Outcome outcome;
  std::vector<sim::Report> reports;
  std::string text;  // the findings, one line each, and the fault that ended the run
};

bool is_advice(const sim::Report& report) { return report.severity == 'A'; }

std::string line(const sim::Report& report) {
  return std::string(1, report.severity) + " " + report.rule + ": " + report.summary;
}

template <class Run>
Judged judged(const Schedule& schedule, Run run) {
  sim::JudgeOptions options;
  options.mode = schedule.mode;
  options.seed = schedule.seed;
  sim::Judge judge(options, sim::shim::memory());
  sim::shim::set_judge(&judge);
  Judged result{run(), {}, "mode " + schedule.mode + ", seed " + std::to_string(schedule.seed) + "\n"};
  const std::string fault = sim::shim::last_fault_text();
  sim::shim::set_judge(nullptr);
  sim::shim::clear_fault();
  result.reports = judge.reports();
  for (const sim::Report& report : result.reports) result.text += "  " + line(report) + "\n";
  result.text += fault;
  return result;
}

bool matches(const char* text, const char* pattern) {
  if (*pattern == '*') return matches(text, pattern + 1) || (*text != 0 && matches(text + 1, pattern));
  return *text == *pattern && (*text == 0 || matches(text + 1, pattern + 1));
}

bool matches(const sim::Report& report, const Diagnosis& expected) {
  return report.severity == expected.severity && report.rule == expected.rule &&
         matches(report.summary.c_str(), expected.summary.c_str());
}

std::vector<Schedule> adversarial() {
  std::vector<Schedule> all;
  for (const sim::Mode& mode : sim::modes())
    if (std::string(mode.name) != "default") all.push_back({mode.name, 1});
  return all;
}

template <class Run>
void expect(Run run, const Diagnosis& expected) {
  const Judged result = judged({"default", 0}, run);
  INFO(result.text);
  {
    INFO("expected: " << expected.severity << " " << expected.rule << ": " << expected.summary);
    CHECK(std::any_of(result.reports.begin(), result.reports.end(),
                      [&](const sim::Report& report) { return matches(report, expected); }));
  }
  for (const sim::Report& report : result.reports) {
    if (is_advice(report) || report.rule == expected.rule) continue;
    INFO("not expected: " << line(report));
    CHECK(std::find(expected.beside.begin(), expected.beside.end(), report.rule) != expected.beside.end());
  }
  if (expected.severity == 'A') return;
  for (const Schedule& schedule : adversarial()) {
    const Judged other = judged(schedule, run);
    INFO(other.text);
    CHECK_FALSE(std::all_of(other.reports.begin(), other.reports.end(), is_advice));
  }
}

template <class Run>
void expect_silence(Run run) {
  std::vector<Schedule> schedules = adversarial();
  schedules.insert(schedules.begin(), {"default", 0});
  for (uint64_t seed = 2; seed < 6; ++seed) schedules.push_back({"random", seed});
  for (const Schedule& schedule : schedules) {
    const Judged result = judged(schedule, run);
    INFO(result.text);
    CHECK(std::all_of(result.reports.begin(), result.reports.end(), is_advice));
    CHECK(result.outcome.error == cudaSuccess);
    CHECK(result.outcome.right);
  }
}

}  // namespace

#define DEFECT(number, says, subject, defect, severity, rule, summary, ...)           \
  TEST_CASE("defect " number ": " says, "[defect]") {                                 \
    expect([] { return subject(defect); }, {severity, rule, summary, {__VA_ARGS__}}); \
  }

#define CORRECT(subject, which)                              \
  TEST_CASE("correct: " #subject ", " #which, "[correct]") { \
    expect_silence([] { return subject(which); });           \
  }

// ---- the correct twins, and correct programs that look like defects ---------------------------------------
CORRECT(ring, Ring::kNone)
CORRECT(ring, Ring::kSplitExpect)
CORRECT(ring, Ring::kExpectAfterCopy)
CORRECT(ring, Ring::kClusterScope)
CORRECT(tma_store, Store::kNone)
CORRECT(tma_store, Store::kFenceByIssuerAfterBarrier)
CORRECT(tensor_map, Map::kNone)
CORRECT(gemm, Gemm::kNone)
CORRECT(gemm, Gemm::kRelaxedWaitWithFence)
CORRECT(gemm, Gemm::kCommitEveryMma)
CORRECT(stored_scales, Scales::kNone)
CORRECT(pair, Pair::kNone)
CORRECT(cluster_exchange, Exchange::kNone)
CORRECT(remote_arrive, RemoteArrive::kNone)
CORRECT(async_store, AsyncStore::kNone)
CORRECT(multicast, Multicast::kNone)
CORRECT(named_barrier, Named::kNone)
CORRECT(mailbox, Mailbox::kNone)
CORRECT(register_pool, Registers::kNone)
CORRECT(lanes, Lanes::kNone)
CORRECT(block_tile, Tile::kNone)
CORRECT(written_then_copied, Written::kNone)
CORRECT(single_copy, Single::kNone)
CORRECT(global_flag, Flag::kNone)
CORRECT(last_block, Count::kNone)
CORRECT(overlapping_output, Overlap::kNone)
CORRECT(streams, Streams::kNone)
CORRECT(dependent_launch, Dependent::kNone)

// ---- a ring of stages -------------------------------------------------------------------------------------
DEFECT("1", "a stage is announced without its bytes", ring, Ring::kArriveWithoutBytes, 'E',
       "mbarrier-copy-before-observed",
       "a copy of 128 bytes is issued for phase 1 of mbarrier * although nobody saw phase 0 complete, "
       "which expected 0 bytes",
       "race-async", "deadlock")
DEFECT("2", "fewer bytes are expected than are copied", ring, Ring::kFewBytes, 'E',
       "mbarrier-bytes-in-other-phase",
       "phase 0 of mbarrier * completes with 128 bytes expected while 128 bytes of a copy issued "
       "for it have not landed",
       "race-async", "mbarrier-copy-before-observed", "deadlock")
DEFECT("3", "more bytes are expected than are copied", ring, Ring::kManyBytes, 'E', "deadlock",
       "CTA 0 warp 1 waits for phase 0 of mbarrier * of CTA 0, which lacks 128 bytes")
DEFECT("4", "the consumer starts with the wrong parity", ring, Ring::kConsumerParity, 'E', "deadlock",
       "CTA 0 warp 0 lane 0 waits for phase 0 of mbarrier * of CTA 0, which lacks 2 arrivals")
DEFECT("5", "the producer starts with the wrong parity", ring, Ring::kProducerParity, 'E', "deadlock",
       "CTA 0 warp 0 lane 0 waits for phase 0 of mbarrier * of CTA 0, which lacks 2 arrivals")
DEFECT("6", "the consumer does not flip its parity", ring, Ring::kParityNotFlipped, 'E', "deadlock",
       "CTA 0 warp 0 lane 0 waits for phase 1 of mbarrier * of CTA 0, which lacks 2 arrivals")
DEFECT("7", "the consumer reads the other stage", ring, Ring::kWrongStage, 'E', "race-async",
       "a strong load reads shared * of CTA 0 while bulk load may still write it")
DEFECT("8", "no wait for the full barrier before ld.shared", ring, Ring::kNoFullWait, 'E', "race-async",
       "a strong load reads shared * of CTA 0 while bulk load may still write it",
       "mbarrier-arrive-before-observed", "mbarrier-copy-before-observed", "mbarrier-bytes-unobserved",
       "mbarrier-lagging-waiter", "exit-pending")
DEFECT("9", "no wait for the empty barrier before a copy", ring, Ring::kNoEmptyWait, 'E', "machine-protocol",
       "mbarrier at shared offset * of CTA rank 0: mbarrier: 1 arrivals, but only 0 pending in phase 0")
DEFECT("30", "an arrival count too high", ring, Ring::kEmptyCountHigh, 'E', "deadlock",
       "CTA 0 warp 0 lane 0 waits for phase 0 of mbarrier * of CTA 0, which lacks 1 arrival")
DEFECT("30", "an arrival count too low", ring, Ring::kEmptyCountLow, 'S', "mbarrier-arrive-before-observed",
       "an arrival in phase 1 of mbarrier * of CTA 0 although nobody saw phase 0 complete (arrival count 1)",
       "deadlock")
DEFECT("44", "the consumer drops the tail", ring, Ring::kTailDropped, 'E', "mbarrier-bytes-unobserved",
       "256 bytes landed in phase 2 of mbarrier * of CTA 0, which nobody saw complete before its end",
       "exit-pending")
DEFECT("22", "no barrier behind mbarrier.init", ring, Ring::kNoBarrierAfterInit, 'E', "mbarrier-init-order",
       "an mbarrier is used by a thread that need not see its initialisation")
DEFECT("-", "no proxy fence between ld.shared and the next copy", ring, Ring::kNoProxyFence, 'S',
       "proxy-fence-reuse",
       "bulk load overwrites shared * of CTA 0 not ordered after a strong load that read it")
DEFECT("39", "a lane arrives for its warp before __syncwarp", ring, Ring::kArriveBeforeSyncwarp, 'E',
       "race-async", "bulk load overwrites shared * of CTA 0 not ordered after a strong load that read it",
       "mbarrier-lagging-waiter")
DEFECT("40", "the whole warp issues the copies", ring, Ring::kWholeWarpIssues, 'E', "machine-protocol",
       "mbarrier at shared offset * of CTA rank 0: mbarrier: 1 arrivals, but only 0 pending in phase 0")

DEFECT("-", "a live barrier is initialised again", ring, Ring::kInitTwice, 'E', "machine-protocol",
       "mbarrier.init on the live mbarrier at shared offset *")
DEFECT("-", "an ordinary store to a live barrier", ring, Ring::kDataOnBarrier, 'E', "machine-protocol",
       "write of 8 bytes at shared offset * touches the live mbarrier at offset *")

// ---- stores through shared memory -------------------------------------------------------------------------
DEFECT("12", "no proxy fence between st.shared and the bulk store", tma_store, Store::kNoProxyFence, 'E',
       "proxy-fence", "TMA store reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("13", "the issuer fences before the barrier that joins the writers", tma_store,
       Store::kFenceBeforeBarrier, 'E', "proxy-fence",
       "TMA store reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("14", "no barrier between the writers and the bulk store", tma_store, Store::kNoBarrier, 'E',
       "race-async", "TMA store reads shared * of CTA 0 not ordered after an ordinary store that wrote it",
       "machine-poison")
DEFECT("19", "the buffer is reused before the store has read it", tma_store, Store::kNoReadWaitBeforeReuse,
       'E', "race-async", "an ordinary store overwrites shared * of CTA 0 while TMA store may still read it")
DEFECT("20", "the block exits before the store has read its buffer", tma_store, Store::kNoWaitBeforeExit, 'E',
       "store-unwaited-at-exit", "CTA 0 warp 0 lane 0 exits with 1 bulk group it did not wait for",
       "exit-pending")
DEFECT("21", "a flag is raised when the store has only been read", tma_store, Store::kReadWaitBeforeFlag, 'E',
       "race-async", "an ordinary load reads global * while TMA store may still write it")

// ---- tensor maps ------------------------------------------------------------------------------------------
DEFECT("48", "the bytes of a box are counted without its part past the edge", tensor_map,
       Map::kBytesOfPartialBox, 'E', "deadlock",
       "CTA 0 warp 0 waits for phase 0 of mbarrier * of CTA 0; 256 bytes were delivered that nobody expected")
DEFECT("43", "a tensor map is patched without a fence", tensor_map, Map::kPatchedWithoutFence, 'E',
       "tensormap-fence", "TMA load reads global * not ordered after an ordinary store that wrote it")
DEFECT("43", "a tensor map is patched while a copy uses it", tensor_map, Map::kPatchedInFlight, 'E',
       "race-async", "an ordinary store overwrites global * while TMA load may still read it")

// ---- tensor core and tensor memory ------------------------------------------------------------------------
DEFECT("8", "no wait for the full barrier before an MMA", gemm, Gemm::kNoFullWait, 'E', "race-async",
       "tcgen05.mma reads shared * of CTA 0 while TMA load may still write it", "tensor-unlisted-pair",
       "mbarrier-arrive-before-observed", "mbarrier-phase-lap", "mbarrier-copy-before-observed",
       "mbarrier-bytes-unobserved", "mbarrier-lagging-waiter", "deadlock")
DEFECT("9", "no wait for the empty barrier while MMAs read the stage", gemm, Gemm::kNoEmptyWait, 'E',
       "machine-protocol",
       "mbarrier at shared offset * of CTA rank 0: mbarrier: 1 arrivals, but only 0 pending in phase 0")
DEFECT("9", "a relaxed wait for the empty barrier", gemm, Gemm::kRelaxedEmptyWait, 'S', "relaxed-wait",
       "TMA load overwrites shared * of CTA 0 not ordered after tcgen05.mma that read it")
// No data race: a commit covers all earlier MMAs and the stages are filled in order. But a second commit can
// arrive before the load thread has seen the first, and then it waits for ever.
DEFECT("10", "a commit to the barrier of the other stage", gemm, Gemm::kCommitToOtherStage, 'S',
       "mbarrier-arrive-before-observed",
       "an arrival in phase 1 of mbarrier * of CTA 0 need not come after a wait that saw phase 0 complete "
       "(arrival count 1)",
       "mbarrier-lagging-waiter")
DEFECT("10", "a commit to the full barrier", gemm, Gemm::kCommitToFull, 'E', "deadlock",
       "CTA 0 warp 4 lane 0 waits for phase 0 of mbarrier * of CTA 0, which lacks 1 arrival")
DEFECT("10", "a commit ahead of the MMAs", gemm, Gemm::kCommitBeforeMma, 'E', "race-async",
       "TMA load overwrites shared * of CTA 0 while tcgen05.mma may still read it", "tensor-unlisted-pair")
DEFECT("11", "an arrival in place of a commit", gemm, Gemm::kArriveInsteadOfCommit, 'E', "race-async",
       "TMA load overwrites shared * of CTA 0 while tcgen05.mma may still read it", "tensor-unlisted-pair")
DEFECT("15", "no after_thread_sync behind an acquiring wait", gemm, Gemm::kNoAfterFence, 'S', "tensor-fence",
       "tcgen05.ld reads tensor memory columns [0,8) of CTA 0 not ordered after tcgen05.mma that wrote it")
DEFECT("15", "no after_thread_sync behind a relaxed wait", gemm, Gemm::kNoAfterFenceRelaxedWait, 'E',
       "race-tensor",
       "tcgen05.ld reads tensor memory columns [0,8) of CTA 0 not ordered after tcgen05.mma that wrote it")
DEFECT(
    "16", "no before_thread_sync ahead of a release", gemm, Gemm::kNoBeforeFence, 'S', "tensor-fence",
    "tcgen05.mma overwrites tensor memory columns [0,8) of CTA 0 not ordered after tcgen05.ld that read it")
DEFECT(
    "16", "no before_thread_sync ahead of a relaxed arrival", gemm, Gemm::kNoBeforeFenceRelaxedArrive, 'S',
    "tensor-fence",
    "tcgen05.mma overwrites tensor memory columns [0,8) of CTA 0 not ordered after tcgen05.ld that read it")
DEFECT("17", "an accumulator is released before wait::ld", gemm, Gemm::kNoWaitLd, 'E', "race-tensor",
       "tcgen05.mma overwrites tensor memory columns [0,8) of CTA 0 while tcgen05.ld may still read it",
       "tensor-use-before-wait")
DEFECT("12", "no proxy fence between st.shared and the MMA that reads the operand", stored_scales,
       Scales::kNoProxyFence, 'E', "proxy-fence",
       "tcgen05.mma reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("18", "no wait::st before the MMA that uses the cells", stored_scales, Scales::kNoWaitSt, 'E',
       "race-tensor",
       "tcgen05.mma reads tensor memory columns [16,20) of CTA 0 while tcgen05.st may still write it",
       "machine-protocol")
DEFECT("26", "scales are overwritten while the MMA reads them", stored_scales, Scales::kOverwrittenBeforeRead,
       'E', "race-tensor",
       "tcgen05.st overwrites tensor memory columns [16,20) of CTA 0 while tcgen05.mma may still read it",
       "mbarrier-commit-overtaken")
DEFECT(
    "26", "scales are overwritten by tcgen05.cp right behind the MMA of the same thread", gemm,
    Gemm::kOneScaleRegion, 'S', "tensor-unlisted-pair",
    "tcgen05.cp overwrites tensor memory columns [16,20) of CTA 0 not ordered after tcgen05.mma that read it")
DEFECT("10", "a commit by another thread than the MMA", stored_scales, Scales::kCommitByOtherThread, 'E',
       "race-tensor",
       "tcgen05.ld reads tensor memory columns [0,8) of CTA 0 while tcgen05.mma may still write it",
       "exit-pending", "tcgen05-uncommitted")
DEFECT("15 and 16", "no tcgen05 fences around a barrier", stored_scales, Scales::kNoFences, 'S',
       "tensor-fence",
       "tcgen05.mma reads tensor memory columns [16,20) of CTA 0 not ordered after tcgen05.st that wrote it")
DEFECT("24", "the address of tensor memory is read without a barrier", gemm, Gemm::kAddressReadEarly, 'E',
       "race-data", "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it",
       "race-lanes")
DEFECT("25", "a scale column off by four", gemm, Gemm::kScaleColumn, 'E', "machine-poison",
       "asynchronous operation: TMEM lane 0 column 24 was never written*")
DEFECT("27", "the swizzle of the map is not the swizzle of the descriptor", gemm, Gemm::kSwizzleMismatch, 'E',
       "descriptor-swizzle",
       "matrix A is read with 64-byte swizzle, but the tensor map that wrote its bytes has no swizzle")
DEFECT("28", "a K step that is too short", gemm, Gemm::kStepTooShort, 'A', "copy-partly-read",
       "*were read in part only*")
DEFECT("29", "the first MMA of a tile accumulates", gemm, Gemm::kAccumulateFirst, 'E', "machine-poison",
       "asynchronous operation: TMEM lane 0 column 0 was never written*")
DEFECT("29", "the first MMA of a later tile accumulates", gemm, Gemm::kAccumulateOnOldTile, 'A',
       "tmem-accumulate-after-read",
       "tcgen05.mma accumulates onto TMEM column 0 of CTA 0, whose result was already read out")
DEFECT("35", "the accumulator is not toggled", gemm, Gemm::kAccumulatorNotToggled, 'E', "race-tensor",
       "tcgen05.mma overwrites tensor memory columns [0,8) of CTA 0 while tcgen05.ld may still read it",
       "machine-poison")
DEFECT("35", "no wait for the accumulator to be read", gemm, Gemm::kNoAccumulatorWait, 'E', "race-tensor",
       "tcgen05.mma overwrites tensor memory columns [0,8) of CTA 0 while tcgen05.ld may still read it",
       "mbarrier-arrive-before-observed", "mbarrier-lagging-waiter")
DEFECT("37", "tensor memory is not given back", gemm, Gemm::kNoDealloc, 'E', "machine-protocol",
       "the CTA exits with 128 tensor memory columns allocated")
DEFECT("37", "half a warp gives tensor memory back", gemm, Gemm::kDeallocByHalfWarp, 'E', "machine-protocol",
       "aligned instruction in divergent code: lanes 0xffff of 0xffffffff execute it*")
DEFECT("37", "fewer columns are given back than were allocated", gemm, Gemm::kDeallocFewerColumns, 'E',
       "machine-protocol", "tcgen05.dealloc of 64 columns at column 0: the allocation there is larger")
DEFECT("37", "an allocation after the permit was given up", gemm, Gemm::kAllocAfterRelinquish, 'E',
       "machine-protocol", "tcgen05.alloc of 128 columns after tcgen05.relinquish_alloc_permit")
DEFECT("38", "a warp reads lanes of another quarter", gemm, Gemm::kWrongQuarter, 'E', "machine-protocol",
       "tcgen05.ld/st at TMEM lane 32, column 0: warp 0 may access lanes 0..31 only")
DEFECT("45", "a scale id that this block size does not have", gemm, Gemm::kScaleFormatId, 'E',
       "machine-protocol", "instruction descriptor *: scale-factor ids must be 0 with block16")
DEFECT("47", "the output tile lies on an operand stage", gemm, Gemm::kTileAliasesStage, 'E', "race-async",
       "TMA load overwrites shared * of CTA 0 not ordered after a strong store that wrote it",
       "proxy-fence-operand")

// ---- pairs and clusters -----------------------------------------------------------------------------------
DEFECT("32", "a commit that only one CTA of the pair hears", pair, Pair::kCommitToOneCta, 'E', "deadlock",
       "CTA 0 warp 5 lane 0 waits for phase 1 of mbarrier * of CTA 0, which lacks 5376 bytes")
DEFECT("33", "the peer's scales are not waited for", pair, Pair::kPeerBytesNotAwaited, 'E', "race-async",
       "tcgen05.cp reads shared * of CTA 1 while TMA load may still write it", "exit-pending",
       "mbarrier-bytes-unobserved")
DEFECT("31", "a remote arrival with the default scope", pair, Pair::kArriveDefaultScope, 'S',
       "scope-mismatch", "an arrival of CTA scope from another CTA gives the waiter no order")
DEFECT("23", "no fence behind mbarrier.init for the peer", pair, Pair::kNoInitFence, 'E',
       "mbarrier-init-order", "an mbarrier is used by a thread that need not see its initialisation")
DEFECT("34", "commits to the peer are not waited for before exit", pair, Pair::kStagesNotDrained, 'E',
       "mbarrier-commit-unobserved",
       "a tcgen05.commit of CTA 0 warp 5 lane 0 arrives in phase 1 of mbarrier * of CTA 0, "
       "which nobody saw complete before its end; no later commit of the thread was waited for",
       "mbarrier-commit-overtaken")
DEFECT("-", "no cluster barrier between a store to the peer and its load", cluster_exchange,
       Exchange::kNoBarrier, 'E', "race-data",
       "a strong load reads shared * not ordered after an ordinary store that wrote it")
DEFECT("-", "a relaxed arrival at the cluster barrier", cluster_exchange, Exchange::kRelaxedArrive, 'E',
       "race-data", "a strong load reads shared * not ordered after an ordinary store that wrote it")
DEFECT("34", "the peer may have exited", cluster_exchange, Exchange::kPeerMayHaveExited, 'E', "exit-pending",
       "the CTA leaves while an ordinary load may still read shared * of CTA 1", "machine-protocol",
       "exit-access")
DEFECT("-", "the peer may not have started", cluster_exchange, Exchange::kPeerMayNotHaveStarted, 'E',
       "cluster-start", "an ordinary store touches shared * of CTA 1, which need not have started",
       "race-data")
DEFECT("31", "data behind a remote arrival with the default scope", remote_arrive,
       RemoteArrive::kDefaultScope, 'E', "race-data",
       "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it",
       "scope-mismatch", "exit-pending")
DEFECT("31", "data behind a wait with the default scope", remote_arrive, RemoteArrive::kWaitDefaultScope, 'E',
       "race-data", "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it",
       "scope-mismatch", "exit-pending")
DEFECT("23", "a remote arrival, and no fence behind mbarrier.init", remote_arrive, RemoteArrive::kNoInitFence,
       'E', "mbarrier-init-order", "an mbarrier is used by a thread that need not see its initialisation")
DEFECT("31", "the local form of arrive with a remote address", remote_arrive, RemoteArrive::kLocalForm, 'E',
       "machine-bounds", "shared::cta address * belongs to CTA rank 0, not to the executing CTA of rank 1")
DEFECT("-", "no wait for st.async", async_store, AsyncStore::kNoWait, 'E', "race-async",
       "a strong load reads shared * of CTA 0 while st.async may still write it", "exit-pending",
       "mbarrier-bytes-unobserved")
DEFECT("2", "fewer bytes are expected than st.async brings", async_store, AsyncStore::kFewBytes, 'E',
       "mbarrier-bytes-in-other-phase",
       "phase 0 of mbarrier * of CTA 0 completes with 64 bytes expected while 4 bytes of a copy issued "
       "for it have not landed",
       "race-async", "mbarrier-byte-balance", "machine-protocol")
DEFECT("32", "a multicast that leaves the peer out", multicast, Multicast::kMaskWithoutPeer, 'E', "deadlock",
       "CTA 0 warp 0 waits for phase 1 of mbarrier * of CTA 0, which lacks 128 bytes")
DEFECT("-", "the peer expects no bytes of a multicast", multicast, Multicast::kPeerExpectsNothing, 'E',
       "deadlock", "CTA 0 warp 0 waits for phase 1 of mbarrier * of CTA 0, which lacks 128 bytes")
DEFECT("9", "a multicast that does not wait for the peer", multicast, Multicast::kPeerNotAwaited, 'E',
       "race-async", "bulk load overwrites shared * of CTA 1 not ordered after a strong load that read it")

// ---- barriers and lanes -----------------------------------------------------------------------------------
DEFECT("41", "a named barrier for more threads than come", named_barrier, Named::kCountTooHigh, 'E',
       "deadlock", "CTA 0 warp 0 waits at barrier 1 for 160 threads, 128 are there")
DEFECT("41", "two counts for one named barrier", named_barrier, Named::kMixedCounts, 'E', "machine-protocol",
       "named barrier 1 is used with 96 threads, but those that arrived before named 128")
DEFECT("-", "no named barrier between a write and its readers", named_barrier, Named::kNoBarrier, 'E',
       "race-data", "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it",
       "race-lanes", "deadlock")
DEFECT("41", "a writer arrives where it should wait", named_barrier, Named::kWriterOnlyArrives, 'E',
       "race-data", "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it",
       "race-lanes")
DEFECT("41", "a reduction and a plain barrier meet", named_barrier, Named::kMixedForms, 'S',
       "barrier-mixes-red",
       "barrier 1 of CTA 0 is used by bar.red and by another form in the same generation")
DEFECT("36", "a mailbox that is written again before all have read", mailbox, Mailbox::kReadersNotAwaited,
       'E', "race-data",
       "an ordinary store overwrites shared * of CTA 0 not ordered after a strong load that read it",
       "mbarrier-lagging-waiter")
DEFECT("46", "setmaxnreg asks for more than the pool has", register_pool, Registers::kPoolExceeded, 'E',
       "setmaxnreg-pool", "the warps of CTA 0 ask for 69632 registers together; an SM has 65536")
DEFECT("-", "no __syncwarp between lanes", lanes, Lanes::kNoSyncwarp, 'E', "race-lanes",
       "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("39", "elect.sync in place of __syncwarp", lanes, Lanes::kElectAsBarrier, 'S', "warp-meet-order",
       "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("39", "a shuffle in place of __syncwarp", lanes, Lanes::kShuffleAsBarrier, 'S', "warp-meet-order",
       "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("-", "all lanes write one word", lanes, Lanes::kSameWord, 'S', "warp-same-write",
       "an ordinary store overwrites global * not ordered after an ordinary store that wrote it")
DEFECT("-", "an aligned barrier that half a warp reaches", lanes, Lanes::kDivergentAligned, 'E',
       "machine-protocol", "aligned instruction in divergent code: lanes 0xffff of 0xffffffff execute it*")

// ---- global memory and the host ---------------------------------------------------------------------------
DEFECT("-", "no __syncthreads between a write and its readers", block_tile, Tile::kNoSyncthreads, 'E',
       "race-data", "a strong load reads shared * of CTA 0 not ordered after an ordinary store that wrote it")
DEFECT("-", "no __syncthreads before a tile is reused", block_tile, Tile::kNoSyncBeforeReuse, 'E',
       "race-data",
       "an ordinary store overwrites shared * of CTA 0 not ordered after a strong load that read it",
       "race-async")
DEFECT("-", "no wait for cp.async", block_tile, Tile::kNoCopyWait, 'E', "race-async",
       "a strong load reads shared * of CTA 0 while cp.async may still write it", "exit-pending")
DEFECT("-", "no __syncthreads behind the wait for cp.async", block_tile, Tile::kNoSyncAfterCopy, 'E',
       "race-async", "a strong load reads shared * of CTA 0 while cp.async may still write it")
DEFECT("12", "no proxy fence between st.global and a copy of the same bytes", written_then_copied,
       Written::kNoProxyFence, 'E', "proxy-fence",
       "bulk load reads global * not ordered after an ordinary store that wrote it")
DEFECT("4", "a fresh barrier is asked for the parity before its first phase", single_copy,
       Single::kFreshParity, 'E', "mbarrier-fresh-wait",
       "CTA 0 warp 0 lane 0 uses bytes of a copy on mbarrier * of CTA 0 after a wait "
       "that found the barrier fresh: no phase had completed",
       "race-async", "machine-poison")
DEFECT("-", "a flag is raised without release", global_flag, Flag::kRelaxedStore, 'E', "race-data",
       "a strong load reads global * not ordered after an ordinary store that wrote it")
DEFECT("-", "a flag is read without acquire", global_flag, Flag::kRelaxedLoad, 'E', "race-data",
       "a strong load reads global * not ordered after an ordinary store that wrote it")
DEFECT("-", "a flag is released at CTA scope", global_flag, Flag::kCtaScope, 'E', "race-data",
       "a strong load reads global * not ordered after a strong store that wrote it")
DEFECT("-", "no flag at all", global_flag, Flag::kNoFlag, 'E', "race-data",
       "a strong load reads global * not ordered after an ordinary store that wrote it")
DEFECT("-", "blocks count themselves without an atomic", last_block, Count::kPlainIncrement, 'E', "race-data",
       "an ordinary store overwrites global * not ordered after an ordinary store that wrote it")
DEFECT("-", "no fence before blocks count themselves", last_block, Count::kNoFenceBeforeCount, 'E',
       "race-data", "a strong load reads global * not ordered after an ordinary store that wrote it")
DEFECT("-", "two blocks write one word", overlapping_output, Overlap::kSameAddress, 'E', "race-data",
       "an ordinary store overwrites global * not ordered after an ordinary store that wrote it")
DEFECT("-", "a store past the end of an allocation", overlapping_output, Overlap::kOutOfBounds, 'E',
       "machine-bounds",
       "write of 4 bytes at global address * is outside every allocation; nearest: byte 256 of cudaMalloc *")
DEFECT("-", "memory that nobody wrote is read", overlapping_output, Overlap::kUninitialised, 'E',
       "machine-poison", "read of 4 bytes at global address *: byte 0 of cudaMalloc * was never written")
DEFECT("42", "a kernel reads what another stream writes, without an event", streams, Streams::kNoEvent, 'E',
       "race-grids", "a strong load reads global * not ordered after an ordinary store that wrote it")
DEFECT("42", "a copy reads what another stream writes, without an event", streams, Streams::kCopyWithoutEvent,
       'E', "race-grids", "cudaMemcpyAsync reads global * not ordered after an ordinary store that wrote it")
DEFECT("-", "a kernel reads freed memory", streams, Streams::kUsedAfterFree, 'E', "machine-bounds",
       "read of 4 bytes at global address * is outside every allocation; *")
DEFECT("42", "a dependent grid does not wait for the one before it", dependent_launch, Dependent::kNoGridWait,
       'E', "race-grids", "a strong load reads global * not ordered after an ordinary store that wrote it")
