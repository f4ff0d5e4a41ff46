// unfused.cu -- see unfused.h.
#include "bench/unfused.h"

#include <algorithm>
#include <type_traits>

#include "kernel/epilogue/activation.cuh"
#include "kernel/epilogue/epilogue.cuh"
#include "kernel/epilogue/output.cuh"
#include "kernel/plan.h"
#include "ptx/math.cuh"

namespace bench {
namespace {

using dualgemm::ApproximateMath;
using dualgemm::TwoFloats;

constexpr int kThreads = 128;
constexpr int64_t kMostBlocks = 65535;  // along y and z of a grid
// Enough to fill a GPU; of groups not even that many may have a row.
constexpr int32_t kBlocksOfGroups = 8192;

// The types of products, and of C: two numbers to a word, the first one in the low half.
struct Fp16 : dualgemm::Fp16 {
  __device__ static TwoFloats unpack(uint32_t pair) {
    TwoFloats result;
    asm("{\n\t"
        ".reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t"
        "}"
        : "=f"(result.first), "=f"(result.second)
        : "r"(pair));
    return result;
  }
};
struct Bf16 : dualgemm::Bf16 {
  __device__ static TwoFloats unpack(uint32_t pair) {
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000u)};
  }
};

struct Fp8 {
  __device__ static uint32_t pack(float first, float second) {
    return dualgemm::ptx::cvt_rn_satfinite_e4m3x2_f32(second, first);
  }
  __device__ static TwoFloats unpack(uint32_t pair) {
    return Fp16::unpack(dualgemm::ptx::cvt_rn_f16x2_e4m3x2(static_cast<uint16_t>(pair)));
  }
};

// Returns an e2m1 number.
__device__ float decoded(uint32_t code) {
  const uint64_t doubled = 0x0C08060403020100u;  // the magnitudes, times two
  const float magnitude = 0.5f * static_cast<float>(doubled >> (code & 7) * 8 & 0xFF);
  return code & 8 ? -magnitude : magnitude;
}

// The formats of weights: how many elements share a factor, and what a row's factors are.
struct Nvfp4 {
  static constexpr int32_t kBlock = dualgemm::kSfBlock;
  // Returns a ue4m3 number: its exponent and mantissa are the top bits of a float's.
  __device__ float factor(uint8_t code, int32_t) const {
    if (code < 8) return static_cast<float>(code) * 0x1p-9f;
    return __uint_as_float((code + (120u << 3)) << 20);
  }
};
struct Mxfp4 {
  static constexpr int32_t kBlock = dualgemm::kMxBlock;
  const int16_t* exponents;
  int32_t more;
  // Returns a power of two, which is no subnormal float: the byte is its exponent there, as in e8m0.
  __device__ float factor(uint8_t code, int32_t row) const {
    return __uint_as_float(static_cast<uint32_t>(code + exponents[row] + more) << 23);
  }
};

constexpr int32_t kElements = 16;  // that a thread writes

// Each thread writes 16 elements, which share a scale factor.
template <class Out, class Format>
__global__ void __launch_bounds__(kThreads) dequantise(const uint2* codes, const uint8_t* scales,
                                                       Format format, int32_t rows, int32_t k, uint4* out) {
  const int32_t piece = static_cast<int32_t>(blockIdx.x) * kThreads + static_cast<int32_t>(threadIdx.x);
  const int32_t pieces = k / kElements, block = piece * kElements / Format::kBlock;
  if (piece >= pieces) return;
  constexpr int32_t kAtomElements = Format::kBlock * dualgemm::kSfAtomBlocks;
  const int32_t atoms = (k + kAtomElements - 1) / kAtomElements;
  for (auto row = static_cast<int32_t>(blockIdx.y); row < rows; row += static_cast<int32_t>(gridDim.y)) {
    const int64_t atom = int64_t{row / dualgemm::kSfAtomRows} * atoms + block / dualgemm::kSfAtomBlocks;
    const float factor =
        format.factor(scales[atom * dualgemm::kSfAtomBytes + dualgemm::sf_offset_in_atom(row, block)], row);
    const int64_t at = int64_t{row} * pieces + piece;
    const uint2 elements = codes[at];
    const auto two = [factor](uint32_t pair) {
      return Out::pack(decoded(pair) * factor, decoded(pair >> 4) * factor);
    };
    if constexpr (std::is_same_v<Out, Fp8>) {
      const auto four = [two](uint32_t nibbles) { return two(nibbles) | two(nibbles >> 8) << 16; };
      out[at] = {four(elements.x), four(elements.x >> 16), four(elements.y), four(elements.y >> 16)};
    } else {
      const auto eight = [two](uint32_t nibbles) {
        return uint4{two(nibbles), two(nibbles >> 8), two(nibbles >> 16), two(nibbles >> 24)};
      };
      out[2 * at] = eight(elements.x);
      out[2 * at + 1] = eight(elements.y);
    }
  }
}

// Each thread converts 16 numbers.
template <class Out>
__global__ void __launch_bounds__(kThreads)
    convert_fp8(const uint4* from, int64_t pieces, float factor, uint4* out) {
  const int64_t piece = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (piece >= pieces) return;
  const uint4 numbers = from[piece];
  const auto two = [factor](uint32_t pair) {
    const TwoFloats x = Fp8::unpack(pair & 0xFFFF);
    return Out::pack(x.first * factor, x.second * factor);
  };
  out[2 * piece] = {two(numbers.x), two(numbers.x >> 16), two(numbers.y), two(numbers.y >> 16)};
  out[2 * piece + 1] = {two(numbers.z), two(numbers.z >> 16), two(numbers.w), two(numbers.w >> 16)};
}

// The rows of a problem: the first, counted over all problems, and how many.
struct Rows {
  int64_t first;
  int32_t count;
};
__device__ Rows rows_of(const Extents& extents, uint32_t problem) {
  const int64_t first = int64_t{problem} * extents.rows;
  switch (extents.mode) {
    case DUALGEMM_GROUP_OFFSETS: {
      const int32_t begin = extents.group_rows[problem];
      return {begin, extents.group_rows[problem + 1] - begin};
    }
    case DUALGEMM_GROUP_MASKED: return {first, extents.group_rows[problem]};
    default: return {first, extents.rows};
  }
}

// What becomes of a gate and an up, or of a gate alone.
struct OfTwo {
  static constexpr bool kTwo = true;
  __device__ float operator()(float gate, float up) const {
    return dualgemm::silu<ApproximateMath>(gate) * up;
  }
};
struct OfOne {
  static constexpr bool kTwo = false;
  dualgemm::LinearActivation kind;
  __device__ float operator()(float gate, float) const {
    float result = gate;
    dualgemm::visit_linear_activation<ApproximateMath>(
        kind, dualgemm::GeneralParams{}, [&](const auto& activation) { result = activation.gate(gate); });
    return result;
  }
};

// Each thread computes eight results of a row: products are read, and C is written, 16 bytes at a time.
template <class In, class Out, class Function>
__global__ void __launch_bounds__(kThreads)
    activation(const uint4* gates, const uint4* ups, int64_t pitch, const float* alpha1, const float* alpha2,
               Extents extents, Function function, uint4* c) {
  const int32_t column = static_cast<int32_t>(blockIdx.x) * kThreads + static_cast<int32_t>(threadIdx.x);
  const int32_t vectors = extents.columns / 8;
  if (column >= vectors) return;
  const float of_gate = alpha1 ? alpha1[blockIdx.z] : 1.0f, of_up = alpha2 ? alpha2[blockIdx.z] : 1.0f;
  const Rows rows = rows_of(extents, blockIdx.z);
  for (auto row = static_cast<int32_t>(blockIdx.y); row < rows.count;
       row += static_cast<int32_t>(gridDim.y)) {
    const int64_t at = rows.first + row;
    const uint4 g = gates[at * pitch + column];
    uint4 u = g;
    if constexpr (Function::kTwo) u = ups[at * pitch + column];
    const auto results = [=](uint32_t gate_pair, uint32_t up_pair) {
      const TwoFloats gate = In::unpack(gate_pair), up = In::unpack(up_pair);
      return Out::pack(function(of_gate * gate.first, of_up * up.first),
                       function(of_gate * gate.second, of_up * up.second));
    };
    c[at * vectors + column] = {results(g.x, u.x), results(g.y, u.y), results(g.z, u.z), results(g.w, u.w)};
  }
}

dim3 grid_of(int32_t across, int32_t rows, int32_t problems = 1) {
  return {static_cast<unsigned>((across + kThreads - 1) / kThreads),
          static_cast<unsigned>(std::min<int64_t>(rows, kMostBlocks)), static_cast<unsigned>(problems)};
}

template <class In, class Out, class Function>
cudaError_t launch_typed(const Products& x, const Extents& extents, const Function& function, void* c,
                         cudaStream_t stream) {
  const bool grouped = extents.mode != DUALGEMM_GROUP_NONE;
  const int32_t rows =
      grouped ? std::min(extents.rows, (kBlocksOfGroups + extents.problems - 1) / extents.problems)
              : extents.rows;
  activation<In, Out, Function>
      <<<grid_of(extents.columns / 8, rows, extents.problems), kThreads, 0, stream>>>(
          static_cast<const uint4*>(x.gates), static_cast<const uint4*>(x.ups), x.pitch / 8, x.alpha1,
          x.alpha2, extents, function, static_cast<uint4*>(c));
  return cudaGetLastError();
}

template <class In, class Out>
cudaError_t launch_function(const Products& x, const Extents& extents, void* c, cudaStream_t stream) {
  if (x.ups != nullptr) return launch_typed<In, Out>(x, extents, OfTwo{}, c, stream);
  const OfOne function{static_cast<dualgemm::LinearActivation>(x.linear_activation)};
  return launch_typed<In, Out>(x, extents, function, c, stream);
}

// Launches one that dequantises.
template <class Format>
cudaError_t launch_of(void (*kernel)(const uint2*, const uint8_t*, Format, int32_t, int32_t, uint4*),
                      const void* codes, const void* scales, Format format, int32_t rows, int32_t k,
                      void* out, cudaStream_t stream) {
  kernel<<<grid_of(k / kElements, rows), kThreads, 0, stream>>>(static_cast<const uint2*>(codes),
                                                                static_cast<const uint8_t*>(scales), format,
                                                                rows, k, static_cast<uint4*>(out));
  return cudaGetLastError();
}

}  // namespace

Products products_of(const dualgemm_args_t& args, const void* products, dualgemm_dtype_t dtype) {
  const int64_t n = args.n;
  if (args.products == 1)
    return {products, nullptr, n, dtype, args.alpha1_dev, nullptr, args.linear_activation};
  return {products,       static_cast<const uint16_t*>(products) + n, 2 * n, dtype, args.alpha1_dev,
          args.alpha2_dev};
}

cudaError_t launch_dequantise(const void* codes, const void* scales, int32_t rows, int32_t k,
                              dualgemm_dtype_t dtype, void* out, cudaStream_t stream) {
  const auto kernel = dtype == DUALGEMM_DTYPE_BF16 ? dequantise<Bf16, Nvfp4> : dequantise<Fp16, Nvfp4>;
  return launch_of(kernel, codes, scales, Nvfp4{}, rows, k, out, stream);
}

cudaError_t launch_dequantise_mxfp4(const void* codes, const void* scales, const int16_t* exponents,
                                    int32_t more, int32_t rows, int32_t k, dualgemm_dtype_t dtype, void* out,
                                    cudaStream_t stream) {
  const auto kernel = dtype == DUALGEMM_DTYPE_FP8_E4M3 ? dequantise<Fp8, Mxfp4>
                      : dtype == DUALGEMM_DTYPE_BF16   ? dequantise<Bf16, Mxfp4>
                                                       : dequantise<Fp16, Mxfp4>;
  return launch_of(kernel, codes, scales, Mxfp4{exponents, more}, rows, k, out, stream);
}

cudaError_t launch_convert_fp8(const void* from, int64_t numbers, float factor, dualgemm_dtype_t dtype,
                               void* out, cudaStream_t stream) {
  const int64_t pieces = numbers / kElements;
  const auto blocks = static_cast<unsigned>((pieces + kThreads - 1) / kThreads);
  const auto kernel = dtype == DUALGEMM_DTYPE_BF16 ? convert_fp8<Bf16> : convert_fp8<Fp16>;
  kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint4*>(from), pieces, factor,
                                          static_cast<uint4*>(out));
  return cudaGetLastError();
}

cudaError_t launch_activation(const Products& products, const Extents& extents, void* c,
                              dualgemm_dtype_t c_dtype, cudaStream_t stream) {
  const bool to_bf16 = c_dtype == DUALGEMM_DTYPE_BF16;
  if (extents.problems > kMostBlocks) return cudaErrorInvalidValue;
  if (products.dtype == DUALGEMM_DTYPE_BF16)
    return to_bf16 ? launch_function<Bf16, Bf16>(products, extents, c, stream)
                   : launch_function<Bf16, Fp16>(products, extents, c, stream);
  return to_bf16 ? launch_function<Fp16, Bf16>(products, extents, c, stream)
                 : launch_function<Fp16, Fp16>(products, extents, c, stream);
}

}  // namespace bench
