// one_product_test.cpp -- instances of one product, C = f(alpha1 * s[m] * A * B1^T + bias1[n]) * w[m] +
// c_add, launched as the library launches those of two: every one of them against the reference, judged.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "host/common/device.h"
#include "host/launch/launch.h"
#include "host/launch/load.h"
#include "host/launch/prepare_a.h"
#include "host/launch/validate.h"
#include "host/model/tiling.h"
#include "kernel/extras.h"
#include "kernel/judged.h"

using namespace dualgemm_test;
using dualgemm::Instance;
using dualgemm::LinearActivation;

namespace {

enum class Residual { kNone, kApart, kInC };

// What a launch asks for beside what the options of two products say.
struct Asked {
  LinearActivation activation = LinearActivation::kNone;
  bool exact = false;
  Residual residual = Residual::kNone;
};

std::vector<const Instance*> of_one_product(bool general, bool grouped) {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  std::vector<const Instance*> out;
  for (const Instance& instance : dualgemm::instances())
    if (instance.plan.mma.accumulators == 1 &&
        dualgemm::limits_of(instance.plan.arch).cc_major == device.cc_major &&
        instance.epilogue.general == general && instance.plan.tile.grouped == grouped)
      out.push_back(&instance);
  return out;
}

// An eighth of an integer, which every type has; another for every element.
double addend(int64_t problem, int64_t row, int64_t column) {
  return static_cast<double>((problem * 31 + row * 17 + column * 5) % 129 - 64) / 8;
}
std::vector<uint8_t> bytes_of(double x, dualgemm_dtype_t type) {
  const auto copy = [](auto value) {
    const auto* const first = reinterpret_cast<const uint8_t*>(&value);
    return std::vector<uint8_t>(first, first + sizeof value);
  };
  if (type == DUALGEMM_DTYPE_FP16) return copy(static_cast<_Float16>(x));
  const std::vector<uint8_t> fp32 = copy(static_cast<float>(x));
  return type == DUALGEMM_DTYPE_FP32 ? fp32 : std::vector<uint8_t>{fp32[2], fp32[3]};
}

// The addends in the layout of C, with NaN between them; or none.
class Addends {
 public:
  Addends(const ProblemSet& set, const dualgemm::Matrix& c, dualgemm_dtype_t type, Residual residual)
      : bytes_(residual == Residual::kNone ? 0 : size_of(set, c, type), 0xFF) {
    if (residual == Residual::kNone) return;
    const std::vector<int32_t> rows = set.group_rows();
    for (size_t i = 0; i < set.problems.size(); ++i) {
      const int64_t first = set.mode == DUALGEMM_GROUP_OFFSETS ? rows[i] : 0;
      for (int64_t row = 0; row < set.problems[i].m; ++row) {
        std::vector<uint8_t> line;
        for (int64_t column = 0; column < set.n; ++column)
          for (const uint8_t byte : bytes_of(addend(static_cast<int64_t>(i), row, column), type))
            line.push_back(byte);
        const int64_t at = (static_cast<int64_t>(i) * c.stride + (first + row) * c.pitch) * bits_of(type) / 8;
        uint8_t* const start = residual == Residual::kInC ? static_cast<uint8_t*>(c.start) : bytes_.data();
        check_cuda(cudaMemcpy(start + at, line.data(), line.size(), cudaMemcpyHostToDevice),
                   "a row of addends");
      }
    }
  }
  const void* data() const { return bytes_.data(); }

 private:
  static size_t size_of(const ProblemSet& set, const dualgemm::Matrix& c, dualgemm_dtype_t type) {
    const auto problems = static_cast<int64_t>(set.problems.size());
    return static_cast<size_t>(((problems - 1) * c.stride + set.m * c.pitch) * bits_of(type) / 8);
  }
  DeviceArray<uint8_t> bytes_;
};

// Launches an instance with the arguments of a launch of two products, whose B2 its parameters do not have.
void launch(const Instance& instance, const DeviceSet& device, const ProblemSet& set, const Asked& asked) {
  dualgemm_args_t args = device.args();
  dualgemm_device_t current;
  check_status(dualgemm::query_current_device(&current));
  dualgemm::Problem problem;
  check_status(dualgemm::validate(&args, &problem));
  const DeviceArray<uint8_t> workspace(dualgemm::workspace_bytes(problem, instance.plan), 0xFF);
  args.workspace = workspace.data();
  args.workspace_size = workspace.size();
  check_status(dualgemm::validate(&args, &problem));
  check_status(dualgemm::load_instance(instance));
  const dualgemm::Machine machine = dualgemm::machine_of(args, current);
  dualgemm::Params params;
  check_status(dualgemm::make_params(problem, instance, &params));
  params.b2 = params.sfb2 = {};
  params.alpha2_dev = nullptr;
  params.alpha2 = std::nanf("");
  params.general.d2 = {};
  params.general.activation = static_cast<int32_t>(asked.activation);
  params.general.exact = asked.exact;
  const Addends addends(set, params.c, static_cast<dualgemm_dtype_t>(args.c_dtype), asked.residual);
  if (asked.residual != Residual::kNone) {
    params.general.c_add = asked.residual == Residual::kInC ? params.c.start : addends.data();
    params.general.c_add_ld = params.c.pitch;
    params.general.c_add_stride = params.c.stride;
  }
  check_status(dualgemm::prepare_a(problem, instance.plan, machine, nullptr));
  dualgemm::LaunchConfig launch;
  dualgemm::make_launch_config(problem, instance, dualgemm::grid_size(problem, instance.plan, machine),
                               nullptr, &launch);
  void* arguments[] = {&params};
  check_cuda(cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void*>(instance.kernel), arguments),
             instance.name);
  check_cuda(cudaDeviceSynchronize(), instance.name);
}

// Returns f(g), and how far the kernel's may be from it for a g that is off by dg.
struct Activated {
  double value, error;
};
Activated activated(const Asked& asked, double g, double dg) {
  const auto gate = [&](dualgemm_activation_t of_two) -> Activated {
    const ref::Activation f =
        ref::activation(of_two, {}, asked.exact ? ref::Arithmetic::kExact : ref::Arithmetic::kFloat);
    return {f.f(g), ref::error_bound(f, g, 1, dg, 0)};  // of an up that is 1
  };
  switch (asked.activation) {
    case LinearActivation::kSilu: return gate(DUALGEMM_ACTIVATION_SWIGLU);
    case LinearActivation::kGeluTanh: return gate(DUALGEMM_ACTIVATION_GEGLU_TANH);
    case LinearActivation::kGeluErf: return gate(DUALGEMM_ACTIVATION_GEGLU_ERF);
    case LinearActivation::kRelu: return {std::max(g, 0.0), dg};
    case LinearActivation::kRelu2: {
      const double x = std::max(g, 0.0);
      return {x * x, (2 * x + dg) * dg + 0x1p-23 * x * x + 0x1p-126};
    }
    default: return {g, dg};
  }
}

// Returns what C should be of problem `index`.
ref::DualGemm expected_of(const Problem& p, int64_t index, const Asked& asked) {
  constexpr double u = 0x1p-24;
  ref::DualGemm out{p.reference_d(0), {}};
  for (int64_t i = 0; i < out.m * out.n; ++i) {
    const double g = out.c[static_cast<size_t>(i)];
    const double w = p.c_row_scale.empty() ? 1 : p.c_row_scale[static_cast<size_t>(i / out.n)];
    const double more = asked.residual == Residual::kNone ? 0 : addend(index, i / out.n, i % out.n);
    for (std::vector<float>& errors : out.error) {
      float& error = errors[static_cast<size_t>(i)];
      const Activated f = activated(asked, g, error);
      const double weighed = w * f.value, sum = weighed + more;
      out.c[static_cast<size_t>(i)] = sum;
      error = static_cast<float>((std::fabs(w) * f.error + (w == 1 ? 0 : u * std::fabs(weighed) + 0x1p-126)) *
                                     1.01 +
                                 (more == 0 ? 0 : u * (std::fabs(sum) + std::fabs(weighed))));
    }
  }
  return out;
}

// Launches a set on an instance, judged, and checks everything that it was asked to write.
void check(const Instance& instance, const ProblemSet& set, const SetOptions& options, const Asked& asked,
           const std::string& mode) {
  INFO("activation " << static_cast<int>(asked.activation) << ", exact " << asked.exact << ", type "
                     << options.dtype << ", residual " << static_cast<int>(asked.residual) << ", " << mode);
  const DeviceSet device(set, options);
  {
    const Judged judged(mode, 1);
    launch(instance, device, set, asked);
    CHECK(judged.findings() == "");
  }
  std::vector<Output> out = device.download();
  std::vector<ref::DualGemm> expected;
  for (size_t i = 0; i < out.size(); ++i) {
    const Problem& p = set.problems[i];
    if (p.m == 0) continue;
    INFO("problem " << i << ", " << p.m << " rows");
    out[i].split_k = instance.plan.tile.split_k;
    expected.push_back(expected_of(p, static_cast<int64_t>(i), asked));
    const Comparison result = compare(out[i], expected.back());
    INFO(result.first);
    CHECK(result.mismatches == 0);
    CHECK(result.exceptions <= 2 + out[i].m * out[i].n / 1000);
    if (!options.d) continue;
    Output d = device.download_d(0)[i];
    d.split_k = instance.plan.tile.split_k;
    const Comparison of_d = compare(d, p.reference_d(0));
    INFO("D1: " << of_d.first);
    CHECK(of_d.mismatches == 0);
  }
  if (options.amax) CHECK(may_be_amax(device.amax(), expected, instance.plan.tile.split_k));
}

constexpr const char* kModes[] = {"default", "late", "reverse", "random"};

SetOptions options_of(const Instance& instance, dualgemm_dtype_t dtype) {
  SetOptions options;
  options.dtype = dtype;
  options.a_dtype = static_cast<dualgemm_dtype_t>(instance.plan.a_type);
  options.max_sms = 4;
  options.ldc_padding = 8;
  return options;
}

// A of 16 bits has more significant bits than one in NVFP4.
ProblemSet for_a_of(const Instance& instance, ProblemSet set) {
  if (instance.plan.packed_a()) return set;
  for (Problem& p : set.problems)
    p = with_sixteen_bits(p, static_cast<dualgemm_dtype_t>(instance.plan.a_type), 7);
  return set;
}

// Several tiles, ragged on every side. With split-K a CTA has one tile; K has more k-tiles than slices, and
// ends within a step.
ProblemSet ragged(const Instance& instance, int32_t k_tiles, uint64_t seed) {
  const dualgemm::TilePlan& tile = instance.plan.tile;
  const int32_t n = tile.n + 16, k = k_tiles * tile.k + 112;
  if (!tile.grouped)
    return for_a_of(instance, make_batch(Data::kFullRange, 2, tile.m + 3, n, k, seed, Alphas::kOwn));
  const std::vector<int32_t> rows = {tile.m + 5, 0, 3, tile.m};
  return for_a_of(instance, seed % 2 == 0 ? make_offsets(Data::kFullRange, rows, n, k, seed, 3, 2)
                                          : make_masked(Data::kFullRange, rows, n, k, seed, 1));
}

}  // namespace

TEST_CASE("one product: every plain instance gives the reference's result, judged", "[one]") {
  size_t turn = 0;
  for (const bool grouped : {false, true})
    for (const Instance* const instance : of_one_product(false, grouped)) DYNAMIC_SECTION(instance->name) {
        const auto dtype = static_cast<dualgemm_dtype_t>(instance->epilogue.outputs[0].type);
        const int32_t slices = instance->plan.tile.split_k;
        // More k-tiles than the rings hold, or fewer.
        const int32_t most = slices > 1 ? 2 * slices : instance->plan.operands.stages + 1;
        for (const int32_t k_tiles : {0, most}) {
          ++turn;
          check(*instance, ragged(*instance, k_tiles, turn), options_of(*instance, dtype), {},
                kModes[turn / 2 % std::size(kModes)]);
        }
      }
}

TEST_CASE("one product: every general instance computes every activation, judged", "[one]") {
  size_t turn = 0;
  for (const bool grouped : {false, true})
    for (const Instance* const instance : of_one_product(true, grouped)) DYNAMIC_SECTION(instance->name) {
        for (int32_t number = 0; number < dualgemm::kLinearActivations; ++number, ++turn) {
          SetOptions options = options_of(*instance, kOutputs[turn % std::size(kOutputs)]);
          options.d = turn % 2 == 0;
          options.d_dtype = kBeforeActivation[turn / 2 % std::size(kBeforeActivation)];
          options.amax = turn % 3 != 0;
          ProblemSet set = ragged(*instance, 1, turn + 1);
          Rng rng(turn);
          for (Problem& p : set.problems) {
            if (turn % 4 != 1) p.bias1 = bias(p, rng);
            if (turn % 5 != 1) give_row_scale(p, rng);
            if (turn % 3 != 2) give_c_row_scale(p, rng);
          }
          give_encode(set, options.dtype);
          const bool floats =
              options.dtype != DUALGEMM_DTYPE_FP8_E4M3 && options.dtype != DUALGEMM_DTYPE_NVFP4;
          Asked asked{static_cast<LinearActivation>(number), turn % 7 >= 5, Residual::kNone};
          if (floats) asked.residual = turn % 3 == 1 ? Residual::kInC : Residual::kApart;
          check(*instance, set, options, asked, kModes[turn % std::size(kModes)]);
        }
      }
}

// Every type, with and without a residual, exact and not, on one instance of each tile without split-K.
TEST_CASE("one product: every activation in every type", "[one]") {
  std::vector<int32_t> seen;
  for (const Instance* const instance : of_one_product(true, false)) {
    if (instance->plan.tile.split_k > 1 || !instance->plan.packed_a()) continue;
    if (std::count(seen.begin(), seen.end(), instance->plan.tile.m) != 0) continue;
    seen.push_back(instance->plan.tile.m);
    DYNAMIC_SECTION(instance->name) {
      const ProblemSet plain = make_batch(Data::kFullRange, 1, 17, 48, 96, 11);
      for (const dualgemm_dtype_t dtype : kOutputs)
        for (int32_t number = 0; number < dualgemm::kLinearActivations; ++number)
          for (const bool exact : {false, true}) {
            ProblemSet set = plain;
            give_encode(set, dtype);
            const bool floats = dtype != DUALGEMM_DTYPE_FP8_E4M3 && dtype != DUALGEMM_DTYPE_NVFP4;
            check(*instance, set, options_of(*instance, dtype),
                  {static_cast<LinearActivation>(number), exact, floats ? Residual::kInC : Residual::kNone},
                  "default");
          }
    }
  }
}
