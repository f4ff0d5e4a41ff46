// equivalent_sm90.cpp -- see equivalent.h: the table of compute capability 9.0.
#include "mutation/equivalent.h"

namespace mutation {
namespace {

constexpr const char* kGathers =
    "no memory passes between lanes here, and the next .sync or .aligned instruction (elect, wgmma, bar.sync, "
    "barrier.cluster) waits for the whole warp by itself";
constexpr const char* kOtherWait =
    "the lanes must have met between their reads of a stage and the arrival that frees it, which comes a "
    "k-tile later: there are two waits between, and each brings them together";
constexpr const char* kPanelWaits =
    "of the five waits of a k-tile one of the others brings the lanes together between their reads of the "
    "stage and the arrival that frees it";
constexpr const char* kFencedByLoads =
    "before its copies each load role executes fence.proxy.async, which comes after the CTA barrier: that "
    "orders the initialisation, too";
constexpr const char* kMeetFirst =
    "those that multiply touch nothing of a launch before they have met the other roles, which have waited";
constexpr const char* kExpandersFence =
    "what the expanders have read of A they fence themselves before they arrive on ready";
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
    "those that multiply wait in this barrier, too, and so do the other roles: either keep the CTA there, and "
    "threads that have exited are not waited for";
constexpr const char* kOnlyAttends = "these warps have written nothing that others read: nothing to publish";
constexpr const char* kStillBetween =
    "both stay between the last access before and the first one behind, and neither touches memory itself";

constexpr const char* kSplit = "*k256s[23]*";

constexpr EquivalentEntry kEntries[] = {
    {"*", "own value shfl.sync @ warp_index #*", kBroadcast},
    {"*", "16 lanes away shfl.sync @ warp_index #*", kBroadcast},
    {"*", "own value shfl.sync @ multiply_role/multiply/descriptor_of #*", kBroadcast},
    {"*", "16 lanes away shfl.sync @ multiply_role/multiply/descriptor_of #*", kBroadcast},
    {"*[!g]_*", "* lane elect.sync @ prologue #0", kPrefetch},
    {"sm90m[368]*", "delete fence.mbarrier_init @ prologue #0", kFencedByLoads},
    {"sm90m16*", "delete fence.mbarrier_init @ prologue #0", kFencedByLoads},
    {"*", "exchange with the next fence.mbarrier_init: mbarrier.init @ *", kInitFence},
    {"*", "* @ load_role/drain/*", kDrain, true},
    {"*", "* lane elect.sync @ load_role #2", kDependents},
    {"*", "delete griddepcontrol.launch_dependents @ *", kDependents},
    {"*", "exchange with the next griddepcontrol.launch_dependents: elect.sync @ *", kDependents},
    {"sm90m8*", "delete griddepcontrol.wait @ kernel #0", kMeetFirst},
    {"sm90m16n32*", "delete griddepcontrol.wait @ kernel #0", kMeetFirst},
    {"sm90m8*", "delete fence.proxy @ load_role/load_role #1", kExpandersFence},
    {"sm90m16n32*", "delete fence.proxy @ load_role/load_role #1", kExpandersFence},
    {"*", ".release to .relaxed mbarrier.arrive @ load_role/load_role #0", kLoaderWrites},
    {"*", ".release to .relaxed mbarrier.arrive @ load_panels_role #0", kLoaderWrites},
    {"*", "* @ load_panels_role/drain/*", kDrain, true},
    {"*", "* lane elect.sync @ load_panels_role #1", kDependents},
    {"*", "exchange with the next bar.warp.sync: griddepcontrol.launch_dependents @ load_panels_role #0",
     kDependents},
    {"*", "exchange with the next cp.async.bulk.tensor: mbarrier.arrive @ load_panels_role #0", kCounts},
    {"*", "exchange with the next cp.async.bulk.tensor: mbarrier.arrive @ load_role/*", kCounts},
    {"*", "exchange with the next mbarrier.arrive: fence.proxy @ load_role/load_role #*", kStillBetween},
    {"*", "exchange with the next fence.proxy: elect.sync @ load_role #*", kStillBetween},
    {"*", "next barrier barrier.cta.sync @ multiply_role/finish #0",
     "any barrier that nobody else uses serves"},
    {kSplit, ".release to .relaxed mbarrier.arrive @ multiply_role/multiply/release #1", kOneTile},
    {kSplit, "delete bar.warp.sync @ multiply_role/multiply #0", kOneTile},
    {kSplit, "exchange with the next mbarrier.arrive: bar.warp.sync @ multiply_role/multiply #0", kOneTile},
    {kSplit, "exchange with the next barrier.cta.sync: mbarrier.arrive @ multiply_role/multiply/release #1",
     kOneTile},
    {kSplit, "delete barrier.cluster.wait @ multiply_role/finish/meet_cluster #1", kOtherRoles},
    {kSplit, "no barrier barrier.cluster.arrive @ meet_cluster #[01]", kOtherRoles},
    {kSplit, "delete barrier.cluster.wait @ meet_cluster #1", kOtherRoles},
    {kSplit, ".release to .relaxed barrier.cluster.arrive @ meet_cluster #[01]", kOnlyAttends},
    {"sm90m8*", "delete bar.warp.sync @ multiply_role/multiply/wait #[01]", kOtherWait},
    {kSplit, "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/multiply/wait #[01]",
     kOtherWait},
    {kSplit, "exchange with the next ld.shared: bar.warp.sync @ multiply_role/multiply/wait #0",
     "each lane has waited for itself"},
    {"sm90m16*", "delete bar.warp.sync @ multiply_role/multiply/wait #[01]", kOtherWait},
    {"sm90m16*",
     "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/multiply/wait #[01]",
     kOtherWait},
    {"sm90m16*", "exchange with the next ld.shared: bar.warp.sync @ multiply_role/multiply/wait #0",
     "each lane has waited for itself"},
    {"sm90m128*", "delete bar.warp.sync @ multiply_role/multiply/wait #[014]", kPanelWaits},
    {"sm90m128*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/multiply/wait #0",
     kPanelWaits},
    {"sm90m128*", "exchange with the next ld.shared: bar.warp.sync @ multiply_role/multiply/wait #0",
     "each lane has waited for itself"},
    {"sm90m128*",
     "exchange with the next bar.warp.sync: mbarrier.try_wait @ multiply_role/multiply/wait #[14]",
     "the lanes have loaded what they need of the stage before this wait, and meet before they free it"},
    {"sm90m128*",
     "exchange with the next mbarrier.arrive: mbarrier.arrive @ multiply_role/multiply/release #3",
     "they are arrivals on two barriers, for each of which all is done: which comes first is open"},
    {"sm90m128*",
     "exchange with the next wgmma.wait_group: mbarrier.arrive @ multiply_role/multiply/release #4",
     "the arrival frees operands that lanes have loaded, and no wgmma reads those"},
    {"*", "exchange with the next wgmma.fence: bar.warp.sync @ multiply_role/multiply/wait #*",
     kStillBetween},
    {"*", "exchange with the next wgmma.wait_group: wgmma.wait_group @ multiply_role/multiply #*",
     "all groups are waited for where one might still be under way"},
    {"*", "exchange with the next bar.warp.sync: wgmma.wait_group @ multiply_role/multiply #*",
     "the one is about wgmma, the other about what lanes have loaded, and both stand before what follows"},
    {"*", "exchange with the next bar.warp.sync: fence.proxy @ expand_role #0",
     "the lane that arrives has met the others before: its fence stands between their stores and its arrival"},
    {"*", "exchange with the next elect.sync: bar.warp.sync @ expand_role #0", kStillBetween},
    {"*", "delete bar.warp.sync @ prologue #0", kGathers},
    {"*", "delete bar.warp.sync @ expand_role/wait #0", kGathers},
    {"*", "delete bar.warp.sync @ expand_role #1", kGathers},
    {"*", "delete bar.warp.sync @ load_role*", kGathers},
    {"*", "delete bar.warp.sync @ load_panels_role*", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ load_panels_role/wait #0", kGathers},
    {"*", "exchange with the next elect.sync: bar.warp.sync @ load_panels_role/wait #0", kGathers},
    {"*", "delete bar.warp.sync @ multiply_role/finish/finish_rows #0", kGathers},
    {"*", "exchange with the next bar.sync: bar.warp.sync @ prologue #0", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ expand_role/wait #0", kGathers},
    {"*", "exchange with the next bar.warp.sync: mbarrier.try_wait @ load_role/wait #*", kGathers},
    {"*", "exchange with the next elect.sync: bar.warp.sync @ load_role/wait #*", kGathers},
};

}  // namespace

std::span<const EquivalentEntry> equivalent_in_sm90() { return kEntries; }

}  // namespace mutation
