// addresses.cu -- the address map of shared memory and the special registers, per rank of a cluster.
// Addresses are recorded relative to the base of the shared window, which is where generic address minus
// shared address puts it.
#include "test/sim/conformance/device.cuh"

namespace conformance {
namespace {

constexpr int kWords = 64;

__device__ uint32_t shared_address(const void* p) {
  uint64_t address;
  asm volatile("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(p));
  return uint32_t(address);
}

#define SPECIAL32(name)                                \
  ([] {                                                \
    uint32_t v;                                        \
    asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); \
    return v;                                          \
  }())

// Thread 0 of each CTA writes one row of kWords.
__global__ void probe(uint32_t* out) {
  extern __shared__ __align__(1024) uint8_t dynamic[];
  const uint32_t linear = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  uint32_t* row = out + linear * kWords;
  if (threadIdx.x != 0) return;
  const uint32_t own = shared_address(dynamic);
  const uint64_t generic = reinterpret_cast<uint64_t>(dynamic);
  const uint64_t window = generic - own;
  uint32_t ranks = SPECIAL32("cluster_nctarank");
  row[0] = own;
  row[1] = uint32_t(window);  // the window is aligned to 2^24 or more
  for (uint32_t rank = 0; rank < 8; ++rank) {
    uint32_t mapped = 0xFFFFFFFF, back = 0xFFFFFFFF, from_generic = 0xFFFFFFFF, generic_low = 0xFFFFFFFF;
    if (rank < ranks) {
      uint64_t wide;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(own), "r"(rank));
      asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(back) : "r"(mapped));
      asm volatile("mapa.u64 %0, %1, %2;" : "=l"(wide) : "l"(generic), "r"(rank));
      asm volatile("getctarank.u64 %0, %1;" : "=r"(from_generic) : "l"(wide));
      generic_low = uint32_t(wide - window);
    }
    row[2 + rank * 4] = mapped;
    row[3 + rank * 4] = back;
    row[4 + rank * 4] = generic_low;
    row[5 + rank * 4] = from_generic;
  }
  uint64_t peer = 0;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(peer) : "l"(generic), "r"(ranks - 1));
  const uint64_t addresses[3] = {generic, peer, reinterpret_cast<uint64_t>(out)};
  for (int i = 0; i < 3; ++i) {
    uint32_t bits = 0;
#define IS(space, bit)                                                               \
  {                                                                                  \
    uint32_t yes;                                                                    \
    asm volatile("{ .reg .pred p; isspacep." space " p, %1; selp.u32 %0, 1, 0, p; }" \
                 : "=r"(yes)                                                         \
                 : "l"(addresses[i]));                                               \
    bits |= yes << bit;                                                              \
  }
    IS("shared::cta", 0)
    IS("shared::cluster", 1)
    IS("global", 2)
    IS("local", 3)
    row[34 + i] = bits;
  }
  row[38] = SPECIAL32("dynamic_smem_size");
}

__global__ void specials(uint32_t* out) {
  const uint32_t linear = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  uint32_t* row = out + (linear * 64 + thread) * kWords;
  const uint32_t values[] = {SPECIAL32("cluster_ctaid.x"),
                             SPECIAL32("cluster_ctaid.y"),
                             SPECIAL32("cluster_ctaid.z"),
                             SPECIAL32("cluster_nctaid.x"),
                             SPECIAL32("cluster_nctaid.y"),
                             SPECIAL32("cluster_nctaid.z"),
                             SPECIAL32("clusterid.x"),
                             SPECIAL32("clusterid.y"),
                             SPECIAL32("clusterid.z"),
                             SPECIAL32("nclusterid.x"),
                             SPECIAL32("nclusterid.y"),
                             SPECIAL32("nclusterid.z"),
                             SPECIAL32("cluster_ctarank"),
                             SPECIAL32("cluster_nctarank"),
                             SPECIAL32("tid.x"),
                             SPECIAL32("tid.y"),
                             SPECIAL32("tid.z"),
                             SPECIAL32("ntid.x"),
                             SPECIAL32("ntid.y"),
                             SPECIAL32("ntid.z"),
                             SPECIAL32("ctaid.x"),
                             SPECIAL32("ctaid.y"),
                             SPECIAL32("ctaid.z"),
                             SPECIAL32("nctaid.x"),
                             SPECIAL32("nctaid.y"),
                             SPECIAL32("nctaid.z"),
                             SPECIAL32("laneid"),
                             SPECIAL32("lanemask_eq"),
                             SPECIAL32("lanemask_le"),
                             SPECIAL32("lanemask_lt"),
                             SPECIAL32("lanemask_ge"),
                             SPECIAL32("lanemask_gt"),
                             SPECIAL32("dynamic_smem_size")};
  for (uint32_t i = 0; i < sizeof values / 4; ++i) row[i] = values[i];
  uint32_t is_explicit;
  asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }"
               : "=r"(is_explicit));
  row[40] = is_explicit;
}

__global__ void smem_sizes(uint32_t* out) {
  __shared__ uint32_t fixed[100];
  fixed[threadIdx.x] = threadIdx.x;
  out[8 + threadIdx.x] = fixed[threadIdx.x ^ 1];
  if (threadIdx.x != 0) return;
  out[0] = SPECIAL32("total_smem_size");
  out[1] = SPECIAL32("aggr_smem_size");
}

// Each CTA writes its rank to `address & mask` of its own word `rank`;
// which CTA received it shows in the dump.
__global__ void masked_store(uint32_t mask, uint32_t* out) {
  __shared__ __align__(128) uint32_t words[16];
  const uint32_t rank = SPECIAL32("cluster_ctarank");
  if (threadIdx.x < 16) words[threadIdx.x] = 0xEEEEEEEE;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    uint32_t self;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(self)
                 : "r"(shared_address(words + rank)), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(self & mask), "r"(rank) : "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x < 16) out[rank * 16 + threadIdx.x] = words[threadIdx.x];
}

const Register probe_case("addresses/windows", [](Recorder& out) {
  for (uint32_t cluster : {1u, 2u, 4u, 8u}) {
    Buffer<uint32_t> words(16 * kWords);
    launch({16, 32, 4096, {cluster, 1, 1}}, probe, words.data());
    out.exact("addresses/windows.cluster" + std::to_string(cluster), words.host());
  }
});

const Register specials_case("addresses/specials", [](Recorder& out) {
  const struct {
    const char* name;
    Shape shape;
  } shapes[] = {{"plain", {{2, 3, 2}, {8, 4, 2}, 128}},
                {"2x1x1", {{4, 2, 2}, {64, 1, 1}, 0, {2, 1, 1}}},
                {"2x2x1", {{4, 4, 1}, {4, 4, 4}, 1024, {2, 2, 1}}},
                {"1x2x2", {{3, 2, 4}, {16, 2, 2}, 48, {1, 2, 2}}},
                {"2x2x2", {{4, 2, 2}, {32, 2, 1}, 2048, {2, 2, 2}}}};
  for (const auto& [name, shape] : shapes) {
    const size_t ctas = shape.grid.x * shape.grid.y * shape.grid.z;
    Buffer<uint32_t> words(ctas * 64 * kWords);
    launch(shape, specials, words.data());
    out.exact(std::string("addresses/specials.") + name, words.host());
  }
});

const Register sizes_case("addresses/smem_sizes", [](Recorder& out) {
  Buffer<uint32_t> words(64);
  launch({1, 32, 3000}, smem_sizes, words.data());
  std::vector<uint32_t> host = words.host();
  // Machines may round up and reserve different numbers of bytes.
  out.free("addresses/smem_sizes.totals",
           Bytes(reinterpret_cast<uint8_t*>(host.data()), reinterpret_cast<uint8_t*>(host.data() + 2)));
  host.erase(host.begin(), host.begin() + 2);
  out.exact("addresses/smem_sizes.data", host);
});

const Register masked_case("addresses/masked_store", [](Recorder& out) {
  for (uint32_t cluster : {2u, 4u, 8u}) {
    Buffer<uint32_t> words(8 * 16);
    launch({cluster, 32, 0, {cluster, 1, 1}}, masked_store, 0xFEFFFFFFu, words.data());
    out.exact("addresses/masked_store.even_peer.cluster" + std::to_string(cluster), words.host());
  }
});

}  // namespace
}  // namespace conformance
