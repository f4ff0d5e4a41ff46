// equivalent.cpp -- see equivalent.h. This table is that of compute capability 10.x, and equivalent_sm90.cpp
// has that of 9.0.
#include "mutation/equivalent.h"

#include <fnmatch.h>

#include <set>

namespace mutation {
namespace {

using Entry = EquivalentEntry;

constexpr const char* kDrain =
    "the other load warp waits for the same barriers, and the commit to acc_full, "
    "which the epilogue waits for, follows every commit to empty; "
    "a drain that waits for something else is made up for, or fails plainly";
constexpr const char* kMmaDrain =
    "the last arrivals are the epilogue warps' own and come before the CTA barrier of the teardown; "
    "a drain that waits for something else is made up for, or fails plainly";
constexpr const char* kAlloc =
    "tcgen05.alloc has finished when it returns, and no other tcgen05 operation precedes the barrier: "
    "there is nothing for the fence to order";
constexpr const char* kTeardown =
    "every load was waited for by wait::ld and every mma by a commit that was waited for: "
    "nothing is left for the fence to order before the deallocation";
constexpr const char* kFenceOrders =
    "what meets here are tcgen05 operations, and the tcgen05 fence beside it orders them at any strength";

// An mma works for one CTA, or for a pair; a cluster is one CTA.
bool one_cta(const Subject& s) { return s.plan().mma.cta_group == 1; }
bool pair(const Subject& s) { return s.plan().mma.cta_group == 2; }
bool alone(const Subject& s) { return s.plan().cluster_size() == 1; }
bool split_of_ctas(const Subject& s) { return split(s) && one_cta(s); }
bool grouped_pair(const Subject& s) { return grouped(s) && pair(s); }
// Scale factors pass through windows.
bool windows(const Subject& s) { return !s.plan().tmem.resident_scales; }
// The ring of scale factors reaches no further along K than that of stages.
bool shallow_scales(const Subject& s) {
  return s.plan().scales.stages * s.plan().scales.k_tiles <= s.plan().operands.stages;
}
// An arrival instead of a commit to both CTAs of a pair leaves the other one waiting.
bool shallow_scales_of_one_cta(const Subject& s) { return shallow_scales(s) && one_cta(s); }
// The ring of stages ends a scale stage before the other one.
bool shallow_stages(const Subject& s) {
  return s.plan().operands.stages <= (s.plan().scales.stages - 1) * s.plan().scales.k_tiles;
}
bool two_mma_per_step(const Subject& s) { return s.plan().mma.per_step == 2; }
bool one_mma_per_step(const Subject& s) { return s.plan().mma.per_step == 1; }
bool pair_of_one_product(const Subject& s) { return pair(s) && s.plan().mma.products == 1; }

constexpr const char* kNoTile =
    "the value is used by a CTA without a tile alone, and the library launches none";
constexpr const char* kGathers =
    "no memory passes between lanes here, and the next .sync or .aligned instruction (elect, tcgen05.ld, "
    "tcgen05.alloc, bar.sync, barrier.cluster) waits for the whole warp by itself";
constexpr const char* kShallowScales =
    "the ring of scale factors reaches no further than that of stages: "
    "the mma that gave its scale stage back come after those that read the stage, and the scale stage is "
    "waited for first";
constexpr const char* kShallowStages =
    "the ring of stages is the shallower one: "
    "the wait for the stage of the k-tile before comes after the mma that read the scale stage";
constexpr const char* kSizesRead =
    "the warp that makes the table of groups has waited, and every role comes after the table";
constexpr const char* kLaterStep = "from the second step of a k-tile on it accumulates anyway";
constexpr const char* kSameWork =
    "both commits stand for the same mma and copies; which arrives first is open";

constexpr const char* kOneTile =
    "split over K there is one tile: acc_empty is waited for once, in the phase before its first, "
    "and nothing arrives on it";
constexpr const char* kOtherRoles =
    "the epilogue warps, which have waited for acc_full, and the load roles, which have drained the rings, "
    "know the same copies and mma to be complete, and all meet in this barrier: "
    "either may fence and release for both; the change in all roles at once is planted";
constexpr Entry kEntries[] = {
    {any, "own value shfl.sync @ warp_index #*", kBroadcast},
    {any, "16 lanes away shfl.sync @ warp_index #*", kBroadcast},
    {alone, ".gpu to .cta red @ *", "one CTA computes all tiles of the launch"},
    {any, "delete prefetch.tensormap @ *", kPrefetch},
    {dense, "every lane elect.sync @ prologue #0", "32 prefetches are as good a hint as one"},
    {dense, "no lane elect.sync @ prologue #0", kPrefetch},
    {grouped, "every lane elect.sync @ prologue #1", "32 prefetches are as good a hint as one"},
    {grouped, "no lane elect.sync @ prologue #1", kPrefetch},
    {any, "delete tcgen05.relinquish_alloc_permit @ *",
     "the CTA allocates once; the permit matters to others"},
    {any,
     "exchange with the next tcgen05.fence::before_thread_sync: "
     "tcgen05.relinquish_alloc_permit @ allocate_tensor_memory #0",
     "the permit concerns other CTAs and orders nothing of this one"},
    {one_cta, "exchange with the next fence.mbarrier_init: *", kInitFence},
    {any, "*tcgen05.fence::before_thread_sync @ allocate_tensor_memory #*", kAlloc},
    {any, "*tcgen05.fence::after_thread_sync @ allocate_tensor_memory #*", kAlloc},
    {any,
     "exchange with the next tcgen05.fence::after_thread_sync: barrier.cta.sync @ allocate_tensor_memory #*",
     kAlloc},
    {any, "next barrier barrier.cta.sync @ allocate_tensor_memory #0",
     "any barrier that nobody else uses serves"},
    {any, "*tcgen05.fence::before_thread_sync @ teardown #*", kTeardown},
    {any, "*tcgen05.fence::after_thread_sync @ teardown #*", kTeardown},
    {any, "exchange with the next tcgen05.fence::after_thread_sync: bar.sync @ teardown #*", kTeardown},
    {any, ".acquire to .relaxed mbarrier.try_wait @ epilogue_role/wait_for_accumulators/wait #0",
     kFenceOrders},
    {one_cta, ".acquire to .relaxed mbarrier.try_wait @ mma_role/wait #0", kFenceOrders},
    {any, ".release to .relaxed mbarrier.arrive @ epilogue_role/arrive_at_leader #0", kFenceOrders},
    {any, ".release to .relaxed mbarrier.arrive @ load_role/*",
     "the loading thread has written nothing; the copies publish their own bytes"},
    {any, "exchange with the next cp.async.bulk.tensor: mbarrier.arrive @ load_role/*",
     "the phase cannot complete before this thread's arrival, and its byte count may run below zero"},
    {any, "* lane elect.sync @ load_role #4", kDependents},
    {any, "delete griddepcontrol.launch_dependents @ *", kDependents},
    {any, "exchange with the next griddepcontrol.launch_dependents: *", kDependents},
    {shallow_scales, "* mbarrier.try_wait @ load_role/wait #[13]", kShallowScales, true},
    {shallow_scales_of_one_cta, "arrive at once tcgen05.commit @ mma_role/multiply/give_back/commit #0",
     kShallowScales},
    {any, "exchange with the next tcgen05.commit: tcgen05.commit @ mma_role/multiply/give_back/commit #0",
     kSameWork},
    {any, "*tcgen05.fence::after_thread_sync @ mma_role #0",
     "the fence after the wait for the stage comes before the first tcgen05 operation of the tile"},
    {one_cta, "exchange with the next tcgen05.fence::after_thread_sync: bar.warp.sync @ mma_role/wait #0",
     "the fence after the wait for the stage comes before the first tcgen05 operation of the tile"},
    {any, ".release to .relaxed barrier.cluster.arrive @ teardown #0", kFenceOrders},
    {any, "exchange with the next tcgen05.fence::after_thread_sync: barrier.cluster.wait @ teardown #0",
     kTeardown},
    {any, "exchange with the next barrier.cluster.arrive: bar.warp.sync @ prologue #0", kGathers},
    {split_of_ctas, "count [+-] 1 mbarrier.init @ prologue #1", kOneTile},
    {split_of_ctas, "no wait mbarrier.try_wait @ mma_role/wait #0", kOneTile},
    {split, "phase not flipped xor.b32 @ mma_role #0", kOneTile},
    {split, ".acquire to .relaxed mbarrier.try_wait @ reducing_epilogue_role/wait_for_accumulators/wait #0",
     kFenceOrders},
    {split, ".release to .relaxed mbarrier.arrive @ reducing_epilogue_role #0",
     "the thread has written nothing; the sums that others send publish themselves"},
    {split, "delete fence.proxy @ *leave_rings #0", kOtherRoles},
    {split, ".release to .relaxed barrier.cluster.arrive @ *leave_rings #0", kOtherRoles},
    {split, "exchange with the next barrier.cluster.arrive: fence.proxy @ *leave_rings #0", kOtherRoles},
    {split,
     "exchange with the next fence.proxy: "
     "tcgen05.fence::after_thread_sync @ reducing_epilogue_role/wait_for_accumulators #0",
     "both stay after the wait, and each orders accesses of its own kind: shared memory, tensor memory"},
    {split_of_ctas, "delete barrier.cluster.wait @ leave_rings #0",
     "what these warps do next is to meet the epilogue warps, which have waited, in the CTA barrier of the "
     "teardown"},
    {two_mma_per_step, "always accumulates tcgen05.mma @ mma_role/multiply/issue/issue #[67]", kLaterStep},
    {one_mma_per_step, "always accumulates tcgen05.mma @ mma_role/multiply/issue/issue #3", kLaterStep},
    {pair_of_one_product, "own barrier cp.async.bulk.tensor @ load_role/load_scales/load_to_both #0",
     "of one product the leader alone brings the scale factors of B, and its own barrier is the leader's"},
    {any, "starts with the other value mov.b32 @ mma_role/next #[01]", kNoTile},
    {any, "starts with the other value mov.b32 @ load_role/next #[12]", kNoTile},
    {shallow_stages, "* mbarrier.try_wait @ load_role/wait #[02]", kShallowStages, true},
    {shallow_stages, "arrive at once tcgen05.commit @ mma_role/multiply/give_back/commit #1", kShallowStages},
    {grouped_pair, "exchange with the next bar.sync: barrier.cluster.wait @ prologue #0",
     "every thread passes both barriers, and nothing stands between them"},
    {grouped, "delete griddepcontrol.wait @ kernel #*", kSizesRead},
    {grouped, "exchange with the next ld.shared: griddepcontrol.wait @ kernel #1", kSizesRead},
    {any, "delete bar.warp.sync @ *", kGathers},
    {any, "exchange with the next bar.sync: bar.warp.sync @ prologue #0", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ *_role/wait #*", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ mma_role/multiply/*wait #*", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ *_role/wait_for_cluster #*", kGathers},
    {any, "exchange with the next elect.sync: bar.warp.sync @ *_role*", kGathers},
    {any,
     "exchange with the next tcgen05.fence::after_thread_sync: bar.warp.sync @ mma_role/multiply/wait #*",
     kGathers},
    {any,
     "exchange with the next tcgen05.fence::after_thread_sync: bar.warp.sync @ *_role/wait_for_cluster #*",
     kGathers},
    {any, "exchange with the next tcgen05.fence::before_thread_sync: bar.warp.sync @ *", kGathers},
    {any, "exchange with the next bar.warp.sync: mbarrier.try_wait @ *wait_for_accumulators/wait #0",
     kGathers},
    {split, "exchange with the next bar.warp.sync: mbarrier.try_wait @ *wait_for_sums #0", kGathers},
    {any,
     "exchange with the next tcgen05.fence::after_thread_sync: "
     "bar.warp.sync @ *wait_for_accumulators/wait #0",
     kGathers},
    {any, "exchange with the next tcgen05.ld: bar.warp.sync @ epilogue_role #*", kGathers},
    {any, "exchange with the next bar.warp.sync: tcgen05.fence::before_thread_sync @ epilogue_role #0",
     kGathers},
    {any, "* @ load_role/drain/*", kDrain, true},
    {one_cta, "[!.]* @ mma_role/drain/*", kMmaDrain, true},
    {pair, "[!.]* @ mma_role/drain/wait_for_cluster*", kMmaDrain, true},
    {pair, "* @ mma_role/drain/operator++*", kMmaDrain, true},
    {pair, "exchange with the next bar.warp.sync: mbarrier.try_wait @ mma_role/drain/wait #*", kGathers},
    {windows, ".acquire to .relaxed mbarrier.try_wait @ mma_role/multiply/wait #[12]", kFenceOrders},
    {windows, "exchange with the next elect.sync: tcgen05.fence::after_thread_sync @ mma_role/multiply #[12]",
     "elect.sync touches no memory: the fence still stands between the wait and the copies"},
    {any, ".acquire to .relaxed * @ mma_role/drain/*", kMmaDrain},
};

std::span<const Entry> entries_for(const Mutant& mutant) {
  if (mutant.subject.is_sm90()) return equivalent_in_sm90();
  return kEntries;
}

const Entry* find(const Mutant& mutant) {
  for (const Entry& entry : entries_for(mutant))
    if (entry.holds(mutant.subject) && fnmatch(entry.id, mutant.id.c_str(), 0) == 0) return &entry;
  return nullptr;
}

}  // namespace

std::string why_equivalent(const Mutant& mutant) {
  const Entry* entry = find(mutant);
  return entry == nullptr ? std::string() : entry->reason;
}

bool equivalent_everywhere(const Mutant& mutant) {
  const Entry* entry = find(mutant);
  return entry != nullptr && entry->holds == any;
}

std::vector<std::string> idle_entries(const std::vector<Mutant>& mutants) {
  std::set<const Entry*> used;
  for (const Mutant& mutant : mutants) used.insert(find(mutant));
  std::vector<std::string> out;
  for (const Entry& entry : entries_for(mutants.at(0)))
    if (!used.contains(&entry)) out.push_back(entry.id + std::string(": ") + entry.reason);
  return out;
}

bool may_fail(const Mutant& mutant) {
  const Entry* entry = find(mutant);
  return entry != nullptr && entry->may_fail;
}

}  // namespace mutation
