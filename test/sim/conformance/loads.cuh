// loads.cuh -- the library's load roles without the rest of its kernel, on any GPU that has TMA: the
// prologue, the scheduler, the table of groups and both load roles are kernel/'s own; a consumer takes the
// place of the mma. Instances, checks, tensor maps and launches are host/'s own as well. One CTA per tile, or
// per slice of K: pairs of CTAs need what Hopper lacks.
#pragma once

// nvcc puts parentheses around a member pointer's name, and the host compiler, which comes next, warns of
// them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#include "host/common/device.h"
#include "host/launch/launch.h"
#include "host/launch/load.h"
#include "host/model/tiling.h"
#pragma GCC diagnostic pop
#include "bench/ablation/k_order.cuh"
#include "bench/ablation/one_product.cuh"
#include "host/launch/validate.h"
#include "kernel/sm100/instance.cuh"
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {

using namespace dualgemm;
using namespace dualgemm::sm100;

// These are the kernel's traits with these options; its epilogue plays no part here.
template <Options kOptions>
struct LoadTraits : Parts<LoadTraits<kOptions>> {
  static constexpr Plan kPlan = plan_of(kOptions);
  static_assert(possible<kOptions, kPlan>());
  using Output = Fp16;
  using Arithmetic = PlainSwiglu;
};
// Two more kinds, made of parts of bench/: in the first, the second product comes after the first; in the
// second, the main loop of each CTA starts at another k-tile.
template <Options kOptions>
struct ProductsTraits : Parts<ProductsTraits<kOptions>> {
  static constexpr Plan kPlan = plan_of(kOptions, bench::kOneAfterOther);
  using Output = Fp16;
  using KLoop = bench::ProductLoop<ProductsTraits>;
  using LoadWeights = bench::LoadOneWeight<ProductsTraits>;
};
template <Options kOptions>
struct RotatedTraits : Parts<RotatedTraits<kOptions>> {
  static constexpr Plan kPlan = plan_of(kOptions);
  using Output = Fp16;
  using KLoop = bench::RotatedLoop<RotatedTraits>;
};

// A tile has this many main loops over K: two where the products come one after the other.
template <class Traits>
inline constexpr int32_t kMainLoops = Traits::kPlan.mma.accumulators / Traits::kPlan.mma.products;
// Returns the main loop to which a k-tile belongs.
inline __device__ int32_t main_loop_of(const KTile&) { return 0; }
inline __device__ int32_t main_loop_of(const bench::KTileOfProduct& k) { return k.product; }

// Takes the place of the mma: waits for what the mma would wait for, shows the consumer what arrived, and
// frees a stage by an arrival where the mma has tcgen05.commit. A stage is shown when it is about to be
// freed, so that a stage that was overwritten before that is noticed.
template <class Traits, class Scheduler, class Consumer>
__device__ void consume(const Params& p, Rings<Traits>& rings, Cta<Traits> cta, Scheduler tiles,
                        Consumer consumer) {
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  auto s = consumer_start<Rings<Traits>::kStages>();
  auto q = consumer_start<Rings<Traits>::kScaleStages>();
  constexpr uint32_t kClusterSize = Traits::kPlan.cluster_size();
  uint32_t number = blockIdx.x / kClusterSize;
  const auto free = [](uint64_t& empty) {
    fence_proxy_async();  // ordinary loads come before TMA writes there again; those of the mma need no fence
    __syncwarp();
    if (ptx::elect_sync()) ptx::mbarrier_arrive(&empty);
    __syncwarp();
  };
  for (Tile tile; tiles.next(tile); number += gridDim.x / kClusterSize) {
    if (cta.slice == 0) consumer.tile(number, tile);
    int32_t first_k = 0;
    for (int32_t i = 0; i < loop.length(); ++i) {
      const int32_t k = main_loop_of(loop[i]) * p.k_tiles + loop[i].index;
      if (loop.in_scale_stage(i) == 0) {
        wait(rings.scale_full[q.index], q.phase);
        first_k = k;
      }
      wait(rings.full[s.index], s.phase);
      consumer.stage(number, k, rings.stage[s.index]);
      free(rings.empty[s.index]);
      ++s;
      if (loop.ends_scale_stage(i)) {
        consumer.scale_stage(number, first_k, rings.scale_stage[q.index]);
        free(rings.scale_empty[q.index]);
        ++q;
      }
    }
  }
}

// `kWaits` is false to see what happens to activations that do not wait for the preceding kernel.
template <class Traits, class Consumer, bool kWaits>
__global__ void __launch_bounds__(Traits::kPlan.threads, 1)
    load_kernel(const __grid_constant__ Params p, Consumer consumer) {
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Traits>*>(smem_bytes);
  const Role role = role_of<Traits>(warp_index());
  const auto cta = Cta<Traits>::self();
  prologue<Traits>(p, smem, cta, role);
  const auto tiles = scheduler<Traits>(p, smem);
  switch (role) {
    case Role::kLoadWeights:
      if (!p.static_weights) ptx::griddepcontrol_wait();
      load_role<typename Traits::LoadWeights>(p, smem.rings, cta, tiles);
      break;
    case Role::kLoadActivations:
      if (kWaits) ptx::griddepcontrol_wait();
      load_role<typename Traits::LoadActivations>(p, smem.rings, cta, tiles);
      break;
    case Role::kMma: consume<Traits>(p, smem.rings, cta, tiles, consumer); break;
    default: break;
  }
}

// Returns what host/ has to know of the instance. The kernel takes a second argument: Launch::run passes it.
template <class Traits, class Consumer, bool kWaits = true>
Instance load_instance_of() {
  Instance i = {};
  i.name = "loads";
  // The conversion goes by way of the type that stands for any function: nobody calls it through this
  // pointer.
  i.kernel = reinterpret_cast<void (*)(Params)>(
      reinterpret_cast<void (*)()>(&load_kernel<Traits, Consumer, kWaits>));
  i.plan = Traits::kPlan;
  i.epilogue = {false, 1, {{Traits::Output::kType, "", Traits::Output::kBits, 0}}};
  i.smem_bytes = static_cast<int32_t>(sizeof(SharedStorage<Traits>));
  return i;
}

inline void check(dualgemm_status_t status) {
  if (status != DUALGEMM_STATUS_SUCCESS) throw std::runtime_error(dualgemm_last_error());
}

// This is a launch that has passed the library's checks.
class Launch {
 public:
  Launch(const dualgemm_args_t& args, const Instance& instance) : instance_(instance) {
    check(validate(&args, &problem_));
    check(load_instance(instance_));
    check(make_params(problem_, instance_, &params_));
    dualgemm_device_t device;
    check(query_current_device(&device));
    machine_ = machine_of(problem_.args, device);
    ctas_ = grid_size(problem_, instance_.plan, machine_);
  }
  template <class Consumer>
  void run(cudaStream_t stream, Consumer consumer) {
    LaunchConfig launch;
    make_launch_config(problem_, instance_, machine_, ctas_, stream, &launch);
    void* arguments[] = {&params_, &consumer};
    check_cuda(
        cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void*>(instance_.kernel), arguments),
        "launch");
  }
  const Params& params() const { return params_; }

 private:
  Instance instance_;
  Problem problem_;
  Params params_;
  Machine machine_;
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

}  // namespace conformance
