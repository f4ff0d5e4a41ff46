// race_rules.cpp -- the rules of the race checker.
#include "sim/check/finding.h"

namespace sim {
namespace {

using enum Severity;
using enum Evidence;
constexpr const char* kConflicts = "PTX ISA 8.7.1 Conflict and data-races";
constexpr const char* kProxies = "PTX ISA 8.6 Proxies";
constexpr const char* kCopies = "PTX ISA 9.7.9.25 Asynchronous copies";
constexpr const char* kDistributed = "CUDA C++ Programming Guide, Distributed shared memory";

}  // namespace

const std::vector<Rule> kRaceRules = {
    {"race-data", kError, kDoc, kConflicts,
     "Two accesses of the same bytes by different threads, one of them a write, "
     "are ordered by synchronisation or are both strong at scopes that include each other."},
    {"race-lanes", kError, kDoc, "PTX ISA 9.7.13.2 bar.warp.sync",
     "Lanes of a warp that touch the same bytes in different instructions are ordered by bar.warp.sync "
     "or a wider barrier."},
    {"warp-same-write", kStrict, kDoc, kConflicts,
     "Lanes of one instruction do not write the same bytes unless the instruction is atomic."},
    {"warp-meet-order", kStrict, kAssumed, "PTX ISA 9.7.13.14 elect.sync",
     "elect, shfl, vote, match and redux bring lanes together but do not order their memory accesses."},
    {"race-async", kError, kDoc, "PTX ISA 8.9.1.1 Asynchronous operations",
     "An asynchronous operation may touch its bytes from issue until its completion has been observed; "
     "nothing else touches them meanwhile unless both read."},
    {"relaxed-wait", kStrict, kAssumed, "PTX ISA 9.7.13.15.16 mbarrier.try_wait",
     "A relaxed wait alone orders neither asynchronous operations after what the phase completed, nor accesses "
     "or the exit of a CTA after asynchronous operations that it completed."},
    {"proxy-fence", kError, kDoc, kProxies,
     "What the generic proxy wrote reaches the asynchronous proxy only across fence.proxy.async, "
     "executed after the write and before the operation, on the path of synchronisation between them."},
    {"proxy-fence-reuse", kStrict, kProvenKernel, kProxies,
     "Bytes read by the generic proxy are overwritten by the asynchronous proxy "
     "only after fence.proxy.async."},
    {"proxy-fence-overwrite", kStrict, kProvenKernel, kProxies,
     "Bytes written by the generic proxy are overwritten by the asynchronous proxy "
     "only after fence.proxy.async."},
    {"proxy-fence-operand", kStrict, kProvenKernel, "PTX ISA 9.7.16.6.5 tcgen05 and proxies",
     "Operands that the tensor core read through the asynchronous proxy are overwritten by the generic proxy "
     "only after fence.proxy.async."},
    {"async-order-ctas", kAdvice, kAssumed, kProxies,
     "Same-proxy order is promised within a CTA; "
     "asynchronous operations of two CTAs on the same bytes rely on the barrier between them alone."},
    {"tensormap-fence", kError, kDoc, "PTX ISA 9.7.13.4 fence.proxy.tensormap",
     "A tensor map written by the device is used only after fence.proxy.tensormap: "
     ".release after the write, then .acquire of the map's bytes, at scopes that include both CTAs."},
    {"race-tensor", kError, kDoc, "PTX ISA 9.7.16.6 tcgen05 memory consistency",
     "Operations on the same cells of tensor memory are ordered by completion (commit and wait, wait::ld, "
     "wait::st) and tcgen05 fences, or are a pair that executes in order."},
    {"tensor-fence", kStrict, kProvenKernel, "PTX ISA 9.7.16.6.3 tcgen05.fence",
     "Order between tcgen05 operations of different threads needs before_thread_sync before the release "
     "and after_thread_sync after the acquire."},
    {"tensor-unlisted-pair", kStrict, kProvenKernel, "PTX ISA 9.7.16.6.2 Pipelined tcgen05 instructions",
     "Of tcgen05 operations of one thread only the listed pairs execute in order; "
     "others that share cells need a commit and a wait between them."},
    {"tensor-use-before-wait", kStrict, kDoc, "PTX ISA 9.7.16.8.5 tcgen05.wait",
     "Registers of tcgen05.ld are used only after tcgen05.wait::ld."},
    {"scope-mismatch", kStrict, kProvenKernel, "PTX ISA 8.5 Scope",
     "An mbarrier arrival, or st.async, and the wait that sees it have scopes that include each other: "
     "cluster scope when they come from different CTAs."},
    {"mbarrier-init-order", kError, kDoc, "PTX ISA 9.7.13.15.9 mbarrier.init",
     "An mbarrier is used by other threads only after a barrier that follows its init; "
     "by other CTAs after a cluster barrier with release, or relaxed after fence.mbarrier_init."},
    {"mbarrier-init-fence", kStrict, kProvenKernel, "PTX ISA 9.7.13.4 fence.mbarrier_init",
     "The initialisation of an mbarrier is followed by fence.mbarrier_init before a relaxed arrival at the "
     "cluster barrier, and by that or a proxy fence before the first operation of the asynchronous proxy "
     "that signals it."},
    {"non-coherent-read", kStrict, kDoc,
     "PTX ISA 9.7.9.9 ld.global.nc, 9.7.9.10 ldu; CUDA C++ Programming Guide, __ldg()",
     "What ld.global.nc or ldu reads is read-only as long as the grid runs: written by nobody in it, and by "
     "no grid that need not have ended when it started, whatever griddepcontrol.wait comes before the load."},
    {"race-grids", kError, kDoc, "CUDA C++ Programming Guide, Asynchronous concurrent execution",
     "Work that touches the same memory is ordered by its stream, by events, or by griddepcontrol.wait, "
     "unless both accesses are strong at scopes that include each other."},
    {"cluster-start", kError, kDoc, kDistributed,
     "A CTA touches the shared memory of another one of its cluster only when that one is known "
     "to have started: after a cluster barrier, or anything else that it signalled."},
    {"exit-pending", kError, kDoc, kCopies,
     "A CTA leaves only when every operation on its shared and tensor memory is known to be complete."},
    {"cp-async-unwaited-at-exit", kStrict, kSeenOnH200, kCopies,
     "A CTA leaves only when its cp.async are known to be complete; hardware keeps its shared memory until "
     "they are."},
    {"exit-access", kError, kDoc, kDistributed,
     "Shared and tensor memory of a CTA are not touched after it has left."},
};

}  // namespace sim
