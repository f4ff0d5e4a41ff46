// program.cpp -- a user's program in C++17: a launch, compared with dualgemm_reference_host.
#include <cuda_runtime_api.h>
#include <dualgemm.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int32_t kM = 5, kN = 64, kK = 128;

void check(dualgemm_status_t status) {
  if (status == DUALGEMM_STATUS_SUCCESS) return;
  std::fprintf(stderr, "program: %s: %s\n", dualgemm_status_name(status), dualgemm_last_error());
  std::exit(EXIT_FAILURE);
}
void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "program: %s\n", cudaGetErrorString(error));
  std::exit(EXIT_FAILURE);
}

struct Tensor {
  std::vector<uint8_t> elements, factors;
};

Tensor quantized(int32_t rows, int32_t seed) {
  std::vector<float> x(static_cast<size_t>(rows) * kK);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(seed * i % 1009));
  Tensor t{std::vector<uint8_t>(x.size() / 2), std::vector<uint8_t>(dualgemm_sf_size(rows, kK))};
  check(dualgemm_quantize_host(x.data(), rows, kK, 0, 1, t.elements.data(), 0, t.factors.data()));
  return t;
}

const void* on_device(const std::vector<uint8_t>& bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes.size()));
  check(cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  return memory;
}

}  // namespace

int main() {
  const Tensor a = quantized(kM, 3), b1 = quantized(kN, 5), b2 = quantized(kN, 7);
  std::vector<float> c(kM * kN);
  std::vector<double> exact(c.size());

  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = kM, args.n = kN, args.k = kK;
  args.c_dtype = DUALGEMM_DTYPE_FP32;
  args.a = a.elements.data(), args.b1 = b1.elements.data(), args.b2 = b2.elements.data();
  args.sfa = a.factors.data(), args.sfb1 = b1.factors.data(), args.sfb2 = b2.factors.data();
  args.c = c.data();
  check(dualgemm_reference_host(&args, exact.data()));

  args.a = on_device(a.elements), args.b1 = on_device(b1.elements), args.b2 = on_device(b2.elements);
  args.sfa = on_device(a.factors), args.sfb1 = on_device(b1.factors), args.sfb2 = on_device(b2.factors);
  check(cudaMalloc(&args.c, c.size() * sizeof(float)));
  check(dualgemm_launch_ex(&args, nullptr));
  check(cudaMemcpy(c.data(), args.c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));

  for (size_t i = 0; i < c.size(); ++i)
    if (!(std::fabs(c[i] - exact[i]) <= 1e-4 * (1 + std::fabs(exact[i])))) {
      std::printf("program: element %zu is %g, not %g\n", i, static_cast<double>(c[i]), exact[i]);
      return EXIT_FAILURE;
    }
  std::printf("correct\n");
}
