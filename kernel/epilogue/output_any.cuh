// output_any.cuh -- C in the type that the launch says: the output of every general instance. Results stay in
// fp32 until they are stored. Then a branch, which all threads take in the same way, leads to the writer of
// the type.
#pragma once

#include "kernel/epilogue/output.cuh"
#include "kernel/epilogue/output_nvfp4.cuh"

namespace dualgemm {

// Writes what a lane has of one tile. It has a writer for each type, so that what a writer computes once for
// a tile is not computed again for each store.
template <class Traits, class Layout>
class AnyWriter : public Fp32Results {
  template <class Output>
  using WriterOf = typename Output::template Writer<Traits, Layout>;

 public:
  static constexpr int kLeastWidth = WriterOf<Nvfp4>::kLeastWidth;  // what suits a block suits all

  DUALGEMM_DEVICE AnyWriter(const Params& p, const Tile& tile, LanePlace at, const Nothing& shared)
      : type_(static_cast<CType>(p.c_type)),
        fp16_(p, tile, at, shared),
        bf16_(p, tile, at, shared),
        fp32_(p, tile, at, shared),
        fp8_(p, tile, at, shared),
        nvfp4_(p, tile, at, shared) {}

  DUALGEMM_DEVICE int extent() const { return type_ == CType::kNvfp4 ? nvfp4_.extent() : fp32_.extent(); }
  DUALGEMM_DEVICE int writing_lanes(int lanes) const {
    return type_ == CType::kNvfp4 ? nvfp4_.writing_lanes(lanes) : lanes;
  }

  // Stores the elements first .. first + kWidth - 1.
  template <int kWidth>
  DUALGEMM_DEVICE void store(const Results<kWidth>& results, int first) const {
    switch (type_) {
      case CType::kFp16: return store_floats<kWidth>(fp16_, results.values, first);
      case CType::kBf16: return store_floats<kWidth>(bf16_, results.values, first);
      case CType::kFp32: return store_floats<kWidth>(fp32_, results.values, first);
      case CType::kFp8: return store_floats<kWidth>(fp8_, results.values, first);
      case CType::kNvfp4: return store_floats<kWidth>(nvfp4_, results.values, first);
    }
  }
  DUALGEMM_DEVICE void complete_tile(int thread) const {
    if (type_ == CType::kNvfp4) nvfp4_.complete_tile(thread);
  }

 private:
  CType type_;
  WriterOf<Fp16> fp16_;
  WriterOf<Bf16> bf16_;
  WriterOf<Fp32> fp32_;
  WriterOf<Fp8> fp8_;
  WriterOf<Nvfp4> nvfp4_;
};

struct AnyOutput : DirectOutput {
  using Types = List<Fp16, Bf16, Fp32, Fp8, Nvfp4>;
  using Instances = List<AnyOutput>;
  static constexpr const char* kName = "general";
  template <class Traits, class Layout>
  using Writer = AnyWriter<Traits, Layout>;
};

}  // namespace dualgemm
