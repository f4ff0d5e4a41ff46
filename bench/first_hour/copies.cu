// copies.cu -- what TMA and DRAM do: copies into one SM and into all, from L2 and from DRAM, one at a time
// and with many under way; and the copy port of an SM.
#include <cudaTypedefs.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/first_hour/clock.cuh"
#include "bench/first_hour/microbenchmark.h"
#include "host/common/driver_function.h"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/tma.cuh"
#include "test/support/device_memory.h"

namespace bench {
namespace {

namespace ptx = dualgemm::ptx;
using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr int kRowBytes = 128, kBoxRows = 128, kBoxBytes = kRowBytes * kBoxRows;
constexpr int kMostStages = 12, kIssued = 64, kSmallRows = 8;

// Every word of a row is the number of the row.
__global__ void number_rows(uint32_t* words, int64_t rows) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * (kRowBytes / 4); i += step)
    words[i] = static_cast<uint32_t>(i / (kRowBytes / 4));
}

// Which boxes a CTA copies: `each` boxes again and again, from its own first one on. Neighbours in a number
// of `share` have the same ones.
struct Walk {
  int32_t copies, stages, share, each, first;
};

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// Keeps `stages` boxes under way. Writes its cycles, and the first word of the box that came last.
__global__ void __launch_bounds__(32)
    bring(const __grid_constant__ CUtensorMap map, Walk walk, int64_t* cycles, uint32_t* last) {
  extern __shared__ __align__(1024) uint8_t ring[];
  __shared__ uint64_t full[kMostStages];
  if (ptx::elect_sync()) {
    for (int s = 0; s < walk.stages; ++s) ptx::mbarrier_init(&full[s], 1);
    // TMA sees the barriers before the first copy counts on them.
    ptx::fence_mbarrier_init_release_cluster();
    const uint64_t policy = ptx::create_policy_evict_first();
    const int32_t begin = walk.first + static_cast<int32_t>(blockIdx.x) / walk.share * walk.each;
    int32_t stage = 0, box = 0, newest = 0;
    uint32_t parity = 1;  // of the phase before the first
    const int64_t start = cycles_now();
    for (int32_t i = 0; i < walk.copies + walk.stages; ++i) {
      if (i >= walk.stages) wait(&full[stage], parity);  // the box is there, and its stage is free
      if (i < walk.copies) {
        newest = begin + box;
        ptx::mbarrier_arrive_expect_tx(&full[stage], kBoxBytes);
        ptx::cp_async_bulk_tensor_3d(ring + stage * kBoxBytes, &map, {0, newest * kBoxRows, 0}, &full[stage],
                                     policy);
        if (++box == walk.each) box = 0;
      }
      if (++stage == walk.stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    cycles[blockIdx.x] = cycles_now() - start;
    const int32_t of_last = (walk.copies - 1) % walk.stages;
    last[blockIdx.x] = *reinterpret_cast<const uint32_t*>(ring + of_last * kBoxBytes) ==
                       static_cast<uint32_t>(newest) * kBoxRows;
  }
}

// Writes the cycles in which one thread issues kIssued small copies, which it does not wait for meanwhile.
__global__ void __launch_bounds__(32)
    issue(const __grid_constant__ CUtensorMap map, int64_t* cycles, uint32_t* last) {
  extern __shared__ __align__(1024) uint8_t ring[];
  __shared__ uint64_t full;
  if (ptx::elect_sync()) {
    ptx::mbarrier_init(&full, 1);
    // TMA sees the barrier before the first copy counts on it.
    ptx::fence_mbarrier_init_release_cluster();
    const uint64_t policy = ptx::create_policy_evict_first();
    ptx::mbarrier_arrive_expect_tx(&full, kIssued * kSmallRows * kRowBytes);
    const int64_t start = cycles_now();
#pragma unroll 4
    for (int i = 0; i < kIssued; ++i)
      ptx::cp_async_bulk_tensor_3d(ring + i * kSmallRows * kRowBytes, &map, {0, i * kSmallRows, 0}, &full,
                                   policy);
    cycles[0] = cycles_now() - start;
    wait(&full, 0);  // all copies are there
    last[0] = *reinterpret_cast<const uint32_t*>(ring + (kIssued - 1) * kSmallRows * kRowBytes) ==
              (kIssued - 1) * kSmallRows;
  }
}

CUtensorMap map_of(const uint32_t* words, int64_t rows, uint32_t box_rows) {
  static dualgemm::DriverFunction function{"cuTensorMapEncodeTiled", 12000};
  PFN_cuTensorMapEncodeTiled_v12000 encode = nullptr;
  if (function.find(&encode)) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  CUtensorMap map;
  const cuuint64_t dims[] = {kRowBytes, static_cast<cuuint64_t>(rows), 1};
  const cuuint64_t strides[] = {kRowBytes, static_cast<cuuint64_t>(rows) * kRowBytes};
  const cuuint32_t box[] = {kRowBytes, box_rows, 1}, steps[] = {1, 1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<uint32_t*>(words), dims, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check_cuda(static_cast<cudaError_t>(result), "cuTensorMapEncodeTiled");
  return map;
}

// The memory that boxes come from: much more than L2 has.
class Source {
 public:
  explicit Source(const Subject& on)
      : on_(on),
        boxes_(on.simulated ? 64 : static_cast<int32_t>(16 * on.l2_bytes / kBoxBytes)),
        words_(size_t(boxes_) * kBoxBytes / 4),
        cycles_(on.sms),
        right_(on.sms),
        map_(map_of(words_.data(), rows(), kBoxRows)) {
    number_rows<<<on.simulated ? 1 : 4 * on.sms, 256>>>(words_.data(), rows());
    check_cuda(cudaGetLastError(), "number_rows");
    check_cuda(
        cudaFuncSetAttribute(bring, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostStages * kBoxBytes),
        "cudaFuncSetAttribute");
    check_cuda(cudaFuncSetAttribute(issue, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    kIssued * kSmallRows * kRowBytes),
               "cudaFuncSetAttribute");
  }

  // Returns the cycles of the slowest CTA.
  double cycles(int32_t ctas, const Walk& walk) {
    bring<<<ctas, 32, kMostStages * kBoxBytes>>>(map_, walk, cycles_.data(), right_.data());
    check_cuda(cudaGetLastError(), "bring");
    return slowest(ctas, "copies of boxes");
  }
  double issue_cycles() {
    const CUtensorMap small = map_of(words_.data(), rows(), kSmallRows);
    issue<<<1, 32, kIssued * kSmallRows * kRowBytes>>>(small, cycles_.data(), right_.data());
    check_cuda(cudaGetLastError(), "issue");
    return slowest(1, "small copies");
  }
  // Returns where so many boxes begin that L2 has forgotten: those that were asked for longest ago.
  int32_t forgotten(int32_t boxes) {
    if (next_ + boxes > boxes_) next_ = 0;
    const int32_t first = next_;
    next_ += boxes;
    return first;
  }

 private:
  int64_t rows() const { return int64_t{boxes_} * kBoxRows; }
  double slowest(int32_t ctas, const char* what) {
    const std::vector<uint32_t> right = right_.host();
    require(std::all_of(right.begin(), right.begin() + ctas, [](uint32_t x) { return x == 1; }), what);
    const std::vector<int64_t> all = cycles_.host();
    return static_cast<double>(*std::max_element(all.begin(), all.begin() + ctas));
  }

  Subject on_;
  int32_t boxes_, next_ = 0;
  DeviceArray<uint32_t> words_;
  DeviceArray<int64_t> cycles_;
  DeviceArray<uint32_t> right_;
  CUtensorMap map_;
};

// From L2, where `share` neighbours ask for the same boxes. The first call of each brings them there.
void measure_fill(const Subject& on, Source& source, Findings* out) {
  const auto fill = [&](const char* name, const char* constant, int32_t ctas, int32_t share) {
    const int32_t each = on.simulated ? 2 : ctas == 1 ? 256 : share == 1 ? 8 : 16;
    const Walk walk{on.rounds(1024), kMostStages, share, each, 0};
    out->measure(on, name, "bytes per us", constant, [&, walk, ctas] {
      return 1.0 * ctas * walk.copies * kBoxBytes / source.cycles(ctas, walk) * on.mhz;
    });
  };
  fill("TMA into one SM", "fill_per_sm", 1, 1);
  fill("TMA into all SMs, neighbours read the same", "fill_all_sms", on.ctas(), 2);
  fill("TMA into all SMs, each reads its own", "fill_apart", on.ctas(), 1);
  out->measure(on, "a TMA copy of 1 KB, issued", "us", "per_copy",
               [&] { return source.issue_cycles() / kIssued / on.mhz; });
}

// The time of a round trip by Little's law, with more and more bytes under way in all SMs.
void measure_round_trips(const Subject& on, Source& source, Findings* out) {
  const auto name = [](int32_t stages) {
    return std::to_string(stages * kBoxBytes / 1024) + " KB under way in each SM";
  };
  for (const int32_t stages : {4, 8, kMostStages}) {
    const Walk walk{on.rounds(512), std::min(stages, on.rounds(stages)), 2, on.simulated ? 2 : 16, 0};
    out->measure(on, name(stages), "us", "",
                 [&, walk] { return source.cycles(on.ctas(), walk) * walk.stages / walk.copies / on.mhz; });
  }
  const std::vector<double>& few = out->values(name(4));
  const std::vector<double>& many = out->values(name(kMostStages));
  Measurement slope{"a round trip, for each byte under way", "us per byte", {}, "per_byte"};
  for (size_t i = 0; i < few.size(); ++i)
    slope.values.push_back((many[i] - few[i]) / ((kMostStages - 4.0) * kBoxBytes * on.ctas()));
  out->add(slope);
}

// The first copies of a launch take their latency, which the model counts apart.
void measure_dram(const Subject& on, Source& source, Findings* out) {
  const int32_t few = on.rounds(32);
  out->measure(on, "a TMA copy of 16 KB from DRAM", "us", "latency", [&] {
    return source.cycles(1, {few, 1, 1, few, source.forgotten(few)}) / few / on.mhz;
  });
  const auto rate = [&](int32_t copies) {
    const int32_t all = copies * on.ctas();
    const double cycles = source.cycles(on.ctas(), {copies, kMostStages, 1, copies, source.forgotten(all)});
    const double first = out->median("a TMA copy of 16 KB from DRAM") * on.mhz;
    return 1.0 * all * kBoxBytes / std::max(1.0, cycles - first) * on.mhz;
  };
  out->measure(on, "DRAM, in a kernel of 10 us", "bytes per us", "dram", [&] { return rate(on.rounds(24)); });
  out->measure(on, "DRAM, in a long kernel", "bytes per us", "", [&] { return rate(on.rounds(256)); });
}

// The bytes that L2 keeps for all SMs: where reading them again takes the mean of the rates of L2 and DRAM.
void measure_l2(const Subject& on, Source& source, Findings* out) {
  constexpr int kSteps = 10;
  Measurement kept{"bytes that L2 keeps", "bytes", {}, "l2_bytes"};
  const double slow = out->median("DRAM, in a long kernel");
  for (int repeat = 0; repeat < on.repeats; ++repeat) {
    double before = 0, fast = 0, size = 0;
    for (int step = 1; step <= kSteps; ++step) {
      const int32_t each =
          on.simulated ? 2 : static_cast<int32_t>(on.l2_bytes * step / 8 / kBoxBytes / on.ctas());
      const Walk walk{3 * each, kMostStages, 1, each, 0};
      source.cycles(on.ctas(), walk);
      const double rate = 1.0 * on.ctas() * walk.copies * kBoxBytes / source.cycles(on.ctas(), walk) * on.mhz;
      const double bytes = 1.0 * each * kBoxBytes * on.ctas();
      fast = std::max(fast, rate);
      const double middle = (fast + slow) / 2;
      if (rate < middle && step > 1) {
        kept.values.push_back(size + (bytes - size) * (before - middle) / std::max(1e-9, before - rate));
        break;
      }
      if (step == kSteps) kept.values.push_back(bytes);
      before = rate;
      size = bytes;
    }
  }
  out->add(kept);
}

}  // namespace

void measure_copies(const Subject& on, Findings* out) {
  Source source(on);
  measure_fill(on, source, out);
  measure_round_trips(on, source, out);
  measure_dram(on, source, out);
  measure_l2(on, source, out);
}

}  // namespace bench
