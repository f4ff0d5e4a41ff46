// pdl_chain.cpp -- quantise, up, down: three kernels, each starting while the one before it still runs
//
// On a stream a kernel starts when the preceding one has ended and its memory is written: between the two
// the SMs run empty. With DUALGEMM_FLAG_PDL (programmatic dependent launch) a kernel may be on its SMs
// before that, as soon as the preceding one makes room: it sets up its barriers, tensor memory and tensor
// maps, and waits. What it reads and writes it touches after that wait alone, so the flag changes when work
// is done, and never a bit of the result.
//
// DUALGEMM_FLAG_STATIC_WEIGHTS is a promise of the caller's: nothing that may still run when the kernel
// starts writes B1, B2, SFB1 or SFB2. Then the first weights are loaded before the wait, while the
// preceding kernel still works. Do not give it where the weights are copied or swizzled right before on the
// same stream.
#include "compare.h"

int main() {
  const int m = 32, k = 128, n = 96;
  const std::vector<float> x = normal(size_t(m) * k, 1, 1);
  Buffer<uint16_t> x_bf16(x.size());
  std::transform(x.begin(), x.end(), x_bf16.begin(), bf16);
  const Nvfp4 gate(normal(size_t(n) * k, 0.09f, 2), n, k), up(normal(size_t(n) * k, 0.09f, 3), n, k);
  const Nvfp4 down(normal(size_t(k) * n, 0.1f, 4), k, n);
  // Calibrated, so that no kernel measures them.
  const float x_scale = 448 * 6 / 5.0f, c_scale = 448 * 6 / 12.0f;

  Buffer<uint8_t> a(x.size() / 2), sfa(dualgemm_sf_size(m, k));
  Buffer<uint8_t> c(size_t(m) * n / 2, 0xFF), sfc(dualgemm_sf_size(m, n), 0xFF);
  Buffer<uint16_t> y(size_t(m) * k, 0xFFFF);

  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.flags = DUALGEMM_FLAG_PDL;
  quantize.rows = m, quantize.k = k;
  quantize.x = x_bf16.data(), quantize.q = a.data(), quantize.sf = sfa.data();
  quantize.global_scale = x_scale;

  dualgemm_args_t first;
  dualgemm_args_init(&first);
  first.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  first.m = m, first.n = n, first.k = k;
  first.a = a.data(), first.sfa = sfa.data();
  first.b1 = gate.codes.data(), first.sfb1 = gate.factors.data();
  first.b2 = up.codes.data(), first.sfb2 = up.factors.data();
  first.alpha1 = 1 / (x_scale * gate.scale[0]), first.alpha2 = 1 / (x_scale * up.scale[0]);
  first.c = c.data(), first.sfc = sfc.data(), first.c_dtype = DUALGEMM_DTYPE_NVFP4;
  first.c_global_scale = c_scale;

  // C and SFC are A and SFA of the next launch, which reads them after its wait.
  dualgemm_args_t second;
  dualgemm_args_init(&second);
  second.flags = first.flags;
  second.products = 1;
  second.m = m, second.n = k, second.k = n;
  second.a = first.c, second.sfa = first.sfc;
  second.b1 = down.codes.data(), second.sfb1 = down.factors.data();
  second.alpha1 = 1 / (c_scale * down.scale[0]);
  second.c = y.data(), second.c_dtype = DUALGEMM_DTYPE_BF16;

  cudaStream_t stream;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  must(dualgemm_quantize(&quantize, stream));
  must(dualgemm_launch_ex(&first, stream));
  must(dualgemm_launch_ex(&second, stream));
  must(cudaStreamSynchronize(stream));
  must(cudaStreamDestroy(stream));

  // C in NVFP4 against double precision; then y, which is computed from what the codes of C are worth, to
  // half a step of bf16 (2^-8) and 2^-14 for the sums, which keep 24 bits.
  const Nvfp4 rounded(x, m, k, x_scale);
  std::vector<float> values(size_t(m) * n);
  must(dualgemm_dequantize_host(c.data(), 0, sfc.data(), m, n, c_scale, values.data(), 0));
  Comparison compare;
  const std::vector<float> exact_c =
      gated(rounded.values.data(), gate.values.data(), up.values.data(), m, n, k);
  compare.nvfp4(values, exact_c, n, c_scale);
  for (size_t i = 0; i < y.size(); ++i) {
    const double exact = dot(&values[i / k * n], &down.values[i % k * n], n);
    compare(from_bf16(y[i]), exact, std::fabs(exact) / 256 + 0x1p-14);
  }
  return compare.verdict("a neighbour in NVFP4 (C), half a step of bf16 (down)");
}
