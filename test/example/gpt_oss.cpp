// gpt_oss.cpp -- an expert of gpt-oss: its activation and biases; MXFP4, gate and up in turns, as it has them
//
// gpt-oss computes, of a row's products with its biases, g = min(gate, 7), u = clamp(up, -7, 7) and g *
// sigmoid(1.702 * g) * (u + 1): the SWIGLU of this library with alpha, beta, limit = 1.702, 1, 7. Its weights
// are MXFP4, which becomes NVFP4 without loss: the elements stay as they are, factors are made once. Rows
// stay in the order they have: one buffer [2 N, K] with gate in the even rows and up in the odd ones, which
// the launch reads in place. The model has N = K = 2880; this is a tenth of both.
#include "compare.h"

// gate_up_proj_blocks and gate_up_proj_scales of an expert, and what they are worth: e2m1 * 2^(scale - 127).
struct Mxfp4 {
  Buffer<uint8_t> blocks, scales;
  std::vector<float> values;
  Mxfp4(int rows, int k) : blocks(size_t(rows) * k / 2), scales(size_t(rows) * k / 32) {
    std::mt19937 random(2);
    for (uint8_t& two : blocks) two = uint8_t(random());
    for (uint8_t& scale : scales) scale = uint8_t(127 - 9 + random() % 8);  // real ones spread like that
    const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (size_t i = 0; i < size_t(rows) * k; ++i) {
      const int code = blocks[i / 2] >> i % 2 * 4 & 15;
      values.push_back(std::ldexp(code < 8 ? e2m1[code] : -e2m1[code - 8], scales[i / 32] - 127));
    }
  }
};

int main() {
  const int m = 12, n = 288, k = 288;
  const Nvfp4 x(normal(size_t(m) * k, 1, 1), m, k);
  const Mxfp4 gate_up(2 * n, k);

  // When the model is loaded, for each side: the factors of every other row go to atoms of their own, and
  // what they have in common is one number for the alpha.
  Buffer<uint8_t> gate_factors(dualgemm_sf_size(n, k)), up_factors(dualgemm_sf_size(n, k));
  float gate_scale, up_scale;
  must(dualgemm_import_mxfp4_host(gate_up.blocks.data(), 2 * k, gate_up.scales.data(), k / 16, n, k,
                                  gate_factors.data(), &gate_scale));
  must(dualgemm_import_mxfp4_host(gate_up.blocks.data() + k / 2, 2 * k, gate_up.scales.data() + k / 32,
                                  k / 16, n, k, up_factors.data(), &up_scale));

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
  args.b1 = gate_up.blocks.data(), args.sfb1 = gate_factors.data();
  args.b2 = gate_up.blocks.data() + k / 2, args.sfb2 = up_factors.data();
  args.ldb1 = args.ldb2 = 2 * k;
  args.alpha1 = gate_scale / x.scale[0], args.alpha2 = up_scale / x.scale[0];
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
