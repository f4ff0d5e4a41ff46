// chain.cpp -- see chain.h.
#include "chain.h"

#include <algorithm>
#include <utility>

#include "budget.h"
#include "verify.h"

namespace bench {
namespace {

// Returns the bytes of workspace that the library asks for.
size_t workspace_of(const Shape& shape, const Epilogue& epilogue) {
  const dualgemm_args_t args = described_args(shape, epilogue);
  size_t bytes = 0;
  check(dualgemm_workspace_size(&args, &bytes), "dualgemm_workspace_size");
  return bytes;
}

std::vector<uint8_t> download(const void* device, size_t bytes) {
  std::vector<uint8_t> host(bytes);
  if (bytes > 0) check_cuda(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return host;
}

Written written_by(const InputSet& x) {
  return {download(x.args().c, x.c_bytes()), download(x.args().sfc, x.sfc_bytes())};
}

std::string in_set(size_t set, const char* launch, const std::string& text) {
  return text.empty() ? text : "input set " + std::to_string(set) + ", " + launch + ": " + text;
}

}  // namespace

LayerSet::LayerSet(const Layer& layer, const DeviceArray<uint8_t>& workspace, Rng& random)
    : up(layer.up, kBetween, workspace, random, /*with_a=*/!layer.experts()),
      down(layer.down, kOut, workspace, random, /*with_a=*/false) {
  if (layer.experts()) experts.emplace(layer, random);
}

void LayerSet::launch(uint32_t flags, cudaStream_t stream, const Change& change) const {
  Calls calls{};
  dualgemm_args_t &first = calls.up = up.args(), &second = calls.down = down.args();
  second.a = first.c;
  second.sfa = first.sfc;
  second.lda = first.ldc;
  first.flags |= flags;
  second.flags |= flags;
  if (experts) {
    experts->bind(&calls);
    calls.permute.flags = calls.quantize.flags = calls.combine.flags = flags & DUALGEMM_FLAG_PDL;
  }
  if (change) change(calls);
  if (experts) {
    check(dualgemm_moe_permute(&calls.permute, stream), "dualgemm_moe_permute");
    check(dualgemm_quantize(&calls.quantize, stream), "dualgemm_quantize");
  }
  launch_library(first, stream);
  launch_library(second, stream);
  if (experts) check(dualgemm_moe_combine(&calls.combine, stream), "dualgemm_moe_combine");
}

Chain::Chain(const Layer& layer, int input_sets, uint64_t seed)
    : layer_(layer),
      random_(seed),
      workspace_(std::max(workspace_of(layer.up, kBetween), workspace_of(layer.down, kOut))) {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  for (size_t i = 0; i < static_cast<size_t>(input_sets); ++i)
    sets_.push_back(i < kVerifiedSets ? std::make_unique<LayerSet>(layer_, workspace_, random_)
                                      : std::make_unique<LayerSet>(*sets_[i % kVerifiedSets]));
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
Chain::~Chain() { cudaStreamDestroy(stream_); }

void Chain::forget(const LayerSet& set) const {
  if (set.experts) set.experts->forget();
  for (const InputSet* x : {&set.up, &set.down}) {
    check_cuda(cudaMemsetAsync(x->args().c, kUnwritten, x->c_bytes(), stream_), "cudaMemsetAsync");
    if (x->sfc_bytes() > 0)
      check_cuda(cudaMemsetAsync(x->args().sfc, kUnwritten, x->sfc_bytes(), stream_), "cudaMemsetAsync");
  }
}

std::string Chain::verify(int samples, const Change& change) {
  for (size_t i = 0; i < std::min(sets_.size(), kVerifiedSets); ++i) {
    LayerSet& set = *sets_[i];
    const auto written = [&](uint32_t flags) {
      forget(set);
      set.launch(flags, stream_, change);
      check_cuda(cudaStreamSynchronize(stream_), "the chain");
      return std::pair{written_by(set.up), written_by(set.down)};
    };
    const auto [between, out] = written(0);
    std::vector<uint16_t> sums;
    if (set.experts) {
      if (const std::string text = set.experts->verify_rows(); !text.empty())
        return in_set(i, "permute", text);
      if (const std::string text = set.experts->verify_codes(set.up, samples); !text.empty())
        return in_set(i, "quantize", text);
      set.up.expect_a(DUALGEMM_DTYPE_NVFP4, set.experts->codes(), set.experts->factors(),
                      set.up.args().alpha1);
      sums = set.experts->sums();
    }
    const std::string first =
        bench::verify(layer_.up, kBetween, set.up, between, samples, Rounding::kOnce, random_);
    if (!first.empty()) return in_set(i, "gate and up", first);
    set.down.expect_a(DUALGEMM_DTYPE_NVFP4, between.c, between.sfc, set.down.args().alpha1);
    const std::string second =
        bench::verify(layer_.down, kOut, set.down, out, samples, Rounding::kOnce, random_);
    if (!second.empty()) return in_set(i, "down", second);
    if (set.experts)
      if (const std::string text = set.experts->verify_sums(out.c, samples); !text.empty())
        return in_set(i, "combine", text);
    const auto [pdl_between, pdl_out] = written(kDependent);
    if (pdl_between.c != between.c || pdl_between.sfc != between.sfc)
      return in_set(i, "gate and up", "other bytes with PDL");
    if (pdl_out.c != out.c) return in_set(i, "down", "other bytes with PDL");
    if (set.experts && set.experts->sums() != sums) return in_set(i, "combine", "other bytes with PDL");
  }
  return {};
}

std::string Chain::verify_other(int samples, const Other& launch, const DeviceArray<uint8_t>& between) {
  Shape down = layer_.down;
  down.a_dtype = DUALGEMM_DTYPE_FP16;
  for (size_t i = 0; i < std::min(sets_.size(), kVerifiedSets); ++i) {
    LayerSet& set = *sets_[i];
    forget(set);
    launch(i, stream_);
    check_cuda(cudaStreamSynchronize(stream_), "the chain");
    Written first{between.host(), {}};
    std::string text = bench::verify(layer_.up, DUALGEMM_DTYPE_FP16, set.up, first, samples,
                                     Rounding::kFp16Products, random_);
    if (!text.empty()) return in_set(i, "gate and up", text);
    set.down.expect_a(DUALGEMM_DTYPE_FP16, std::move(first.c), {}, set.up.args().c_global_scale);
    text = bench::verify(down, kOut, set.down, written_by(set.down), samples, Rounding::kAnyOrder, random_);
    if (!text.empty()) return in_set(i, "down", text);
  }
  return {};
}

Enqueue Chain::enqueue(uint32_t flags) const {
  return [this, flags](cudaStream_t stream) {
    for (const auto& set : sets_) set->launch(flags, stream);
  };
}

int input_sets_of(const Layer& layer, int wanted) {
  return sets_that_fit(set_bytes(layer.up, kBetween) + set_bytes(layer.down, kOut), layer.flops(), wanted);
}

}  // namespace bench
