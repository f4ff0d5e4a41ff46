/* quickstart.c -- the whole way in C99, for any M, N, K: quantise, upload, launch, compare; why C is off by what it is
 *
 *     quickstart [M N K]
 *
 * C = silu(A * B1^T) * (A * B2^T), the first half of a SwiGLU MLP: random activations A [M, K] and weights B1
 * (gate) and B2 (up) [N, K] are quantised to NVFP4. Every output is compared with a double-precision reference
 * of the same quantised numbers. The exit status is the verdict. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dualgemm.h"

static void fail(const char* what, const char* why) {
  fprintf(stderr, "quickstart: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(what, cudaGetErrorString(error));
}

/* The library's functions leave a sentence about what went wrong. */
static void dualgemm(dualgemm_status_t status, const char* what) {
  if (status != DUALGEMM_STATUS_SUCCESS) fail(what, dualgemm_last_error());
}

static void* allocate(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory == NULL) fail("malloc", "out of memory");
  return memory;
}

static void* upload(const void* from, size_t bytes) {
  void* memory = NULL;
  cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  cuda(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return memory;
}

/* A matrix [rows, K] in NVFP4: two elements to a byte, and a factor for each 16 of them. Both are on the
 * device; `scale` is the matrix's own factor, which the launch gets by way of its alphas. `values` are
 * what the quantised elements are worth without it, on the host. */
typedef struct {
  void *elements, *factors;
  float scale;
  float* values;
} matrix_t;

/* Roughly normal numbers: the sum of four uniform ones, variance 1. */
static float random_normal(uint64_t* state) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    sum += (double)(*state >> 11) / 9007199254740992.0 - 0.5;
  }
  return (float)(sum * 1.7320508);
}

static matrix_t make_matrix(int rows, int k, float spread, uint64_t seed) {
  matrix_t out;
  const size_t count = (size_t)rows * k, bytes = count / 2, factor_bytes = dualgemm_sf_size(rows, k);
  void *elements = allocate(bytes), *factors = allocate(factor_bytes);
  float* x = out.values = allocate(count * sizeof *x);
  for (size_t i = 0; i < count; ++i) x[i] = spread * random_normal(&seed);
  dualgemm(dualgemm_global_scale_host(x, rows, k, 0, &out.scale), "dualgemm_global_scale_host");
  dualgemm(dualgemm_quantize_host(x, rows, k, 0, out.scale, elements, 0, factors), "dualgemm_quantize_host");
  dualgemm(dualgemm_dequantize_host(elements, 0, factors, rows, k, 1.0f, x, 0), "dualgemm_dequantize_host");
  out.elements = upload(elements, bytes);
  out.factors = upload(factors, factor_bytes);
  free(elements);
  free(factors);
  return out;
}

static void free_matrix(matrix_t* matrix) {
  cuda(cudaFree(matrix->elements), "cudaFree");
  cuda(cudaFree(matrix->factors), "cudaFree");
  free(matrix->values);
}

/* Prints where the launch ran, and with which kernel. */
static void print_instance(const matrix_t* a, const matrix_t* b1, const matrix_t* b2, void* c, int m, int n,
                           int k) {
  dualgemm_args_t args;
  dualgemm_device_t device;
  dualgemm_instance_info_t instance;
  int32_t instance_id;
  dualgemm_args_init(&args);
  args.a = a->elements, args.b1 = b1->elements, args.b2 = b2->elements;
  args.sfa = a->factors, args.sfb1 = b1->factors, args.sfb2 = b2->factors;
  args.c = c;
  args.m = m, args.n = n, args.k = k;
  dualgemm_device_init(&device);
  dualgemm_instance_info_init(&instance);
  dualgemm(dualgemm_current_device(&device), "dualgemm_current_device");
  dualgemm(dualgemm_select_instance(&args, &device, &instance_id), "dualgemm_select_instance");
  dualgemm(dualgemm_instance_info(instance_id, &instance), "dualgemm_instance_info");
  printf("device         %s\n", device.name);
  printf("problem        M %d, N %d, K %d, NVFP4 -> BF16\n", m, n, k);
  printf("instance       %s\n", instance.name);
}

/* BF16 is the upper half of a float. */
static double bf16_value(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* A dot product; *magnitude is the same sum with every term positive. Products of quantised values are exact. */
static double dot(const float* a, const float* b, int k, double* magnitude) {
  double sum = 0;
  *magnitude = 0;
  for (int i = 0; i < k; ++i) {
    const double term = (double)a[i] * b[i];
    sum += term;
    *magnitude += fabs(term);
  }
  return sum;
}

/* What C[row][column] should be, and how far it may be from that:
 *   - The tensor core cuts its running sum to 24 bits once per 64 elements on Blackwell, and once per 16 on
 *     Hopper, which also cuts the 17 terms that it adds, each by 2^-25 of the largest. Both lose less than
 *     2^-20 of the sum of magnitudes each time. This moves the gate by dg and the up by du, and silu by at
 *     most 1.1 dg.
 *   - Float arithmetic in the epilogue (silu's exponential, reciprocal and products) loses 2^-20 of the result,
 *     and more as the gate grows, because exp(g) turns a relative error of g into |g| times that.
 *   - The conversion to BF16, which has 8 significant bits, loses 2^-8. */
typedef struct {
  double value, before_rounding, bound;
} expected_t;

static expected_t expected_output(const float* a, const float* b1, const float* b2, int k, double alpha1,
                                  double alpha2) {
  double gate_magnitude, up_magnitude;
  const double g = alpha1 * dot(a, b1, k, &gate_magnitude), u = alpha2 * dot(a, b2, k, &up_magnitude);
  const double silu = g / (1 + exp(-g)), steps = ceil(k / 16.0);
  const double dg = steps * ldexp(alpha1 * gate_magnitude, -20),
               du = steps * ldexp(alpha2 * up_magnitude, -20);
  expected_t e;
  e.value = silu * u;
  e.before_rounding = 1.1 * dg * (fabs(u) + du) + fabs(silu) * du + ldexp(fabs(e.value) * (1 + fabs(g)), -20);
  e.bound = e.before_rounding + ldexp(fabs(e.value) + e.before_rounding, -8);
  return e;
}

/* Compares every output, says how near the farthest came to its bound, and returns how many are beyond theirs. */
static long long compare(const uint16_t* c, const matrix_t* a, const matrix_t* b1, const matrix_t* b2, int m,
                         int n, int k, double alpha1, double alpha2) {
  expected_t farthest = {0, 0, 1};
  double largest = 0;
  long long wrong = 0;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      const size_t weights = (size_t)column * k;
      const expected_t e = expected_output(a->values + (size_t)row * k, b1->values + weights,
                                           b2->values + weights, k, alpha1, alpha2);
      const double got = bf16_value(c[(size_t)row * n + column]), error = fabs(got - e.value);
      if (!(error <= e.bound)) { /* NaN, too */
        if (wrong++ == 0)
          printf("C[%d][%d] is %.9g, expected %.9g within %.3g\n", row, column, got, e.value, e.bound);
      } else if (error * farthest.bound > largest * e.bound) {
        largest = error, farthest = e;
      }
    }
  }
  if (wrong != 0) return wrong;
  printf("largest error  %.3g where %.3g is allowed (%.0f %%), over %lld outputs\n", largest, farthest.bound,
         100 * largest / farthest.bound, (long long)m * n);
  if (farthest.value != 0) { /* else all outputs are 0 and exact */
    const double step = ldexp(1, ilogb(farthest.value) - 7);
    printf(
        "in words       half a step of BF16: it keeps 8 bits, so near %.4g its numbers are %.3g apart,\n"
        "               and the nearest is up to half of that away, %.3g; sums and silu lose %.2g at most\n",
        farthest.value, step, step / 2, farthest.before_rounding);
  }
  return 0;
}

static int dimension(const char* text) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 1 || value > 1 << 20)
    fail(text, "M, N and K are positive whole numbers");
  return (int)value;
}

int main(int argc, char** argv) {
  if (argc != 1 && argc != 4) fail("usage", "quickstart [M N K]");
  const int m = argc == 4 ? dimension(argv[1]) : 200;
  const int n = argc == 4 ? dimension(argv[2]) : 512;
  const int k = argc == 4 ? dimension(argv[3]) : 1024;
  if (k % 32 != 0 || n % 8 != 0)
    fail("shape", "this example keeps its tensors compact: K % 32 == 0 and N % 8 == 0");

  /* Weights are spread so that gate and up come out near 1, as they do in a trained network. */
  const float spread = 1 / sqrtf((float)k);
  matrix_t a = make_matrix(m, k, 1, 1), b1 = make_matrix(n, k, spread, 2),
           b2 = make_matrix(n, k, 2 * spread, 3);
  /* Quantising has multiplied each matrix by its scale. The alphas take that out of the two products. */
  const float alpha1 = 1 / (a.scale * b1.scale), alpha2 = 1 / (a.scale * b2.scale);

  const size_t c_bytes = (size_t)m * n * sizeof(uint16_t);
  uint16_t* c = allocate(c_bytes);
  memset(c, 0xFF, c_bytes); /* NaN, so that an output that is not written cannot pass */
  void* c_device = upload(c, c_bytes);
  cudaStream_t stream;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); /* the copies above ran on another stream */

  dualgemm(dualgemm_launch(a.elements, b1.elements, b2.elements, a.factors, b1.factors, b2.factors, c_device,
                           m, n, k, alpha1, alpha2, DUALGEMM_DTYPE_BF16, stream),
           "dualgemm_launch");
  cuda(cudaStreamSynchronize(stream), "the kernel");
  cuda(cudaMemcpy(c, c_device, c_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");

  print_instance(&a, &b1, &b2, c_device, m, n, k);
  const long long wrong = compare(c, &a, &b1, &b2, m, n, k, alpha1, alpha2);
  if (wrong == 0) printf("verdict        correct\n");
  else printf("verdict        WRONG: %lld of %lld outputs outside their bound\n", wrong, (long long)m * n);

  free(c);
  free_matrix(&a);
  free_matrix(&b1);
  free_matrix(&b2);
  cuda(cudaFree(c_device), "cudaFree");
  cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
