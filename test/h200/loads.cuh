// loads.cuh -- the library's load roles without the rest of its kernel, on any GPU that has TMA: the
// prologue, the scheduler, the table of groups and both load roles are kernel/'s own; a consumer stands where
// the mma does. Instances, checks, tensor maps and launches are host/'s own as well. One CTA per tile, or per
// slice of K: pairs of CTAs need what Hopper lacks.
#pragma once

// nvcc puts parentheses around a member pointer's name, of which the compiler behind it then warns.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#include "host/launch.h"
#pragma GCC diagnostic pop
#include "host/validate.h"
#include "kernel/dual_gemm.cuh"
#include "test/h200/device.cuh"
#include "test/h200/sync.cuh"

namespace h200 {

using namespace dualgemm;

// In place of the mma: waits for what it would wait for, shows the consumer what arrived, and frees it by an
// arrival where the mma has tcgen05.commit. A slot is shown when it is about to be freed, so that one that
// was overwritten before is noticed.
template <class Cfg, class Scheduler, class Consumer>
__device__ void consume(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, Scheduler tiles,
                        Consumer consumer) {
  const KWalk<Cfg> walk(p.k_tiles, cta.slice);
  auto s = consumer_start<Cfg::kStages>();
  auto q = consumer_start<Cfg::kScaleStages>();
  uint32_t number = blockIdx.x / Cfg::kClusterSize;
  const auto free = [](uint64_t& empty) {
    fence_proxy_async();  // ordinary loads come before TMA writes there again; those of the mma need no fence
    __syncwarp();
    if (ptx::elect_sync()) ptx::mbarrier_arrive(&empty);
    __syncwarp();
  };
  for (Tile tile; tiles.next(tile); number += gridDim.x / Cfg::kClusterSize) {
    if (cta.slice == 0) consumer.tile(number, tile);
    int32_t slot_k = 0;
    for (int32_t i = 0; i < walk.length(); ++i) {
      const int32_t k = walk[i].pass * p.k_tiles + walk[i].index;
      if (walk.in_slot(i) == 0) {
        wait(smem.scale_full[q.index], q.phase);
        slot_k = k;
      }
      wait(smem.full[s.index], s.phase);
      consumer.stage(number, k, smem.stage[s.index]);
      free(smem.empty[s.index]);
      ++s;
      if (walk.ends_slot(i)) {
        consumer.slot(number, slot_k, smem.slot[q.index]);
        free(smem.scale_empty[q.index]);
        ++q;
      }
    }
  }
}

// `kWaits` is false to see what happens to activations that do not wait for the kernel in front.
template <class Cfg, class Consumer, bool kWaits>
__global__ void __launch_bounds__(kThreads, 1)
    load_kernel(const __grid_constant__ Params p, Consumer consumer) {
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Cfg>*>(smem_bytes);
  const Role role = role_of(warp_index());
  const auto cta = Cta<Cfg>::self();
  prologue<Cfg>(p, smem, cta, role);
  const auto tiles = scheduler<Cfg>(p, smem);
  switch (role) {
    case Role::kLoadWeights:
      if (!p.static_weights) ptx::griddepcontrol_wait();
      load_role<Cfg, Weights>(p, smem, cta, tiles);
      break;
    case Role::kLoadActivations:
      if (kWaits) ptx::griddepcontrol_wait();
      load_role<Cfg, Activations>(p, smem, cta, tiles);
      break;
    case Role::kMma: consume<Cfg>(p, smem, cta, tiles, consumer); break;
    default: break;
  }
}

// What host/ has to know of it.
template <class Cfg, class Consumer, bool kWaits = true>
Instance load_instance_of() {
  Instance i = {};
  i.name = "loads";
  i.kernel = reinterpret_cast<const void*>(&load_kernel<Cfg, Consumer, kWaits>);
  i.c_type = Cfg::kC;
  i.cta_group = Cfg::kCtaGroup;
  i.tile_m = Cfg::kTileM;
  i.tile_n = Cfg::kTileN;
  i.tile_k = Cfg::kTileK;
  i.split_k = Cfg::kSplitK;
  i.a_box_rows = Cfg::kABoxRows;
  i.b_box_rows = Cfg::kBBoxRows;
  i.sfb_blocks = Cfg::kSfbBlocks;
  i.scale_k_tiles = Cfg::kScaleKTiles;
  i.grouped = Cfg::kGrouped;
  i.threads = kThreads;
  i.smem_bytes = static_cast<int32_t>(sizeof(SharedStorage<Cfg>));
  return i;
}

inline void check(dualgemm_status_t status) {
  if (status != DUALGEMM_STATUS_SUCCESS) throw std::runtime_error(dualgemm_last_error());
}

// A launch that has passed the library's checks.
class Launch {
 public:
  Launch(const dualgemm_args_t& args, const Instance& instance) : instance_(instance) {
    check(validate(&args, &problem_));
    check(load_instance(instance_));
    check(make_params(problem_, instance_, &params_));
    dualgemm_device_t device;
    check(query_current_device(&device));
    ctas_ = grid_size(problem_, instance_, machine_of(problem_.args, device));
  }
  template <class Consumer>
  void run(cudaStream_t stream, Consumer consumer) {
    LaunchConfig launch;
    make_launch_config(problem_, instance_, ctas_, stream, &launch);
    void* arguments[] = {&params_, &consumer};
    check(cudaLaunchKernelExC(&launch.config, instance_.kernel, arguments), "launch");
  }
  const Params& params() const { return params_; }

 private:
  Instance instance_;
  Problem problem_;
  Params params_;
  int64_t ctas_;
};

inline dualgemm_args_t arguments(int32_t m, int32_t n, int32_t k) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.c_dtype = DUALGEMM_DTYPE_FP16;
  args.m = m;
  args.n = n;
  args.k = k;
  return args;
}

}  // namespace h200
