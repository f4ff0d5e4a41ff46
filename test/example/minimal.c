/* minimal.c -- the shortest whole program, in C99: quantise three matrices, upload them, launch, compare
 *
 * C = silu(A * B1^T) * (A * B2^T) for 4 tokens, a hidden size of 64 and an intermediate size of 16. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dualgemm.h"

enum { M = 4, N = 16, K = 64 };

/* Success is 0 both to CUDA and to this library, whose functions leave a sentence about what went wrong. */
static void must(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "%s: status %d %s\n", what, status, dualgemm_last_error());
  exit(EXIT_FAILURE);
}

static void* upload(const void* from, size_t bytes) {
  void* memory = NULL;
  must(cudaMalloc(&memory, bytes), "cudaMalloc");
  must(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return memory;
}

/* A matrix [rows, K] in NVFP4: two elements to a byte, and a factor for each 16 of them. Both are on the
 * device; `scale` is the matrix's own factor, which the launch gets by way of its alphas. */
typedef struct {
  void *elements, *factors;
  float scale;
} matrix_t;

/* Quantises x and uploads it. What the quantised elements are worth is left in x. */
static matrix_t quantise(float* x, int rows) {
  matrix_t out;
  const size_t bytes = (size_t)rows * K / 2, factor_bytes = dualgemm_sf_size(rows, K);
  void *elements = malloc(bytes), *factors = malloc(factor_bytes);
  must(elements == NULL || factors == NULL, "malloc");
  must(dualgemm_global_scale_host(x, rows, K, 0, &out.scale), "dualgemm_global_scale_host");
  must(dualgemm_quantize_host(x, rows, K, 0, out.scale, elements, 0, factors), "dualgemm_quantize_host");
  must(dualgemm_dequantize_host(elements, 0, factors, rows, K, out.scale, x, 0), "dualgemm_dequantize_host");
  out.elements = upload(elements, bytes);
  out.factors = upload(factors, factor_bytes);
  free(elements);
  free(factors);
  return out;
}

static float a[M * K], b1[N * K], b2[N * K]; /* activations, weights of the gate, weights of up */
static uint16_t c[M * N];                    /* BF16 */

int main(void) {
  for (int i = 0; i < M * K; ++i) a[i] = sinf(0.7f * i + 1);
  for (int i = 0; i < N * K; ++i) b1[i] = 0.2f * sinf(1.1f * i + 2), b2[i] = 0.3f * sinf(1.3f * i + 3);
  const matrix_t qa = quantise(a, M), qb1 = quantise(b1, N), qb2 = quantise(b2, N);

  /* Quantising has multiplied each matrix by its scale. The alphas take that out of the two products. */
  const float alpha1 = 1 / (qa.scale * qb1.scale), alpha2 = 1 / (qa.scale * qb2.scale);
  memset(c, 0xFF, sizeof c); /* NaN, so that an output that is not written cannot pass */
  void* c_device = upload(c, sizeof c);
  must(dualgemm_launch(qa.elements, qb1.elements, qb2.elements, qa.factors, qb1.factors, qb2.factors,
                       c_device, M, N, K, alpha1, alpha2, DUALGEMM_DTYPE_BF16, NULL),
       "dualgemm_launch");
  must(cudaMemcpy(c, c_device, sizeof c, cudaMemcpyDeviceToHost), "cudaMemcpy"); /* it waits for the kernel */

  /* Every output, computed once more. BF16 keeps 8 bits of a number: rounding to it moves the number by half
   * a step, at most 1/256 of it. The kernel's sums have 24 bits, so what they lose is next to nothing. */
  int wrong = 0;
  for (int row = 0; row < M; ++row) {
    for (int column = 0; column < N; ++column) {
      double g = 0, u = 0;
      for (int i = 0; i < K; ++i) {
        g += (double)a[row * K + i] * b1[column * K + i];
        u += (double)a[row * K + i] * b2[column * K + i];
      }
      const double exact = g / (1 + exp(-g)) * u;
      const uint32_t bits = (uint32_t)c[row * N + column] << 16; /* BF16 is the upper half of a float */
      float got;
      memcpy(&got, &bits, sizeof got);
      if (fabs(got - exact) <= fabs(exact) / 256 + 1e-5) continue; /* which NaN never is */
      if (wrong++ == 0) printf("C[%d][%d] is %g, not %g\n", row, column, got, exact);
    }
  }
  printf("%d of %d outputs beyond half a step of BF16: %s\n", wrong, M * N, wrong ? "WRONG" : "correct");

  const matrix_t matrices[] = {qa, qb1, qb2};
  for (int i = 0; i < 3; ++i) {
    must(cudaFree(matrices[i].elements), "cudaFree");
    must(cudaFree(matrices[i].factors), "cudaFree");
  }
  must(cudaFree(c_device), "cudaFree");
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
