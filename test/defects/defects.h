// defects.h -- the fixtures: small kernels, each of which exists correct (kNone) and with one defect planted
// in one line. Every function builds its inputs, runs the kernel with the defect it is given and says whether
// the device ran to its end and whether every value was right.
#pragma once

#include <driver_types.h>

namespace defects {

struct Outcome {
  cudaError_t error;
  bool right;
};

// smem_tma.cu: a ring of two stages filled by bulk copies, read by two warps through ld.shared.
enum class Ring {
  kNone,
  kArriveWithoutBytes,
  kFewBytes,
  kManyBytes,
  kConsumerParity,
  kProducerParity,
  kParityNotFlipped,
  kWrongStage,
  kNoFullWait,
  kNoEmptyWait,
  kEmptyCountHigh,
  kEmptyCountLow,
  kTailDropped,
  kNoBarrierAfterInit,
  kNoProxyFence,
  kArriveBeforeSyncwarp,
  kWholeWarpIssues,
  kInitTwice,
  kDataOnBarrier,
  kSplitExpect,      // correct: the bytes are announced in two parts
  kExpectAfterCopy,  // correct: the bytes are announced behind the copies
  kClusterScope,     // correct: a wider scope than needed
};
Outcome ring(Ring defect);

// tma_store.cu: two tiles leave through one shared buffer, written by two warps and stored by one thread; a
// second CTA reads them after a flag.
enum class Store {
  kNone,
  kNoProxyFence,
  kFenceBeforeBarrier,
  kNoBarrier,
  kNoReadWaitBeforeReuse,
  kNoWaitBeforeExit,
  kReadWaitBeforeFlag,
  kFenceByIssuerAfterBarrier,  // correct: the other place where the fence may stand
};
Outcome tma_store(Store defect);

// tensor_map.cu: boxes of a tensor map, one of them across the edge; a map patched in global memory.
enum class Map {
  kNone,
  kBytesOfPartialBox,
  kPatchedWithoutFence,
  kPatchedInFlight,
};
Outcome tensor_map(Map defect);

// tensor_memory.cu: an NVFP4 product as a GEMM makes it: three tiles of two k-blocks, two stages, two
// accumulators, six warps.
enum class Gemm {
  kNone,
  kNoFullWait,
  kNoEmptyWait,
  kRelaxedEmptyWait,
  kCommitToOtherStage,
  kCommitToFull,
  kCommitBeforeMma,
  kArriveInsteadOfCommit,
  kNoAfterFence,
  kNoAfterFenceRelaxedWait,
  kNoBeforeFence,
  kNoBeforeFenceRelaxedArrive,
  kNoWaitLd,
  kAddressReadEarly,
  kScaleColumn,
  kOneScaleRegion,
  kSwizzleMismatch,
  kStepTooShort,
  kAccumulateFirst,
  kAccumulateOnOldTile,
  kAccumulatorNotToggled,
  kNoDealloc,
  kDeallocByHalfWarp,
  kDeallocFewerColumns,
  kAllocAfterRelinquish,
  kWrongQuarter,
  kScaleFormatId,
  kTileAliasesStage,
  kNoAccumulatorWait,
  kRelaxedWaitWithFence,  // correct
  kCommitEveryMma,        // correct: more commits than needed, each with its arrival
};
Outcome gemm(Gemm defect);

// tensor_memory.cu: scale factors written by tcgen05.st of four warps, used by the product of a fifth.
enum class Scales {
  kNone,
  kNoProxyFence,
  kNoWaitSt,
  kOverwrittenBeforeRead,
  kCommitByOtherThread,
  kNoFences,
};
Outcome stored_scales(Scales defect);

// pair.cu: the product of a pair of CTAs, two tiles with one accumulator.
enum class Pair {
  kNone,
  kCommitToOneCta,
  kPeerBytesNotAwaited,
  kArriveDefaultScope,
  kNoInitFence,
  kStagesNotDrained,
};
Outcome pair(Pair defect);

// cluster.cu
enum class Exchange { kNone, kNoBarrier, kRelaxedArrive, kPeerMayHaveExited, kPeerMayNotHaveStarted };
Outcome cluster_exchange(Exchange defect);
enum class RemoteArrive { kNone, kDefaultScope, kWaitDefaultScope, kNoInitFence, kLocalForm };
Outcome remote_arrive(RemoteArrive defect);
enum class AsyncStore { kNone, kNoWait, kFewBytes };
Outcome async_store(AsyncStore defect);
enum class Multicast { kNone, kMaskWithoutPeer, kPeerExpectsNothing, kPeerNotAwaited };
Outcome multicast(Multicast defect);

// barriers.cu
enum class Named { kNone, kCountTooHigh, kMixedCounts, kNoBarrier, kWriterOnlyArrives, kMixedForms };
Outcome named_barrier(Named defect);
enum class Mailbox { kNone, kReadersNotAwaited };
Outcome mailbox(Mailbox defect);
enum class Registers { kNone, kPoolExceeded };
Outcome register_pool(Registers defect);

// lanes.cu
enum class Lanes { kNone, kNoSyncwarp, kElectAsBarrier, kShuffleAsBarrier, kDivergentAligned, kSameWord };
Outcome lanes(Lanes defect);

// global.cu
enum class Tile { kNone, kNoSyncthreads, kNoSyncBeforeReuse, kNoCopyWait, kNoSyncAfterCopy };
Outcome block_tile(Tile defect);
enum class Written { kNone, kNoProxyFence };
Outcome written_then_copied(Written defect);
enum class Single { kNone, kFreshParity };
Outcome single_copy(Single defect);
enum class Flag { kNone, kRelaxedStore, kRelaxedLoad, kCtaScope, kNoFlag };
Outcome global_flag(Flag defect);
enum class Count { kNone, kPlainIncrement, kNoFenceBeforeCount };
Outcome last_block(Count defect);
enum class Overlap { kNone, kSameAddress, kOutOfBounds, kUninitialised };
Outcome overlapping_output(Overlap defect);

// host_order.cu
enum class Streams { kNone, kNoEvent, kCopyWithoutEvent, kUsedAfterFree };
Outcome streams(Streams defect);
enum class Dependent { kNone, kNoGridWait };
Outcome dependent_launch(Dependent defect);

}  // namespace defects
