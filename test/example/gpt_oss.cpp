// gpt_oss.cpp -- an expert of gpt-oss: its activation and biases; gate and up interleaved, as it stores them
//
// gpt-oss computes, of a row's products with its biases, g = min(gate, 7), u = clamp(up, -7, 7) and g *
// sigmoid(1.702 * g) * (u + 1): the SWIGLU of this library with alpha, beta, limit = 1.702, 1, 7. As
// shipped the weights are MXFP4, which has to become NVFP4 once (dequantise, quantise). Their rows may stay
// in the order they have: one buffer [2 N, K] with gate in the even rows and up in the odd ones, which the
// launch reads in place. The model has N = K = 2880; this is a tenth of both.
#include "compare.h"

int main() {
  const int m = 12, n = 288, k = 288;
  const Nvfp4 x(normal(size_t(m) * k, 1, 1), m, k);
  const Nvfp4 gate_up(normal(size_t(2 * n) * k, 0.25f, 2), 2 * n, k);  // [2 N, K], one tensor with one scale

  // Factors are separate: the atoms of two rows that follow each other lie in one block, of which no launch
  // reads every other row. So those of the [2 N, K] are split once, when the model is loaded. (Factors in
  // rows, as many checkpoints have them: dualgemm_sf_swizzle twice, with twice the pitch.)
  Buffer<uint8_t> gate_factors(dualgemm_sf_size(n, k)), up_factors(dualgemm_sf_size(n, k));
  must(dualgemm_sf_split_host(gate_up.factors.data(), n, k, DUALGEMM_ROWS_INTERLEAVED, gate_factors.data(),
                              up_factors.data()));

  // The bias [2 N] is interleaved, too; a launch takes two vectors.
  const std::vector<float> bias = normal(2 * n, 0.5f, 3);
  Buffer<uint16_t> gate_bias(n), up_bias(n);
  for (int i = 0; i < n; ++i) gate_bias[i] = bf16(bias[2 * i]), up_bias[i] = bf16(bias[2 * i + 1]);

  Buffer<uint16_t> c(size_t(m) * n, 0xFFFF);  // NaN: an output that is not written cannot pass
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.k = k;
  args.a = x.codes.data(), args.sfa = x.factors.data();
  // Pitches count elements, two to a byte: gate begins at row 0, up at row 1, both go on two rows at a time.
  args.b1 = gate_up.codes.data(), args.sfb1 = gate_factors.data();
  args.b2 = gate_up.codes.data() + k / 2, args.sfb2 = up_factors.data();
  args.ldb1 = args.ldb2 = 2 * k;
  args.alpha1 = args.alpha2 = 1 / (x.scale[0] * gate_up.scale[0]);
  args.bias1 = gate_bias.data(), args.bias2 = up_bias.data();
  args.bias_dtype = DUALGEMM_DTYPE_BF16;
  args.activation = DUALGEMM_ACTIVATION_SWIGLU;
  args.swiglu_alpha = 1.702f, args.swiglu_beta = 1, args.swiglu_limit = 7;
  args.c = c.data(), args.c_dtype = DUALGEMM_DTYPE_BF16;

  must(dualgemm_launch_ex(&args, nullptr));
  must(cudaDeviceSynchronize());

  // Every output as the model's own code has it, from the interleaved rows. It is within half a step of
  // bf16, 2^-8 of it; the sums, which keep 24 bits, move one below 2^-10, since both products are of
  // several units.
  Comparison compare;
  int limited = 0;
  for (int row = 0; row < m; ++row) {
    for (int i = 0; i < n; ++i) {
      const float* a = &x.values[row * k];
      const double gate = dot(a, &gate_up.values[2 * i * k], k) + bias[2 * i];
      const double up = dot(a, &gate_up.values[(2 * i + 1) * k], k) + bias[2 * i + 1];
      const double g = std::min(gate, 7.0), u = std::clamp(up, -7.0, 7.0);
      const double exact = g / (1 + std::exp(-1.702 * g)) * (u + 1);
      limited += g != gate || u != up;
      compare(from_bf16(c[row * n + i]), exact, std::fabs(exact) / 256 + 0x1p-10);
    }
  }
  std::printf("%d gates or ups were limited\n", limited);
  return compare.verdict("half a step of bf16");
}
