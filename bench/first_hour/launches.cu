// launches.cu -- the clock, and the gap between two launches.
#include <functional>

#include "bench/first_hour/clock.cuh"
#include "bench/first_hour/microbenchmark.h"
#include "bench/timing.h"
#include "ptx/sync.cuh"
#include "test/support/device_memory.h"
#include "test/support/stream.h"

namespace bench {
namespace {

namespace ptx = dualgemm::ptx;
using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;
using dualgemm_test::Stream;

// Lasts so long, and writes cycles and nanoseconds.
__global__ void spin(uint64_t ns, int64_t* taken) {
  const uint64_t start = global_timer();
  const int64_t first = cycles_now();
  uint64_t now = start;
  while (now - start < ns) now = global_timer();
  taken[0] = cycles_now() - first;
  taken[1] = static_cast<int64_t>(now - start);
}

// What a launch of the library is without work: it lets the next one start, and waits for the one before.
__global__ void __launch_bounds__(384) nothing() {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
}

void launch_nothing(int ctas, bool pdl, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(ctas);
  config.blockDim = 384;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, nothing), "an empty launch");
}

// Returns what `launches` take from launch to launch, all of which are in the queue before the first begins.
double on_stream_us(const Stream& stream, int launches, const std::function<void()>& launch,
                    const DeviceArray<int64_t>& taken) {
  cudaEvent_t start, stop;
  check_cuda(cudaEventCreate(&start), "cudaEventCreate");
  check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
  spin<<<1, 1, 0, stream.get()>>>(uint64_t(launches) * 10000, taken.data());
  check_cuda(cudaEventRecord(start, stream.get()), "cudaEventRecord");
  for (int i = 0; i < launches; ++i) launch();
  check_cuda(cudaEventRecord(stop, stream.get()), "cudaEventRecord");
  check_cuda(cudaStreamSynchronize(stream.get()), "empty launches");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return ms * 1e3 / launches;
}

}  // namespace

double cycles_per_us(const Subject& on) {
  const DeviceArray<int64_t> taken(2);
  // The second one finds the clock as high as it gets.
  for (int i = 0; i < 2; ++i) spin<<<1, 1>>>(on.simulated ? 1 : 2000000, taken.data());
  check_cuda(cudaGetLastError(), "spin");
  const std::vector<int64_t> x = taken.host();
  return on.simulated ? 1 : 1e3 * static_cast<double>(x[0]) / static_cast<double>(x[1]);
}

void measure_clock(const Subject& on, Findings* out) {
  out->measure(on, "cycles in a microsecond", "MHz", "clock", [&] { return cycles_per_us(on); });
}

void measure_launches(const Subject& on, Findings* out) {
  const Stream stream;
  const DeviceArray<int64_t> taken(2);
  const int launches = on.rounds(100);
  for (const bool pdl : {false, true}) {
    const auto launch = [&] { launch_nothing(on.ctas(), pdl, stream.get()); };
    const std::string with = pdl ? " with PDL" : "";
    out->measure(on, "an empty launch on a stream" + with, "us", pdl ? "" : "fixed",
                 [&] { return on_stream_us(stream, launches, launch, taken); });
    const TimedGraph graph(
        [&](cudaStream_t) {
          for (int i = 0; i < launches; ++i) launch();
        },
        launches, stream.get());
    out->measure(on, "an empty launch in a graph" + with, "us", "", [&] { return graph.replay_us(); });
  }
}

}  // namespace bench
