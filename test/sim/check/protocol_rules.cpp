// protocol_rules.cpp -- the rules of the protocol checker.
#include "sim/check/finding.h"

namespace sim {
namespace {

constexpr Severity kE = Severity::kError, kS = Severity::kStrict, kA = Severity::kAdvice;
constexpr const char* kMbarrier =
    "PTX ISA: Parallel Synchronization and Communication Instructions: mbarrier";
constexpr const char* kPhase = "PTX ISA: Phase of the mbarrier object";
constexpr const char* kTx = "PTX ISA: Tracking asynchronous operations by the mbarrier object";
constexpr const char* kCommit = "PTX ISA: TensorCore 5th Generation Instructions: tcgen05.commit";
constexpr const char* kDescriptor = "PTX ISA: Tcgen05 matrix descriptors; canonical layouts";
constexpr const char* kTool = "tool: no rule of the ISA, but seldom meant";
constexpr const char* kSetMaxReg = "PTX ISA: setmaxnreg";

}  // namespace

const std::vector<Rule> kProtocolRules = {
    {"mbarrier-init-by-lanes", kS, Evidence::kProvenKernel, "PTX ISA: mbarrier.init",
     "One thread initialises an mbarrier: lanes of one mbarrier.init name different objects."},
    {"mbarrier-bytes-in-other-phase", kE, Evidence::kDoc, kTx,
     "The bytes of a copy count in the phase that was open when the copy was issued."},
    {"mbarrier-copy-before-observed", kE, Evidence::kDoc, kPhase,
     "A copy is issued for a phase only after somebody saw the phase before it complete."},
    {"mbarrier-arrive-before-observed", kS, Evidence::kDoc, kPhase,
     "A thread arrives in a phase only after somebody saw the phase before it complete."},
    {"mbarrier-bytes-unobserved", kE, Evidence::kDoc, kTx,
     "A phase in which bytes land is waited for, before the next one completes and before the CTA exits."},
    {"mbarrier-commit-unobserved", kE, Evidence::kDoc, kCommit,
     "The arrival of a tcgen05.commit is waited for before the CTA exits."},
    {"mbarrier-commit-overtaken", kS, Evidence::kProvenKernel, kCommit,
     "The arrival of a tcgen05.commit itself is waited for before the CTA exits: "
     "nothing orders the arrivals of two commits, "
     "so that a later one was seen does not say that this one has landed."},
    {"mbarrier-phase-lap", kE, Evidence::kDoc, kPhase,
     "Successive waits of a thread on one mbarrier see successive phases, or the same one again."},
    {"mbarrier-phase-skipped", kS, Evidence::kAssumed, kPhase,
     "A thread that skips a phase another thread saw can mistake the phase it saw before "
     "for the one it waits for: the parities are equal."},
    {"mbarrier-lagging-waiter", kS, Evidence::kProvenKernel, kPhase,
     "A phase completes only when every thread that will wait on the mbarrier again "
     "has seen the one before."},
    {"mbarrier-fresh-wait", kE, Evidence::kDoc, kPhase,
     "The bytes of a copy are used after a wait that saw its phase complete; "
     "on a fresh mbarrier the phase before the first counts as complete."},
    {"mbarrier-open-at-end", kA, Evidence::kAssumed, kMbarrier,
     "An mbarrier goes out of use between two phases, not with arrivals in an incomplete one."},
    {"mbarrier-byte-balance", kE, Evidence::kDoc, kTx,
     "The bytes expected in a phase are the bytes that copies deliver to it."},
    {"copy-never-read", kA, Evidence::kAssumed, kTool,
     "Bytes copied to shared memory are read before they are copied over or the CTA exits."},
    {"copy-partly-read", kA, Evidence::kAssumed, kTool,
     "All bytes copied to shared memory are read before they are copied over or the CTA exits."},
    {"descriptor-swizzle", kE, Evidence::kDoc, kDescriptor,
     "A matrix is read with the swizzle with which it was written."},
    {"descriptor-stride", kA, Evidence::kAssumed, kDescriptor,
     "The stride of a swizzled K-major descriptor is the distance of 8 rows of the box "
     "that wrote the matrix."},
    {"descriptor-number-format", kA, Evidence::kAssumed, kDescriptor,
     "A matrix is read in the number format of the tensor map that wrote it."},
    {"tmem-scales-reused", kA, Evidence::kAssumed, "PTX ISA: tcgen05.mma: scale factors",
     "Scale factors in tensor memory are written anew for every pair of A and B blocks."},
    {"tmem-accumulate-after-read", kA, Evidence::kAssumed, "PTX ISA: tcgen05.mma: enable-input-d",
     "The first MMA of a tile does not accumulate onto a result that was read out."},
    {"mma-collector", kE, Evidence::kDoc, "PTX ISA: tcgen05.mma: .collector_usage",
     "A tcgen05.mma that may take A from the collector (::use, ::lastuse) names the A of the ::fill "
     "before it: same matrix, same bytes, and no MMA on the tensor core in between that drops it."},
    {"tcgen05-uncommitted", kE, Evidence::kDoc, kCommit,
     "Every tcgen05.mma and tcgen05.cp is followed by a tcgen05.commit of its thread before the CTA exits."},
    {"store-unwaited-at-exit", kS, Evidence::kProvenKernel, "PTX ISA: cp.async.bulk.wait_group",
     "A thread waits until its bulk stores have read shared memory before it exits."},
    {"barrier-mixes-red", kS, Evidence::kDoc, "PTX ISA: bar, barrier",
     "bar.red is not mixed with bar.sync or bar.arrive on one active barrier."},
    {"setmaxnreg-pool", kE, Evidence::kDoc, kSetMaxReg,
     "The registers that the warps of a CTA ask for are no more than it was launched with."},
    {"deadlock", kE, Evidence::kDoc, "PTX ISA: Parallel Synchronization and Communication Instructions",
     "Every wait is ended by what other threads, or operations in flight, still do."},
};

}  // namespace sim
