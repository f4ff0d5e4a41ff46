// moe_masked.cpp -- a mixture of experts by counts that only the device knows, with a limit on gate and up
//
// The layout of a decoding step: x [experts, room, K], each expert's tokens in its first rows. The router's
// kernel writes to device memory how many these are; the host launches without ever knowing, in a CUDA
// graph, too. The activation is that of DeepSeek-V4, with its limit, and the router's weights go onto the
// rows of C.
#include "compare.h"

int main() {
  const int experts = 4, room = 32, n = 64, k = 128;
  const std::vector<float> x = normal(size_t(experts) * room * k, 1, 1);
  Buffer<uint16_t> x_bf16(x.size());
  std::transform(x.begin(), x.end(), x_bf16.begin(), bf16);

  // Each expert has two weights with two global scales of their own: w1, w3 are [experts, N, K].
  const Nvfp4 w1(normal(size_t(experts) * n * k, 0.5f, 2), n, k),
      w3(normal(size_t(experts) * n * k, 0.5f, 3), n, k);

  // A copy on the stream stands for the router.
  const std::vector<int32_t> counts = {5, 0, room, 17};
  Buffer<int32_t> group_rows(experts);
  must(cudaMemcpyAsync(group_rows.data(), counts.data(), experts * sizeof(int32_t), cudaMemcpyDefault,
                       nullptr));
  Buffer<float> router_weight(size_t(experts) * room);
  for (size_t i = 0; i < router_weight.size(); ++i) router_weight[i] = 1.0f / float(1 + i % 7);

  // Activations have one scale, which was calibrated with the model. The quantiser takes the groups as the
  // launch does, and leaves rows that are not in use alone.
  const float x_scale = 448 * 6 / 5.0f;
  Buffer<uint8_t> a(x.size() / 2), sfa(experts * dualgemm_sf_size(room, k));
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = room, quantize.k = k;
  quantize.group_mode = DUALGEMM_GROUP_MASKED, quantize.groups = experts;
  quantize.group_rows = group_rows.data();
  quantize.x = x_bf16.data(), quantize.q = a.data(), quantize.sf = sfa.data();
  quantize.scale_mode = DUALGEMM_SCALE_GIVEN, quantize.global_scale = x_scale;

  // alpha_stride = 1: every expert has an alpha of its own, for each of its weights.
  Buffer<float> alpha1(experts), alpha2(experts);
  for (int e = 0; e < experts; ++e)
    alpha1[e] = 1 / (x_scale * w1.scale[e]), alpha2[e] = 1 / (x_scale * w3.scale[e]);
  const uint16_t untouched = 0xFFFF;
  Buffer<uint16_t> c(size_t(experts) * room * n, untouched);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = room, args.n = n, args.k = k;
  args.group_mode = DUALGEMM_GROUP_MASKED, args.groups = experts;
  args.group_rows = group_rows.data();
  args.expected_rows = 8;  // what is usual: a hint for the choice of the tile, and for nothing else
  args.a = a.data(), args.sfa = sfa.data();
  args.b1 = w1.codes.data(), args.sfb1 = w1.factors.data();
  args.b2 = w3.codes.data(), args.sfb2 = w3.factors.data();
  args.alpha1_dev = alpha1.data(), args.alpha2_dev = alpha2.data(), args.alpha_stride = 1;
  args.swiglu_limit = 10;  // min(g, 10) and clamp(u, -10, 10)
  args.c_row_scale = router_weight.data();
  args.c = c.data(), args.c_dtype = DUALGEMM_DTYPE_BF16;

  must(dualgemm_quantize(&quantize, nullptr));
  must(dualgemm_launch_ex(&args, nullptr));
  must(cudaDeviceSynchronize());

  // Rows in use are within half a step of bf16, 2^-8 of an output; the sums, which keep 24 bits, move one
  // below 2^-11, since both products are of several units. All other rows of C are as they were.
  const std::vector<float> values = Nvfp4(x, room, k, x_scale).values;
  Comparison compare;
  for (int e = 0; e < experts; ++e) {
    for (int row = 0; row < room; ++row) {
      for (int column = 0; column < n; ++column) {
        const size_t at = size_t(e) * room + row, weight = (size_t(e) * n + column) * k;
        const uint16_t got = c[at * n + column];
        if (row >= counts[e]) {
          compare(got, untouched, 0);
          continue;
        }
        const double g = std::min(dot(&values[at * k], &w1.values[weight], k), 10.0);
        const double u = std::clamp(dot(&values[at * k], &w3.values[weight], k), -10.0, 10.0);
        const double exact = g / (1 + std::exp(-g)) * u * router_weight[at];
        compare(from_bf16(got), exact, std::fabs(exact) / 256 + 0x1p-11);
      }
    }
  }
  return compare.verdict("half a step of bf16, or written where no row is in use");
}
