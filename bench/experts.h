// experts.h -- what stands around the two launches of a layer of experts: tokens are brought to the experts
// that a router chose for them, and each token's rows are added up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inputs.h"
#include "layer.h"

namespace bench {

// The arguments of all calls of a layer, in their order; a dense layer has those of the two launches alone.
struct Calls {
  dualgemm_moe_permute_args_t permute;
  dualgemm_quantize_args_t quantize;
  dualgemm_args_t up, down;
  dualgemm_moe_combine_args_t combine;
};

// The operands of one input set. Copies have the same numbers at addresses of their own.
class Experts {
 public:
  Experts(const Layer& layer, Rng& random);

  // Fills in the calls around the launches, and what these take from them.
  void bind(Calls* calls) const;

  // Returns A and its factors as they were quantised.
  std::vector<uint8_t> codes() const { return a_.host(); }
  std::vector<uint8_t> factors() const { return sfa_.host(); }
  std::vector<uint16_t> sums() const { return out_.host(); }
  void forget() const;  // what was written

  // Compare what each call wrote with what it was to write: every row, and about `samples` blocks of A and
  // elements of the sums. Return what is wrong, or an empty string.
  std::string verify_rows() const;
  std::string verify_codes(const InputSet& up, int samples) const;
  std::string verify_sums(const std::vector<uint8_t>& c, int samples) const;

 private:
  Layer layer_;
  std::vector<uint8_t> tokens_;  // bf16 [tokens, K]
  std::vector<float> weights_;
  DeviceArray<uint8_t> x_, a_, sfa_;
  DeviceArray<int32_t> ids_, group_rows_, row_token_, token_row_;
  DeviceArray<float> topk_weights_;
  DeviceArray<uint16_t> out_;
};

}  // namespace bench
