// protocol_rules.cpp -- the rules of the protocol checker.
#include "sim/check/finding.h"

namespace sim {
namespace {

using enum Severity;
using enum Evidence;
constexpr const char* kPhase = "PTX ISA 9.7.13.15.4 Phase of the mbarrier object";
constexpr const char* kTx = "PTX ISA 9.7.13.15.5 Tracking asynchronous operations by the mbarrier object";
constexpr const char* kCommit = "PTX ISA 9.7.16.12.1 tcgen05.commit";
constexpr const char* kDescriptor = "PTX ISA 9.7.16.4.1 Shared memory descriptor";
constexpr const char* kMma = "PTX ISA 9.7.16.10.9.1 tcgen05.mma";

}  // namespace

const std::vector<Rule> kProtocolRules = {
    {"mbarrier-init-by-lanes", kStrict, kProvenKernel, "PTX ISA 9.7.13.15.9 mbarrier.init",
     "One thread initialises an mbarrier: lanes of one mbarrier.init name different objects."},
    {"mbarrier-bytes-in-other-phase", kError, kDoc, kTx,
     "The bytes of a copy count in the phase that was open when the copy was issued."},
    {"mbarrier-copy-before-observed", kError, kDoc, kPhase,
     "A copy is issued for a phase only after somebody saw the phase before it complete."},
    {"mbarrier-arrive-before-observed", kStrict, kDoc, kPhase,
     "A thread arrives in a phase only after somebody saw the phase before it complete."},
    {"mbarrier-bytes-unobserved", kError, kDoc, kTx,
     "A phase in which bytes land is waited for, before the next one completes and before the CTA exits."},
    {"mbarrier-commit-unobserved", kError, kDoc, kCommit,
     "The arrival of a tcgen05.commit is waited for before the CTA exits."},
    {"mbarrier-commit-overtaken", kStrict, kProvenKernel, kCommit,
     "The arrival of a tcgen05.commit itself is waited for before the CTA exits: "
     "nothing orders the arrivals of two commits, "
     "so that a later one was seen does not say that this one has landed."},
    {"mbarrier-phase-lap", kError, kDoc, kPhase,
     "Successive waits of a thread on one mbarrier see successive phases, or the same one again."},
    {"mbarrier-phase-skipped", kStrict, kAssumed, kPhase,
     "A thread that skips a phase another thread saw can mistake the phase it saw before "
     "for the one it waits for: the parities are equal."},
    {"mbarrier-lagging-waiter", kStrict, kProvenKernel, kPhase,
     "A phase completes only when every thread that will wait on the mbarrier again "
     "has seen the one before."},
    {"mbarrier-fresh-wait", kError, kDoc, kPhase,
     "The bytes of a copy are used after a wait that saw its phase complete; "
     "on a fresh mbarrier the phase before the first counts as complete."},
    {"mbarrier-open-at-end", kAdvice, kAssumed, "PTX ISA 9.7.13.15 mbarrier",
     "An mbarrier goes out of use between two phases, not with arrivals in an incomplete one."},
    {"mbarrier-byte-balance", kError, kDoc, kTx,
     "The bytes expected in a phase are the bytes that copies deliver to it."},
    {"copy-never-read", kAdvice, kAssumed, kNoSection,
     "Bytes copied to shared memory are read before they are copied over or the CTA exits."},
    {"copy-partly-read", kAdvice, kAssumed, kNoSection,
     "All bytes copied to shared memory are read before they are copied over or the CTA exits."},
    {"descriptor-swizzle", kError, kDoc, kDescriptor,
     "A matrix is read with the swizzle with which it was written."},
    {"descriptor-stride", kAdvice, kAssumed, kDescriptor,
     "The stride of a swizzled K-major descriptor is the distance of 8 rows of the box "
     "that wrote the matrix."},
    {"descriptor-number-format", kAdvice, kAssumed, "PTX ISA 9.7.16.4.2 Instruction descriptor",
     "A matrix is read in the number format of the tensor map that wrote it."},
    {"tmem-scales-reused", kAdvice, kAssumed, "PTX ISA 9.7.16.10.7 Block scaling",
     "Scale factors in tensor memory are written anew for every pair of A and B blocks."},
    {"tmem-accumulate-after-read", kAdvice, kAssumed, kMma,
     "The first MMA of a tile does not accumulate onto a result that was read out."},
    {"mma-collector", kError, kDoc, kMma,
     "A tcgen05.mma that may take A from the collector (::use, ::lastuse) names the A of the ::fill "
     "before it: same matrix, same bytes, and no MMA on the tensor core in between that drops it."},
    {"tcgen05-uncommitted", kError, kDoc, kCommit,
     "Every tcgen05.mma and tcgen05.cp is followed by a tcgen05.commit of its thread before the CTA exits."},
    {"store-unwaited-at-exit", kStrict, kProvenKernel, "PTX ISA 9.7.9.25.6.2 cp.async.bulk.wait_group",
     "A thread waits until its bulk stores have read shared memory before it exits."},
    {"barrier-mixes-red", kStrict, kDoc, "PTX ISA 9.7.13.1 bar, barrier",
     "bar.red is not mixed with bar.sync or bar.arrive on one active barrier."},
    {"setmaxnreg-pool", kError, kDoc, "PTX ISA 9.7.19.5 setmaxnreg",
     "The registers that the warps of a CTA ask for are no more than it was launched with."},
    {"deadlock", kError, kDoc, "PTX ISA 9.7.13 Parallel synchronization and communication instructions",
     "Every wait is ended by what other threads, or operations in flight, still do."},
};

}  // namespace sim
