// main.cpp -- eight threads use the library at once, each in its own way, on a CUDA runtime that does
// nothing: launches on several devices, questions, errors. Built with -fsanitize=thread, which ends the
// program with status 66 when two threads touch the same bytes without an order. Beside that each thread
// looks whether its answers, and the text of its last error, are its own.

#include <cuda_runtime_api.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "host/dualgemm.h"
#include "stub/cuda.h"

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

void* address(uint64_t gigabyte) { return reinterpret_cast<void*>(gigabyte << 30); }

dualgemm_args_t problem(int32_t m, int32_t n, int32_t k) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.k = k;
  args.a = address(64), args.b1 = address(128), args.b2 = address(192);
  args.sfa = address(256), args.sfb1 = address(320), args.sfb2 = address(384);
  args.c = address(448);
  return args;
}

void launch(int thread, int round) {
  dualgemm_args_t args = problem(1 + round * 7 % 500, 256 * (1 + thread), 512);
  expect(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "a launch");
  args.c_dtype = DUALGEMM_DTYPE_FP32;
  args.k = 0;
  expect(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS, thread, "a fill");
}

// The same question has the same answer, whoever asked what in between.
void ask(int thread, int round) {
  const dualgemm_device_t b200 = {sizeof(dualgemm_device_t), 10, 0, 148, 13000, 0, "B200", 74, 34};
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
  args = problem(16 + round, 256, 512);
  expect(dualgemm_launch_ex(&args, dualgemm_test::stub_bad_stream()) == DUALGEMM_STATUS_CUDA_ERROR, thread,
         "a wrong stream");
  expect(dualgemm_last_cuda_error() == cudaErrorInvalidResourceHandle, thread, "the number of CUDA's error");
}

void work(int thread) {
  for (int round = 0; round < kRounds; ++round) {
    cudaSetDevice(device_of(thread, round));
    together.arrive_and_wait();
    if (thread == 0) expect(dualgemm_init() == DUALGEMM_STATUS_SUCCESS, thread, "dualgemm_init");
    launch(thread, round);
    if (thread % 2 == 0) ask(thread, round);
    if (thread % 3 == 0) provoke(thread, round);
  }
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0) return 1;
  std::printf("%d threads, %d rounds each: every answer is the thread's own\n", kThreads, kRounds);
}
