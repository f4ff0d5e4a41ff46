// main.cpp -- eight threads use the library at once, each in its own way, on a CUDA runtime that does
// nothing: launches and conversions on several devices, their twins on the host, questions, tuning files,
// errors. Built with -fsanitize=thread, which ends the program with status 66 when two threads touch the same
// bytes without an order. Beside that each thread looks whether its answers, and the text of its last error,
// are its own.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "host/common/tuning_file.h"
#include "host/include/dualgemm.h"
#include "support/stub/cuda.h"
#include "support/stub/problem.h"

namespace {

constexpr int kThreads = 8, kRounds = 256, kDevices = 64;

std::atomic<int> wrong{0};
std::barrier together(kThreads);

// In the first rounds all threads meet a device that the library has not seen, at the same moment; then each
// has another one.
int device_of(int thread, int round) { return (round < kDevices ? round : round + thread) % kDevices; }

void expect(bool holds, int thread, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "thread %d: %s: %s\n", thread, what, dualgemm_last_error());
  ++wrong;
}

void launch(int thread, int round) {
  dualgemm_args_t args = problem(1 + round * 7 % 500, 256 * (1 + thread), 512);
  expect(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "a launch");
  args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
  expect(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS, thread,
         "a launch that asks the driver");
  args.c_dtype = DUALGEMM_DTYPE_FP32;
  args.k = 0;
  expect(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "a fill");
}

void convert(int thread, int round) {
  dualgemm_sf_args_t factors;
  dualgemm_sf_args_init(&factors);
  factors.rows = 1 + round, factors.k = 64 * (1 + thread);
  factors.src = address(64), factors.dst = address(128);
  expect(dualgemm_sf_swizzle(&factors, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "factors to atoms");
  expect(dualgemm_sf_unswizzle(&factors, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "factors to rows");
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = 1 + round, quantize.k = 64 * (1 + thread);
  quantize.x = address(64), quantize.q = address(128), quantize.sf = address(192);
  quantize.scale_mode = (thread + round) % 3;
  if (quantize.scale_mode == DUALGEMM_SCALE_TENSOR)
    quantize.tensor_scales = static_cast<float*>(address(256));
  if (quantize.scale_mode == DUALGEMM_SCALE_ROW) quantize.row_scale = static_cast<float*>(address(256));
  expect(dualgemm_quantize(&quantize, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "activations");
}

// The twins on the host: a matrix whose largest element the thread chooses comes back as it was.
void convert_on_host(int thread) {
  constexpr int32_t kRows = 3, kColumns = 64, kFactors = kRows * kColumns / 16, kAtomBytes = 512;
  alignas(16) float x[kRows * kColumns], back[kRows * kColumns];
  alignas(16) uint8_t q[kRows * kColumns / 2], sf[kAtomBytes], atoms[kAtomBytes], rows[kFactors];
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = static_cast<float>((i % 2 ? -6 : 6) * (1 << thread));
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = kRows, quantize.k = kColumns, quantize.x_dtype = DUALGEMM_DTYPE_FP32;
  quantize.x = x, quantize.q = q, quantize.sf = sf;
  expect(dualgemm_quantize_host_ex(&quantize) == DUALGEMM_STATUS_SUCCESS, thread, "activations on the host");
  dualgemm_sf_args_t factors;
  dualgemm_sf_args_init(&factors);
  factors.rows = kRows, factors.k = kColumns;
  factors.src = sf, factors.dst = rows;
  expect(dualgemm_sf_unswizzle_host(&factors) == DUALGEMM_STATUS_SUCCESS, thread, "rows on the host");
  factors.src = rows, factors.dst = atoms;
  expect(dualgemm_sf_swizzle_host(&factors) == DUALGEMM_STATUS_SUCCESS, thread, "atoms on the host");
  expect(dualgemm_dequantize_host(q, 0, atoms, kRows, kColumns, 1, back, 0) == DUALGEMM_STATUS_SUCCESS,
         thread, "back on the host");
  expect(std::equal(std::begin(x), std::end(x), back), thread, "the matrix of this thread");
}

// All of A, B1 and B2 are ones, and alpha2 is the number of the thread and one.
void compute_reference(int thread) {
  constexpr int32_t kM = 2, kN = 16, kK = 32;
  alignas(16) uint8_t ones[kN * kK / 2], factors[512];
  alignas(16) float c[kM * kN];
  std::fill(std::begin(ones), std::end(ones), uint8_t{0x22});
  std::fill(std::begin(factors), std::end(factors), uint8_t{0});
  for (int32_t row = 0; row < kN; ++row)
    for (int32_t block = 0; block < kK / 16; ++block)
      factors[dualgemm_sf_offset(kN, kK, row, block)] = 0x38;  // 1
  dualgemm_args_t args = problem(kM, kN, kK);
  args.a = args.b1 = args.b2 = ones;
  args.sfa = args.sfb1 = args.sfb2 = factors;
  args.c = c, args.c_dtype = DUALGEMM_DTYPE_FP32;
  args.activation = DUALGEMM_ACTIVATION_REGLU;
  args.alpha2 = static_cast<float>(1 + thread);
  args.flags = DUALGEMM_FLAG_CHECK_POINTERS;  // of which nobody is asked here
  double y[kM * kN] = {};
  expect(dualgemm_reference_host(&args, y) == DUALGEMM_STATUS_SUCCESS, thread, "a reference");
  const double expected = kK * kK * (1.0 + thread);
  expect(std::count(std::begin(y), std::end(y), expected) == kM * kN &&
             std::count(std::begin(c), std::end(c), static_cast<float>(expected)) == kM * kN,
         thread, "the reference of this thread");
}

// The same question has the same answer, whoever asked what in between.
void ask(int thread, int round) {
  const dualgemm_device_t b200 = {sizeof(dualgemm_device_t), 10, 0, 148, 13000, 0, "B200", 74, 34, 0};
  const dualgemm_args_t args = problem(1 + round % 40 * 16, 1024 * (1 + thread), 4096);
  int32_t first = 0, second = 0;
  expect(dualgemm_select_instance(&args, &b200, &first) == DUALGEMM_STATUS_SUCCESS, thread, "a choice");
  expect(dualgemm_can_implement(&args) == DUALGEMM_STATUS_SUCCESS, thread, "a question");
  expect(dualgemm_select_instance(&args, &b200, &second) == DUALGEMM_STATUS_SUCCESS, thread, "a choice");
  expect(first > 0 && first == second, thread, "the same choice twice");
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  expect(dualgemm_instance_info(first, &info) == DUALGEMM_STATUS_SUCCESS, thread, "what an instance is");
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  expect(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS, thread, "the device");
  expect(device.ordinal == device_of(thread, round), thread, "the device of this thread");
  expect(std::strlen(dualgemm_build_info()) > 0, thread, "what the library is");
}

void provoke(int thread, int round) {
  dualgemm_args_t args = problem(16, 256, 512);
  args.k = 1000 + 16 * thread + 1;
  const std::string expected = "k=" + std::to_string(args.k) + ": must be a multiple of 16";
  expect(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_INVALID_SHAPE, thread, "a wrong K");
  std::this_thread::yield();
  expect(dualgemm_last_error() == expected, thread, "the text of this thread's error");
  args = problem(16, 256, 512);
  args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
  args.b2 = reinterpret_cast<const void*>(dualgemm_test::kStubMemoryEnd);
  expect(dualgemm_can_implement(&args) == DUALGEMM_STATUS_INVALID_VALUE, thread, "memory that nobody knows");
  expect(std::strstr(dualgemm_last_error(),
                     ("device " + std::to_string(device_of(thread, round)) + " sees").c_str()),
         thread, "the text about this thread's device");
  dualgemm_sf_args_t factors;
  dualgemm_sf_args_init(&factors);
  factors.rows = -1 - thread;
  expect(dualgemm_sf_swizzle(&factors, nullptr) == DUALGEMM_STATUS_INVALID_VALUE, thread, "negative rows");
  std::this_thread::yield();
  expect(dualgemm_last_error() == "rows=" + std::to_string(factors.rows) + ": must not be negative", thread,
         "the text of this thread's conversion");
  args = problem(16 + round, 256, 512);
  expect(dualgemm_launch_ex(&args, dualgemm_test::stub_bad_stream()) == DUALGEMM_STATUS_CUDA_ERROR, thread,
         "a wrong stream");
  expect(dualgemm_last_cuda_error() == cudaErrorInvalidResourceHandle, thread, "the number of CUDA's error");
}

// Two tuning files for the stub's B200, with other entries.
class TuningFiles {
 public:
  TuningFiles() {
    dualgemm_device_t device;
    dualgemm_device_init(&device);
    dualgemm_current_device(&device);
    dualgemm_tuning_info_t info;
    dualgemm_tuning_info_init(&info);
    dualgemm_tuning_info(&info);
    for (const int file : {0, 1}) {
      std::string text =
          dualgemm::tuning_heading({device.name, info.library, device.sm_count, device.driver_version}).get();
      for (int32_t thread = 0; thread < kThreads; ++thread)
        text += dualgemm::tuning_entry({2, DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_BF16, false, false, 1,
                                        256 * (1 + thread), 512, 1 + file * 7, instance_for(thread)})
                    .get();
      dualgemm::TuningSum sum;
      sum.add(text);
      text += dualgemm::tuning_end(kThreads, sum).get();
      if (std::FILE* to = std::fopen(path(file).c_str(), "w")) {
        std::fputs(text.c_str(), to);
        std::fclose(to);
      }
    }
  }
  ~TuningFiles() {
    for (const int file : {0, 1}) std::remove(path(file).c_str());
  }
  static std::string path(int file) {
    return std::filesystem::temp_directory_path() /
           ("threads_test." + std::to_string(getpid()) + "." + std::to_string(file));
  }

 private:
  static const char* instance_for(int32_t thread) {
    const dualgemm_args_t args = problem(128, 256 * (1 + thread), 512);
    dualgemm_device_t device;
    dualgemm_device_init(&device);
    dualgemm_current_device(&device);
    int32_t id = 0;
    dualgemm_select_instance(&args, &device, &id);
    dualgemm_instance_info_t info;
    dualgemm_instance_info_init(&info);
    dualgemm_instance_info(id, &info);
    return info.name;
  }
};

// The file in force changes while others launch.
void change_tuning(int thread, int round) {
  const std::string path = TuningFiles::path(round % 3);
  expect(dualgemm_load_tuning(round % 3 == 2 ? nullptr : path.c_str()) == DUALGEMM_STATUS_SUCCESS, thread,
         "a tuning file");
}

void ask_tuning(int thread) {
  dualgemm_tuning_info_t info;
  dualgemm_tuning_info_init(&info);
  expect(dualgemm_tuning_info(&info) == DUALGEMM_STATUS_SUCCESS, thread, "what is tuned");
  expect(info.entries == 0 || info.entries == kThreads, thread, "the entries of one file");
}

void run_thread(int thread) {
  for (int round = 0; round < kRounds; ++round) {
    cudaSetDevice(device_of(thread, round));
    together.arrive_and_wait();
    if (thread == 0) expect(dualgemm_init() == DUALGEMM_STATUS_SUCCESS, thread, "dualgemm_init");
    if (thread == 1) change_tuning(thread, round);
    launch(thread, round);
    if (thread == 2) ask_tuning(thread);
    convert(thread, round);
    convert_on_host(thread);
    compute_reference(thread);
    if (thread % 2 == 0) ask(thread, round);
    if (thread % 3 == 0) provoke(thread, round);
  }
}

}  // namespace

int main() {
  const TuningFiles files;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(run_thread, thread);
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0) return 1;
  std::printf("%d threads, %d rounds each: every answer is the thread's own\n", kThreads, kRounds);
}
