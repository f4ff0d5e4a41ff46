// chain.cpp -- up, then down, in NVFP4: C and SFC of one launch are A and SFA of the next, where they lie
//
// A SwiGLU block is x + down(silu(gate(x)) * up(x)). With c_dtype = NVFP4 the first launch quantises its own
// output: no bf16 tensor of the intermediate size is written, and no kernel reads it back to quantise it.
#include "compare.h"

int main() {
  const int m = 40, hidden = 64, intermediate = 96;
  const Nvfp4 x(normal(size_t(m) * hidden, 1, 1), m, hidden);
  const Nvfp4 gate(normal(size_t(intermediate) * hidden, 0.125f, 2), intermediate, hidden);
  const Nvfp4 up(normal(size_t(intermediate) * hidden, 0.125f, 3), intermediate, hidden);
  const Nvfp4 down(normal(size_t(hidden) * intermediate, 0.1f, 4), hidden, intermediate);

  // The encode scale of C: what C is multiplied by before it becomes codes and factors. Any number will do
  // that brings the largest |C| to 448 * 6 or less, and not far less; more saturates. It is known before C
  // is, so it was calibrated (amax_out measures max|C|): of a checkpoint it is 1 / the input_scale of the
  // down projection.
  const float largest_c = 12, encode = 448 * 6 / largest_c;

  // An NVFP4 C is packed along N as A is along K, and SFC has the layout of SFA with N for K.
  Buffer<uint8_t> c(size_t(m) * intermediate / 2, 0xFF), sfc(dualgemm_sf_size(m, intermediate), 0xFF);
  dualgemm_args_t first;
  dualgemm_args_init(&first);
  first.m = m, first.n = intermediate, first.k = hidden;
  first.a = x.codes.data(), first.sfa = x.factors.data();
  first.b1 = gate.codes.data(), first.sfb1 = gate.factors.data();
  first.b2 = up.codes.data(), first.sfb2 = up.factors.data();
  first.alpha1 = 1 / (x.scale[0] * gate.scale[0]), first.alpha2 = 1 / (x.scale[0] * up.scale[0]);
  first.c = c.data(), first.sfc = sfc.data(), first.c_dtype = DUALGEMM_DTYPE_NVFP4;
  first.c_global_scale = encode;

  // The down projection is one product. `encode` is the scale of A now, where the scale of x was, and alpha1
  // takes it out again. The residual x, here in bf16, is added by c_add: y = x + down(c).
  Buffer<uint16_t> residual(x.values.size()), y(size_t(m) * hidden, 0xFFFF);
  std::transform(x.values.begin(), x.values.end(), residual.begin(), bf16);
  dualgemm_args_t second;
  dualgemm_args_init(&second);
  second.m = m, second.n = hidden, second.k = intermediate;
  second.a = first.c, second.sfa = first.sfc;
  second.products = 1;
  second.b1 = down.codes.data(), second.sfb1 = down.factors.data();
  second.alpha1 = 1 / (encode * down.scale[0]);
  second.c_add = residual.data();
  second.c = y.data(), second.c_dtype = DUALGEMM_DTYPE_BF16;

  must(dualgemm_launch_ex(&first, nullptr));
  must(dualgemm_launch_ex(&second, nullptr));
  must(cudaDeviceSynchronize());

  // The first launch: C against double precision.
  const std::vector<float> exact =
      gated(x.values.data(), gate.values.data(), up.values.data(), m, intermediate, hidden);
  std::vector<float> values(exact.size());
  must(dualgemm_dequantize_host(c.data(), 0, sfc.data(), m, intermediate, encode, values.data(), 0));
  Comparison compare;
  compare.nvfp4(values, exact, intermediate, encode);

  // The second: the residual, and the product of what C is worth and the weights of down, to half a step of
  // bf16 (2^-8), and 2^-14 for the sums, which keep 24 bits.
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < hidden; ++column) {
      const double sum = from_bf16(residual[row * hidden + column]) +
                         dot(&values[row * intermediate], &down.values[column * intermediate], intermediate);
      compare(from_bf16(y[row * hidden + column]), sum, std::fabs(sum) / 256 + 0x1p-14);
    }
  }
  return compare.verdict("a neighbour in NVFP4 (C), half a step of bf16 (down)");
}
