// params_test.cpp -- what a launch hands to the kernel: the six tensor maps, compared with where the header
// says that elements and scale factors lie, the other fields of Params, and the attributes of the launch. The
// simulated driver decodes the maps.

#include <limits>
#include <vector>

#include "arguments.h"
#include "host/launch/launch.h"
#include "host/launch/load.h"
#include "host/launch/tensor_map.h"
#include "rules.h"
#include "sim/engine/tensor_map.h"
#include "support/catch.hpp"

namespace params_test {

using namespace dualgemm_test;
using namespace dualgemm;

using Numbers = std::vector<uint64_t>;

static Params params_of(const dualgemm_args_t& args, const Instance& instance) {
  Params params;
  const dualgemm_status_t status = make_params(checked(with_types_of(instance, args)), instance, &params);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  return params;
}

// Calls check(instance) for every instance that writes BF16 and computes, or does not compute, groups.
template <class Check>
static void for_instances(bool grouped, const Check& check) {
  for (const Instance& instance : instances())
    if (instance.epilogue.output(CType::kBf16) && instance.plan.tile.grouped == grouped) {
      INFO(instance.name);
      check(instance);
    }
}

static bool fp8(const Instance& i) { return i.plan.a_type == CType::kFp8; }

struct Map : sim::TensorMap {
  explicit Map(const CUtensorMap& encoded) : sim::TensorMap(sim::decode_tensor_map(&encoded)) {}
  Numbers sizes() const { return {dims.begin(), dims.begin() + rank}; }
  Numbers boxes() const { return {box.begin(), box.begin() + rank}; }
  // Returns the address of the element at these coordinates, which must lie inside.
  uint64_t at(const Numbers& coordinates) const {
    REQUIRE(coordinates.size() == rank);
    uint64_t address = base;
    for (size_t i = 0; i < rank; ++i) {
      REQUIRE(coordinates[i] < dims[i]);
      address += coordinates[i] * strides[i];
    }
    return address;
  }
};

// This is one tensor as the header describes it.
struct Described {
  const void* base;
  uint64_t problems;
  int32_t rows, k;
  int64_t ld, stride;  // elements of an operand, bytes of scale factors

  uint64_t byte(uint64_t problem, int64_t offset, int64_t stride_bytes) const {
    return reinterpret_cast<uintptr_t>(base) + problem * static_cast<uint64_t>(stride_bytes) +
           static_cast<uint64_t>(offset);
  }
};

static void check_operand(const CUtensorMap& encoded, const Described& t, int32_t box_rows) {
  const Map map(encoded);
  CHECK(map.type == CU_TENSOR_MAP_DATA_TYPE_UINT8);
  CHECK(map.swizzle == sim::Swizzle::k128B);
  CHECK(!map.nan_fill);
  CHECK(map.sizes() == Numbers{static_cast<uint64_t>(t.k / 2), static_cast<uint64_t>(t.rows), t.problems});
  CHECK(map.boxes() == Numbers{128, static_cast<uint64_t>(box_rows), 1});
  for (uint64_t problem = 0; problem < t.problems; ++problem)
    for (const int32_t row : {0, 1, t.rows - 1})
      for (const int32_t element : {0, 2, t.k - 2})
        CHECK(map.at({static_cast<uint64_t>(element / 2), static_cast<uint64_t>(row), problem}) ==
              t.byte(problem, (row * t.ld + element) / 2, t.stride / 2));
}

// Of an A of 16 bits or of FP8, which comes in panels of 128 bytes.
static void check_panels(const CUtensorMap& encoded, const Described& t, int32_t box_rows,
                         int32_t element_bytes) {
  const Map map(encoded);
  CHECK(map.type == (element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8));
  CHECK(map.swizzle == sim::Swizzle::k128B);
  CHECK(!map.nan_fill);
  CHECK(map.sizes() == Numbers{static_cast<uint64_t>(t.k), static_cast<uint64_t>(t.rows), t.problems});
  CHECK(map.boxes() ==
        Numbers{static_cast<uint64_t>(128 / element_bytes), static_cast<uint64_t>(box_rows), 1});
  for (uint64_t problem = 0; problem < t.problems; ++problem)
    for (const int32_t row : {0, 1, t.rows - 1})
      for (const int32_t element : {0, 1, t.k - 1})
        CHECK(map.at({static_cast<uint64_t>(element), static_cast<uint64_t>(row), problem}) ==
              t.byte(problem, element_bytes * (row * t.ld + element), element_bytes * t.stride));
}

// An atom has four blocks of 16 elements, with MXFP4 of 32.
static void check_scales(const CUtensorMap& encoded, const Described& t, int32_t atoms, int32_t blocks,
                         int32_t block_elements = 16) {
  const Map map(encoded);
  CHECK(map.type == CU_TENSOR_MAP_DATA_TYPE_INT64);
  CHECK(map.swizzle == sim::Swizzle::kNone);
  CHECK(!map.nan_fill);
  const int32_t bands = (t.rows + 127) / 128;
  CHECK(map.sizes() == Numbers{64,
                               static_cast<uint64_t>((t.k + 4 * block_elements - 1) / (4 * block_elements)),
                               static_cast<uint64_t>(bands), t.problems});
  CHECK(map.boxes() == Numbers{64, static_cast<uint64_t>(atoms), static_cast<uint64_t>(blocks), 1});
  for (uint64_t problem = 0; problem < t.problems; ++problem)
    for (int32_t row = 0; row < t.rows; row += 128)
      for (int32_t block = 0; block < t.k / block_elements; block += 4) {
        const int64_t offset = dualgemm_sf_offset_of(
            block_elements == 32 ? DUALGEMM_DTYPE_MXFP4 : DUALGEMM_DTYPE_NVFP4, t.rows, t.k, row, block);
        CHECK(map.at({0, static_cast<uint64_t>(block / 4), static_cast<uint64_t>(row / 128), problem}) ==
              t.byte(problem, offset, t.stride));
      }
}

// Of A and its factors; or of an A of 16 bits or FP8; or of A as a pass before the launch has left it in 16
// bits, in rows of whole k-tiles.
static void check_activations(const Params& p, const dualgemm_args_t& args, const Instance& i,
                              const Described& a, const Described& sfa) {
  if (fp8(i)) return check_panels(p.a, a, i.plan.tile.m, 1);
  if (i.plan.orders_a()) return check_panels(p.a, a, i.plan.tile.m, 2);
  if (!i.plan.prepared_a()) {
    check_operand(p.a, a, i.plan.tile.m / i.plan.mma.cta_group);
    check_scales(p.sfa, sfa, 4 * i.plan.scales.k_tiles, 1);
    return;
  }
  const Map map(p.prepared_a);
  const auto k_tiles = static_cast<uint64_t>((a.k + 255) / 256), rows = static_cast<uint64_t>(a.rows);
  CHECK(map.type == CU_TENSOR_MAP_DATA_TYPE_UINT16);
  CHECK(map.swizzle == sim::Swizzle::k128B);
  CHECK(map.sizes() == Numbers{64, rows, 4 * k_tiles, a.problems});
  // A stage of the operands has four panels; where A has a ring of its own, a stage has one.
  const uint64_t panels = i.plan.a16.stages > 0 ? 1 : 4;
  CHECK(map.boxes() == Numbers{64, static_cast<uint64_t>(i.plan.tile.m), panels, 1});
  for (uint64_t problem = 0; problem < a.problems; ++problem)
    for (const uint64_t row : {uint64_t{0}, rows - 1})
      for (const uint64_t place : {uint64_t{0}, uint64_t{77}, 256 * k_tiles - 1})
        CHECK(map.at({place % 64, row, place / 64, problem}) ==
              reinterpret_cast<uintptr_t>(args.workspace) +
                  2 * ((problem * rows + row) * 256 * k_tiles + place));
}

static void check_matrix(const Matrix& matrix, const void* start, int64_t pitch, int64_t stride) {
  CHECK(matrix.start == start);
  CHECK(matrix.pitch == pitch);
  CHECK(matrix.stride == stride);
}

static void check_weights(const Params& p, const dualgemm_args_t& args, const Instance& i, uint64_t problems,
                          int64_t stride_b, int64_t stride_sfb) {
  // A k-tile has 256 elements.
  const int32_t block = fp8(i) ? 32 : 16, atoms = 64 / block * i.plan.scales.k_tiles;
  const int32_t blocks = (i.plan.tile.n + 127) / 128;
  check_operand(p.b1, {args.b1, problems, args.n, args.k, args.ldb1, stride_b}, i.plan.operands.b_box_rows);
  check_operand(p.b2, {args.b2, problems, args.n, args.k, args.ldb2, stride_b}, i.plan.operands.b_box_rows);
  check_scales(p.sfb1, {args.sfb1, problems, args.n, args.k, 0, stride_sfb}, atoms, blocks, block);
  check_scales(p.sfb2, {args.sfb2, problems, args.n, args.k, 0, stride_sfb}, atoms, blocks, block);
}

// Returns 300 rows, 264 columns, K = 608 at padded pitches: nothing is a multiple of a tile.
static dualgemm_args_t odd(dualgemm_args_t args) {
  args.m = 300;
  args.n = 264;
  args.k = 608;
  args.lda = 640;
  args.ldb1 = args.ldb2 = 672;
  args.ldc = 272;
  args.workspace = dualgemm_test::address(0x6'0000'0000);
  args.workspace_size = 0x1000'0000;
  return args;
}
// Three bands, and ten atoms along K, with MXFP4 five.
constexpr int64_t kSfaBytes = 3 * 10 * 512;
static int64_t sfb_bytes(const Instance& i) { return int64_t{3} * (fp8(i) ? 5 : 10) * 512; }

TEST_CASE("tensor maps of one problem", "[host][params]") {
  const dualgemm_args_t args = odd(valid_args());
  for_instances(false, [&](const Instance& i) {
    const Params p = params_of(args, i);
    check_activations(p, args, i, {args.a, 1, 300, 608, 640, 0}, {args.sfa, 1, 300, 608, 0, 0});
    check_weights(p, args, i, 1, 0, 0);
  });
}

TEST_CASE("tensor maps of a batch and of masked groups", "[host][params][batch][grouped]") {
  const auto check = [](const Instance& i, const dualgemm_args_t& args, int64_t a, int64_t b, int64_t sfa,
                        int64_t sfb) {
    const Params p = params_of(args, i);
    check_activations(p, args, i, {args.a, 3, 300, 608, 640, a}, {args.sfa, 3, 300, 608, 0, sfa});
    check_weights(p, args, i, 3, b, sfb);
  };
  for (const bool grouped : {false, true})
    for_instances(grouped, [&](const Instance& i) {
      dualgemm_args_t args = odd(grouped ? masked_args() : batch_args());
      check(i, args, 300 * 640, 264 * 672, kSfaBytes, sfb_bytes(i));
      args.batch_stride_a = 300 * 640 + 32;
      args.batch_stride_b1 = args.batch_stride_b2 = 264 * 672 + 96;
      args.batch_stride_sfa = kSfaBytes + 16;
      args.batch_stride_sfb1 = args.batch_stride_sfb2 = sfb_bytes(i) + 48;
      check(i, args, 300 * 640 + 32, 264 * 672 + 96, kSfaBytes + 16, sfb_bytes(i) + 48);
    });
}

TEST_CASE("tensor maps of groups whose rows follow each other", "[host][params][grouped]") {
  for_instances(true, [](const Instance& i) {
    dualgemm_args_t args = odd(offsets_args());
    Params p = params_of(args, i);
    check_weights(p, args, i, 3, 264 * 672, sfb_bytes(i));
    // Three groups of 300 rows together can have at most this many bands: (1, 129, 170) rows have 1 + 2 + 2.
    check_activations(p, args, i, {args.a, 1, 300, 608, 640, 0}, {args.sfa, 1, 5 * 128, 608, 0, 0});
    // Two rows are in two groups at most.
    args.m = 2;
    args.groups = 1024;
    p = params_of(args, i);
    check_activations(p, args, i, {args.a, 1, 2, 608, 640, 0}, {args.sfa, 1, 2 * 128, 608, 0, 0});
  });
}

TEST_CASE("the other fields of Params", "[host][params]") {
  dualgemm_args_t args = odd(batch_args());
  args.alpha1 = 0.5f;
  args.alpha2 = -2;
  args.alpha1_dev = dualgemm_test::address<const float>(0x3'0000'0000);
  args.alpha2_dev = dualgemm_test::address<const float>(0x3'1000'0000);
  args.alpha_stride = 2;
  for_instances(false, [&](const Instance& i) {
    const Params p = params_of(args, i);
    check_matrix(p.c, args.c, 272, 300 * 272);
    CHECK(p.alpha1 == 0.5f);
    CHECK(p.alpha2 == -2);
    CHECK(p.alpha1_dev == args.alpha1_dev);
    CHECK(p.alpha2_dev == args.alpha2_dev);
    CHECK(p.alpha_stride == 2);
    CHECK(p.m == 300);
    CHECK(p.n == 264);
    CHECK(p.k == 608);
    CHECK((p.m_tiles - 1) * i.plan.tile.m < 300);
    CHECK(p.m_tiles * i.plan.tile.m >= 300);
    CHECK((p.n_tiles - 1) * i.plan.tile.n < 264);
    CHECK(p.n_tiles * i.plan.tile.n >= 264);
    CHECK((p.k_tiles - 1) * i.plan.tile.k < 608);
    CHECK(p.k_tiles * i.plan.tile.k >= 608);
    CHECK(p.problems == 3);
    CHECK(p.c_type == DUALGEMM_DTYPE_BF16);
    CHECK(p.group_rows == nullptr);
    CHECK(p.static_weights == 1);  // without PDL
    CHECK(p.b1_row_exponent == nullptr);
    CHECK(p.b2_row_exponent == nullptr);
  });
  args.batch_stride_c = 300 * 272 + 8;
  for_instances(false, [&](const Instance& i) { CHECK(params_of(args, i).c.stride == 300 * 272 + 8); });

  for (const bool offsets : {false, true})
    for_instances(true, [&](const Instance& i) {
      const dualgemm_args_t grouped = offsets ? offsets_args() : masked_args();
      const Params p = params_of(grouped, i);
      CHECK(p.problems == 3);
      CHECK(p.group_rows == grouped.group_rows);
      CHECK(p.group_offsets == (offsets ? 1 : 0));
      CHECK(p.c.stride == (offsets ? 0 : 256 * 128));
    });
}

TEST_CASE("the exponents of the rows of MXFP4 weights", "[host][params][mxfp4]") {
  const auto* const first = dualgemm_test::address<const int16_t>(0x3'0000'0002);
  const auto* const second = dualgemm_test::address<const int16_t>(0x3'0000'4004);
  for (const bool grouped : {false, true})
    for_instances(grouped, [&](const Instance& i) {
      if (!fp8(i)) return;
      for (const int given : {1, 2, 3})
        for (const int64_t stride : {0, 271}) {
          dualgemm_args_t args = odd(grouped ? masked_args() : batch_args());
          args.b1_row_exponent = given & 1 ? first : nullptr;
          args.b2_row_exponent = given & 2 ? second : nullptr;
          args.batch_stride_b_row_exponent = stride;
          const Params p = params_of(args, i);
          INFO("given " << given << ", stride " << stride);
          CHECK(p.b1_row_exponent == args.b1_row_exponent);
          CHECK(p.b2_row_exponent == args.b2_row_exponent);
          CHECK(p.b_row_exponent_stride == (stride == 0 ? 264 : stride));
        }
    });
}

TEST_CASE("what the general epilogue takes by default", "[host][params]") {
  for_instances(false, [&](const Instance& i) {
    const GeneralParams p = params_of(valid_args(), i).general;
    CHECK(p.row_scale == nullptr);
    CHECK(p.c_row_scale == nullptr);
    CHECK(p.bias1 == nullptr);
    CHECK(p.bias2 == nullptr);
    CHECK(p.d1.start == nullptr);
    CHECK(p.d2.start == nullptr);
    CHECK(p.amax == nullptr);
    CHECK(p.encode == 1);
    CHECK(p.encode_dev == nullptr);
    CHECK(p.sfc == nullptr);
    CHECK(p.swiglu_alpha == 1);
    CHECK(p.swiglu_beta == 0);
    CHECK(p.swiglu_limit == std::numeric_limits<float>::infinity());
    CHECK(p.situ_gate == 4);
    CHECK(p.situ_up == 25);
    CHECK(p.activation == DUALGEMM_ACTIVATION_SWIGLU);
    CHECK(p.exact == 0);
  });
}

TEST_CASE("what the general epilogue takes when a launch asks for everything", "[host][params][grouped]") {
  using dualgemm_test::address;
  // The rows of A and of C, whoever shares them; the columns of B1 and B2, and the numbers of a problem.
  const auto check = [](const Instance& i, const dualgemm_args_t& args, bool shared) {
    const auto of_rows = [shared](int64_t stride) { return shared ? 0 : stride; };
    const GeneralParams p = params_of(args, i).general;
    CHECK(p.row_scale == args.a_row_scale);
    CHECK(p.row_scale_stride == of_rows(300));
    CHECK(p.c_row_scale == args.c_row_scale);
    CHECK(p.c_row_scale_stride == of_rows(303));
    CHECK(p.bias1 == args.bias1);
    CHECK(p.bias2 == args.bias2);
    CHECK(p.bias_stride == 290);
    CHECK(p.bias_type == static_cast<int32_t>(CType::kFp32));
    check_matrix(p.d1, args.d1, 296, of_rows(300 * 296));
    check_matrix(p.d2, args.d2, 304, of_rows(300 * 304 + 8));
    CHECK(p.d_type == static_cast<int32_t>(CType::kFp16));
    CHECK(p.amax == args.amax_out);
    CHECK(p.encode == 448);
    CHECK(p.encode_dev == args.c_global_scale_dev);
    CHECK(p.encode_stride == 5);
    CHECK(p.sfc == args.sfc);
    CHECK(p.sfc_stride == of_rows(3 * 5 * 512));  // 3 bands, 5 atoms along N
    CHECK(p.situ_gate == 3);
    CHECK(p.situ_up == 8);
    CHECK(p.situ_gate_reciprocal == 1.0f / 3);
    CHECK(p.situ_up_reciprocal == 0.125f);
    CHECK(p.activation == DUALGEMM_ACTIVATION_SITU);
    CHECK(p.exact == 1);
  };
  for (dualgemm_args_t args : {batch_args(), masked_args(), offsets_args()}) {
    args = with_output(DUALGEMM_DTYPE_NVFP4, odd(args));
    REQUIRE(args.n == 288);
    args.ldc = 0;
    args.flags = DUALGEMM_FLAG_EXACT_ACT;
    args.activation = DUALGEMM_ACTIVATION_SITU;
    args.situ_gate = 3;
    args.situ_up = 8;
    args.a_row_scale = address<const float>(0x4'0000'0000);
    args.c_row_scale = address<const float>(0x4'1000'0000);
    const bool shared = args.group_mode == DUALGEMM_GROUP_OFFSETS;  // these have no strides between groups
    args.batch_stride_c_row_scale = shared ? 0 : 303;
    args.bias1 = address(0x4'2000'0000);
    args.bias2 = address(0x4'3000'0000);
    args.bias_stride = 290;
    args.bias_dtype = DUALGEMM_DTYPE_FP32;
    args.d1 = address(0x5'0000'0000);
    args.d2 = address(0x5'4000'0000);
    args.ldd1 = 296;
    args.ldd2 = 304;
    args.batch_stride_d2 = shared ? 0 : 300 * 304 + 8;
    args.d_dtype = DUALGEMM_DTYPE_FP16;
    args.amax_out = address<float>(0x4'4000'0000);
    args.c_global_scale = 448;
    args.c_global_scale_dev = address<const float>(0x4'5000'0000);
    args.c_global_scale_stride = 5;
    for (const Instance& i : instances())
      if (i.epilogue.output(CType::kNvfp4) &&
          i.plan.tile.grouped == (args.group_mode != DUALGEMM_GROUP_NONE)) {
        INFO(i.name << ", group_mode " << args.group_mode);
        check(i, args, shared);
        // One for all problems, and a stride of the factors that the caller chooses.
        dualgemm_args_t other = args;
        other.bias_stride = other.c_global_scale_stride = 0;
        other.batch_stride_sfc = shared ? 0 : 8192;
        CHECK(params_of(other, i).c_type == DUALGEMM_DTYPE_NVFP4);
        const GeneralParams p = params_of(other, i).general;
        CHECK(p.bias_stride == 0);
        CHECK(p.encode_stride == 0);
        CHECK(p.sfc_stride == other.batch_stride_sfc);
        // The other one of a pair keeps the stride of both.
        for (const bool first : {false, true}) {
          dualgemm_args_t one = args;
          (first ? one.bias2 : one.bias1) = nullptr;
          one.alpha_stride = 3;
          (first ? one.alpha1_dev : one.alpha2_dev) = address<const float>(0x4'6000'0000);
          CHECK(params_of(one, i).general.bias_stride == args.bias_stride);
          CHECK(params_of(one, i).alpha_stride == 3);
        }
      }
  }
}

TEST_CASE("the parameters of SwiGLU reach the general epilogue", "[host][params]") {
  dualgemm_args_t args = valid_args();
  args.swiglu_alpha = 1.702f;
  args.swiglu_beta = 1;
  args.swiglu_limit = 7;
  for (const Instance& i : instances())
    if (i.epilogue.general && !i.plan.tile.grouped) {
      const GeneralParams p = params_of(args, i).general;
      CHECK(p.swiglu_alpha == 1.702f);
      CHECK(p.swiglu_beta == 1);
      CHECK(p.swiglu_limit == 7);
    }
}

TEST_CASE("weights wait for the preceding grid under PDL alone", "[host][params]") {
  for (const uint32_t flags : {0u, 1u, 2u, 3u}) {
    dualgemm_args_t args = valid_args();
    args.flags = flags | DUALGEMM_FLAG_NO_FALLBACK;
    for_instances(false, [&](const Instance& i) {
      CHECK(params_of(args, i).static_weights == (flags == DUALGEMM_FLAG_PDL ? 0 : 1));
    });
  }
}

constexpr Machine kMachine = {.sms = 132, .clusters_of_2 = 66, .clusters_of_4 = 30};

// By the CUDA C++ Programming Guide an SM of 9.0 and of 10.x has 228 KiB of shared memory, of which each CTA
// takes 1 KiB besides its own.
TEST_CASE("a grid that has an SM for each CTA is not packed two to an SM", "[host][params]") {
  int shared = 0;  // instances of which two CTAs fit
  for_instances(false, [&](const Instance& i) {
    const auto bytes_of = [&](int64_t ctas) {
      LaunchConfig launch;
      make_launch_config(checked(valid_args()), i, kMachine, ctas, nullptr, &launch);
      return static_cast<int64_t>(launch.config.dynamicSmemBytes);
    };
    const auto fit = [](int64_t bytes) { return 228 * 1024 / (bytes + 1024); };
    const int64_t cluster = i.plan.cluster_size(), sms = cluster == 4 ? 120 : 132 / cluster * cluster;
    CHECK(fit(i.smem_bytes) == i.plan.ctas_per_sm);
    shared += i.plan.ctas_per_sm == 2 ? 1 : 0;
    for (const int64_t few : {cluster, sms}) {
      CHECK(fit(bytes_of(few)) == 1);
      CHECK(bytes_of(few) <= most_smem_bytes(i));
    }
    CHECK(bytes_of(sms + cluster) == i.smem_bytes);
    CHECK(most_smem_bytes(i) <= 227 * 1024);
  });
  CHECK(shared > 0);
}

TEST_CASE("attributes of a launch", "[host][params]") {
  auto* const stream = dualgemm_test::address<CUstream_st>(0x1234);
  for (const int choice : {0, 1, 2, 3}) {
    const bool pdl = (choice & 1) != 0, limited = (choice & 2) != 0;
    for_instances(false, [&](const Instance& i) {
      dualgemm_args_t args = valid_args();
      args.flags = pdl ? DUALGEMM_FLAG_PDL : 0;
      LaunchConfig launch;
      make_launch_config(checked(args), i, {.sms = 24, .limited = limited}, 24, stream, &launch);
      CHECK(launch.config.gridDim.x == 24);
      CHECK(launch.config.gridDim.y * launch.config.gridDim.z == 1);
      CHECK(launch.config.blockDim.x == static_cast<unsigned>(i.plan.threads));
      CHECK(launch.config.stream == stream);
      unsigned cluster = 1;
      bool early = false;
      for (unsigned a = 0; a < launch.config.numAttrs; ++a) {
        const cudaLaunchAttribute& attribute = launch.config.attrs[a];
        if (attribute.id == cudaLaunchAttributeClusterDimension) {
          cluster = attribute.val.clusterDim.x;
          CHECK(attribute.val.clusterDim.y * attribute.val.clusterDim.z == 1);
        } else {
          REQUIRE(attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization);
          early = attribute.val.programmaticStreamSerializationAllowed != 0;
        }
      }
      CHECK(cluster == static_cast<unsigned>(i.plan.mma.cta_group * i.plan.tile.split_k));
      // A kernel may start beside its own pass over A, but not where the CTAs of both would exceed max_sms.
      CHECK(early == (i.plan.prepared_a() ? !limited : pdl));
    });
  }
}

}  // namespace params_test
