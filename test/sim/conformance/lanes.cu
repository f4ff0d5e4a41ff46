// lanes.cu -- instructions by which the lanes of a warp talk: shfl in every mode and segmentation, vote,
// match, redux, elect, with full and partial member masks in divergent code.
#include "test/sim/conformance/device.cuh"
#include "test/sim/conformance/sync.cuh"

namespace conformance {
namespace {

#define SHUFFLE(mode)                                \
  asm volatile("{ .reg .pred p; shfl.sync." mode     \
               ".b32 %0|p, %2, %3, %4, 0xffffffff; " \
               "selp.u32 %1, 1, 0, p; }"             \
               : "=r"(d), "=r"(inside)               \
               : "r"(a), "r"(b), "r"(c))

// A block tries one (mode, c): every distance 0..31 and, last, a different distance for each lane.
__global__ void shuffles(const uint32_t* cs, uint32_t* out) {
  const uint32_t lane = threadIdx.x, mode = blockIdx.x & 3, c = cs[blockIdx.x >> 2];
  const uint32_t a = lane * 0x01010101u + 0x40;
  for (uint32_t i = 0; i < 33; ++i) {
    const uint32_t b = i < 32 ? i : (lane * 7 + 3) & 31;
    uint32_t d, inside;
    if (mode == 0) SHUFFLE("up");
    else if (mode == 1) SHUFFLE("down");
    else if (mode == 2) SHUFFLE("bfly");
    else SHUFFLE("idx");
    out[((blockIdx.x * 33) + i) * 64 + lane] = d;
    out[((blockIdx.x * 33) + i) * 64 + 32 + lane] = inside;
  }
}

const Register shuffle_case("lanes/shfl", [](Recorder& out) {
  std::vector<uint32_t> cs;
  for (uint32_t segment : {0u, 16u, 24u, 28u, 30u, 31u, 5u})
    for (uint32_t clamp : {0u, 31u, 15u, 7u, 3u, 20u}) cs.push_back(segment << 8 | clamp);
  const Buffer<uint32_t> c(cs);
  const size_t blocks = cs.size() * 4, words = 33 * 64;
  Buffer<uint32_t> results(blocks * words);
  launch({uint32_t(blocks), 32}, shuffles, c.data(), results.data());
  const std::vector<uint32_t> all = results.host();
  static const char* const kModes[] = {"up", "down", "bfly", "idx"};
  for (size_t block = 0; block < blocks; ++block)
    out.exact("lanes/shfl." + std::string(kModes[block & 3]) + ".c" + std::to_string(cs[block >> 2]),
              std::vector<uint32_t>(all.begin() + block * words, all.begin() + (block + 1) * words));
});

constexpr uint32_t kCollectives = 24;

#define PREDICATE_VOTE(what)                                              \
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync." what \
               ".pred q, p, %2; "                                         \
               "selp.u32 %0, 1, 0, q; }"                                  \
               : "=r"(r)                                                  \
               : "r"(bit), "r"(mask));                                    \
  keep(r)
#define REDUX(what)                                                                  \
  asm volatile("redux.sync." what " %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask)); \
  keep(r)

// Tries everything that combines the lanes of `mask`; the other lanes meanwhile run the other side of a
// branch.
__device__ void collect(uint32_t mask, uint32_t value, uint64_t wide, uint32_t* row) {
  const uint32_t lane = threadIdx.x & 31, bit = value & 1;
  uint32_t r, k = 0;
  const auto keep = [&](uint32_t v) { row[k++ * 32 + lane] = v; };
  PREDICATE_VOTE("all");
  PREDICATE_VOTE("any");
  PREDICATE_VOTE("uni");
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
               : "=r"(r)
               : "r"(bit), "r"(mask));
  keep(r);
  asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
  keep(r);
  asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(r) : "l"(wide), "r"(mask));
  keep(r);
  uint32_t same;
  asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, %3; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(same)
               : "r"(value), "r"(mask));
  keep(r);
  keep(same);
  asm volatile("{ .reg .pred p; match.all.sync.b64 %0|p, %2, %3; selp.u32 %1, 1, 0, p; }"
               : "=r"(r), "=r"(same)
               : "l"(wide), "r"(mask));
  keep(r);
  keep(same);
  REDUX("add.u32");
  REDUX("add.s32");
  REDUX("min.u32");
  REDUX("max.u32");
  REDUX("min.s32");
  REDUX("max.s32");
  REDUX("and.b32");
  REDUX("or.b32");
  REDUX("xor.b32");
  uint32_t leader, elected;
  asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
               : "=r"(leader), "=r"(elected)
               : "r"(mask));
  // The leader is free, but there is one, it is a member, and everybody names it.
  const uint32_t elected_lanes = __ballot_sync(mask, elected != 0);
  keep(__popc(elected_lanes));
  keep(elected_lanes == 1u << leader && (mask >> leader & 1));
  row[kCollectives * 32 + lane] = leader;
}

__global__ void collectives(const uint32_t* masks, const uint32_t* values, uint32_t* out) {
  const uint32_t lane = threadIdx.x, mask = masks[blockIdx.x], value = values[blockIdx.x * 32 + lane];
  const uint64_t wide = uint64_t(value & 3) << 40 | value;
  uint32_t* row = out + blockIdx.x * (kCollectives + 1) * 32;
  if (mask >> lane & 1) collect(mask, value, wide, row);
  else collect(~mask, value, wide, row);
}

const Register collective_case("lanes/collectives", [](Recorder& out) {
  std::vector<uint32_t> masks = {0xFFFFFFFF, 1,          0x80000000, 0x0000FFFF,
                                 0xAAAAAAAA, 0x00FF00FF, 0x7FFFFFFF, 3};
  Random random(5);
  for (int i = 0; i < 40; ++i) masks.push_back(uint32_t(random.bits()) | 1u << random.below(32));
  std::vector<uint32_t> values;
  for (size_t i = 0; i < masks.size(); ++i) {
    const uint32_t kind = random.below(5), common = uint32_t(random.bits());
    for (int lane = 0; lane < 32; ++lane)
      values.push_back(kind == 0   ? common
                       : kind == 1 ? random.below(3)
                       : kind == 2 ? random.below(2) * 0xFFFFFFFFu
                       : kind == 3 ? common & ~1u
                                   : uint32_t(random.bits()));
  }
  const Buffer<uint32_t> mask_buffer(masks), value_buffer(values);
  const size_t words = (kCollectives + 1) * 32;
  Buffer<uint32_t> results(masks.size() * words);
  launch({uint32_t(masks.size()), 32}, collectives, mask_buffer.data(), value_buffer.data(), results.data());
  const std::vector<uint32_t> all = results.host();
  Bytes leaders;
  for (size_t i = 0; i < masks.size(); ++i) {
    const auto row = all.begin() + long(i * words);
    out.exact("lanes/collectives." + std::to_string(i), std::vector<uint32_t>(row, row + kCollectives * 32));
    leaders.push_back(uint8_t(row[kCollectives * 32 + __builtin_ctz(masks[i])]));
  }
  out.free("lanes/elect_leader", leaders);
});

// Tries shuffles among the lanes of a partial mask, each reading only members.
__global__ void partial_shuffle(uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t v = lane * 3 + 1;
  if (lane < 16) {
    v = __shfl_xor_sync(0x0000FFFF, v, 5);
    v += __shfl_sync(0x0000FFFF, v, lane ^ 9);
  } else if (lane < 24) {
    v = __shfl_down_sync(0x00FF0000, v, 1, 8);
  } else {
    v = __shfl_up_sync(0xFF000000, v, 2, 8);
    if (lane & 1) v += __reduce_add_sync(0xAA000000, v);
  }
  __syncwarp();
  out[lane] = v + __shfl_sync(0xFFFFFFFF, v, 31 - lane);
}

const Register partial_case("lanes/partial_shuffle", [](Recorder& out) {
  Buffer<uint32_t> words(32);
  launch({1, 32}, partial_shuffle, words.data());
  out.exact("lanes/partial_shuffle", words.host());
});

}  // namespace
}  // namespace conformance
