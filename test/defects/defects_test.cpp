// defects_test.cpp
#include "defects/defects.h"

#include "sim/shim/shim.h"
#include "support/catch.hpp"

using namespace defects;

#define TWIN(f, E)                                 \
  TEST_CASE("twin " #f #E) {                          \
    const Outcome o = f(E);                        \
    INFO(sim::shim::last_fault_text());            \
    CHECK(o.error == cudaSuccess);                 \
    CHECK(o.right);                                \
    sim::shim::clear_fault();                      \
  }
TWIN(ring, Ring::kNone)
TWIN(tma_store, Store::kNone)
TWIN(tma_store, Store::kFenceByIssuerAfterBarrier)
TWIN(tensor_map, Map::kNone)
TWIN(gemm, Gemm::kNone)
TWIN(gemm, Gemm::kRelaxedWaitWithFence)
TWIN(gemm, Gemm::kCommitEveryMma)
TWIN(stored_scales, Scales::kNone)
TWIN(pair, Pair::kNone)
TWIN(cluster_exchange, Exchange::kNone)
TWIN(remote_arrive, RemoteArrive::kNone)
TWIN(async_store, AsyncStore::kNone)
TWIN(multicast, Multicast::kNone)
TWIN(named_barrier, Named::kNone)
TWIN(mailbox, Mailbox::kNone)
TWIN(register_pool, Registers::kNone)
TWIN(lanes, Lanes::kNone)
TWIN(block_tile, Tile::kNone)
TWIN(global_flag, Flag::kNone)
TWIN(last_block, Count::kNone)
TWIN(overlapping_output, Overlap::kNone)
TWIN(streams, Streams::kNone)
TWIN(dependent_launch, Dependent::kNone)
