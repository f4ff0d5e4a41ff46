// accuracy.cu -- the table of the activation's accuracy: silu(gate) * up from the special functions of the
// GPU it runs on, in three forms, against double, over every float gate of [-100, 100]. `make accuracy`
// builds and runs it, on a GPU of compute capability 9.0 or later; of the library it needs
// the activations alone.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/ablation/shared_reciprocal.cuh"
#include "kernel/epilogue/epilogue.cuh"

namespace {

using bench::kLowestGate;
using dualgemm::ApproximateMath;
using dualgemm::TwoFloats;

// These are the forms. Each computes the first of a pair; only a shared reciprocal looks at the second gate.
struct PerResult {
  static constexpr const char* kName = "a reciprocal each: ex2, rcp";
  static constexpr double kSpecialFunctions = 2;
  __device__ static float first(TwoFloats gate, TwoFloats up) {
    return dualgemm::silu<ApproximateMath>(gate.first) * up.first;
  }
};
struct Shared {
  static constexpr const char* kName = "one for two results: ex2, rcp / 2";
  static constexpr double kSpecialFunctions = 1.5;
  __device__ static float first(TwoFloats gate, TwoFloats up) {
    return bench::SharedReciprocal<ApproximateMath>(dualgemm::Params{}).gate(gate).first * up.first;
  }
};
// This form computes silu(g) = g / 2 + g / 2 * tanh(g / 2).
struct Tanh {
  static constexpr const char* kName = "tanh";
  static constexpr double kSpecialFunctions = 1;
  __device__ static float first(TwoFloats gate, TwoFloats up) {
    const float half = 0.5f * gate.first;
    float tanh;
    asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(half));
    return fmaf(half, tanh, half) * up.first;
  }
};

// These errors are collected. Gates below kLowestGate are counted apart: there the exact result is under
// 2^-56 |up|.
enum Worst {
  kAbsolute,
  kRelative,
  kRelativeNormal,
  kBelow,
  kGateBeyond3,
  kGateBeyond8,
  kUlpFp16,
  kUlpBf16,
  kWorstCount
};
enum Count { kAll, kBeyondTolerance, kFp16Differs, kBf16Differs, kFp16Beyond, kCountCount };
struct Findings {
  unsigned long long worst[kWorstCount];  // a float in the upper half, the gate it belongs to in the lower
  unsigned long long count[kCountCount];
};

constexpr float kMaxGate = 100.0f;
constexpr uint64_t kGates = 2 * (uint64_t{0x42c80000} + 1);  // bits of 100.0f; both signs

__device__ uint32_t hash(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

__device__ void keep(unsigned long long& worst, double value, float gate) {
  const float rounded = value == value ? static_cast<float>(value) : INFINITY;  // NaN is the worst
  const auto candidate =
      static_cast<unsigned long long>(__float_as_uint(rounded)) << 32 | __float_as_uint(gate);
  if (candidate > worst) worst = candidate;
}

// Returns the distance between neighbours around x of a format with `digits` binary digits.
__device__ double ulp(double x, int digits, int smallest_exponent) {
  int exponent;
  frexp(x, &exponent);
  return ldexp(1.0, max(exponent - 1, smallest_exponent) - digits + 1);
}

// Returns x in a format of `digits` binary digits, to nearest even; for numbers that do not overflow there.
__device__ double rounded(double x, int digits, int smallest_exponent) {
  const double unit = ulp(x, digits, smallest_exponent);
  return rint(x / unit) * unit;
}
__device__ double as_fp16(double x) { return rounded(x, 11, -14); }
__device__ double as_bf16(double x) { return rounded(x, 8, -126); }

template <class Form>
__global__ void sweep(Findings* total) {
  Findings found{};
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < kGates;
       i += uint64_t{gridDim.x} * blockDim.x) {
    const float magnitude = __uint_as_float(static_cast<uint32_t>(i / 2)),
                gate = i % 2 ? -magnitude : magnitude;
    const uint32_t random = hash(static_cast<uint32_t>(i));
    const float up = (1 + (random >> 9) * 0x1p-23f) * (random % 2 ? 1.0f : -1.0f);  // +-[1, 2)
    const float partner = hash(random) * (2 * kMaxGate * 0x1p-32f) - kMaxGate;
    const float computed = Form::first({gate, partner}, {up, 1.0f});
    const double result = computed, silu = gate / (1 + exp(-static_cast<double>(gate))), exact = silu * up;
    const double error = fabs(result - exact), size = fabs(exact),
                 of_up = error / fabs(static_cast<double>(up));

    ++found.count[kAll];
    if (!(error <= 1e-3 + 1e-3 * size)) ++found.count[kBeyondTolerance];
    const bool counts = size >= 0x1p-126;  // smaller ones are zero to a function that flushes
    if (counts && !(error <= 1e-3 * size)) keep(found.worst[kGateBeyond3], kMaxGate + gate, gate);
    if (counts && !(error <= 0x1p-8 * size)) keep(found.worst[kGateBeyond8], kMaxGate + gate, gate);
    if (gate < kLowestGate) {
      keep(found.worst[kBelow], of_up, gate);
      continue;
    }
    if (!counts) continue;
    keep(found.worst[kAbsolute], of_up, gate);
    keep(found.worst[kRelative], error / size, gate);
    if (fabs(silu) > 0x1p-14) keep(found.worst[kRelativeNormal], error / size, gate);
    const double fp16 = as_fp16(computed), bf16 = as_bf16(computed);
    keep(found.worst[kUlpFp16], fabs(fp16 - exact) / ulp(exact, 11, -14), gate);
    keep(found.worst[kUlpBf16], fabs(bf16 - exact) / ulp(exact, 8, -126), gate);
    if (fp16 != as_fp16(exact)) ++found.count[kFp16Differs];
    if (bf16 != as_bf16(exact)) ++found.count[kBf16Differs];
    if (!(fabs(fp16 - exact) <= 1e-3 + 1e-3 * size)) ++found.count[kFp16Beyond];
  }
  for (int i = 0; i < kWorstCount; ++i) atomicMax(&total->worst[i], found.worst[i]);
  for (int i = 0; i < kCountCount; ++i) atomicAdd(&total->count[i], found.count[i]);
}

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("accuracy: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Form>
void row() {
  Findings* device;
  check(cudaMalloc(&device, sizeof(Findings)));
  check(cudaMemset(device, 0, sizeof(Findings)));
  sweep<Form><<<2048, 256>>>(device);
  check(cudaGetLastError());
  Findings found;
  check(cudaMemcpy(&found, device, sizeof found, cudaMemcpyDeviceToHost));
  check(cudaFree(device));
  const auto value = [&](Worst w) { return as_float(static_cast<uint32_t>(found.worst[w] >> 32)); };
  const auto gate = [&](Worst w) { return as_float(static_cast<uint32_t>(found.worst[w])); };
  std::printf("| %s | %g | %.2g (%.4g) | %.2g (%.4g) | %.2g (%.4g) | %.2g | %.6g, %.6g | %llu, %llu |",
              Form::kName, Form::kSpecialFunctions, value(kAbsolute), gate(kAbsolute), value(kRelativeNormal),
              gate(kRelativeNormal), value(kRelative), gate(kRelative), value(kBelow), gate(kGateBeyond3),
              gate(kGateBeyond8), found.count[kBeyondTolerance], found.count[kFp16Beyond]);
  std::printf(" %.4f, %.2g | %.4f, %.2g |\n", value(kUlpFp16),
              found.count[kFp16Differs] / double(found.count[kAll]), value(kUlpBf16),
              found.count[kBf16Differs] / double(found.count[kAll]));
}

}  // namespace

int main() {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    std::printf("accuracy: skipped: there is no GPU on this machine\n");
    return 0;
  }
  std::printf("silu(gate) * up on %s, %llu gates of [-100, 100]; in brackets the gate\n\n", device.name,
              static_cast<unsigned long long>(kGates));
  std::printf(
      "| form | special functions per result | worst error / abs(up) | "
      "worst relative error, abs(silu) > 2^-14 | worst relative error, gate >= -43 | "
      "worst error / abs(up), gate < -43 | gates from which down the relative error can exceed 1e-3, 2^-8 | "
      "results beyond 1e-3 (1 + abs(exact)): before, after rounding to fp16 | "
      "fp16: worst error in ulp, share that differs from the rounded exact result | bf16: likewise |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  row<PerResult>();
  row<Shared>();
  row<Tanh>();
  return 0;
}
