// chain.h -- the launches of a layer, one after the other on a stream: gate and up to NVFP4, then down, which
// takes that C and its factors for A and SFA where they lie.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experts.h"
#include "inputs.h"
#include "layer.h"
#include "measure.h"

namespace bench {

// Every launch may start when the one before it has issued its loads; all of them only read weights.
inline constexpr uint32_t kDependent = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;

// Changes the arguments of the calls.
using Change = std::function<void(Calls&)>;

// The operands of both launches.
struct LayerSet {
  // One launch after the other may have the same workspace.
  LayerSet(const Layer& layer, const DeviceArray<uint8_t>& workspace, Rng& random);

  void launch(uint32_t flags, cudaStream_t stream, const Change& change = {}) const;

  InputSet up, down;
  std::optional<Experts> experts;  // of a layer of these
};

class Chain {
 public:
  // The first two input sets are verified; the others hold the numbers of one of them at other addresses.
  Chain(const Layer& layer, int input_sets, uint64_t seed);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  const Layer& layer() const { return layer_; }
  const std::vector<std::unique_ptr<LayerSet>>& sets() const { return sets_; }
  cudaStream_t stream() const { return stream_; }

  // Compares `samples` outputs of the first launch with a double-precision reference, and as many of the
  // second one with the reference of the bytes that the first one wrote; of a layer of experts also what is
  // around them. The same calls chained with PDL have to write the same bytes. Returns what is wrong, or an
  // empty string.
  std::string verify(int samples, const Change& change = {});

  // The same for others that compute a dense layer to fp16. `launch` writes what lies between the products,
  // fp16 [M, I], to `between`, and C to that of the set; its second product is multiplied by the encode scale
  // that C of the library's first launch has.
  using Other = std::function<void(size_t set, cudaStream_t)>;
  std::string verify_other(int samples, const Other& launch, const DeviceArray<uint8_t>& between);

  // Returns what enqueues the layer of all sets with these flags.
  Enqueue enqueue(uint32_t flags) const;

 private:
  static constexpr size_t kVerifiedSets = 2;

  void forget(const LayerSet& set) const;  // what was written

  Layer layer_;
  Rng random_;
  DeviceArray<uint8_t> workspace_;  // of all launches, which follow each other
  cudaStream_t stream_ = nullptr;
  std::vector<std::unique_ptr<LayerSet>> sets_;
};

// Returns how many sets a layer gets (inputs.h).
int input_sets_of(const Layer& layer, int wanted);

}  // namespace bench
