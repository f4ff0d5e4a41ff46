// graph.cpp -- a CUDA graph: quantise and launch are captured once and replayed with other data
//
// A launch allocates nothing, never synchronises and reads no device memory on the host, so it may be
// captured, and a replay finds whatever then stands at the addresses of the capture: activations, weights,
// the scales that the quantiser measured. What it keeps are the numbers of the arguments: m, n, k, strides,
// alpha1, alpha2.
#include "compare.h"

int main() {
  const int m = 8, n = 64, k = 256, replays = 3;
  const Nvfp4 gate(normal(size_t(n) * k, 0.06f, 1), n, k), up(normal(size_t(n) * k, 0.06f, 2), n, k);
  Buffer<uint16_t> x(size_t(m) * k), c(size_t(m) * n);
  Buffer<uint8_t> a(size_t(m) * k / 2), sfa(dualgemm_sf_size(m, k));

  // A scale for each row of x, which keeps a token's result apart from those of others: row_scale gets 1 /
  // scale of each row, and the launch multiplies its row of both products by that.
  Buffer<float> row_scale(m);
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = m, quantize.k = k;
  quantize.x = x.data(), quantize.q = a.data(), quantize.sf = sfa.data();
  quantize.scale_mode = DUALGEMM_SCALE_ROW;
  quantize.row_scale = row_scale.data();

  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.k = k;
  args.a = a.data(), args.sfa = sfa.data();
  args.b1 = gate.codes.data(), args.sfb1 = gate.factors.data();
  args.b2 = up.codes.data(), args.sfb2 = up.factors.data();
  args.alpha1 = 1 / gate.scale[0], args.alpha2 = 1 / up.scale[0];
  args.a_row_scale = row_scale.data();
  args.c = c.data();

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  // A kernel's first use loads it, and CUDA does not promise that this works during a capture. So run once
  // what will be captured, as engines do to warm up; or call dualgemm_init, which loads every kernel.
  must(dualgemm_quantize(&quantize, stream));
  must(dualgemm_launch_ex(&args, stream));
  must(cudaStreamSynchronize(stream));
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  must(dualgemm_quantize(&quantize, stream));
  must(dualgemm_launch_ex(&args, stream));
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&executable, graph, 0));

  Comparison compare;
  for (int replay = 0; replay < replays; ++replay) {
    // Other activations, ten times as large from replay to replay.
    const float spread = std::pow(10.0f, float(replay - 1));
    const std::vector<float> tokens = normal(size_t(m) * k, spread, 10 + replay);
    std::transform(tokens.begin(), tokens.end(), x.begin(), bf16);
    std::fill(c.begin(), c.end(), 0xFFFF);  // NaN: an output that is not written cannot pass
    must(cudaGraphLaunch(executable, stream));
    must(cudaStreamSynchronize(stream));

    // What each row is worth in NVFP4, as a matrix of its own, and the products in double precision. An
    // output is within half a step of bf16, 2^-8 of it, and what the sums lose, which keep 24 bits: below
    // 2^-14 where x is about 1, and growing with x in gate and in up.
    const Nvfp4 rows(tokens, 1, k);
    const std::vector<float> exact = gated(rows.values.data(), gate.values.data(), up.values.data(), m, n, k);
    const double lost = 0x1p-14 * spread * spread;
    for (size_t i = 0; i < c.size(); ++i)
      compare(from_bf16(c[i]), exact[i], std::fabs(exact[i]) / 256 + lost);
  }
  must(cudaGraphExecDestroy(executable));
  must(cudaGraphDestroy(graph));
  must(cudaStreamDestroy(stream));
  return compare.verdict("half a step of bf16, in three replays");
}
