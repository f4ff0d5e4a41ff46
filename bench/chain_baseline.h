// chain_baseline.h -- the same layer without fused kernels: a GEMM of gate and up, the activation kernel of
// the baseline, and a GEMM of down, all in fp16. cuBLASLt multiplies the numbers of the library's own
// operands.
#pragma once

#include <memory>
#include <vector>

#include "chain.h"
#include "operands.h"
#include "product.h"

namespace bench {

class ChainBaseline {
 public:
  // Throws std::runtime_error where it cannot compute the layer, or computes it wrong. `chain` outlives it.
  ChainBaseline(const lt::Library& library, Chain* chain, int samples);

  // Returns what enqueues the layer of all sets.
  Enqueue enqueue() const;

 private:
  // Weights of both GEMMs and A of the first one.
  struct Set {
    std::unique_ptr<Operands> up, down;
  };

  const Set& of(size_t set) const { return sets_[set % sets_.size()]; }
  void multiply_up(size_t set, cudaStream_t stream) const;
  void multiply_down(size_t set, cudaStream_t stream) const;
  void launch(size_t set, cudaStream_t stream) const;

  const Chain& chain_;
  std::vector<Set> sets_;
  Product up_, down_;
  DeviceArray<uint16_t> products_;  // of gate and up, side by side; every set writes them
  DeviceArray<uint8_t> between_, workspace_;
};

}  // namespace bench
