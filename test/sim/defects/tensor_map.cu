// tensor_map.cu -- copies through tensor maps. The first kernel loads two boxes of 8 rows of a matrix of 12
// rows: the second box crosses the edge, is filled up with zeros and still counts in full. The second kernel
// loads through a map in global memory, writes another map over it and loads again. In the third
// one block makes the map of another. The fourth loads a swizzled box into dynamic shared memory.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_tensor_map {

constexpr int kWidth = 64, kRows = 12, kBoxRows = 8, kBoxBytes = kWidth * kBoxRows, kBoxes = 2;
constexpr uint32_t kPattern = 8 * kWidth;

template <Map d>
__global__ void edge_kernel(const __grid_constant__ CUtensorMap map, uint8_t* out) {
  __shared__ alignas(128) uint8_t box[kBoxes][kBoxBytes];
  __shared__ uint64_t full[kBoxes];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBoxes; ++i) mbarrier_init(&full[i], 1);
    fence_mbarrier_init_release_cluster();
    for (int i = 0; i < kBoxes; ++i) {
      const int rows =
          d == Map::kBytesOfPartialBox && kRows - i * kBoxRows < kBoxRows ? kRows - i * kBoxRows : kBoxRows;
      mbarrier_arrive_expect_tx(&full[i], rows * kWidth);
      tensor_load(box[i], &map, 0, i * kBoxRows, &full[i]);
    }
  }
  __syncthreads();
  for (int i = 0; i < kBoxes; ++i) {
    mbarrier_wait(&full[i], 0);
    for (int at = threadIdx.x; at < kBoxBytes; at += blockDim.x)
      out[i * kBoxBytes + at] = static_cast<volatile uint8_t*>(box[i])[at];
  }
}

template <Map d>
__global__ void patch_kernel(CUtensorMap* map, const CUtensorMap* patch, uint8_t* out) {
  __shared__ alignas(128) uint8_t box[kBoxes][kBoxBytes];
  __shared__ uint64_t full[kBoxes];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBoxes; ++i) mbarrier_init(&full[i], 1);
    fence_mbarrier_init_release_cluster();
    mbarrier_arrive_expect_tx(&full[0], kBoxBytes);
    tensor_load(box[0], map, 0, 0, &full[0]);
    if constexpr (d != Map::kPatchedInFlight) mbarrier_wait(&full[0], 0);
#pragma unroll 1
    for (int word = 0; word < 16; ++word)
      reinterpret_cast<uint64_t*>(map)[word] = reinterpret_cast<const uint64_t*>(patch)[word];
    fence_tensormap_release();
    if constexpr (d != Map::kPatchedWithoutFence) fence_tensormap_acquire(map);
    mbarrier_arrive_expect_tx(&full[1], kBoxBytes);
    tensor_load(box[1], map, 0, 0, &full[1]);
  }
  __syncthreads();
  for (int i = 0; i < kBoxes; ++i) {
    mbarrier_wait(&full[i], 0);
    for (int at = threadIdx.x; at < kBoxBytes; at += blockDim.x)
      out[i * kBoxBytes + at] = static_cast<volatile uint8_t*>(box[i])[at];
  }
}

// Block 0 makes the map of block 1 and hands it over by a flag.
template <Handed d>
__global__ void handed_kernel(const __grid_constant__ CUtensorMap any, const uint8_t* in, CUtensorMap* map,
                              uint32_t* flag, uint8_t* out) {
  __shared__ alignas(128) uint8_t box[kBoxBytes];
  __shared__ alignas(128) CUtensorMap mine;
  __shared__ uint64_t full;
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      mine = any;
      tensormap_replace_global_address(&mine, in);
    }
    __syncwarp();
    tensormap_cp_fenceproxy<d == Handed::kReleaseCtaScope>(map, &mine);
    __syncwarp();
    if (threadIdx.x == 0) store_release_gpu(flag, 1);
    return;
  }
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init_release_cluster();
    while (load_acquire_gpu(flag) == 0) {
    }
    if constexpr (d == Handed::kAcquireCtaScope)
      asm volatile("fence.proxy.tensormap::generic.acquire.cta [%0], 128;" ::"l"(map) : "memory");
    else if constexpr (d != Handed::kNoAcquire) fence_tensormap_acquire(map);
    mbarrier_arrive_expect_tx(&full, kBoxBytes);
    tensor_load(box, map, 0, 0, &full);
  }
  __syncwarp();
  mbarrier_wait(&full, 0);
  for (int i = threadIdx.x; i < kBoxBytes; i += 32) out[i] = static_cast<volatile uint8_t*>(box)[i];
}

// The rows of the box lie in the pattern of the 64-byte swizzle, which repeats every 512 bytes: chunk c of
// row r is at place c ^ r / 2 % 4. The module declares a smaller alignment, so the kernel itself rounds the
// address up to a multiple of 512.
template <Window d>
__global__ void window_kernel(const __grid_constant__ CUtensorMap map, uint8_t* out) {
  extern __shared__ __align__(128) uint8_t window[];
  uint64_t& full = *reinterpret_cast<uint64_t*>(window + kBoxBytes + kPattern);
  const uint32_t lacking = d == Window::kNotRoundedUp ? 0 : -smem_u32(window) % kPattern;
  uint8_t* const box = window + lacking;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init_release_cluster();
    mbarrier_arrive_expect_tx(&full, kBoxBytes);
    tensor_load(box, &map, 0, 0, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  for (int at = threadIdx.x; at < kBoxBytes; at += blockDim.x) {
    const int row = at / kWidth, chunk = at % kWidth / 16;
    out[at] = static_cast<volatile uint8_t*>(box)[row * kWidth + (chunk ^ row / 2 % 4) * 16 + at % 16];
  }
}

std::vector<uint8_t> matrix() {
  std::vector<uint8_t> values(kRows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = uint8_t(i * 7 + i / 256 + 1);
  return values;
}

template <Map d>
Outcome edge() {
  DeviceArray<uint8_t> in(matrix()), out(kBoxes * kBoxBytes, 0xFF);
  const CUtensorMap map = byte_map(in.data(), kWidth, kRows, kWidth, kBoxRows, CU_TENSOR_MAP_SWIZZLE_NONE);
  edge_kernel<d><<<1, 64>>>(map, out.data());
  const auto values = matrix();
  return outcome(out, [&](size_t i) { return i < values.size() ? values[i] : uint8_t(0); });
}

template <Map d>
Outcome patch() {
  DeviceArray<uint8_t> in(matrix()), out(kBoxes * kBoxBytes, 0xFF);
  constexpr int kShift = 2;  // rows by which the second map starts later
  const auto encode = [&](int row) {
    return byte_map(in.data() + row * kWidth, kWidth, kBoxRows, kWidth, kBoxRows, CU_TENSOR_MAP_SWIZZLE_NONE);
  };
  DeviceArray<CUtensorMap> map(std::vector<CUtensorMap>{encode(0)}),
      other(std::vector<CUtensorMap>{encode(kShift)});
  patch_kernel<d><<<1, 64>>>(map.data(), other.data(), out.data());
  const auto values = matrix();
  return outcome(
      out, [&](size_t i) { return i < kBoxBytes ? values[i] : values[i - kBoxBytes + kShift * kWidth]; });
}

template <Window d>
Outcome run_window() {
  DeviceArray<uint8_t> in(matrix()), out(kBoxBytes, 0xFF);
  const CUtensorMap map = byte_map(in.data(), kWidth, kRows, kWidth, kBoxRows, CU_TENSOR_MAP_SWIZZLE_64B);
  window_kernel<d><<<1, 64, kBoxBytes + kPattern + sizeof(uint64_t)>>>(map, out.data());
  const auto values = matrix();
  return outcome(out, [&](size_t i) { return values[i]; });
}

template <Handed d>
Outcome run_handed() {
  DeviceArray<uint8_t> in(matrix()), other(std::vector<uint8_t>(kRows * kWidth, 0xEE)), out(kBoxBytes, 0xFF);
  DeviceArray<CUtensorMap> map(1);
  DeviceArray<uint32_t> flag(1);
  const CUtensorMap any = byte_map(other.data(), kWidth, kRows, kWidth, kBoxRows, CU_TENSOR_MAP_SWIZZLE_NONE);
  handed_kernel<d><<<2, 32>>>(any, in.data(), map.data(), flag.data(), out.data());
  const auto values = matrix();
  return outcome(out, [&](size_t i) { return values[i]; });
}

template <Map d>
Outcome run() {
  if constexpr (d == Map::kBytesOfPartialBox) {
    return edge<d>();
  } else if constexpr (d == Map::kPatchedWithoutFence || d == Map::kPatchedInFlight) {
    return patch<d>();
  } else {
    const Outcome first = edge<d>(), second = patch<d>();
    return {first.error == cudaSuccess ? second.error : first.error, first.right && second.right};
  }
}

}  // namespace in_tensor_map

DEFECTS_SUBJECT(Map, tensor_map, in_tensor_map::run)
DEFECTS_SUBJECT(Handed, handed_map, in_tensor_map::run_handed)
DEFECTS_SUBJECT(Window, dynamic_window, in_tensor_map::run_window)

}  // namespace defects
