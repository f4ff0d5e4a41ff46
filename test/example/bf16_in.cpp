// bf16_in.cpp -- activations come in bf16: quantised on the device, with a scale that only the device knows
//
// NVFP4 wants one global scale for each tensor, so that its factors, which are FP8, use their range.
// Weights bring theirs. That of activations is either measured for every tensor, as here
// (DUALGEMM_SCALE_TENSOR), or it was calibrated once and stands in the checkpoint (DUALGEMM_SCALE_GIVEN).
#include "compare.h"

int main() {
  const int m = 48, n = 64, k = 256;
  const std::vector<float> x = normal(size_t(m) * k, 3, 1);
  Buffer<uint16_t> x_bf16;
  for (const float value : x) x_bf16.push_back(bf16(value));

  // Two weights of different magnitude, each quantised with its own global scale.
  const Nvfp4 gate(normal(size_t(n) * k, 0.02f, 2), n, k), up(normal(size_t(n) * k, 0.05f, 3), n, k);

  // A and SFA are what the launch reads; the scales stay on the device, and the host never waits for them.
  Buffer<uint8_t> a(size_t(m) * k / 2), sfa(dualgemm_sf_size(m, k));
  Buffer<float> tensor_scales(3);  // max|x|, the scale, 1 / the scale
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = m, quantize.k = k;
  quantize.x = x_bf16.data();
  quantize.x_dtype = DUALGEMM_DTYPE_BF16;
  quantize.q = a.data(), quantize.sf = sfa.data();
  quantize.scale_mode = DUALGEMM_SCALE_TENSOR;
  quantize.tensor_scales = tensor_scales.data();

  // The kernel multiplies codes and factors. An element of A is worth code * factor / scale of A, one of B1
  // the same with the scale of B1, so their product needs alpha1 = 1 / (scale of A * scale of B1). Here the
  // host knows one half of that, the device the other: alpha1_dev is multiplied into alpha1. The gate has
  // one alpha and up another because each weight has its own scale. (A scale that is GIVEN goes into alpha1
  // and alpha2 altogether. Scales by which one multiplies, as ModelOpt has them, are the reciprocals of
  // these.)
  Buffer<uint16_t> c(size_t(m) * n, 0xFFFF);  // NaN: an output that is not written cannot pass
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.k = k;
  args.a = a.data(), args.sfa = sfa.data();
  args.b1 = gate.codes.data(), args.sfb1 = gate.factors.data();
  args.b2 = up.codes.data(), args.sfb2 = up.factors.data();
  args.alpha1 = 1 / gate.scale[0], args.alpha2 = 1 / up.scale[0];
  args.alpha1_dev = args.alpha2_dev = &tensor_scales[2];
  args.c = c.data(), args.c_dtype = DUALGEMM_DTYPE_BF16;

  // The stream orders the two: A is whole before the launch reads it.
  must(dualgemm_quantize(&quantize, nullptr));
  must(dualgemm_launch_ex(&args, nullptr));
  must(cudaDeviceSynchronize());

  // What x is worth in NVFP4, from the quantiser on the host, and the products in double precision, without
  // any alpha. Rounding to bf16, which has 8 significant bits, moves an output by half a step, at most 2^-8
  // of it; the sums, which keep 24 bits, and the activation move it by less than 2^-14 where outputs are
  // about 1.
  const Nvfp4 rounded(x, m, k);
  const std::vector<float> exact =
      gated(rounded.values.data(), gate.values.data(), up.values.data(), m, n, k);
  Comparison compare;
  for (size_t i = 0; i < c.size(); ++i)
    compare(from_bf16(c[i]), exact[i], std::fabs(exact[i]) / 256 + 0x1p-14);
  return compare.verdict("half a step of bf16");
}
