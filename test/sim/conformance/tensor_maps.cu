// tensor_maps.cu -- TMA tile loads and stores: random boxes over every rank, swizzle, element size, traversal
// stride and fill, at coordinates that lie inside, cross each edge, or miss the tensor. A load records the
// whole shared-memory image and whether exactly the full box's bytes completed the barrier; a store records
// the whole tensor with its padding.
#include <cuda.h>

#include <algorithm>
#include <cmath>

#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {
namespace {

constexpr uint32_t kSmemBytes = 32768, kGuard = 256;

struct Coordinates {
  int32_t at[5];
};

template <int kRank>
__device__ void tensor_load(uint32_t to, const CUtensorMap* map, const Coordinates& c, uint32_t mbar) {
#define LOAD(dim, list, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." dim                                                   \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" list \
               "}], [%2];" ::"r"(to),                                                        \
               "l"(map), "r"(mbar), __VA_ARGS__                                              \
               : "memory")
  if constexpr (kRank == 1) LOAD("1d", "%3", "r"(c.at[0]));
  if constexpr (kRank == 2) LOAD("2d", "%3, %4", "r"(c.at[0]), "r"(c.at[1]));
  if constexpr (kRank == 3) LOAD("3d", "%3, %4, %5", "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]));
  if constexpr (kRank == 4)
    LOAD("4d", "%3, %4, %5, %6", "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]));
  if constexpr (kRank == 5)
    LOAD("5d", "%3, %4, %5, %6, %7", "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4]));
}

template <int kRank>
__device__ void tensor_store(const CUtensorMap* map, const Coordinates& c, uint32_t from) {
#define STORE(dim, list, ...)                                                                \
  asm volatile("cp.async.bulk.tensor." dim ".global.shared::cta.tile.bulk_group [%0, {" list \
               "}], [%1];" ::"l"(map),                                                       \
               "r"(from), __VA_ARGS__                                                        \
               : "memory")
  if constexpr (kRank == 1) STORE("1d", "%2", "r"(c.at[0]));
  if constexpr (kRank == 2) STORE("2d", "%2, %3", "r"(c.at[0]), "r"(c.at[1]));
  if constexpr (kRank == 3) STORE("3d", "%2, %3, %4", "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]));
  if constexpr (kRank == 4)
    STORE("4d", "%2, %3, %4, %5", "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]));
  if constexpr (kRank == 5)
    STORE("5d", "%2, %3, %4, %5, %6", "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4]));
}

// Writes to `out` whether the barrier completed, then bytes of shared memory from the box base, guard
// included.
template <int kRank>
__global__ void load_box(const __grid_constant__ CUtensorMap map, Coordinates c, uint32_t offset,
                         uint32_t bytes, uint8_t* out) {
  extern __shared__ __align__(1024) uint8_t box[];
  __shared__ uint64_t barrier;
  const uint32_t dumped = bytes + kGuard;
  for (uint32_t i = threadIdx.x; i < kSmemBytes; i += blockDim.x) box[i] = 0xA5;
  if (threadIdx.x == 0) {
    mbarrier_init(smem_u32(&barrier), 1);
    fence_mbarrier_init_release_cluster();
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect_tx(smem_u32(&barrier), bytes);
    tensor_load<kRank>(smem_u32(box) + offset, &map, c, smem_u32(&barrier));
  }
  __syncwarp();
  const uint32_t done = wait_parity(smem_u32(&barrier), 0);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = uint8_t(done);
  for (uint32_t i = threadIdx.x; i < dumped; i += blockDim.x) out[1 + i] = box[offset + i];
}

template <int kRank>
__global__ void store_box(const __grid_constant__ CUtensorMap map, Coordinates c, uint32_t bytes) {
  extern __shared__ __align__(1024) uint8_t box[];
  for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) box[i] = uint8_t(i * 7 + (i >> 8) * 13 + 1);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tensor_store<kRank>(&map, c, smem_u32(box));
    bulk_commit_group();
    bulk_wait_group<0>();
  }
}

using LoadKernel = void (*)(CUtensorMap, Coordinates, uint32_t, uint32_t, uint8_t*);
using StoreKernel = void (*)(CUtensorMap, Coordinates, uint32_t);

struct Element {
  CUtensorMapDataType type;
  const char* name;
  uint32_t bytes;
  bool is_float;
};
constexpr Element kElementTypes[] = {
    {CU_TENSOR_MAP_DATA_TYPE_UINT8, "u8", 1, false},   {CU_TENSOR_MAP_DATA_TYPE_UINT16, "u16", 2, false},
    {CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32", 4, false}, {CU_TENSOR_MAP_DATA_TYPE_INT32, "s32", 4, false},
    {CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64", 8, false}, {CU_TENSOR_MAP_DATA_TYPE_INT64, "s64", 8, false},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, "f16", 2, true}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32", 4, true},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, "f64", 8, true}, {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16", 2, true},
};
constexpr uint32_t kSwizzleBytes[] = {0, 32, 64, 128};

struct Tensor {
  Element element;
  uint32_t rank, swizzle;
  bool nan_fill;
  cuuint64_t dims[5], strides[4];
  cuuint32_t box[5], steps[5];
  Coordinates at;
  size_t bytes;  // of the tensor with its padding

  uint32_t box_bytes() const {
    uint32_t count = box[0] * element.bytes;
    for (uint32_t i = 1; i < rank; ++i) count *= (box[i] + steps[i] - 1) / steps[i];
    return count;
  }
};

Tensor random_tensor(Random& random, uint32_t rank, uint32_t swizzle, bool steps) {
  Tensor t = {};
  t.element = kElementTypes[random.below(10)];
  t.rank = rank;
  t.swizzle = swizzle;
  t.nan_fill = t.element.is_float && random.below(2) == 0;
  const uint32_t size = t.element.bytes;
  const uint32_t inner = swizzle != 0 ? kSwizzleBytes[swizzle] : 16 * uint32_t(random.between(1, 16));
  for (;;) {
    t.box[0] = std::min(inner / size, 256u);
    for (uint32_t i = 1; i < rank; ++i) {
      t.box[i] = cuuint32_t(random.between(1, rank == 2 ? 40 : rank == 3 ? 10 : 5));
      t.steps[i] = steps && random.below(2) ? cuuint32_t(random.between(2, 8)) : 1;
    }
    t.steps[0] = 1;
    if (t.box_bytes() <= kSmemBytes - 2 * kGuard - 1024) break;
  }
  t.dims[0] = cuuint64_t(random.between(1, int(t.box[0]) * 2 + 5));
  cuuint64_t stride = (t.dims[0] * size + 15) / 16 * 16;
  for (uint32_t i = 1; i < rank; ++i) {
    t.dims[i] = cuuint64_t(random.between(1, 2 * int(t.box[i]) + 1));
    t.strides[i - 1] = stride + 16 * random.below(3);
    stride = t.strides[i - 1] * t.dims[i];
  }
  t.bytes = stride;
  for (uint32_t i = 0; i < rank; ++i) {
    const int extent = int(t.dims[i]), box = int(t.box[i]);
    switch (random.below(5)) {
      case 0: t.at.at[i] = 0; break;
      case 1: t.at.at[i] = random.between(-box, 0); break;
      case 2: t.at.at[i] = extent - random.between(0, box); break;
      case 3: t.at.at[i] = random.between(-box - 1, extent + 1); break;
      default: t.at.at[i] = random.between(0, std::max(0, extent - box)); break;
    }
  }
  // The first byte of a row must be a multiple of 16:
  // on an H200 any other inner coordinate is an illegal instruction.
  const int unit = std::max(1, 16 / int(size));
  t.at.at[0] = int(std::floor(double(t.at.at[0]) / unit)) * unit;
  return t;
}

CUresult encode(const Tensor& t, void* base, CUtensorMap* map) {
  return cuTensorMapEncodeTiled(
      map, t.element.type, t.rank, base, t.dims, t.strides, t.box, t.steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      static_cast<CUtensorMapSwizzle>(t.swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE,
      t.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

std::vector<uint8_t> tensor_contents(size_t bytes) {
  std::vector<uint8_t> out(bytes);
  Random random(bytes);
  for (uint8_t& byte : out) byte = uint8_t(random.bits() >> 40);
  return out;
}

std::string describe(const Tensor& t, int index) {
  static const char* const kSwizzles[] = {"none", "32B", "64B", "128B"};
  return std::to_string(t.rank) + "d." + kSwizzles[t.swizzle] + "." + t.element.name +
         (t.nan_fill ? ".nan" : "") + "." + std::to_string(index);
}

void record_load(Recorder& out, const Tensor& t, uint32_t offset, const std::string& name) {
  static const LoadKernel kernels[] = {load_box<1>, load_box<2>, load_box<3>, load_box<4>, load_box<5>};
  const Buffer<uint8_t> tensor(tensor_contents(t.bytes));
  Buffer<uint8_t> image(1 + t.box_bytes() + kGuard);
  alignas(64) CUtensorMap map;
  if (const CUresult code = encode(t, tensor.data(), &map))
    return out.exact(name, std::vector<uint32_t>{uint32_t(code)});
  launch({1, 128, kSmemBytes}, kernels[t.rank - 1], map, t.at, offset, t.box_bytes(), image.data());
  out.exact(name, image.host());
}

void record_store(Recorder& out, const Tensor& t, const std::string& name) {
  static const StoreKernel kernels[] = {store_box<1>, store_box<2>, store_box<3>, store_box<4>, store_box<5>};
  Buffer<uint8_t> tensor(t.bytes + kGuard, 0x3C);
  alignas(64) CUtensorMap map;
  if (const CUresult code = encode(t, tensor.data(), &map))
    return out.exact(name, std::vector<uint32_t>{uint32_t(code)});
  launch({1, 128, kSmemBytes}, kernels[t.rank - 1], map, t.at, t.box_bytes());
  out.exact(name, tensor.host());
}

const Register loads("tensor_maps/load", [](Recorder& out) {
  Random random(2024);
  for (uint32_t rank = 1; rank <= 5; ++rank)
    for (uint32_t swizzle = 0; swizzle < 4; ++swizzle)
      for (int i = 0; i < 20; ++i) {
        const Tensor t = random_tensor(random, rank, swizzle, false);
        // Swizzled boxes may start at any multiple of 128 inside the pattern.
        const uint32_t offset = 128 * random.below(8);
        record_load(out, t, offset, "tensor_maps/load." + describe(t, i));
      }
});

const Register steps("tensor_maps/step", [](Recorder& out) {
  Random random(2025);
  for (uint32_t rank = 2; rank <= 5; ++rank)
    for (uint32_t swizzle = 0; swizzle < 4; ++swizzle)
      for (int i = 0; i < 6; ++i) {
        const Tensor t = random_tensor(random, rank, swizzle, true);
        record_load(out, t, 0, "tensor_maps/step." + describe(t, i));
      }
});

const Register stores("tensor_maps/store", [](Recorder& out) {
  Random random(2026);
  for (uint32_t rank = 1; rank <= 5; ++rank)
    for (uint32_t swizzle = 0; swizzle < 4; ++swizzle)
      for (int i = 0; i < 10; ++i) {
        Tensor t = random_tensor(random, rank, swizzle, i >= 8 && rank > 1);
        // On an H200 a store at a negative coordinate is an illegal instruction.
        for (int32_t& coordinate : t.at.at) coordinate = std::max(coordinate, 0);
        record_store(out, t, "tensor_maps/store." + describe(t, i));
      }
});

// With CU_TENSOR_MAP_INTERLEAVE_NONE the traversal stride of dimension 0 is documented to be ignored.
const Register inner_step("tensor_maps/inner_step", [](Recorder& out) {
  Random random(2027);
  for (int i = 0; i < 4; ++i) {
    Tensor t = random_tensor(random, 2, 0, false);
    t.steps[0] = 2;
    record_load(out, t, 0, "tensor_maps/inner_step." + std::to_string(i));
  }
});

}  // namespace
}  // namespace conformance
