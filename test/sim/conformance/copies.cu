// copies.cu -- bulk copies between global and shared memory of many sizes, bulk groups with .read and full
// waits, and cp.async with its groups and zero fill.
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {
namespace {

constexpr uint32_t kBytes = 16384;

// Copies `bytes` at `from` in to shared offset `at`, and out again to `to`. Both images are recorded whole.
__global__ void there_and_back(const uint8_t* source, uint32_t from, uint32_t at, uint32_t bytes,
                               uint8_t* image, uint8_t* target, uint32_t to) {
  __shared__ __align__(128) uint8_t data[kBytes];
  __shared__ uint64_t barrier;
  for (uint32_t i = threadIdx.x; i < kBytes; i += blockDim.x) data[i] = 0x5A;
  if (threadIdx.x == 0) {
    mbarrier_init(smem_u32(&barrier), 1);
    fence_mbarrier_init_release_cluster();
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect_tx(smem_u32(&barrier), bytes);
    bulk_load(smem_u32(data) + at, source + from, bytes, smem_u32(&barrier));
  }
  __syncwarp();
  const uint32_t done = wait_parity(smem_u32(&barrier), 0);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kBytes; i += blockDim.x) image[i] = data[i] ^ uint8_t(1 - done);
  if (threadIdx.x == 0) {
    bulk_store(target + to, smem_u32(data) + at, bytes);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
}

std::vector<uint8_t> noise(uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes(kBytes);
  for (uint8_t& byte : bytes) byte = uint8_t(random.bits() >> 32);
  return bytes;
}

const Register bulk_case("copies/bulk", [](Recorder& out) {
  const Buffer<uint8_t> source(noise(4));
  Random random(14);
  for (uint32_t bytes : {16u, 32u, 48u, 128u, 144u, 1024u, 4080u, 8192u, 16384u}) {
    const auto place = [&] { return 16 * random.below((kBytes - bytes) / 16 + 1); };
    const uint32_t from = place(), at = place(), to = place();
    Buffer<uint8_t> image(kBytes), target(kBytes, 0x11);
    launch({1, 128}, there_and_back, source.data(), from, at, bytes, image.data(), target.data(), to);
    out.exact("copies/bulk." + std::to_string(bytes) + ".shared", image.host());
    out.exact("copies/bulk." + std::to_string(bytes) + ".global", target.host());
  }
});

// Stores, waits until the source was read, overwrites it and stores again: both images must be whole.
__global__ void reuse(uint32_t rounds, uint32_t* target, uint32_t* seen) {
  __shared__ __align__(128) uint32_t data[2][256];
  for (uint32_t round = 0; round < rounds; ++round) {
    uint32_t* buffer = data[round & 1];
    if (threadIdx.x == 0) bulk_wait_group_read<1>();
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x) buffer[i] = round * 4096 + i;
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(target + round * 256, smem_u32(buffer), 512);
      bulk_store(target + round * 256 + 128, smem_u32(buffer) + 512, 512);
      bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) {
    bulk_wait_group<1>();  // all but the last group are visible now
    fence_proxy_async();
    for (uint32_t i = 0; i < 256 * (rounds - 1); i += 128)
      seen[i / 128] = reinterpret_cast<volatile uint32_t*>(target)[i];
    bulk_wait_group<0>();
  }
}

const Register reuse_case("copies/bulk_groups", [](Recorder& out) {
  Buffer<uint32_t> target(256 * 12), seen(2 * 12);
  launch({1, 64}, reuse, 12u, target.data(), seen.data());
  out.exact("copies/bulk_groups.target", target.host());
  out.exact("copies/bulk_groups.seen", seen.host());
});

#define CP_ASYNC(cache, bytes) \
  asm volatile("cp.async." cache ".shared.global [%0], [%1], " bytes ";" ::"r"(to), "l"(from) : "memory")
#define CP_ASYNC_PART(cache, bytes)                                                                          \
  asm volatile("cp.async." cache ".shared.global [%0], [%1], " bytes ", %2;" ::"r"(to), "l"(from), "r"(part) \
               : "memory")

__global__ void async_copies(const uint8_t* source, uint8_t* out) {
  __shared__ __align__(128) uint8_t data[6][32 * 16];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = lane; i < sizeof data; i += 32) (&data[0][0])[i] = 0x77;
  __syncwarp();
  const uint8_t* from = source + ((lane * 5) & 31) * 16;
  uint32_t part = lane % 17, to = smem_u32(&data[0][lane * 16]);
  CP_ASYNC("cg", "16");
  asm volatile("cp.async.commit_group;" ::: "memory");
  to = smem_u32(&data[1][lane * 16]);
  CP_ASYNC("ca", "8");
  to = smem_u32(&data[2][lane * 16 + 4]);
  CP_ASYNC("ca", "4");
  asm volatile("cp.async.commit_group;" ::: "memory");
  to = smem_u32(&data[3][lane * 16]);
  CP_ASYNC_PART("cg", "16");
  part %= 5;
  to = smem_u32(&data[4][lane * 16]);
  CP_ASYNC_PART("ca", "4");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 2;" ::: "memory");
  out[6 * 512 + lane] = data[0][lane * 16 + 3];
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  out[6 * 512 + 32 + lane] = data[1][lane * 16 + 5];
  to = smem_u32(&data[5][lane * 16]);
  CP_ASYNC("ca", "16");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (uint32_t i = lane; i < sizeof data; i += 32) out[i] = (&data[0][0])[i];
}

const Register async_case("copies/cp_async", [](Recorder& out) {
  const Buffer<uint8_t> source(noise(6));
  Buffer<uint8_t> image(6 * 512 + 64);
  launch({1, 32}, async_copies, source.data(), image.data());
  out.exact("copies/cp_async", image.host());
});

// Tries vector, narrow and sign-extending loads and stores, by type.
__global__ void accesses(const uint8_t* source, uint8_t* out) {
  const uint32_t t = threadIdx.x;
  uint64_t* row = reinterpret_cast<uint64_t*>(out) + t * 16;
  const uint8_t* p = source + t * 32;
  uint32_t a, b, c, d;
  uint64_t wide, more;
  uint16_t h;
#define LOAD(i, type, constraint, variable)                                                    \
  asm volatile("ld.global." type " %0, [%1];" : "=" constraint(variable) : "l"(p) : "memory"); \
  row[i] = variable
  LOAD(0, "u8", "r", a);
  LOAD(1, "s8", "r", a);
  LOAD(2, "u16", "r", a);
  LOAD(3, "s16", "r", a);
  LOAD(4, "s8", "l", wide);
  LOAD(5, "s16", "l", wide);
  LOAD(6, "s32", "l", wide);
  LOAD(7, "u32", "l", wide);
  LOAD(8, "b16", "h", h);
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(p));
  row[9] = uint64_t(a) << 32 | b;
  row[10] = uint64_t(c) << 32 | d;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2+16];"
               : "=l"(wide), "=l"(more)
               : "l"(p)
               : "memory");
  row[11] = wide ^ more;
  asm volatile("st.global.v2.u16 [%0], {%1, %2};" ::"l"(row + 12), "h"(uint16_t(a)), "h"(uint16_t(b))
               : "memory");
  asm volatile("st.global.v4.u8 [%0+4], {%1, %2, %3, %4};" ::"l"(row + 12), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
  asm volatile("st.release.gpu.global.u8 [%0], %1;" ::"l"(row + 13), "r"(a) : "memory");
  asm volatile("st.global.u16 [%0+2], %1;" ::"l"(row + 13), "r"(b) : "memory");
}

const Register access_case("copies/accesses", [](Recorder& out) {
  const Buffer<uint8_t> source(noise(7));
  Buffer<uint8_t> image(64 * 128);
  launch({1, 64}, accesses, source.data(), image.data());
  out.exact("copies/accesses", image.host());
});

}  // namespace
}  // namespace conformance
