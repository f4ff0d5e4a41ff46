// loads_pdl.cu -- programmatic dependent launch, over and over: a kernel that lets its dependents start at
// once, and only late writes what their load roles read. Each round writes another number into every word, so
// that a single word of the round before shows that a role did not wait. Exact records: nothing was stale.
// Free records: how much was stale if a role does not wait, or if weights that are said to be static are
// written all the same. On a GPU these records show that the test can see stale words; in the simulator grids
// run one after the other.
#include <cstring>

#include "test/sim/conformance/loads.cuh"
#include "test/support/programmatic.h"

namespace conformance {
namespace {

constexpr Options kDense{.tile_m = 64, .tile_n = 128, .stages = 5, .scale_stages = 4, .acc_stages = 2};
constexpr Options kGrouped{
    .tile_m = 64, .tile_n = 128, .stages = 4, .scale_stages = 5, .acc_stages = 2, .grouped = true};

// These count the words that differ from what the round writes, and the tiles.
struct Counts {
  unsigned long long activations, weights, tiles;
};

// This consumer counts them.
template <class Traits>
struct Check {
  Counts* counts;
  uint32_t activations, weights;

  __device__ static void count(unsigned long long* to, const uint8_t* from, int bytes, uint32_t expected) {
    uint32_t different = 0;
    for (int i = int(threadIdx.x) % 32; i < bytes / 4; i += 32)
      different += reinterpret_cast<const uint32_t*>(from)[i] != expected;
    if (different != 0) atomicAdd(to, static_cast<unsigned long long>(different));
  }
  __device__ void tile(uint32_t, const Tile&) const {
    if (threadIdx.x % 32 == 0) atomicAdd(&counts->tiles, 1ull);
  }
  __device__ void stage(uint32_t, int32_t, const Stage<Traits>& stage) const {
    count(&counts->activations, stage.a, sizeof stage.a, activations);
    count(&counts->weights, stage.b[0], sizeof stage.b, weights);
  }
  __device__ void scale_stage(uint32_t, int32_t, const ScaleStage<Traits>& stage) const {
    count(&counts->activations, stage.sfa, sizeof stage.sfa, activations);
    count(&counts->weights, stage.sfb[0], sizeof stage.sfb, weights);
  }
};

constexpr int kRegions = 6;
struct Late {
  uint32_t* words[kRegions];
  uint32_t counts[kRegions];
  int32_t* group_rows;  // or null
  uint32_t groups, m;
};

__host__ __device__ int32_t rows_in_round(uint32_t group, uint32_t round, uint32_t m) {
  return int32_t((round * 37 + group * 61) % (m + 1));
}

// Waits for the preceding kernel, which may still read, then lets the next one start, and writes after it has
// had the time to.
__global__ void write_late(Late late, uint32_t round, uint32_t delay_ns) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const uint64_t start = globaltimer();
  while (globaltimer() - start < delay_ns) {
  }
  const uint32_t first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  for (int r = 0; r < kRegions; ++r)
    for (uint32_t i = first; i < late.counts[r]; i += stride) late.words[r][i] = round;
  if (late.group_rows)
    for (uint32_t g = first; g < late.groups; g += stride)
      late.group_rows[g] = rows_in_round(g, round, late.m);
}

void launch_late(cudaStream_t stream, Late late, uint32_t round, uint32_t delay_ns) {
  const dualgemm_test::ProgrammaticLaunch launch(8, 256, stream);
  check_cuda(cudaLaunchKernelEx(&launch.config(), write_late, late, round, delay_ns), "launch");
}

// Many rounds on a GPU, where the overlap differs from round to round; in the simulator nothing overlaps.
struct Rounds {
  uint32_t count, delay_ns;
};
Rounds rounds() {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  const bool simulated = std::strstr(properties.name, "simulated") != nullptr;
  return simulated ? Rounds{4, 0} : Rounds{2000, 15000};
}

struct Result {
  uint64_t activations = 0, weights = 0, rounds_with_stale = 0, wrong_tile_counts = 0;
};

constexpr uint32_t kStatic = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;

struct Case {
  bool write_activations = false, write_weights = false;
  uint32_t flags = DUALGEMM_FLAG_PDL;
  // Another launch, with static weights, follows this one. Its weights were written by the kernel before this
  // launch; it can start only when this launch has waited for that kernel.
  bool static_behind = false;
  bool graph = false;  // all rounds are captured and replayed
};

template <bool kIsGrouped, bool kWaits>
Result run_rounds(const Case& x) {
  using Traits = LoadTraits<kIsGrouped ? kGrouped : kDense>;
  constexpr uint32_t kM = 128, kN = 512, kK = 1024, kProblems = kIsGrouped ? 5 : 1;
  constexpr uint32_t kABytes = kProblems * kM * kK / 2, kBBytes = kProblems * kN * kK / 2;
  // There is one byte of scale factors to eight bytes of operands, without padding: M and N are multiples of
  // 128.
  const Buffer<uint32_t> a(kABytes / 4), sfa(kABytes / 32), b1(kBBytes / 4), b2(kBBytes / 4),
      sfb1(kBBytes / 32), sfb2(kBBytes / 32);
  const Buffer<uint16_t> c(kProblems * kM * kN);
  const Buffer<int32_t> group_rows(kProblems);
  dualgemm_args_t args = arguments(kM, kN, kK);
  args.a = a.data(), args.b1 = b1.data(), args.b2 = b2.data();
  args.sfa = sfa.data(), args.sfb1 = sfb1.data(), args.sfb2 = sfb2.data();
  args.c = c.data();
  args.flags = x.flags;
  if (kIsGrouped) {
    args.group_mode = DUALGEMM_GROUP_MASKED;
    args.groups = kProblems;
    args.group_rows = group_rows.data();
  }
  Launch launch(args, load_instance_of<Traits, Check<Traits>, kWaits>());
  args.flags = kStatic;
  Launch behind(args, load_instance_of<Traits, Check<Traits>>());

  Late late = {};
  int region = 0;
  const auto write = [&](const Buffer<uint32_t>& buffer, uint32_t words) {
    late.words[region] = buffer.data();
    late.counts[region++] = words;
  };
  if (x.write_activations) write(a, kABytes / 4), write(sfa, kABytes / 32);
  if (x.write_weights)
    write(b1, kBBytes / 4), write(b2, kBBytes / 4), write(sfb1, kBBytes / 32), write(sfb2, kBBytes / 32);
  if (kIsGrouped) late.group_rows = group_rows.data(), late.groups = kProblems, late.m = kM;

  const Rounds rounds = conformance::rounds();
  const Buffer<Counts> counts(rounds.count), counts_behind(rounds.count);
  check_cuda(cudaDeviceSynchronize(), "before the first round");
  cudaStream_t stream;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  if (x.graph)
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  for (uint32_t i = 0; i < rounds.count; ++i) {
    const uint32_t round = i + 1;
    Check<Traits> consumer{counts.data() + i, x.write_activations ? round : 0, x.write_weights ? round : 0};
    launch_late(stream, late, round, rounds.delay_ns);
    launch.run(stream, consumer);
    consumer.counts = counts_behind.data() + i;
    if (x.static_behind) behind.run(stream, consumer);
  }
  if (x.graph) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    check_cuda(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    check_cuda(cudaStreamSynchronize(stream), "rounds of a graph");
    check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
    check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  check_cuda(cudaStreamSynchronize(stream), "rounds");
  check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");

  Result result;
  const std::vector<Counts> counted = counts.host(), counted_behind = counts_behind.host();
  for (uint32_t i = 0; i < rounds.count; ++i) {
    const Counts &first = counted[i], &second = counted_behind[i];
    uint64_t tiles = 0;
    for (uint32_t problem = 0; problem < kProblems; ++problem) {
      const uint32_t rows = kIsGrouped ? uint32_t(rows_in_round(problem, i + 1, kM)) : kM;
      tiles += (rows + 63) / 64 * (kN / 128);
    }
    const uint64_t activations = first.activations + second.activations,
                   weights = first.weights + second.weights;
    result.activations += activations;
    result.weights += weights;
    result.rounds_with_stale += activations + weights != 0;
    result.wrong_tile_counts += first.tiles != tiles || second.tiles != (x.static_behind ? tiles : 0);
  }
  return result;
}

std::vector<uint64_t> numbers(const Result& r) {
  return {r.activations, r.weights, r.rounds_with_stale, r.wrong_tile_counts};
}

const Case kActivations{.write_activations = true}, kWeights{.write_weights = true},
    kAll{.write_activations = true, .write_weights = true},
    kKeptPromise{.write_activations = true, .flags = kStatic},
    kBrokenPromise{.write_weights = true, .flags = kStatic},
    kStaticBehind{.write_weights = true, .static_behind = true},
    kGraph{.write_activations = true, .write_weights = true, .graph = true},
    kGraphActivations{.write_activations = true, .graph = true};

const Register ordered("loads/pdl.ordered", [](Recorder& out) {
  out.exact("loads/pdl.activations", numbers(run_rounds<false, true>(kActivations)));
  out.exact("loads/pdl.weights", numbers(run_rounds<false, true>(kWeights)));
  out.exact("loads/pdl.static_weights", numbers(run_rounds<false, true>(kKeptPromise)));
  out.exact("loads/pdl.graph", numbers(run_rounds<false, true>(kGraph)));
  out.exact("loads/pdl.grouped", numbers(run_rounds<true, true>(kAll)));
  out.exact("loads/pdl.grouped.static_weights", numbers(run_rounds<true, true>(kKeptPromise)));
});

const Register behind("loads/pdl.behind", [](Recorder& out) {
  out.exact("loads/pdl.static_behind", numbers(run_rounds<false, true>(kStaticBehind)));
});

void record_free(Recorder& out, const char* name, const std::vector<uint64_t>& values) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  out.free(name, Bytes(bytes, bytes + values.size() * sizeof(uint64_t)));
}

const Register broken("loads/pdl.stale", [](Recorder& out) {
  record_free(out, "loads/pdl.no_wait", numbers(run_rounds<false, false>(kActivations)));
  record_free(out, "loads/pdl.broken_promise", numbers(run_rounds<false, true>(kBrokenPromise)));
  record_free(out, "loads/pdl.no_wait.static_behind", numbers(run_rounds<false, false>(kStaticBehind)));
  record_free(out, "loads/pdl.no_wait.graph", numbers(run_rounds<false, false>(kGraphActivations)));
  record_free(out, "loads/pdl.rounds", {rounds().count});
});

}  // namespace
}  // namespace conformance
