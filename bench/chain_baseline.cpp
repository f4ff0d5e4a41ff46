// chain_baseline.cpp -- see chain_baseline.h.
#include "chain_baseline.h"

#include <algorithm>
#include <stdexcept>

#include "baseline.h"
#include "unfused.h"

namespace bench {
namespace {

constexpr uint32_t kAlignment = 256;  // what cudaMalloc gives

ProductShape product_shape(const Shape& s) {
  const auto columns = static_cast<int32_t>(s.columns());
  return {OperandFormat::kFp16, true, s.m, columns, s.k, columns, kAlignment};
}

}  // namespace

ChainBaseline::ChainBaseline(const lt::Library& library, Chain* chain, int samples)
    : chain_(*chain),
      up_(library, product_shape(chain->layer().up)),
      down_(library, product_shape(chain->layer().down)),
      products_(count(chain->layer().up.rows() * chain->layer().up.columns())),
      between_(count(2 * chain->layer().up.rows() * chain->layer().up.n)),
      workspace_(Product::kWorkspaceBytes) {
  const Shape& up = chain_.layer().up;
  Shape down = chain_.layer().down;
  down.a_dtype = DUALGEMM_DTYPE_FP16;  // it is the kernel's, which writes fp16
  const double bytes = operand_bytes(up, OperandFormat::kFp16) + operand_bytes(down, OperandFormat::kFp16);
  const size_t fit = std::max<size_t>(2, static_cast<size_t>(kMostOperandBytes / bytes));
  for (size_t i = 0; i < std::min(fit, chain_.sets().size()); ++i) {
    const LayerSet& set = *chain_.sets()[i];
    sets_.push_back(
        {dequantised(up, set.up, DUALGEMM_DTYPE_FP16), dequantised(down, set.down, DUALGEMM_DTYPE_FP16)});
  }
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto of_all = [this](void (ChainBaseline::*multiply)(size_t, cudaStream_t) const) {
    return [this, multiply](int repeats) {
      const Enqueue all = [&](cudaStream_t stream) {
        for (size_t i = 0; i < chain_.sets().size(); ++i) (this->*multiply)(i, stream);
      };
      return time_stream({all}, static_cast<int>(chain_.sets().size()), repeats, chain_.stream())
          .front()
          .median_us;
    };
  };
  tune(&up_, of_all(&ChainBaseline::multiply_up));
  tune(&down_, of_all(&ChainBaseline::multiply_down));
  const std::string wrong = chain->verify_other(
      samples, [this](size_t set, cudaStream_t stream) { launch(set, stream); }, between_);
  if (!wrong.empty()) throw std::runtime_error("wrong: " + wrong);
}

void ChainBaseline::multiply_up(size_t set, cudaStream_t stream) const {
  const Operands& x = *of(set).up;
  lt::check(up_.launch({x.a, x.b.data(), products_.data()}, workspace_.data(), stream), "cublasLtMatmul");
}

// What the library's first launch multiplies its C by, its encode scale, is the alpha here.
void ChainBaseline::multiply_down(size_t set, cudaStream_t stream) const {
  const LayerSet& own = *chain_.sets()[set];
  lt::check(down_.launch({between_.data(), of(set).down->b.data(), own.down.args().c, nullptr, nullptr,
                          own.up.args().c_global_scale},
                         workspace_.data(), stream),
            "cublasLtMatmul");
}

void ChainBaseline::launch(size_t set, cudaStream_t stream) const {
  multiply_up(set, stream);
  const dualgemm_args_t& args = chain_.sets()[set]->up.args();
  check_cuda(launch_activation(products_of(args, products_.data(), DUALGEMM_DTYPE_FP16), {args.m, args.n},
                               between_.data(), DUALGEMM_DTYPE_FP16, stream),
             "activation");
  multiply_down(set, stream);
}

Enqueue ChainBaseline::enqueue() const {
  return [this](cudaStream_t stream) {
    for (size_t i = 0; i < chain_.sets().size(); ++i) launch(i, stream);
  };
}

}  // namespace bench
