/* fragment.c -- what stands around a C snippet of the pages (fragment.inc), so that it is a program: the names that the
 * snippets use, for one problem or for `experts` of them, with operands of zeros. C is NaN before and zero after. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dualgemm.h"

enum { kExperts = 4, kM = 64, kN = 128, kK = 256 };

static void* device(size_t bytes, int fill) {
  void* memory;
  if (cudaMalloc(&memory, bytes) != cudaSuccess || cudaMemset(memory, fill, bytes) != cudaSuccess) exit(2);
  return memory;
}

static void* device_copy(const void* host, size_t bytes) {
  void* memory = device(bytes, 0);
  if (cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice) != cudaSuccess) exit(2);
  return memory;
}

int main(void) {
  const int32_t experts = kExperts, m = kM, n = kN, k = kK;
  const float alpha1 = 1.0f, alpha2 = 1.0f, ones[kExperts] = {1.0f, 1.0f, 1.0f, 1.0f};
  const int32_t host_counts[kExperts] = {kM, 0, 3, 17}, host_offsets[kExperts + 1] = {0, 20, 20, 50, kM};
  const size_t c_bytes = (size_t)kExperts * kM * kN * sizeof(uint16_t);
  void *a = device((size_t)kExperts * kM * kK / 2, 0), *sfa = device(kExperts * dualgemm_sf_size(kM, kK), 0);
  void *b1 = device((size_t)kExperts * kN * kK / 2, 0),
       *sfb1 = device(kExperts * dualgemm_sf_size(kN, kK), 0);
  void *b2 = device((size_t)kExperts * kN * kK / 2, 0),
       *sfb2 = device(kExperts * dualgemm_sf_size(kN, kK), 0);
  void* c = device(c_bytes, 0xFF);
  int32_t* counts = device_copy(host_counts, sizeof host_counts);
  int32_t* offsets = device_copy(host_offsets, sizeof host_offsets);
  float *gate_alphas = device_copy(ones, sizeof ones), *up_alphas = device_copy(ones, sizeof ones);
  /* The down projection behind it: K is n, and it gives `hidden` columns. */
  const int32_t hidden = kK;
  const float down_input_scale = 0.5f, down_weight_scale_2 = 0.5f;
  void *h = device((size_t)kM * kN / 2, 0xFF), *sfh = device(dualgemm_sf_size(kM, kN), 0xFF);
  void *w_down = device((size_t)kK * kN / 2, 0), *sf_down = device(dualgemm_sf_size(kK, kN), 0);
  void* residual = device((size_t)kM * kK * sizeof(uint16_t), 0);
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 2;
  (void)experts, (void)counts, (void)offsets, (void)gate_alphas, (void)up_alphas, (void)alpha1, (void)alpha2;
  (void)hidden, (void)down_input_scale, (void)down_weight_scale_2, (void)h, (void)sfh, (void)w_down;
  (void)sf_down, (void)residual;

#include "fragment.inc"

  uint16_t row[kN];
  if (status != DUALGEMM_STATUS_SUCCESS) return 1;
  if (cudaStreamSynchronize(stream) != cudaSuccess) return 2;
  if (cudaMemcpy(row, c, sizeof row, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  for (int i = 0; i < kN; ++i)
    if (row[i] != 0) return 3;
  printf("correct\n");
  return 0;
}
