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
constexpr const char* kOneCta = "m[16]*";  // instances whose mma work for one CTA

constexpr const char* kNoTile =
    "the value is used by a CTA without a tile alone, and the library launches none";
constexpr const char* kGathers =
    "no memory passes between lanes here, and the next .sync or .aligned instruction (elect, tcgen05.ld, "
    "tcgen05.alloc, bar.sync, barrier.cluster) waits for the whole warp by itself";
constexpr const char* kShallowScales =
    "the ring of scale factors is the shallower one: "
    "the mma that gave its scale stage back come after those that read the stage, and the scale stage is "
    "waited for first";
constexpr const char* kShallowStages =
    "the ring of stages is the shallower one: "
    "the wait for the stage of the k-tile before comes after the mma that read the scale stage";
constexpr const char* kSizesRead =
    "the warp that makes the table of groups has waited, and every role comes after the table";
constexpr const char* kSameWork =
    "both commits stand for the same mma and copies; which arrives first is open";

constexpr const char* kWindows = "m256n1[29]*k256*";  // scale factors pass through windows
constexpr const char* kSplit = "*k256s[24]_*";
constexpr const char* kOneTile =
    "split over K there is one tile: acc_empty is waited for once, in the phase before its first, "
    "and nothing arrives on it";
constexpr const char* kSplitTeardown =
    "the cluster barrier after the exchange comes after every load of tensor memory, "
    "each of which was waited for by wait::ld";

constexpr const char* kOtherRoles =
    "the epilogue warps, which have waited for acc_full, and the load roles, which have drained the rings, "
    "know the same copies and mma to be complete, and all meet in this barrier: "
    "either may fence and release for both; the change in all roles at once is planted";
constexpr const char* kOnlyAttends =
    "between the two barriers of the exchange these warps touch no memory: they have nothing to publish";

constexpr Entry kEntries[] = {
    {"*", "own value shfl.sync @ warp_index #*", kBroadcast},
    {"*", "16 lanes away shfl.sync @ warp_index #*", kBroadcast},
    {"m[16]*k256[g_]*", ".gpu to .cta red @ *", "one CTA computes all tiles of the launch"},
    {"*", "delete prefetch.tensormap @ *", kPrefetch},
    {"*[!g]_fp16", "every lane elect.sync @ prologue #0", "32 prefetches are as good a hint as one"},
    {"*[!g]_fp16", "no lane elect.sync @ prologue #0", kPrefetch},
    {"*g_fp16", "every lane elect.sync @ prologue #1", "32 prefetches are as good a hint as one"},
    {"*g_fp16", "no lane elect.sync @ prologue #1", kPrefetch},
    {"*", "delete tcgen05.relinquish_alloc_permit @ *",
     "the CTA allocates once; the permit matters to others"},
    {"*",
     "exchange with the next tcgen05.fence::before_thread_sync: "
     "tcgen05.relinquish_alloc_permit @ allocate_tensor_memory #0",
     "the permit concerns other CTAs and orders nothing of this one"},
    {kOneCta, "exchange with the next fence.mbarrier_init: *", kInitFence},
    {"*", "*tcgen05.fence::before_thread_sync @ allocate_tensor_memory #*", kAlloc},
    {"*", "*tcgen05.fence::after_thread_sync @ allocate_tensor_memory #*", kAlloc},
    {"*",
     "exchange with the next tcgen05.fence::after_thread_sync: barrier.cta.sync @ allocate_tensor_memory #*",
     kAlloc},
    {"*", "next barrier barrier.cta.sync @ allocate_tensor_memory #0",
     "any barrier that nobody else uses serves"},
    {"*", "*tcgen05.fence::before_thread_sync @ teardown #*", kTeardown},
    {"*", "*tcgen05.fence::after_thread_sync @ teardown #*", kTeardown},
    {"*", "exchange with the next tcgen05.fence::after_thread_sync: bar.sync @ teardown #*", kTeardown},
    {"*", ".acquire to .relaxed mbarrier.try_wait @ epilogue_role/wait_for_accumulators/wait #0",
     kFenceOrders},
    {kOneCta, ".acquire to .relaxed mbarrier.try_wait @ mma_role/wait #0", kFenceOrders},
    {"*", ".release to .relaxed mbarrier.arrive @ epilogue_role/arrive_at_leader #0", kFenceOrders},
    {"*", ".release to .relaxed mbarrier.arrive @ load_role/*",
     "the loading thread has written nothing; the copies publish their own bytes"},
    {"*", "exchange with the next cp.async.bulk.tensor: mbarrier.arrive @ load_role/*",
     "the phase cannot complete before this thread's arrival, and its byte count may run below zero"},
    {"*", "* lane elect.sync @ load_role #4", kDependents},
    {"*", "delete griddepcontrol.launch_dependents @ *", kDependents},
    {"*", "exchange with the next griddepcontrol.launch_dependents: *", kDependents},
    {"m128n64k256_fp16", "* mbarrier.try_wait @ load_role/wait #[13]", kShallowScales, true},
    {"m128n64k256_fp16", "arrive at once tcgen05.commit @ mma_role/multiply/give_back/commit #0",
     kShallowScales},
    {"*", "exchange with the next tcgen05.commit: tcgen05.commit @ mma_role/multiply/give_back/commit #0",
     kSameWork},
    {"*", "*tcgen05.fence::after_thread_sync @ mma_role #0",
     "the fence after the wait for the stage comes before the first tcgen05 operation of the tile"},
    {kOneCta, "exchange with the next tcgen05.fence::after_thread_sync: bar.warp.sync @ mma_role/wait #0",
     "the fence after the wait for the stage comes before the first tcgen05 operation of the tile"},
    {"*", ".release to .relaxed barrier.cluster.arrive @ teardown #0", kFenceOrders},
    {"*", "exchange with the next tcgen05.fence::after_thread_sync: barrier.cluster.wait @ teardown #0",
     kTeardown},
    {"*", "exchange with the next barrier.cluster.arrive: bar.warp.sync @ prologue #0", kGathers},
    {"m64n128k256s4_fp16", "count [+-] 1 mbarrier.init @ prologue #1", kOneTile},
    {"m64n128k256s4_fp16", "no wait mbarrier.try_wait @ mma_role/wait #0", kOneTile},
    {kSplit, "phase not flipped xor.b32 @ mma_role #0", kOneTile},
    {kSplit, "delete bar.sync @ teardown #0", kSplitTeardown},
    {kSplit, "arrive only bar.sync @ teardown #0", kSplitTeardown},
    {kSplit, ".acquire to .relaxed mbarrier.try_wait @ reducing_epilogue_role/wait_for_accumulators/wait #0",
     kFenceOrders},
    {kSplit, "delete fence.proxy @ */leave_rings #0", kOtherRoles},
    {kSplit, ".release to .relaxed barrier.cluster.arrive @ */leave_rings/meet_cluster #0", kOtherRoles},
    {kSplit, "exchange with the next barrier.cluster.arrive: fence.proxy @ */leave_rings #0", kOtherRoles},
    {kSplit, "exchange with the next fence.proxy: bar.warp.sync @ load_role/drain/wait #*", kOtherRoles},
    {kSplit,
     "exchange with the next fence.proxy: "
     "tcgen05.fence::after_thread_sync @ reducing_epilogue_role/wait_for_accumulators #0",
     "both stay after the wait, and each orders accesses of its own kind: shared memory, tensor memory"},
    {kSplit, ".release to .relaxed barrier.cluster.arrive @ attend_reduction/meet_cluster #0", kOnlyAttends},
    {"m64n128k256s4_fp16", "delete barrier.cluster.wait @ attend_reduction/meet_cluster #0",
     "what these warps do next is to meet the epilogue warps, which have waited, in the CTA barrier of the "
     "teardown"},
    {"m256n128k256s2_fp16", "no barrier barrier.cluster.arrive @ attend_reduction/*meet_cluster #0",
     "these warps pass the two barriers of the exchange and that of the teardown with nothing between: "
     "with one fewer they leave after the second, which no access to tensor memory or another CTA follows; "
     "the last one does not wait for threads that have exited"},
    {kSplit,
     "exchange with the next bar.warp.sync: st.shared::cluster @ reducing_epilogue_role/send_partial_sums #*",
     kGathers},
    {kSplit,
     "exchange with the next tcgen05.fence::before_thread_sync: st.global @ reducing_epilogue_role/finish/*",
     "the fence orders tcgen05 operations alone, and the store is none"},
    {"m128n64k256_fp16", "always accumulates tcgen05.mma @ mma_role/multiply/issue/issue #[67]",
     "from the second step of a k-tile on it accumulates anyway"},
    {"*", "starts with the other value mov.b32 @ mma_role/next #[01]", kNoTile},
    {"*", "starts with the other value mov.b32 @ load_role/next #[12]", kNoTile},
    {"m64n128k256g_fp16", "* mbarrier.try_wait @ load_role/wait #[02]", kShallowStages, true},
    {"m64n128k256g_fp16", "arrive at once tcgen05.commit @ mma_role/multiply/give_back/commit #1",
     kShallowStages},
    {"m256*g_fp16", "exchange with the next bar.sync: barrier.cluster.wait @ prologue #0",
     "every thread passes both barriers, and nothing stands between them"},
    {"*g_fp16", "delete griddepcontrol.wait @ kernel #*", kSizesRead},
    {"*g_fp16", "exchange with the next ld.shared: griddepcontrol.wait @ kernel #1", kSizesRead},
    {"*", "delete bar.warp.sync @ *", kGathers},
    {"*", "exchange with the next bar.sync: bar.warp.sync @ prologue #0", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ *_role/wait #*", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ mma_role/multiply/*wait #*", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ *_role/wait_for_cluster #*", kGathers},
    {"*", "exchange with the next elect.sync: bar.warp.sync @ *_role*", kGathers},
    {"*",
     "exchange with the next tcgen05.fence::after_thread_sync: bar.warp.sync @ mma_role/multiply/wait #*",
     kGathers},
    {"*",
     "exchange with the next tcgen05.fence::after_thread_sync: bar.warp.sync @ *_role/wait_for_cluster #*",
     kGathers},
    {"*", "exchange with the next tcgen05.fence::before_thread_sync: bar.warp.sync @ *", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ *wait_for_accumulators/wait #0",
     kGathers},
    {"*",
     "exchange with the next tcgen05.fence::after_thread_sync: "
     "bar.warp.sync @ *wait_for_accumulators/wait #0",
     kGathers},
    {"*", "exchange with the next tcgen05.ld: bar.warp.sync @ epilogue_role #*", kGathers},
    {"*", "exchange with the next bar.warp.sync: tcgen05.fence::before_thread_sync @ epilogue_role #0",
     kGathers},
    {"*", "* @ load_role/drain/*", kDrain, true},
    {kOneCta, "[!.]* @ mma_role/drain/*", kMmaDrain, true},
    {"m256*", "[!.]* @ mma_role/drain/wait_for_cluster*", kMmaDrain, true},
    {"m256*", "* @ mma_role/drain/operator++*", kMmaDrain, true},
    {"m256*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ mma_role/drain/wait #*", kGathers},
    {kWindows, ".acquire to .relaxed mbarrier.try_wait @ mma_role/multiply/wait #[12]", kFenceOrders},
    {kWindows,
     "exchange with the next elect.sync: tcgen05.fence::after_thread_sync @ mma_role/multiply #[12]",
     "elect.sync touches no memory: the fence still stands between the wait and the copies"},
    {"*", ".acquire to .relaxed * @ mma_role/drain/*", kMmaDrain},
};

std::span<const Entry> entries_for(const Mutant& mutant) {
  if (is_sm90(mutant.instance)) return equivalent_in_sm90();
  return kEntries;
}

const Entry* find(const Mutant& mutant) {
  for (const Entry& entry : entries_for(mutant))
    if (fnmatch(entry.instance, mutant.instance.c_str(), 0) == 0 &&
        fnmatch(entry.id, mutant.id.c_str(), 0) == 0)
      return &entry;
  return nullptr;
}

}  // namespace

std::string why_equivalent(const Mutant& mutant) {
  const Entry* entry = find(mutant);
  return entry == nullptr ? std::string() : entry->reason;
}

bool equivalent_everywhere(const Mutant& mutant) {
  const Entry* entry = find(mutant);
  return entry != nullptr && entry->instance == std::string("*");
}

std::vector<std::string> idle_entries(const std::vector<Mutant>& mutants) {
  std::set<const Entry*> used;
  for (const Mutant& mutant : mutants) used.insert(find(mutant));
  std::vector<std::string> out;
  for (const Entry& entry : entries_for(mutants.at(0)))
    if (!used.contains(&entry)) out.push_back(std::string(entry.instance) + " / " + entry.id);
  return out;
}

bool may_fail(const Mutant& mutant) {
  const Entry* entry = find(mutant);
  return entry != nullptr && entry->may_fail;
}

}  // namespace mutation
