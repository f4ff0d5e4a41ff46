// baseline_test.cpp -- the benchmark's baseline on a stand-in for cuBLASLt, written from its documentation:
// matrices are column-major, op(A) is A or its transpose, scale factors lie in atoms of 128x4. Every way
// computes what the library computes.
#include "bench/baseline.h"

#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "bench/budget.h"
#include "bench/chain_baseline.h"
#include "bench/inputs.h"
#include "bench/measure.h"
#include "ref/formats.h"
#include "support/catch.hpp"

namespace {

using namespace bench;
using dualgemm_test::contains;

struct Matrix {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t pitch = 0, stride = 0;
  int32_t batch = 1;
};
struct Desc {
  std::map<int, std::vector<uint8_t>> set;
  template <class T>
  T get(int which, T otherwise = {}) const {
    const auto found = set.find(which);
    if (found == set.end()) return otherwise;
    REQUIRE(found->second.size() == sizeof(T));
    std::memcpy(&otherwise, found->second.data(), sizeof(T));
    return otherwise;
  }
};

Matrix& matrix(lt::Layout layout) { return *reinterpret_cast<Matrix*>(layout); }
Desc& desc(lt::MatmulDesc x) { return *reinterpret_cast<Desc*>(x); }
std::vector<uint8_t> bytes(const void* value, size_t size) {
  const auto* first = static_cast<const uint8_t*>(value);
  return {first, first + size};
}

// Returns the elements of problem `p`, element (row, column) at column * rows + row, with their factors.
std::vector<float> elements(const Matrix& x, const void* device, const void* scales, int64_t p) {
  const auto count = static_cast<size_t>(x.pitch * static_cast<int64_t>(x.columns));
  const bool four_bits = x.type == lt::kReal4FE2M1, fp8 = x.type == lt::kReal8FE4M3;
  const size_t bits = four_bits ? 4 : fp8 ? 8 : 16;
  std::vector<uint8_t> data(count * bits / 8), factors;
  const int64_t at = p * x.stride * static_cast<int64_t>(bits) / 8;
  check_cuda(
      cudaMemcpy(data.data(), static_cast<const uint8_t*>(device) + at, data.size(), cudaMemcpyDeviceToHost),
      "operand");
  const auto k = static_cast<int64_t>(x.rows);
  if (four_bits) {
    factors.resize(ref::sf_bytes(static_cast<int64_t>(x.columns), k));
    check_cuda(cudaMemcpy(factors.data(), scales, factors.size(), cudaMemcpyDeviceToHost), "factors");
  }
  std::vector<float> out;
  for (int64_t column = 0; column < static_cast<int64_t>(x.columns); ++column)
    for (int64_t row = 0; row < k; ++row) {
      const int64_t i = column * x.pitch + row;
      if (four_bits) {
        out.push_back(ref::e2m1_decode(ref::nibble(data.data(), i)) *
                      ref::ue4m3_decode(factors[ref::sf_offset(k, column, row / ref::kBlock)]));
      } else if (fp8) {
        out.push_back(static_cast<float>(ref::e4m3_decode(data[i])));
      } else {
        const ref::Format format = x.type == lt::kReal16F ? ref::Format::kFp16 : ref::Format::kBf16;
        out.push_back(
            static_cast<float>(ref::decode(format, uint32_t{data[2 * i]} | uint32_t{data[2 * i + 1]} << 8)));
      }
    }
  return out;
}

// These round to nearest, ties to even; x is finite, and no larger than fp16 holds.
uint16_t bf16_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
uint16_t fp16_of(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }

// Most of the time of the stand-in goes by here.
[[gnu::optimize("O2")]] float dot(const float* x, const float* y, uint64_t count) {
  float sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

int matmul(lt::Handle, lt::MatmulDesc of, const void* alpha, const void* a, lt::Layout a_layout,
           const void* b, lt::Layout b_layout, const void* beta, const void*, lt::Layout, void* d,
           lt::Layout d_layout, const lt::Algorithm*, void*, size_t, cudaStream_t stream) {
  const Matrix &A = matrix(a_layout), &B = matrix(b_layout), &D = matrix(d_layout);
  REQUIRE(desc(of).get<int32_t>(lt::kTransA) == lt::kOpTransposed);  // the only op that this knows
  REQUIRE((A.rows == B.rows && D.rows == A.columns && D.columns == B.columns));
  REQUIRE(*static_cast<const float*>(beta) == 0);
  REQUIRE((A.type == lt::kReal4FE2M1 || A.type == lt::kReal8FE4M3 || D.type == A.type));
  REQUIRE(desc(of).set.count(lt::kFastAccumulation) == (A.type == lt::kReal8FE4M3));
  if (A.type == lt::kReal4FE2M1)
    for (const int mode : {lt::kAScaleMode, lt::kBScaleMode})
      REQUIRE(desc(of).get<int32_t>(mode) == lt::kScaleVec16Ue4m3);
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  for (int64_t p = 0; p < D.batch; ++p) {
    const auto x = elements(A, a, desc(of).get<const void*>(lt::kAScalePointer), p);
    const auto y = elements(B, b, desc(of).get<const void*>(lt::kBScalePointer), p);
    for (uint64_t column = 0; column < D.columns; ++column) {
      std::vector<uint16_t> out;
      for (uint64_t row = 0; row < D.rows; ++row) {
        const float sum =
            dot(&x[row * A.rows], &y[column * A.rows], A.rows) * *static_cast<const float*>(alpha);
        out.push_back(D.type == lt::kReal16F ? fp16_of(sum) : bf16_of(sum));
      }
      auto* const to = static_cast<uint16_t*>(d) + p * D.stride + static_cast<int64_t>(column) * D.pitch;
      check_cuda(cudaMemcpy(to, out.data(), out.size() * 2, cudaMemcpyHostToDevice), "D");
    }
  }
  return lt::kStatusSuccess;
}

cudaStream_t grouped_stream = nullptr;
int grouped_in_graph = 0;  // a status

// Group after group is one product of the stand-in: its first matrix transposed, the second as it is.
int grouped(lt::BlasHandle, const int* transposed, const int* as_it_is, const int* columns, const int* rows,
            const int* k, const void* alpha, const void* const* a, int a_type, const int* a_pitch,
            const void* const* b, int b_type, const int* b_pitch, const void* beta, void* const* d,
            int d_type, const int* d_pitch, int groups, const int* sizes, int compute) {
  REQUIRE((compute == lt::kCompute32F && a_type == b_type && b_type == d_type));
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(grouped_stream, &capture), "cudaStreamIsCapturing");
  if (capture != cudaStreamCaptureStatusNone) return grouped_in_graph;  // this puts nothing into a graph
  const auto addresses = [groups](const void* list) {
    std::vector<uint8_t*> out(static_cast<size_t>(groups));
    check_cuda(cudaMemcpy(out.data(), list, out.size() * sizeof out[0], cudaMemcpyDeviceToHost), "addresses");
    return out;
  };
  const auto as = addresses(a), bs = addresses(b), ds = addresses(d);
  for (int group = 0; group < groups; ++group) {
    const auto g = static_cast<size_t>(group);
    REQUIRE((transposed[g] == lt::kOpTransposed && as_it_is[g] == lt::kOpAsItIs && sizes[g] == 1));
    const auto side = [&](int type, int height, int width, int pitch) {
      return Matrix{type, static_cast<uint64_t>(height), static_cast<uint64_t>(width), pitch};
    };
    Matrix A = side(a_type, k[g], columns[g], a_pitch[g]), B = side(b_type, k[g], rows[g], b_pitch[g]),
           D = side(d_type, columns[g], rows[g], d_pitch[g]);
    Desc how{{{lt::kTransA, bytes(&transposed[g], sizeof transposed[g])}}};
    const auto layout = [](Matrix& x) { return reinterpret_cast<lt::Layout>(&x); };
    matmul(nullptr, reinterpret_cast<lt::MatmulDesc>(&how), static_cast<const float*>(alpha) + group, as[g],
           layout(A), bs[g], layout(B), static_cast<const float*>(beta) + group, nullptr, nullptr, ds[g],
           layout(D), nullptr, nullptr, 0, grouped_stream);
  }
  return lt::kStatusSuccess;
}

int alive = 0;  // descriptors and layouts

lt::Library stand_in() {
  lt::Library x;
  x.version = [] { return size_t{130000}; };
  x.desc_create = [](lt::MatmulDesc* out, int compute, int scale) {
    REQUIRE((compute == lt::kCompute32F && scale == lt::kReal32F));
    *out = reinterpret_cast<lt::MatmulDesc>(new Desc);
    return ++alive, 0;
  };
  x.desc_destroy = [](lt::MatmulDesc which) { return delete &desc(which), --alive, 0; };
  x.desc_set = [](lt::MatmulDesc which, lt::DescAttribute attribute, const void* value, size_t size) {
    desc(which).set[attribute] = bytes(value, size);
    return 0;
  };
  x.layout_create = [](lt::Layout* out, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
    *out = reinterpret_cast<lt::Layout>(new Matrix{type, rows, columns, pitch});
    return ++alive, 0;
  };
  x.layout_destroy = [](lt::Layout which) { return delete &matrix(which), --alive, 0; };
  x.layout_set = [](lt::Layout which, lt::LayoutAttribute attribute, const void* value, size_t size) {
    REQUIRE(size == (attribute == lt::kBatchCount ? 4 : 8));
    if (attribute == lt::kBatchCount) std::memcpy(&matrix(which).batch, value, 4);
    if (attribute == lt::kStridedBatchOffset) std::memcpy(&matrix(which).stride, value, 8);
    return 0;
  };
  x.preference_create = [](lt::Preference* out) {
    *out = reinterpret_cast<lt::Preference>(new Desc);
    return ++alive, 0;
  };
  x.preference_destroy = [](lt::Preference which) {
    return delete reinterpret_cast<Desc*>(which), --alive, 0;
  };
  x.preference_set = [](lt::Preference, lt::PreferenceAttribute, const void*, size_t) { return 0; };
  x.heuristic = [](lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout, lt::Layout, lt::Preference,
                   int, lt::Heuristic* out, int* count) {
    *out = {};
    *count = 1;
    return 0;
  };
  x.matmul = matmul;
  x.blas = reinterpret_cast<lt::BlasHandle>(&alive);
  x.set_stream = [](lt::BlasHandle, cudaStream_t stream) { return grouped_stream = stream, 0; };
  x.set_workspace = [](lt::BlasHandle, void* workspace, size_t) { return workspace == nullptr ? 1 : 0; };
  x.grouped = grouped;
  return x;
}

}  // namespace

TEST_CASE("baseline: every way of it computes what the library computes", "[bench]") {
  const lt::Library library = stand_in();
  // The types of C come in turn, so that each meets a dense shape, one of whole tiles, and groups.
  int turn = 0;
  for (const char* shape : {"130x72x320", "3*40x72x320", "20x128x320", "1x256x64", "offsets:5,0,17x72x320",
                            "masked:0,5,17x72x320"}) {
    const dualgemm_dtype_t dtype = turn++ % 2 == 0 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_BF16;
    Workload workload(parse_shape(shape), dtype, 2, 7);
    std::string unused;
    const auto ways = baseline_ways(&library, workload.shape(), dtype, described_b200(), &unused);
    CHECK(ways.size() == (workload.shape().grouped() ? 3 : workload.shape().n % 128 == 0 ? 6 : 4));
    SharedOperands operands(workload);
    for (const Baseline& baseline : prepare_baselines(library, &workload, &operands, ways, 60)) {
      INFO(shape << ", " << baseline.way.text());
      CHECK(baseline.error.empty());
      CHECK(baseline.launch != nullptr);
    }
  }
  CHECK(alive == 0);
}

TEST_CASE("baseline: of one product a GEMM writes C, or a kernel gives its products an activation or alphas",
          "[bench][one]") {
  const lt::Library library = stand_in();
  int turn = 0;
  for (const char* text :
       {"130x72x320", "3*40x72x320", "20x128x320", "offsets:5,0,17x72x320", "masked:0,5,17x72x320"})
    for (const dualgemm_linear_activation_t linear :
         {DUALGEMM_LINEAR_ACTIVATION_NONE, DUALGEMM_LINEAR_ACTIVATION_GELU_ERF,
          DUALGEMM_LINEAR_ACTIVATION_RELU2}) {
      const Epilogue epilogue(turn++ % 2 == 0 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_BF16,
                              DUALGEMM_ACTIVATION_SWIGLU, linear);
      Shape shape = parse_shape(text);
      shape.products = 1;
      Workload workload(shape, epilogue, 2, 7);
      std::string unused;
      const auto ways = baseline_ways(&library, shape, epilogue, described_b200(), &unused);
      const bool plain = linear == DUALGEMM_LINEAR_ACTIVATION_NONE && shape.batch == 1;
      const size_t packed = shape.n % 128 == 0 ? 1 : 0;
      CHECK(ways.size() == (shape.grouped() ? 3 : (plain ? 1 : 2) + packed));
      SharedOperands operands(workload);
      for (const Baseline& baseline : prepare_baselines(library, &workload, &operands, ways, 60)) {
        INFO(text << ", " << baseline.way.text() << ", activation " << linear << ": " << baseline.error);
        CHECK(baseline.way.gemms == 1);
        CHECK(baseline.way.into_c == plain);
        CHECK(baseline.launch != nullptr);
      }
    }
  CHECK(alive == 0);
}

TEST_CASE("baseline: an A of 16 bits is multiplied as it is, in its own type", "[.h100][bench][a16]") {
  const lt::Library library = stand_in();
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check(dualgemm_current_device(&device), "dualgemm_current_device");
  for (const dualgemm_dtype_t a_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16})
    for (const char* text : {"20x72x320", "3*10x72x320"}) {
      Shape shape = parse_shape(text);
      shape.a_dtype = a_dtype;
      Workload workload(shape, DUALGEMM_DTYPE_FP16, 2, 7);
      std::string unused;
      const auto ways = baseline_ways(&library, shape, DUALGEMM_DTYPE_FP16, device, &unused);
      CHECK(ways.size() == 2);
      SharedOperands operands(workload);
      for (const Baseline& baseline : prepare_baselines(library, &workload, &operands, ways, 60)) {
        INFO(text << ", " << baseline.way.text() << ": " << baseline.error);
        CHECK(dtype_of(baseline.way.format) == a_dtype);
        CHECK(baseline.launch != nullptr);
        for (const int set : {0, 1}) {
          const dualgemm_args_t& args = workload.input_set(set).args();
          CHECK(operands.in(baseline.way.format)->of(args.c).a == args.a);
        }
      }
    }
  CHECK(alive == 0);
}

TEST_CASE("baseline: an A in FP8 is multiplied as it is, and in 16 bits", "[.h100][bench][fp8]") {
  lt::Library library = stand_in();
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check(dualgemm_current_device(&device), "dualgemm_current_device");
  const auto baselines = [&](const std::string& text, int32_t products, const auto& look) {
    Shape shape = parse_shape(text);
    shape.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
    shape.products = products;
    Workload workload(shape, DUALGEMM_DTYPE_FP16, 2, 7);
    std::string unused;
    const auto ways = baseline_ways(&library, shape, DUALGEMM_DTYPE_FP16, device, &unused);
    SharedOperands operands(workload);
    int of_fp8 = 0;
    for (const Baseline& baseline : prepare_baselines(library, &workload, &operands, ways, 60)) {
      INFO(text << ", products " << products << ", " << baseline.way.text() << ": " << baseline.error);
      look(baseline);
      if (baseline.way.format != OperandFormat::kFp8) continue;
      ++of_fp8;
      const dualgemm_args_t& args = workload.input_set(1).args();
      CHECK(operands.in(baseline.way.format)->of(args.c).a == args.a);
    }
    CHECK(of_fp8 == (shape.grouped() ? 4 : 2 * products));
  };
  const auto right = [](const Baseline& baseline) { CHECK(baseline.launch != nullptr); };
  baselines("20x72x320", 1, right);
  baselines("20x72x320", 2, right);
  baselines("3*5x72x320", 2, right);
  baselines("offsets:5,0,17x72x320", 1, right);
  baselines("masked:0,5,17x72x320", 2, right);
  library.matmul = [](auto handle, auto of, const void* alpha, auto... others) {
    const float other = 1.25f * *static_cast<const float*>(alpha);
    return matmul(handle, of, &other, others...);
  };
  baselines("20x72x320", 1, [](const Baseline& x) { CHECK_THAT(x.error, contains("wrong: input set 0: ")); });
  CHECK(alive == 0);
}

TEST_CASE("baseline: products that are wrong are noticed", "[bench]") {
  lt::Library library = stand_in();
  library.matmul = [](lt::Handle handle, lt::MatmulDesc of, const void* alpha, const void* a,
                      lt::Layout a_layout, const void* b, lt::Layout b_layout, const void* beta,
                      const void* c, lt::Layout c_layout, void* d, lt::Layout d_layout,
                      const lt::Algorithm* algorithm, void* workspace, size_t bytes, cudaStream_t stream) {
    Matrix shorter_a = matrix(a_layout), shorter_b = matrix(b_layout);  // without the last 16 of K
    shorter_a.rows -= 16, shorter_b.rows -= 16;
    return matmul(handle, of, alpha, a, reinterpret_cast<lt::Layout>(&shorter_a), b,
                  reinterpret_cast<lt::Layout>(&shorter_b), beta, c, c_layout, d, d_layout, algorithm,
                  workspace, bytes, stream);
  };
  Workload workload(parse_shape("20x72x64"), DUALGEMM_DTYPE_FP16, 1, 7);
  SharedOperands operands(workload);
  for (const OperandFormat format : {OperandFormat::kFp16, OperandFormat::kBf16})
    CHECK_THAT(prepare_baselines(library, &workload, &operands, {{format, 1}}, 60).at(0).error,
               contains("wrong: input set 0: problem 0: C[0][0]"));
  Shape one = parse_shape("20x72x64");
  one.products = 1;
  Workload of_one(one, DUALGEMM_DTYPE_FP16, 1, 7);
  SharedOperands operands_of_one(of_one);
  const BaselineWay way{OperandFormat::kFp16, 1, 1, false, true};
  CHECK_THAT(prepare_baselines(library, &of_one, &operands_of_one, {way}, 60).at(0).error,
             contains("wrong: input set 0: problem 0: C[0][0]"));
}

TEST_CASE("baseline: a grouped GEMM that cannot lie in a graph is said to be so, and harms nothing else",
          "[bench]") {
  const lt::Library library = stand_in();
  Workload workload(parse_shape("offsets:5,9x64x64"), DUALGEMM_DTYPE_FP16, 2, 7);
  SharedOperands operands(workload);
  const BaselineWay way{OperandFormat::kFp16, 1, 1, true};
  const auto error = [&] { return prepare_baselines(library, &workload, &operands, {way}, 4).at(0).error; };
  grouped_in_graph = lt::kStatusNotSupported;
  CHECK_THAT(error(), contains("cublasGemmGroupedBatchedEx: status 15 (not supported)"));
  grouped_in_graph = 0;
  CHECK(error().empty());
}

TEST_CASE("baseline: a library without an algorithm for a product, or that fails, is said to be so",
          "[bench]") {
  lt::Library library = stand_in();
  Workload workload(parse_shape("16x64x64"), DUALGEMM_DTYPE_FP16, 1, 7);
  const BaselineWay way{OperandFormat::kBf16, 1};
  const auto error_of = [&] {
    SharedOperands operands(workload);
    const std::vector<Baseline> baselines = prepare_baselines(library, &workload, &operands, {way}, 4);
    CHECK(baselines.at(0).launch == nullptr);
    return baselines.at(0).error;
  };
  library.heuristic = [](lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout, lt::Layout,
                         lt::Preference, int, lt::Heuristic*, int* count) { return *count = 0, 0; };
  CHECK_THAT(error_of(), contains("no algorithm for this product"));
  library.heuristic = [](lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout, lt::Layout,
                         lt::Preference, int, lt::Heuristic*, int*) { return lt::kStatusNotSupported; };
  CHECK_THAT(error_of(), contains("cublasLtMatmulAlgoGetHeuristic: status 15 (not supported)"));
  CHECK(alive == 0);
}

TEST_CASE(
    "baseline: a chain of two GEMMs and an activation computes what the library's launches compute, and what "
    "is wrong with it is noticed",
    "[bench][chain]") {
  lt::Library library = stand_in();
  for (const char* text : {"20x64x96", "1x96x64"}) {
    INFO(text);
    Chain chain(parse_dense_layer(text), 3, 7);
    const ChainBaseline baseline(library, &chain, 60);
    baseline.enqueue()(chain.stream());  // sets beyond those that are verified, too
    check_cuda(cudaStreamSynchronize(chain.stream()), "the chain");
    CHECK(chain.verify(16) == "");  // the library's launches are what they were
  }
  CHECK(alive == 0);
  Chain chain(parse_dense_layer("20x64x96"), 1, 7);
  // Down is multiplied by another alpha; then gate and up are.
  library.matmul = [](auto handle, auto of, const void* alpha, auto... others) {
    const float doubled = 2 * *static_cast<const float*>(alpha);
    return matmul(handle, of, *static_cast<const float*>(alpha) == 1 ? alpha : &doubled, others...);
  };
  CHECK_THROWS_WITH(ChainBaseline(library, &chain, 60), contains("wrong: input set 0, down: "));
  library.matmul = [](auto handle, auto of, const void* alpha, auto... others) {
    const float doubled = 2 * *static_cast<const float*>(alpha);
    return matmul(handle, of, *static_cast<const float*>(alpha) == 1 ? &doubled : alpha, others...);
  };
  CHECK_THROWS_WITH(ChainBaseline(library, &chain, 60), contains("wrong: input set 0, gate and up: "));
}
