// equivalent_sm90.cpp -- see equivalent.h: the table of compute capability 9.0.
#include "mutation/equivalent.h"

namespace mutation {
namespace {

constexpr const char* kGathers =
    "no memory passes between lanes here, and the next .sync or .aligned instruction (elect, wgmma, "
    "bar.warp.sync, bar.sync, barrier.cluster) waits for the whole warp by itself";
constexpr const char* kOtherWait =
    "the lanes must have met between their reads of a stage and the arrival that frees it, which comes a "
    "k-tile later: there are two waits between, and each brings them together";
constexpr const char* kMeetBefore =
    "the lanes meet before they wait, not after: still between their reads of a stage and the arrival that "
    "frees it, a k-tile later";
constexpr const char* kBandsAreBlocks =
    "a tile of the pass is a block of 128 rows of factors: these sums, of the blocks before, are not used";
constexpr const char* kLaterWait =
    "before the registers of these wgmma are written again, and before the stage that they read is freed, "
    "there is the wait after the first of the four panels of the next k-tile";
constexpr const char* kPanelWaits =
    "of the five waits of a k-tile one of the others brings the lanes together between their reads of the "
    "stage and the arrival that frees it";
constexpr const char* kWaitedBefore =
    "those that multiply touch nothing of a launch before A comes to them, by a load role that has waited";
constexpr const char* kFencesForOthers =
    "the lane that arrives has met the others before: its fence stands between their stores and its arrival";
constexpr const char* kPreparersFence =
    "what warps that prepare A have read and written of A they fence before they arrive on ready";
constexpr const char* kDrain =
    "who arrives on these barriers are threads of this CTA, which lasts until they have done so; "
    "a drain that waits for something else passes as well, or fails plainly";
constexpr const char* kOneTile =
    "split over K there is one tile: what frees its last stage lets nobody fill it again";
constexpr const char* kLoaderWrites =
    "the loading thread has written nothing; the copies publish their own bytes";
constexpr const char* kCounts =
    "the phase cannot complete before this thread's arrival, and its byte count may run below zero";
constexpr const char* kOtherRoles =
    "these warps touch no memory of another CTA; those that multiply wait for the cluster before they do, and "
    "threads that have exited are not waited for";
constexpr const char* kOnlyAttends = "these warps have written nothing that others read: nothing to publish";
constexpr const char* kWaitsForItself =
    "each lane has waited for itself, and reads what a copy or another CTA brought, not another lane";
constexpr const char* kOverPackedA =
    "these results lie where the first stage has its A in NVFP4, which the expanders alone read, before ready";
constexpr const char* kLastRows =
    "these are the last rows that a CTA finishes: no result is written after them";
constexpr const char* kAnyBarrier = "any barrier that nobody else uses serves";
constexpr const char* kStillBetween =
    "both stay between the last access before and the first one behind, and neither touches memory itself";

// Warps of the kernel prepare A; it comes from a pass, by stages or by panels.
bool made_here(const Subject& s) { return s.plan().a16.warps > 0; }
bool from_panels(const Subject& s) { return s.plan().a16.stages > 0; }
bool panels_of_whole_k_tiles(const Subject& s) { return from_panels(s) && s.plan().a16.stages % 4 == 0; }
bool without_panels(const Subject& s) { return !from_panels(s); }
// A warpgroup multiplies all four panels of a k-tile, and A lies in the stages of the operands.
bool four_panels(const Subject& s) { return without_panels(s) && s.plan().consumers.k_groups == 1; }
bool pass(const Subject& s) { return s.is_pass; }
// The sums of split-K have memory of their own, or lie where the rings were.
bool sums_apart(const Subject& s) { return split(s) && s.plan().tile.m <= 16; }
bool sums_in_rings(const Subject& s) { return split(s) && !sums_apart(s); }
// Each CTA finishes one share of rows at most.
bool one_share(const Subject& s) {
  return split(s) && s.plan().tile.m <= s.plan().consumers.share_rows * s.plan().tile.split_k;
}
bool one_column_group(const Subject& s) { return s.plan().consumers.column_groups == 1; }
bool split_of_one_column_group(const Subject& s) { return split(s) && one_column_group(s); }
// The staged results of eight rows, which have 16 bytes of padding each, end within the A of the first stage.
bool results_over_packed_a(const Subject& s) {
  return sums_apart(s) && s.plan().packed_a() && !s.instance->epilogue.general && s.plan().tile.m == 8 &&
         s.plan().consumers.column_groups == 1 &&
         8 * (2 * s.plan().consumers.columns + 16) <= s.plan().operands.a_bytes;
}
bool orders(const Subject& s) { return s.plan().orders_a(); }

constexpr EquivalentEntry kEntries[] = {
    {any, "own value shfl.sync @ warp_index #*", kBroadcast},
    {any, "16 lanes away shfl.sync @ warp_index #*", kBroadcast},
    {any, "own value shfl.sync @ multiply_role/compute/multiply/*/descriptor_of #*", kBroadcast},
    {any, "16 lanes away shfl.sync @ multiply_role/compute/multiply/*/descriptor_of #*", kBroadcast},
    {any, "own value shfl.sync @ multiply_role/compute/gather*", kBroadcast},
    {any, "16 lanes away shfl.sync @ multiply_role/compute/gather*", kBroadcast},
    {any, "next barrier barrier.cta.sync @ multiply_role/compute/gather #0",
     "all threads meet at the right barrier before and behind: nobody uses the next one meanwhile"},
    {any, "* lane elect.sync @ prologue #1", kPrefetch},
    {grouped, "exchange with the next griddepcontrol.wait: elect.sync @ prologue #1", kPrefetch},
    {split, ".release to .relaxed mbarrier.arrive @ prologue/init_barriers #0",
     "the thread has written nothing but barriers, and what publishes their initialisation comes behind"},
    {split, "exchange with the next fence.mbarrier_init: mbarrier.arrive @ prologue/init_barriers #0",
     "the fence is about mbarrier.init; the phase cannot complete before this arrival of the same thread"},
    {any, "delete bar.warp.sync @ prologue #0", kGathers},
    {any, "exchange with the next bar.warp.sync: elect.sync @ prologue #1", kPrefetch},
    {any, "* lane elect.sync @ kernel #0", kPrefetch},
    {any, "exchange with the next bar.warp.sync: elect.sync @ kernel #0", kPrefetch},
    {any, "delete bar.warp.sync @ kernel #0", kGathers},
    {any, "exchange with the next griddepcontrol.wait: bar.warp.sync @ kernel #0", kGathers},
    {sums_apart, "exchange with the next barrier.cluster.arrive: bar.warp.sync @ prologue #0",
     "the lane that initialises arrives at the cluster itself, behind its fence, and its warp still meets "
     "before it arrives at the barrier of the CTA"},
    {any, "exchange with the next fence.mbarrier_init: mbarrier.init @ *", kInitFence},
    {any, "* @ load_role/drain/*", kDrain, true},
    {any, "* lane elect.sync @ load_role #2", kDependents},
    {any, "delete griddepcontrol.launch_dependents @ *", kDependents},
    {any, "exchange with the next griddepcontrol.launch_dependents: elect.sync @ *", kDependents},
    {made_here, "delete griddepcontrol.wait @ kernel #0", kWaitedBefore},
    {made_here, "delete fence.proxy @ load_role/load_role #1", kPreparersFence},
    {any, ".release to .relaxed mbarrier.arrive @ load_role/load_role #0", kLoaderWrites},
    {any, ".release to .relaxed mbarrier.arrive @ load_panels_role #0", kLoaderWrites},
    {any, "* @ load_panels_role/drain/*", kDrain, true},
    {pass, "exchange with the next griddepcontrol.launch_dependents: griddepcontrol.wait @ for_each_tile #0",
     "the kernel that is let in waits for the end of the pass, which itself has waited by then; weights that "
     "it may read before that are promised to be complete"},
    {pass, "[!l]* shfl.sync @ for_each_tile/write_group_table/before/scan #[59]", kBandsAreBlocks},
    {pass, "[!l]* shfl.sync @ for_each_tile/write_group_table/before #1", kBandsAreBlocks},
    {pass, "exchange with the next ld.shared: bar.warp.sync @ for_each_tile/prepare_kernel #1",
     "the load is of the table of groups, which no lane writes any more"},
    {any, "* lane elect.sync @ load_panels_role #1", kDependents},
    {any, "exchange with the next bar.warp.sync: griddepcontrol.launch_dependents @ load_panels_role #0",
     kDependents},
    {any, "exchange with the next cp.async.bulk.tensor: mbarrier.arrive @ load_panels_role #0", kCounts},
    {any, "exchange with the next cp.async.bulk.tensor: mbarrier.arrive @ load_role/*", kCounts},
    {any, "exchange with the next mbarrier.arrive: fence.proxy @ load_role/load_role #*", kStillBetween},
    {any, "exchange with the next fence.proxy: elect.sync @ load_role #*", kStillBetween},
    {any, "next barrier barrier.cta.sync @ multiply_role/compute/finish #[01]", kAnyBarrier},
    {one_column_group, "next barrier barrier.cta.sync @ multiply_role/compute/finish/meet_column_group #[01]",
     kAnyBarrier},
    {one_share, "delete barrier.cta.sync @ multiply_role/compute/finish/meet_column_group #1",
     "a CTA finishes these rows alone: no sums are written again"},
    {one_share, "arrive only barrier.cta.sync @ multiply_role/compute/finish/meet_column_group #1",
     "a CTA finishes these rows alone: no sums are written again"},
    {split, "phase not flipped xor.b32 @ multiply_role/compute/finish #3", kLastRows},
    {results_over_packed_a, "delete barrier.cta.sync @ multiply_role/compute/reduce #0", kOverPackedA},
    {results_over_packed_a, "arrive only barrier.cta.sync @ multiply_role/compute/reduce #0", kOverPackedA},
    {split_of_one_column_group, "next barrier barrier.cta.sync @ multiply_role/compute/reduce #0",
     "it is that of the only column group, whose threads next use it when they have left it here"},
    {split, "delete bar.warp.sync @ multiply_role/compute/reduce #0", kWaitsForItself},
    {split, "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/compute/reduce #0",
     kWaitsForItself},
    {split, ".release to .relaxed mbarrier.arrive @ multiply_role/compute/multiply/release_last/release #0",
     kOneTile},
    {split, "delete bar.warp.sync @ multiply_role/compute/multiply #0", kOneTile},
    {split, "exchange with the next mbarrier.arrive: bar.warp.sync @ multiply_role/compute/multiply #0",
     kOneTile},
    {split,
     "exchange with the next barrier.cluster.*: mbarrier.arrive @ multiply_role/compute/multiply/release_last/release #0",
     kOneTile},
    {split, "delete barrier.cluster.wait @ meet_cluster #0", kOtherRoles},
    {sums_in_rings, "no barrier barrier.cluster.arrive @ meet_cluster #0", kOtherRoles},
    {sums_in_rings, ".release to .relaxed barrier.cluster.arrive @ meet_cluster #0", kOnlyAttends},
    {sums_in_rings,
     ".release to .relaxed barrier.cluster.arrive @ multiply_role/compute/reduce/meet_cluster #0",
     "the load roles arrive when they have drained the rings, and release what those that multiply have read"},
    {made_here, "delete bar.warp.sync @ multiply_role/compute/multiply/*wait #0", kOtherWait},
    {without_panels,
     "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/compute/multiply/*wait #0",
     kMeetBefore},
    {any, "exchange with the next ld.shared: bar.warp.sync @ multiply_role/compute/multiply/wait #0",
     "each lane has waited for itself"},
    {from_panels, "delete bar.warp.sync @ multiply_role/compute/multiply/*wait #[03]", kPanelWaits},
    {from_panels,
     "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/compute/multiply/wait #0",
     kPanelWaits},
    {from_panels,
     "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/compute/multiply/descriptor/wait #[03]",
     "the lanes have loaded what they need of the stage before this wait, and meet before they free it"},
    {from_panels,
     "exchange with the next mbarrier.arrive: mbarrier.arrive @ multiply_role/compute/multiply/release_before/release #3",
     "they are arrivals on two barriers, for each of which all is done: which comes first is open"},
    {from_panels,
     "exchange with the next wgmma.wait_group: mbarrier.arrive @ multiply_role/compute/multiply/release_before/release #4",
     "the arrival frees operands that lanes have loaded, and no wgmma reads those"},
    {panels_of_whole_k_tiles, "* @ multiply_role/compute/multiply/release_before/operator++ #0",
     "the ring ends with the last panel of a k-tile, and this is the step behind the first"},
    {four_panels, "delete wgmma.wait_group @ multiply_role/compute/multiply #3", kLaterWait},
    {four_panels, "a group more under way wgmma.wait_group @ multiply_role/compute/multiply #3", kLaterWait},
    {four_panels,
     "exchange with the next wgmma.wait_group: wgmma.commit_group @ multiply_role/compute/multiply/multiply_panel #3",
     kLaterWait},
    {any, "exchange with the next wgmma.fence: bar.warp.sync @ multiply_role/compute/multiply/*wait #*",
     kStillBetween},
    {any, "exchange with the next wgmma.wait_group: wgmma.wait_group @ multiply_role/compute/multiply #*",
     "all groups are waited for where one might still be under way"},
    {any, "exchange with the next bar.warp.sync: wgmma.wait_group @ multiply_role/compute/multiply #*",
     "the one is about wgmma, the other about what lanes have loaded, and both stand before what follows"},
    {any, "exchange with the next bar.warp.sync: fence.proxy @ expand_role #0", kFencesForOthers},
    {any, "exchange with the next elect.sync: bar.warp.sync @ expand_role #0", kStillBetween},
    {any, "delete bar.warp.sync @ expand_role/wait #0", kGathers},
    {any, "exchange with the next ld.shared: bar.warp.sync @ expand_role/wait #0", kWaitsForItself},
    {any, "delete bar.warp.sync @ expand_role #1", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ order_role/wait #0", kGathers},
    {any, "exchange with the next bar.warp.sync: fence.proxy @ order_role #0", kFencesForOthers},
    {any, "exchange with the next elect.sync: bar.warp.sync @ order_role #0", kStillBetween},
    {orders, ".release to .relaxed mbarrier.arrive @ load_role/load_role #1",
     "every byte that an orderer reads or writes a copy has written before it, and that copy came after the "
     "wgmma that read the stage; the loading thread has written nothing"},
    {any, "delete bar.warp.sync @ order_role/wait #0", kGathers},
    {any, "exchange with the next ld.shared: bar.warp.sync @ order_role/wait #0", kWaitsForItself},
    {any, "delete bar.warp.sync @ order_role #1", kGathers},
    {any, "delete bar.warp.sync @ load_role*", kGathers},
    {any, "delete bar.warp.sync @ load_panels_role*", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ load_panels_role/wait #0", kGathers},
    {any, "exchange with the next elect.sync: bar.warp.sync @ load_panels_role/wait #0", kGathers},
    {any, "delete bar.warp.sync @ multiply_role/compute/finish/finish_rows #0", kGathers},
    {any, "exchange with the next barrier.cta.sync: bar.warp.sync @ prologue #0", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ expand_role/wait #0", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ load_role/wait #*", kGathers},
    {any, "exchange with the next elect.sync: bar.warp.sync @ load_role/wait #*", kGathers},
};

}  // namespace

std::span<const EquivalentEntry> equivalent_in_sm90() { return kEntries; }

}  // namespace mutation
