/* quickstart.c -- C = silu(A * B1^T) * (A * B2^T) in C99, for any M, N, K, and why it is off by what it is
 *
 * The first half of a SwiGLU MLP, with NVFP4 activations and weights.
 *
 *     quickstart [M N K]
 *
 * Makes random activations X [M, K] and weights W1, W2 [N, K] in float, quantises them to NVFP4 with the
 * library's host helpers, launches, and compares every output with a double-precision reference of the same
 * quantised numbers. The exit status is the verdict. */
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

static void dualgemm(dualgemm_status_t status, const char* what) {
  if (status != DUALGEMM_STATUS_SUCCESS) {
    fprintf(stderr, "quickstart: %s: %s: %s\n", what, dualgemm_status_name(status), dualgemm_last_error());
    exit(EXIT_FAILURE);
  }
}

static void* allocate(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory == NULL) fail("malloc", "out of memory");
  return memory;
}

/* One NVFP4 tensor: packed elements and scale factors on the device, the global scale, and on the host what
 * the quantised elements are worth without it. */
typedef struct {
  void *elements, *factors;
  float global_scale;
  float* values;
} tensor_t;

/* Roughly normal numbers: the sum of four uniform ones, variance 1. */
static float random_normal(uint64_t* state) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    sum += (double)(*state >> 11) / 9007199254740992.0 - 0.5;
  }
  return (float)(sum * 1.7320508);
}

static tensor_t make_tensor(int rows, int k, float spread, uint64_t seed) {
  tensor_t t;
  const size_t count = (size_t)rows * k, bytes = count / 2;
  const size_t factor_bytes = dualgemm_sf_size(rows, k);
  float* x = allocate(count * sizeof *x);
  void *elements = allocate(bytes), *factors = allocate(factor_bytes);
  for (size_t i = 0; i < count; ++i) x[i] = spread * random_normal(&seed);

  dualgemm(dualgemm_global_scale_host(x, rows, k, 0, &t.global_scale), "dualgemm_global_scale_host");
  dualgemm(dualgemm_quantize_host(x, rows, k, 0, t.global_scale, elements, 0, factors),
           "dualgemm_quantize_host");
  t.values = x;
  dualgemm(dualgemm_dequantize_host(elements, 0, factors, rows, k, 1.0f, t.values, 0),
           "dualgemm_dequantize_host");

  cuda(cudaMalloc(&t.elements, bytes), "cudaMalloc");
  cuda(cudaMalloc(&t.factors, factor_bytes), "cudaMalloc");
  cuda(cudaMemcpy(t.elements, elements, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  cuda(cudaMemcpy(t.factors, factors, factor_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  free(elements);
  free(factors);
  return t;
}

static void free_tensor(tensor_t* t) {
  cuda(cudaFree(t->elements), "cudaFree");
  cuda(cudaFree(t->factors), "cudaFree");
  free(t->values);
}

static double bf16_value(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Dot product; *magnitude is the same sum with every term positive.
 * Products of quantised values are exact. */
static double dot(const float* a, const float* b, int k, double* magnitude) {
  double sum = 0, terms = 0;
  for (int i = 0; i < k; ++i) {
    const double term = (double)a[i] * b[i];
    sum += term;
    terms += fabs(term);
  }
  *magnitude = terms;
  return sum;
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
  const float weight_spread = 1.0f / sqrtf((float)k);
  tensor_t a = make_tensor(m, k, 1.0f, 1);
  tensor_t b1 = make_tensor(n, k, weight_spread, 2);
  tensor_t b2 = make_tensor(n, k, 2 * weight_spread, 3);

  /* The global scales were multiplied into the quantised numbers; alpha takes them out again. */
  const float alpha1 = 1.0f / (a.global_scale * b1.global_scale);
  const float alpha2 = 1.0f / (a.global_scale * b2.global_scale);

  const size_t c_bytes = (size_t)m * n * sizeof(uint16_t);
  void* c_device;
  cuda(cudaMalloc(&c_device, c_bytes), "cudaMalloc");
  /* NaN: an output that is not written cannot pass. */
  cuda(cudaMemset(c_device, 0xFF, c_bytes), "cudaMemset");
  cudaStream_t stream;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); /* the copies above ran on another stream */

  dualgemm(dualgemm_launch(a.elements, b1.elements, b2.elements, a.factors, b1.factors, b2.factors, c_device,
                           m, n, k, alpha1, alpha2, DUALGEMM_DTYPE_BF16, stream),
           "dualgemm_launch");
  cuda(cudaStreamSynchronize(stream), "the kernel");
  uint16_t* c = allocate(c_bytes);
  cuda(cudaMemcpy(c, c_device, c_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");

  /* Where it ran, and with which kernel. */
  dualgemm_args_t args;
  dualgemm_device_t device;
  dualgemm_instance_info_t instance;
  int32_t instance_id;
  dualgemm_args_init(&args);
  args.a = a.elements, args.b1 = b1.elements, args.b2 = b2.elements;
  args.sfa = a.factors, args.sfb1 = b1.factors, args.sfb2 = b2.factors;
  args.c = c_device;
  args.m = m, args.n = n, args.k = k;
  dualgemm_device_init(&device);
  dualgemm_instance_info_init(&instance);
  dualgemm(dualgemm_current_device(&device), "dualgemm_current_device");
  dualgemm(dualgemm_select_instance(&args, &device, &instance_id), "dualgemm_select_instance");
  dualgemm(dualgemm_instance_info(instance_id, &instance), "dualgemm_instance_info");
  printf("device         %s\n", device.name);
  printf("problem        M %d, N %d, K %d, NVFP4 -> BF16\n", m, n, k);
  printf("instance       %s\n", instance.name);

  /* Every output against the reference. What the kernel may lose:
   *   - the tensor core cuts its running sum to 24 bits once per 64 elements: each time at most 2^-23 of the
   *     sum of magnitudes; this moves the gate by dg and the up by du, and silu by at most 1.1 dg;
   *   - float arithmetic in the epilogue: silu's exponential, reciprocal and products, 2^-20 of the result,
   *     growing with the gate's size because exp(g) turns a relative error of g into |g| times that;
   *   - the conversion to BF16, 8 significant bits: 2^-8. */
  double largest = 0, its_bound = 1, its_output = 0, its_sums = 0;
  long long wrong = 0;
  const double steps = ceil(k / 64.0);
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      double gate_magnitude, up_magnitude;
      const float* x = a.values + (size_t)row * k;
      const double g = alpha1 * dot(x, b1.values + (size_t)column * k, k, &gate_magnitude);
      const double u = alpha2 * dot(x, b2.values + (size_t)column * k, k, &up_magnitude);
      const double silu = g / (1 + exp(-g)), expected = silu * u;
      const double dg = steps * ldexp(alpha1 * gate_magnitude, -23),
                   du = steps * ldexp(alpha2 * up_magnitude, -23);
      const double before_rounding =
          1.1 * dg * (fabs(u) + du) + fabs(silu) * du + ldexp(fabs(expected) * (1 + fabs(g)), -20);
      const double bound = before_rounding + ldexp(fabs(expected) + before_rounding, -8);
      const double got = bf16_value(c[(size_t)row * n + column]);
      const double error = fabs(got - expected);
      if (!(error <= bound)) {
        if (wrong++ == 0)
          printf("C[%d][%d] is %.9g, expected %.9g within %.3g\n", row, column, got, expected, bound);
      } else if (error * its_bound > largest * bound) {
        largest = error, its_bound = bound, its_output = expected, its_sums = before_rounding;
      }
    }
  }
  if (wrong == 0) {
    printf("largest error  %.3g where %.3g is allowed (%.0f %%), over %lld outputs\n", largest, its_bound,
           100 * largest / its_bound, (long long)m * n);
    if (its_output != 0) { /* else all outputs are 0 and exact */
      const double step = ldexp(1, ilogb(its_output) - 7);
      printf(
          "in words       half a step of BF16: it keeps 8 bits, so near %.4g its numbers are %.3g apart,\n"
          "               and the nearest is up to half of that away, %.3g; sums and silu lose %.2g at most\n",
          its_output, step, step / 2, its_sums);
    }
    printf("verdict        correct\n");
  } else {
    printf("verdict        WRONG: %lld of %lld outputs outside their bound\n", wrong, (long long)m * n);
  }

  free(c);
  free_tensor(&a);
  free_tensor(&b1);
  free_tensor(&b2);
  cuda(cudaFree(c_device), "cudaFree");
  cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
