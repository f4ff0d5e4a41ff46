// loads.cu -- what the library's load roles bring into shared memory, every byte of it: each stage and each
// scale stage of each tile, as they are when the mma would read them. The expectation is stated here anew,
// from the tensors alone: rows of 128 bytes whose 16-byte pieces are permuted, atoms of scale factors, zeros
// outside, and the rows of clamped groups. Several launches of each case differ in how fast the consumer is.
#include <algorithm>
#include <set>
#include <tuple>

#include "test/sim/conformance/loads.cuh"

namespace conformance {
namespace {

constexpr uint8_t kUntouched = 0xA5;

// Copies all it sees to global memory. Tiles beyond `capacity`, which should not come, all go to the last
// entry.
template <class Traits>
struct Dump {
  int4* tiles;          // [capacity + 1]: m, n, problem
  uint4* stages;        // [capacity + 1][per_tile]
  uint4* scale_stages;  // the same, at the first k-tile of each
  uint32_t capacity, per_tile;
  uint32_t pace;  // 0: as fast as it can; else longest pause of a k-tile, in ns

  static constexpr uint32_t kStageWords = Traits::kPlan.operands.stage_bytes / 16,
                            kScaleWords = Traits::kPlan.scales.stage_bytes / 16;

  __device__ static uint32_t lane() { return threadIdx.x % 32; }
  __device__ size_t entry(uint32_t number, int32_t k) const {
    return size_t(min(number, capacity)) * per_tile + uint32_t(k);
  }
  __device__ static void copy(uint4* to, const void* from, uint32_t words) {
    for (uint32_t i = lane(); i < words; i += 32) to[i] = static_cast<const uint4*>(from)[i];
  }
  __device__ void tile(uint32_t number, const Tile& tile) const {
    if (lane() == 0) tiles[min(number, capacity)] = make_int4(tile.m, tile.n, tile.problem, 0);
  }
  __device__ void stage(uint32_t number, int32_t k, const Stage<Traits>& stage) const {
    if (pace) __nanosleep((number * 2654435761u + uint32_t(k) * 40503u) % pace);
    copy(stages + entry(number, k) * kStageWords, &stage, kStageWords);
  }
  __device__ void scale_stage(uint32_t number, int32_t k, const ScaleStage<Traits>& stage) const {
    copy(scale_stages + entry(number, k) * kScaleWords, &stage, kScaleWords);
  }
};

struct Shape {
  const char* name;
  int32_t m, n, k;
  int32_t problems = 1;
  int32_t max_sms = 0;  // fewer CTAs than tiles
  int32_t group_mode = DUALGEMM_GROUP_NONE;
  std::vector<int32_t> group_rows = {};
};

// A tensor has random bytes, also between rows and between problems.
struct Tensor {
  int64_t pitch, stride;  // bytes
  std::vector<uint8_t> bytes;
  Tensor(int64_t pitch_, int64_t stride_, int64_t problems, uint64_t seed)
      : pitch(pitch_), stride(stride_), bytes(size_t(stride_ * problems)) {
    Random random(seed);
    for (uint8_t& byte : bytes) byte = uint8_t(random.bits() >> 40);
  }
};

int64_t blocks_of(int64_t rows) { return (rows + 127) / 128; }

// These are the rows of each problem as the documentation of the arguments defines them.
struct Rows {
  int32_t first, count;
  int64_t block;  // of 128 rows of SFA
};
std::vector<Rows> rows_of(const Shape& x) {
  std::vector<Rows> out;
  const auto clamped = [&](int32_t value) { return std::min(std::max(value, 0), x.m); };
  int32_t cursor = x.group_mode == DUALGEMM_GROUP_OFFSETS ? clamped(x.group_rows[0]) : 0;
  int64_t block = 0;
  for (int32_t p = 0; p < x.problems; ++p) {
    if (x.group_mode == DUALGEMM_GROUP_OFFSETS) {
      const int32_t end = std::max(cursor, clamped(x.group_rows[size_t(p) + 1]));
      out.push_back({cursor, end - cursor, block});
      block += blocks_of(end - cursor);
      cursor = end;
    } else {
      out.push_back({0, x.group_mode == DUALGEMM_GROUP_NONE ? x.m : clamped(x.group_rows[size_t(p)]), 0});
    }
  }
  return out;
}

// These are the tensors of a case, and what boxes of them look like in shared memory.
struct Inputs {
  const Shape& x;
  bool shared_a;
  int64_t atoms, a_blocks, b_blocks, a_problems;
  Tensor a, b[2], sfa, sfb[2];

  explicit Inputs(const Shape& x_)
      : x(x_),
        shared_a(x.group_mode == DUALGEMM_GROUP_OFFSETS),
        atoms((x.k + 63) / 64),
        a_blocks(shared_a ? (x.m + 127 * int64_t(std::min(x.m, x.problems))) / 128 : blocks_of(x.m)),
        b_blocks(blocks_of(x.n)),
        a_problems(shared_a ? 1 : x.problems),
        a(pitch(32), pitch(32) * x.m + 48, a_problems, 1),
        b{{pitch(0), pitch(0) * x.n + 16, x.problems, 2}, {pitch(64), pitch(64) * x.n, x.problems, 3}},
        sfa(512 * atoms, 512 * atoms * a_blocks + 48, a_problems, 4),
        sfb{{512 * atoms, 512 * atoms * b_blocks, x.problems, 5},
            {512 * atoms, 512 * atoms * b_blocks + 16, x.problems, 6}} {}

  int64_t pitch(int64_t padding) const { return (x.k / 2 + 15) / 16 * 16 + padding; }

  // Writes 128 bytes of each of `rows` rows, from k-tile `k`.
  void operand(uint8_t* to, const Tensor& t, int64_t problem, int64_t row, int64_t rows, int64_t end,
               int64_t k) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t byte = 0; byte < 128; ++byte) {
        const int64_t column = 128 * k + byte;
        const bool inside = row + r < end && column < x.k / 2;
        to[128 * r + ((byte / 16) ^ (r % 8)) * 16 + byte % 16] =
            inside ? t.bytes[size_t(problem * t.stride + (row + r) * t.pitch + column)] : 0;
      }
  }
  // Writes `count` atoms of a block of 128 rows.
  void scales(uint8_t* to, const Tensor& t, int64_t problem, int64_t block, int64_t k, int64_t count) const {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t byte = 0; byte < 512; ++byte)
        to[512 * i + byte] =
            4 * k + i < atoms
                ? t.bytes[size_t(problem * t.stride + block * t.pitch + 512 * (4 * k + i) + byte)]
                : 0;
  }
};

// Makes the images that a tile leaves, for the products that a main loop over K loads.
template <class Traits>
void expect_tile(const Inputs& in, const Rows& rows, int64_t m, int64_t n, int64_t problem, int64_t k_tiles,
                 uint8_t* stages, uint8_t* scale_stages) {
  constexpr Plan kPlan = Traits::kPlan;
  const int64_t a_problem = in.shared_a ? 0 : problem, a_row = rows.first + m * kPlan.tile.m;
  for (int64_t main_loop = 0; main_loop < kMainLoops<Traits>; ++main_loop)
    for (int64_t slice = 0; slice < kPlan.tile.split_k; ++slice) {
      const int64_t first = k_tiles * slice / kPlan.tile.split_k,
                    end = k_tiles * (slice + 1) / kPlan.tile.split_k;
      for (int64_t k = first; k < end; ++k) {
        uint8_t* const stage = stages + (main_loop * k_tiles + k) * kPlan.operands.stage_bytes;
        in.operand(stage, in.a, a_problem, a_row, kPlan.tile.m, in.x.m, k);
        for (int64_t i = 0; i < kPlan.mma.products; ++i)
          in.operand(stage + 128 * kPlan.tile.m + i * kPlan.tile.n * 128, in.b[i + main_loop], problem,
                     n * kPlan.tile.n, kPlan.tile.n, in.x.n, k);
        if ((k - first) % kPlan.scales.k_tiles != 0) continue;
        uint8_t* const scales = scale_stages + (main_loop * k_tiles + k) * kPlan.scales.stage_bytes;
        constexpr int64_t kAtoms = 4 * kPlan.scales.k_tiles;
        in.scales(scales, in.sfa, a_problem, rows.block + m * kPlan.tile.m / 128, k, kAtoms);
        for (int64_t i = 0; i < kPlan.mma.products; ++i)
          in.scales(scales + (1 + i) * kAtoms * 512, in.sfb[i + main_loop], problem, n * kPlan.tile.n / 128,
                    k, kAtoms);
      }
    }
}

void append(Bytes& to, const void* from, size_t bytes) {
  const auto* const first = static_cast<const uint8_t*>(from);
  to.insert(to.end(), first, first + bytes);
}

// Fails at the first place where they differ.
void compare(const char* what, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want,
             size_t entry_bytes, size_t per_tile) {
  const size_t at = size_t(std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin());
  if (at == got.size()) return;
  const size_t entry = at / entry_bytes;
  throw std::runtime_error(std::string(what) + " of tile " + std::to_string(entry / per_tile) + ", k-tile " +
                           std::to_string(entry % per_tile) + ", byte " + std::to_string(at % entry_bytes) +
                           ": " + std::to_string(got[at]) + ", expected " + std::to_string(want[at]));
}

template <class T>
std::vector<uint8_t> bytes_of(const Buffer<T>& buffer) {
  const std::vector<T> values = buffer.host();
  Bytes out;
  append(out, values.data(), values.size() * sizeof(T));
  return out;
}

template <class Traits>
void record_loads(Recorder& out, const char* instance, const Shape& x) {
  constexpr Plan kPlan = Traits::kPlan;
  const std::string name = std::string("loads/") + instance + "." + x.name;
  const Inputs in(x);
  const Buffer<uint8_t> a(in.a.bytes), b1(in.b[0].bytes), b2(in.b[1].bytes), sfa(in.sfa.bytes),
      sfb1(in.sfb[0].bytes), sfb2(in.sfb[1].bytes);
  const Buffer<uint16_t> c(size_t(in.a_problems) * size_t(x.m) * size_t(x.n));
  const Buffer<int32_t> group_rows(x.group_rows.empty() ? std::vector<int32_t>{0} : x.group_rows);

  dualgemm_args_t args = arguments(x.m, x.n, x.k);
  args.a = a.data(), args.b1 = b1.data(), args.b2 = b2.data();
  args.sfa = sfa.data(), args.sfb1 = sfb1.data(), args.sfb2 = sfb2.data();
  args.c = c.data();
  args.lda = in.a.pitch * 2, args.ldb1 = in.b[0].pitch * 2, args.ldb2 = in.b[1].pitch * 2;
  args.batch_stride_b1 = in.b[0].stride * 2, args.batch_stride_b2 = in.b[1].stride * 2;
  args.batch_stride_sfb1 = in.sfb[0].stride, args.batch_stride_sfb2 = in.sfb[1].stride;
  if (!in.shared_a) args.batch_stride_a = in.a.stride * 2, args.batch_stride_sfa = in.sfa.stride;
  args.max_sms = x.max_sms;
  if (x.group_mode != DUALGEMM_GROUP_NONE) {
    args.group_mode = x.group_mode;
    args.groups = x.problems;
    args.group_rows = group_rows.data();
  } else {
    args.batch = x.problems;
  }
  Launch launch(args, load_instance_of<Traits, Dump<Traits>>());

  // All tiles are expected, whatever their order.
  const std::vector<Rows> rows = rows_of(x);
  using Place = std::tuple<int32_t, int32_t, int32_t>;
  std::set<Place> places;
  for (int32_t p = 0; p < x.problems; ++p)
    for (int32_t m = 0; m * kPlan.tile.m < rows[size_t(p)].count; ++m)
      for (int32_t n = 0; n * kPlan.tile.n < x.n; ++n) places.emplace(m, n, p);

  const int64_t k_tiles = (x.k + 255) / 256;
  const size_t tiles = places.size(), per_tile = size_t(kMainLoops<Traits> * k_tiles),
               entries = (tiles + 1) * per_tile;
  std::vector<uint8_t> stages(entries * kPlan.operands.stage_bytes),
      scale_stages(entries * kPlan.scales.stage_bytes), order;
  for (const uint32_t pace : {0u, 400u, 4000u}) {
    const Buffer<int4> dumped_tiles(tiles + 1, kUntouched);
    const Buffer<uint4> dumped_stages(entries * kPlan.operands.stage_bytes / 16, kUntouched),
        dumped_scales(entries * kPlan.scales.stage_bytes / 16, kUntouched);
    launch.run(nullptr, Dump<Traits>{dumped_tiles.data(), dumped_stages.data(), dumped_scales.data(),
                                     uint32_t(tiles), uint32_t(per_tile), pace});
    const std::vector<int4> seen = dumped_tiles.host();
    std::set<Place> walked;
    std::fill(stages.begin(), stages.end(), kUntouched);
    std::fill(scale_stages.begin(), scale_stages.end(), kUntouched);
    for (size_t i = 0; i < tiles; ++i) {
      const int4 at = seen[i];
      if (places.count({at.x, at.y, at.z}) == 0 || !walked.emplace(at.x, at.y, at.z).second)
        throw std::runtime_error("tile " + std::to_string(i) + " is not there or comes twice");
      expect_tile<Traits>(in, rows[size_t(at.z)], at.x, at.y, at.z, k_tiles,
                          stages.data() + i * per_tile * kPlan.operands.stage_bytes,
                          scale_stages.data() + i * per_tile * kPlan.scales.stage_bytes);
    }
    compare("stage", bytes_of(dumped_stages), stages, kPlan.operands.stage_bytes, per_tile);
    compare("scale stage", bytes_of(dumped_scales), scale_stages, kPlan.scales.stage_bytes, per_tile);
    order = bytes_of(dumped_tiles);
  }
  Bytes all = order;
  append(all, stages.data(), stages.size());
  append(all, scale_stages.data(), scale_stages.size());
  out.exact(name, std::move(all));
}

// These are the rings of the library's instances, and scale stages of two k-tiles, rings that are shorter,
// one product after the other, and main loops that start elsewhere in each CTA.
constexpr Options kDecode{.tile_m = 64, .tile_n = 128, .stages = 5, .scale_stages = 4, .acc_stages = 2};
constexpr Options kDecodeScales{
    .tile_m = 64, .tile_n = 128, .stages = 2, .scale_stages = 2, .scale_k_tiles = 2};
constexpr Options kDecodeSplit{.tile_m = 64, .tile_n = 128, .split_k = 4, .stages = 5, .scale_stages = 4};
constexpr Options kNarrow{
    .tile_m = 128, .tile_n = 64, .stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true};
constexpr Options kNarrowScales{
    .tile_m = 128, .tile_n = 64, .stages = 3, .scale_stages = 2, .scale_k_tiles = 2};
constexpr Options kNarrowSplit{
    .tile_m = 128, .tile_n = 64, .split_k = 2, .stages = 6, .scale_stages = 5, .keep_a = true};
constexpr Options kRotated{.tile_m = 128, .tile_n = 64, .stages = 3, .scale_stages = 3};
constexpr Options kSquare{.tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 5};
constexpr Options kGroupedDecode{
    .tile_m = 64, .tile_n = 128, .stages = 4, .scale_stages = 5, .acc_stages = 2, .grouped = true};
constexpr Options kGroupedScales{
    .tile_m = 128, .tile_n = 64, .stages = 3, .scale_stages = 2, .scale_k_tiles = 2, .grouped = true};
constexpr Options kGroupedSquare{
    .tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 4, .grouped = true};

std::vector<Shape> dense_shapes() {
  return {
      {"whole", 128, 128, 512},
      {"ragged", 130, 200, 272},                // K % 256 and K % 64, rows and columns beyond the end
      {"few_rows", 3, 136, 80},                 // less than one k-tile
      {"long_k", 70, 72, 256 * 13 + 16, 1, 1},  // twice around the rings and one tile after the other
      {"batch", 140, 136, 592, 3, 4},           // problems with gaps between them, more tiles than CTAs
  };
}

// Returns a shape with more tiles than SMs, and than a band has, which is most of the work.
std::vector<Shape> many_tiles() { return {{"many", 1090, 1160, 272}}; }

std::vector<Shape> grouped_shapes() {
  constexpr int32_t kOffsets = DUALGEMM_GROUP_OFFSETS, kMasked = DUALGEMM_GROUP_MASKED;
  return {
      {"offsets", 300, 136, 528, 5, 3, kOffsets, {0, 70, 70, 199, 200, 300}},
      {"offsets_start_end", 300, 72, 272, 3, 0, kOffsets, {5, 64, 180, 290}},
      {"offsets_descend", 200, 72, 272, 6, 2, kOffsets, {-7, 60, 20, 150, 1 << 30, 100, 200}},
      {"offsets_none", 64, 72, 272, 3, 0, kOffsets, {10, 10, 10, 10}},
      {"masked", 140, 136, 528, 5, 3, kMasked, {70, 0, 140, 1, 129}},
      {"masked_clamped", 100, 72, 272, 4, 0, kMasked, {-3, 101, 1 << 30, 64}},
  };
}

// Returns a shape with more groups than a warp has lanes.
Shape many_groups(int32_t mode) {
  Shape x = {mode == DUALGEMM_GROUP_OFFSETS ? "offsets_many" : "masked_many", 90, 64, 256, 70, 5, mode};
  if (mode == DUALGEMM_GROUP_OFFSETS) x.group_rows.push_back(0);
  for (int32_t g = 0; g < x.problems; ++g)
    x.group_rows.push_back(mode == DUALGEMM_GROUP_OFFSETS ? (g + 1) * 4 / 3 : g * 7 % 5 == 0 ? 0 : g % 4);
  return x;
}

template <class Traits>
Register shapes(const char* instance, const std::vector<Shape>& shapes, const char* part = "") {
  return Register(std::string("loads/") + part + instance, [=](Recorder& out) {
    for (const Shape& x : shapes) record_loads<Traits>(out, instance, x);
  });
}

constexpr char kMany[] = "of_many.";  // the judge looks at these cases by themselves
const Register dense[] = {
    shapes<LoadTraits<kDecode>>("m64n128", dense_shapes()),
    shapes<LoadTraits<kDecodeScales>>("m64n128.slots2", dense_shapes()),
    shapes<LoadTraits<kNarrow>>("m128n64", dense_shapes()),
    shapes<LoadTraits<kNarrowScales>>("m128n64.slots2", dense_shapes()),
    shapes<ProductsTraits<kNarrowScales>>("m128n64.passes", dense_shapes()),
    shapes<RotatedTraits<kRotated>>("m128n64.rotated", dense_shapes()),
    shapes<LoadTraits<kSquare>>("m128n128", dense_shapes()),
    // There is one tile per cluster; a slice of K may be empty.
    shapes<LoadTraits<kDecodeSplit>>("m64n128.split4", {{"ragged", 130, 200, 1296}, {"empty", 64, 128, 768}}),
    shapes<LoadTraits<kNarrowSplit>>("m128n64.split2", {{"ragged", 130, 200, 1296}, {"empty", 64, 64, 256}}),
};
const Register dense_many[] = {
    shapes<LoadTraits<kDecode>>("m64n128", many_tiles(), kMany),
    shapes<LoadTraits<kDecodeScales>>("m64n128.slots2", many_tiles(), kMany),
    shapes<LoadTraits<kNarrow>>("m128n64", many_tiles(), kMany),
    shapes<LoadTraits<kNarrowScales>>("m128n64.slots2", many_tiles(), kMany),
    shapes<ProductsTraits<kNarrowScales>>("m128n64.passes", many_tiles(), kMany),
    shapes<RotatedTraits<kRotated>>("m128n64.rotated", many_tiles(), kMany),
    shapes<LoadTraits<kSquare>>("m128n128", many_tiles(), kMany),
};
const Register grouped[] = {
    shapes<LoadTraits<kGroupedDecode>>("m64n128.grouped", grouped_shapes()),
    shapes<LoadTraits<kGroupedScales>>("m128n64.grouped.slots2", grouped_shapes()),
    shapes<LoadTraits<kGroupedSquare>>("m128n128.grouped", grouped_shapes()),
    shapes<LoadTraits<kGroupedScales>>(
        "m128n64.grouped", {many_groups(DUALGEMM_GROUP_OFFSETS), many_groups(DUALGEMM_GROUP_MASKED)}),
};

}  // namespace
}  // namespace conformance
