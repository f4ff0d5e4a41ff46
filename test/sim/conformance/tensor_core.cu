// tensor_core.cu -- wgmma.mma_async of 16-bit and 8-bit operands: what the tensor core adds up, bit for bit.
// Every record is 64 x N results of one instruction for each of several blocks: A from registers and from
// shared memory, every pair of types, and the families of inputs of tensor_core_inputs.h.
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"
#include "test/sim/conformance/tensor_core_inputs.h"

namespace conformance {
namespace {

constexpr int kRows = 64, kRowWords = 8, kWarpgroup = 128;

#define ACCUMULATORS_8 "{%0, %1, %2, %3}"
#define ACCUMULATORS_64                                                                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
  "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define ACCUMULATORS_256                                                                             \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
  "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "  \
  "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "  \
  "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "  \
  "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, "  \
  "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, "    \
  "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define THIRTY_TWO(i) \
  FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12), FOUR(i + 16), FOUR(i + 20), FOUR(i + 24), FOUR(i + 28)
#define OUTPUTS_8 FOUR(0)
#define OUTPUTS_64 THIRTY_TWO(0)
#define OUTPUTS_256 THIRTY_TWO(0), THIRTY_TWO(32), THIRTY_TWO(64), THIRTY_TWO(96)
// The operands behind the accumulators: descriptors of A and B, or four registers of A and the descriptor of
// B.
#define SHARED_8 "%4, %5"
#define SHARED_64 "%32, %33"
#define SHARED_256 "%128, %129"
#define REGISTERS_8 "{%4, %5, %6, %7}, %8"
#define REGISTERS_64 "{%32, %33, %34, %35}, %36"
#define REGISTERS_256 "{%128, %129, %130, %131}, %132"

#define MULTIPLY(n, types, shared_end, registers_end)                                                 \
  if constexpr (kShared)                                                                              \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " " ACCUMULATORS_##n ", " SHARED_##n    \
                 ", 1, 1, 1" shared_end ";"                                                           \
                 : OUTPUTS_##n                                                                        \
                 : "l"(a_matrix), "l"(b_matrix));                                                     \
  else                                                                                                \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " " ACCUMULATORS_##n ", " REGISTERS_##n \
                 ", 1, 1, 1" registers_end ";"                                                        \
                 : OUTPUTS_##n                                                                        \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_matrix))

// The instruction of a pair of types. Only operands of 16 bits can be transposed, which their last operands
// say.
#define INSTRUCTION(name, type_a, type_b, label, types, shared_end, registers_end)              \
  struct name {                                                                                 \
    static constexpr OperandType kA = OperandType::type_a, kB = OperandType::type_b;            \
    static constexpr const char* kName = label;                                                 \
    template <int kN, bool kShared>                                                             \
    static __device__ __forceinline__ void multiply(float (&d)[kN / 2], const uint32_t (&a)[4], \
                                                    uint64_t a_matrix, uint64_t b_matrix) {     \
      if constexpr (kN == 8) MULTIPLY(8, types, shared_end, registers_end);                     \
      else if constexpr (kN == 64) MULTIPLY(64, types, shared_end, registers_end);              \
      else MULTIPLY(256, types, shared_end, registers_end);                                     \
    }                                                                                           \
  }
INSTRUCTION(F16, kF16, kF16, "k16.f32.f16", "k16.f32.f16.f16", ", 0, 0", ", 0");
INSTRUCTION(Bf16, kBf16, kBf16, "k16.f32.bf16", "k16.f32.bf16.bf16", ", 0, 0", ", 0");
INSTRUCTION(E4m3, kE4m3, kE4m3, "k32.f32.e4m3.e4m3", "k32.f32.e4m3.e4m3", "", "");
INSTRUCTION(E4m3E5m2, kE4m3, kE5m2, "k32.f32.e4m3.e5m2", "k32.f32.e4m3.e5m2", "", "");
INSTRUCTION(E5m2E4m3, kE5m2, kE4m3, "k32.f32.e5m2.e4m3", "k32.f32.e5m2.e4m3", "", "");
INSTRUCTION(E5m2, kE5m2, kE5m2, "k32.f32.e5m2.e5m2", "k32.f32.e5m2.e5m2", "", "");

// A matrix without swizzle, K-major: word i of a row is at 4 * rows * (i / 4) + 4 * row + i % 4.
__device__ uint64_t matrix(const void* start, uint32_t rows) {
  return uint64_t(smem_u32(start) >> 4) | uint64_t(rows) << 16 | uint64_t(128 >> 4) << 32;
}
__device__ uint32_t place_of_word(uint32_t rows, uint32_t row, uint32_t i) {
  return 4 * rows * (i / 4) + 4 * row + i % 4;
}

// Computes D = A * B^T + C of one block: A 64 and B N rows of 32 bytes, C and D 64 x N, all row by row.
template <int kN, class Instruction, bool kShared>
__global__ void product(const uint32_t* a_values, const uint32_t* b_values, const float* c_values,
                        float* results) {
  __shared__ __align__(128) uint32_t a_shared[kRows * kRowWords], b_shared[kN * kRowWords];
  a_values += blockIdx.x * kRows * kRowWords;
  b_values += blockIdx.x * kN * kRowWords;
  for (uint32_t i = threadIdx.x; i < kRows * kRowWords; i += kWarpgroup)
    a_shared[place_of_word(kRows, i / kRowWords, i % kRowWords)] = a_values[i];
  for (uint32_t i = threadIdx.x; i < kN * kRowWords; i += kWarpgroup)
    b_shared[place_of_word(kN, i / kRowWords, i % kRowWords)] = b_values[i];
  fence_proxy_async();
  __syncthreads();

  const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  const auto place = [&](int i) {
    return (blockIdx.x * kRows + row + i / 2 % 2 * 8) * kN + i / 4 * 8 + quad * 2 + i % 2;
  };
  float d[kN / 2];
  uint32_t a[4];
  for (int i = 0; i < kN / 2; ++i) d[i] = c_values[place(i)];
  for (int i = 0; i < 4; ++i) a[i] = a_values[(row + i % 2 * 8) * kRowWords + i / 2 * 4 + quad];
  const uint64_t a_matrix = matrix(a_shared, kRows), b_matrix = matrix(b_shared, kN);
  // The compiler may copy registers anywhere, unless their values are fixed to registers before wgmma.fence.
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
  for (uint32_t& x : a) asm volatile("" : "+r"(x)::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  Instruction::template multiply<kN, kShared>(d, a, a_matrix, b_matrix);
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
  for (int i = 0; i < kN / 2; ++i) results[place(i)] = d[i];
}

// ---- records ----------------------------------------------------------------------------------------------

template <int kN, class Instruction, bool kShared>
void record(Recorder& out) {
  constexpr int kBlocks = 1024 / kN;  // 65,536 results
  const std::string name = "wgmma/m64n" + std::to_string(kN) + Instruction::kName;
  for (int family = 0; family < kProductFamilies; ++family) {
    const ProductInputs in = product_inputs(Instruction::kA, Instruction::kB, family, kN, kBlocks);
    const Buffer<uint32_t> a(in.a), b(in.b);
    const Buffer<float> c(in.c);
    Buffer<float> d(in.c.size());
    launch({uint32_t(kBlocks), kWarpgroup}, product<kN, Instruction, kShared>, a.data(), b.data(), c.data(),
           d.data());
    out.exact(name + (kShared ? ".shared." : ".registers.") + kProductFamilyNames[family], d.host());
  }
}

template <int kN, class... Instructions>
void record_all(Recorder& out) {
  const auto both = [&]<class Instruction>() {
    record<kN, Instruction, false>(out);
    record<kN, Instruction, true>(out);
  };
  (both.template operator()<Instructions>(), ...);
}

template <int kN>
const auto record_words = record_all<kN, F16, Bf16>;
template <int kN>
const auto record_bytes = record_all<kN, E4m3, E4m3E5m2, E5m2E4m3, E5m2>;

const Register small_words("wgmma/m64n8k16", record_words<8>), small_bytes("wgmma/m64n8k32", record_bytes<8>);
const Register middle_words("wgmma/m64n64k16", record_words<64>),
    middle_bytes("wgmma/m64n64k32", record_bytes<64>);
const Register large_words("wgmma/m64n256k16", record_words<256>),
    large_bytes("wgmma/m64n256k32", record_bytes<256>);

}  // namespace
}  // namespace conformance
