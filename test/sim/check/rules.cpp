// rules.cpp -- the rules of the checkers, each with its class, what it rests on, the section it follows,
// and one sentence.
#include "sim/check/finding.h"

namespace sim {
namespace {

using enum Severity;
using enum Evidence;
constexpr const char* kConflicts = "PTX ISA 8.7.1 Conflict and data-races";
constexpr const char* kProxies = "PTX ISA 8.6 Proxies";
constexpr const char* kCopies = "PTX ISA 9.7.9.25 Asynchronous copies";
constexpr const char* kDistributed = "CUDA C++ Programming Guide, Distributed shared memory";
constexpr const char* kPhase = "PTX ISA 9.7.13.15.4 Phase of the mbarrier object";
constexpr const char* kTx = "PTX ISA 9.7.13.15.5 Tracking asynchronous operations by the mbarrier object";
constexpr const char* kCommit = "PTX ISA 9.7.16.12.1 tcgen05.commit";
constexpr const char* kDescriptor = "PTX ISA 9.7.16.4.1 Shared memory descriptor";
constexpr const char* kMma = "PTX ISA 9.7.16.10.9.1 tcgen05.mma";

}  // namespace

const std::vector<Rule> kAllRules = {
    // ---- the race checker
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
    // ---- the protocol checker
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
    // ---- the machine itself, while it runs: one for each kind of fault that ends a grid, and those that
    // it only remarks on
    {"machine-poison", kError, kDoc, "CUDA C++ Programming Guide, device memory; PTX ISA 5.1 State spaces",
     "A register or a byte of memory that nobody wrote, or that a copy in flight is writing, holds no value."},
    {"machine-bounds", kError, kSeenOnH200, "PTX ISA 5.1 State spaces",
     "An access stays inside one allocation, the CTA's shared memory or the allocated tensor memory."},
    {"machine-misaligned", kError, kSeenOnH200, "PTX ISA 6.4.1 Addresses as operands",
     "An address is a multiple of the size of the access, or of what the instruction asks for."},
    {"machine-protocol", kError, kDoc, "PTX ISA 9.7 Instructions",
     "An instruction is executed only in the state and with the operands its section allows."},
    {"machine-deadlock", kError, kDoc,
     "PTX ISA 9.7.13 Parallel synchronization and communication instructions",
     "Every wait is ended by what other threads or operations in flight still do."},
    {"machine-trap", kError, kSeenOnH200, "PTX ISA 9.7.19.4 trap",
     "A program that executes trap or a failed assertion has ended with an error."},
    {"machine-launch", kError, kDoc,
     "CUDA C++ Programming Guide, execution configuration and compute capabilities",
     "Grid, block, cluster and shared memory stay inside the limits of the kernel and of the machine."},
    {"shared-alignment", kStrict, kProvenKernel, "PTX ISA 5.4.5 Alignment",
     "Dynamic shared memory is aligned as its module declares it, to 16 bytes where it says nothing; a box of "
     "a tensor map needs 128, and the whole pattern of its swizzle where it has one."},
    {"prefetch-memory", kStrict, kDoc,
     "PTX ISA 9.7.9.25.4.3 cp.async.bulk.prefetch; PTX ISA 9.7.9.25.5.4 cp.async.bulk.prefetch.tensor",
     "A prefetch by the asynchronous proxy is a memory operation: its operands have values, its address and "
     "size are multiples of 16, and what it reads, of a box the part inside of its tensor, is in one allocation."},
    {"prefetch-outside", kAdvice, kAssumed, kNoSection,
     "What prefetch and prefetchu name has a value and is in some allocation, and a prefetched box has "
     "coordinates that have values and is less than a box away from its tensor."},
    {"tmem-lane-bits", kStrict, kProvenKernel, "PTX ISA 9.7.16.8.1 Access restrictions",
     "The lane in the address of tcgen05.ld or .st is the first of the quarter that the warp may access, or, "
     "for shapes of 16 lanes, of either half of it; hardware takes the quarter from the number of the warp, "
     "and of the address that half."},
    {"commit-shared-address", kStrict, kProvenKernel, kCommit,
     "The address of a tcgen05.commit without a state space is a generic one; hardware takes a shared address, "
     "too."},
    {"descriptor-row", kStrict, kDoc, "PTX ISA 9.7.15.5.1.2.2 Matrix Descriptor Format",
     "The descriptor of a matrix that starts in a later row of its swizzle pattern has a base offset; hardware "
     "swizzles by the bits of the address, so without one it reads what was written by those bits."},
    {"setmaxnreg-warpgroup", kStrict, kProvenKernel, "PTX ISA 9.7.19.5 setmaxnreg",
     "The warps of a warpgroup execute the same setmaxnreg."},
    {"machine-unsupported", kUnknown, kAssumed, "tool: a limit of the simulator",
     "The simulator refuses what it does not know, and gives up a run in which nothing changes for very long; "
     "the program was not judged any further."},
};

}  // namespace sim
