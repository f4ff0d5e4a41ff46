// grouped.cu -- three groups of rows, each a matrix of its own with a size of its own, by one CTA: C = A + 1.
// For every group the kernel replaces the address and the number of rows in two tensor maps, one for loads
// and one for stores, in shared memory, and copies the maps to global memory, from where TMA reads them.
//
//   warps   who       does
//   0       maps      replaces and copies the maps; thread 0 loads boxes, stores them, and waits for both
//   1       adds      1 to a box in shared memory, which thread 0 stores
//
//   barrier   count        arrives               waits   means
//   full      1 and bytes  thread 0, the copy    both    the box is there
//
// A map may be replaced when no copy uses it any more: its loads have arrived, its stores have read their
// source.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_grouped {

constexpr int kGroups = 3, kRowBytes = 64, kBoxRows = 8, kBoxBytes = kRowBytes * kBoxRows;
constexpr int kRows[kGroups] = {8, 20, 3}, kAllRows = 31;

struct Group {
  const uint8_t* a;
  uint8_t* c;
  uint32_t rows;
};
struct Groups {
  Group group[kGroups];
};

struct alignas(128) Maps {
  CUtensorMap load, store;
};

// Copies by the warp, so that TMA finds the map.
template <Grouped d>
DUALGEMM_DEVICE void publish(CUtensorMap* to, const CUtensorMap* shared) {
  if constexpr (d == Grouped::kPlainCopy || d == Grouped::kReleaseApart) {
    if (lane_index() == 0)
      for (int word = 0; word < 16; ++word)
        reinterpret_cast<uint64_t*>(to)[word] = reinterpret_cast<const uint64_t*>(shared)[word];
    if (d == Grouped::kReleaseApart) fence_tensormap_release();
    __syncwarp();
  } else if constexpr (d == Grouped::kOneLaneCopies) {
    if (lane_index() == 0) tensormap_cp_fenceproxy(to, shared);
  } else {
    tensormap_cp_fenceproxy(to, shared);
  }
}

template <Grouped d>
__global__ void grouped_kernel(const __grid_constant__ Groups groups, const __grid_constant__ CUtensorMap any,
                               Maps* maps) {
  __shared__ alignas(128) uint8_t box[kBoxBytes];
  __shared__ alignas(128) uint8_t staging[sizeof(Maps) + 64];
  __shared__ uint64_t full;
  Maps& mine = *reinterpret_cast<Maps*>(staging + (d == Grouped::kMisaligned ? 64 : 0));
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init_release_cluster();
    mine.load = mine.store = any;
  }
  __syncthreads();
  int boxes = 0;
#pragma unroll 1
  for (int g = 0; g < kGroups; ++g) {
    const Group& group = groups.group[g];
    if (warp_index() == 0) {
      if (lane_index() == 0) {
        if constexpr (d != Grouped::kStoreMapInFlight) bulk_wait_group_read<0>();
        if (d != Grouped::kOldAddress || g != 1) tensormap_replace_global_address(&mine.load, group.a);
        tensormap_replace_global_address(&mine.store, group.c);
        tensormap_replace_global_dim<1>(&mine.load, group.rows);
        if (d != Grouped::kOldRows || g != 2) tensormap_replace_global_dim<1>(&mine.store, group.rows);
      }
      if constexpr (d != Grouped::kNoSyncwarp) __syncwarp();
      if constexpr (d == Grouped::kAcquiredEarly) fence_tensormap_acquire(&maps->load);
      publish<d>(&maps->load, &mine.load);
      publish<d>(&maps->store, &mine.store);
      if constexpr (d != Grouped::kNoAcquire && d != Grouped::kAcquiredEarly)
        fence_tensormap_acquire(&maps->load);
      fence_tensormap_acquire(d == Grouped::kOtherAcquired ? &maps->load : &maps->store);
    }
#pragma unroll 1
    for (uint32_t row = 0; row < group.rows; row += kBoxRows, ++boxes) {
      if (threadIdx.x == 0) {
        const uint32_t left = group.rows - row;
        const uint32_t counted = d == Grouped::kFewBytes && left < kBoxRows ? left : kBoxRows;
        if constexpr (d != Grouped::kNoReadWait) bulk_wait_group_read<0>();
        mbarrier_arrive_expect_tx(&full, counted * kRowBytes);
        tensor_load(box, d == Grouped::kSharedMap ? &mine.load : &maps->load, 0, int(row), &full);
      }
      if constexpr (d == Grouped::kLoadMapInFlight) {
        if (warp_index() == 0 && g == 0) tensormap_cp_fenceproxy(&maps->load, &mine.load);
      }
      if constexpr (d != Grouped::kNoFullWait) mbarrier_wait(&full, boxes % 2);
      if (warp_index() == 1)
        for (int word = lane_index(); word < kBoxBytes / 4; word += 32)
          reinterpret_cast<volatile uint32_t*>(box)[word] =
              reinterpret_cast<volatile uint32_t*>(box)[word] + 0x01010101;
      if constexpr (d != Grouped::kNoProxyFence) fence_proxy_async_shared();
      __syncthreads();
      if (threadIdx.x == 0) {
        tensor_store(&maps->store, 0, int(row), box);
        bulk_commit_group();
      }
    }
  }
  if (threadIdx.x == 0) bulk_wait_group_read<0>();
}

// Bytes stay below 255, so that words add up without a carry from byte to byte.
uint8_t element(size_t i) { return uint8_t(i * 7 + i / 64) % 250; }

template <Grouped d>
Outcome run() {
  std::vector<uint8_t> elements(size_t(kAllRows) * kRowBytes);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = element(i);
  DeviceArray<uint8_t> a(elements), c(elements.size(), 0xFF);
  DeviceArray<Maps> maps(1);
  Groups groups;
  int first = 0;
  for (int g = 0; g < kGroups; first += kRows[g++])
    groups.group[g] = {a.data() + first * kRowBytes, c.data() + first * kRowBytes, uint32_t(kRows[g])};
  grouped_kernel<d><<<1, 64>>>(
      groups, byte_map(a.data(), kRowBytes, kAllRows, kRowBytes, kBoxRows, CU_TENSOR_MAP_SWIZZLE_NONE),
      maps.data());
  return outcome(c, [](size_t i) { return uint8_t(element(i) + 1); });
}

}  // namespace in_grouped

DEFECTS_SUBJECT(Grouped, grouped, in_grouped::run)

}  // namespace defects
