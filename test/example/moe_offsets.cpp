// moe_offsets.cpp -- a mixture of experts by offsets: rows sorted by expert, sizes on the device, C in FP8
//
// The layout of a prefill: the tokens of all experts follow each other in x [M, K], and an array in device
// memory, one longer than there are experts, says where each expert's begin. M is what the buffers have
// room for; the rows behind the last are nobody's.
#include "compare.h"

// FP8 E4M3: a sign, four bits of exponent, three bits behind the leading one.
static double from_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return bits >> 7 ? -value : value;
}

int main() {
  const int experts = 4, m = 96, n = 64, k = 128;
  const std::vector<float> x = normal(size_t(m) * k, 1, 1);
  Buffer<uint16_t> x_bf16(x.size());
  std::transform(x.begin(), x.end(), x_bf16.begin(), bf16);
  const Nvfp4 w1(normal(size_t(experts) * n * k, 0.09f, 2), n, k),
      w3(normal(size_t(experts) * n * k, 0.09f, 3), n, k);
  const std::vector<int32_t> offsets = {0, 20, 20, 63, 80};  // expert 1 has no token
  Buffer<int32_t> group_rows(experts + 1);
  // A copy on the stream stands for the kernel that sorts the tokens.
  must(cudaMemcpyAsync(group_rows.data(), offsets.data(), offsets.size() * sizeof(int32_t), cudaMemcpyDefault,
                       nullptr));

  // In A the experts' rows follow each other. In SFA each expert begins at a block of 128 rows of its own,
  // so the buffer has room for the blocks that M rows of so many experts can have at most, wherever the
  // offsets lie.
  const int blocks = (m + 127 * std::min(experts, m)) / 128;
  Buffer<uint8_t> a(x.size() / 2), sfa(blocks * dualgemm_sf_size(128, k));
  Buffer<float> row_scale(m);  // a scale for each row, measured
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = m, quantize.k = k;
  quantize.group_mode = DUALGEMM_GROUP_OFFSETS, quantize.groups = experts;
  quantize.group_rows = group_rows.data();
  quantize.x = x_bf16.data(), quantize.q = a.data(), quantize.sf = sfa.data();
  quantize.scale_mode = DUALGEMM_SCALE_ROW, quantize.row_scale = row_scale.data();

  // FP8 has an encode scale: what is stored is C times that, at most 448. amax_out measures the largest
  // |C|, from which the next encode scale may come.
  const float encode = 448 / 12.0f;
  Buffer<float> alpha1(experts), alpha2(experts), amax(1, 0.0f);
  for (int e = 0; e < experts; ++e) alpha1[e] = 1 / w1.scale[e], alpha2[e] = 1 / w3.scale[e];
  const uint8_t untouched = 0x7F;  // NaN
  Buffer<uint8_t> c(size_t(m) * n, untouched);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.k = k;
  args.group_mode = DUALGEMM_GROUP_OFFSETS, args.groups = experts;
  args.group_rows = group_rows.data();
  args.a = a.data(), args.sfa = sfa.data(), args.a_row_scale = row_scale.data();
  args.b1 = w1.codes.data(), args.sfb1 = w1.factors.data();
  args.b2 = w3.codes.data(), args.sfb2 = w3.factors.data();
  args.alpha1_dev = alpha1.data(), args.alpha2_dev = alpha2.data(), args.alpha_stride = 1;
  args.c = c.data(), args.c_dtype = DUALGEMM_DTYPE_FP8_E4M3, args.c_global_scale = encode;
  args.amax_out = amax.data();

  must(dualgemm_quantize(&quantize, nullptr));
  must(dualgemm_launch_ex(&args, nullptr));
  must(cudaDeviceSynchronize());

  // The library's own answer to "what is right?": the same arguments on the host. Managed memory has the
  // inputs there already; y gets C as doubles. Plain loops, which know nothing of scales, have to agree.
  std::vector<uint8_t> reference_c(c.size());
  std::vector<double> y(c.size());
  float reference_amax = 0;
  args.c = reference_c.data(), args.amax_out = &reference_amax;
  must(dualgemm_reference_host(&args, y.data()));

  // Half a step of FP8, which has 4 significant bits, is 2^-4 of an output, for the smallest ones 2^-10;
  // the sums, which keep 24 bits, move one below 2^-14. Rows that no expert owns are as they were.
  const Nvfp4 rows(x, 1, k);
  Comparison compare;
  for (int e = 0; e < experts; ++e) {
    const size_t weight = size_t(e) * n * k;
    const int first = offsets[e] * n, count = offsets[e + 1] - offsets[e];
    const std::vector<float> exact =
        gated(&rows.values[offsets[e] * k], &w1.values[weight], &w3.values[weight], count, n, k);
    for (size_t i = 0; i < exact.size(); ++i) {
      const double c_value = from_e4m3(c[first + i]) / encode;
      compare(y[first + i], exact[i], 1e-5);
      compare(c_value, exact[i], std::fabs(exact[i]) / 16 + 0x1p-10 / encode + 0x1p-14);
    }
  }
  for (size_t i = size_t(offsets[experts]) * n; i < c.size(); ++i) compare(c[i], untouched, 0);
  compare(amax[0], reference_amax, 0x1p-14);
  return compare.verdict("half a step of FP8, or written where no row is in use");
}
