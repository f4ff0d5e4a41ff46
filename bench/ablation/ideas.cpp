// ideas.cpp -- see ideas.h.
#include "bench/ablation/ideas.h"

#include <span>
#include <stdexcept>

#include "bench/ablation/kernels.h"
#include "bench/budget.h"
#include "bench/unfused.h"
#include "host/common/device.h"
#include "host/launch/launch.h"
#include "host/launch/load.h"
#include "host/launch/validate.h"
#include "host/model/tiling.h"
#include "test/support/device_memory.h"

namespace bench {
namespace {

using dualgemm::Instance;
using dualgemm_test::check_cuda;

constexpr bool kNotModelled = false;

template <class Table>
const Instance* find(const Table& table, const std::string& name) {
  for (const Instance& instance : table)
    if (instance.name == name + "_fp16") return &instance;
  throw std::logic_error("there is no instance " + name);
}
using Candidates = std::vector<const Instance*>;
std::span<const Instance> all_of(const dualgemm::InstanceList& list) {
  return {list.first, static_cast<size_t>(list.count)};
}
template <class Table>
Candidates pointers(const Table& table) {
  Candidates out;
  for (const Instance& instance : table) out.push_back(&instance);
  return out;
}
Candidates shipped(const std::string& name) { return {find(dualgemm::instances(), name)}; }
Candidates built(const std::string& name) { return {find(all_of(kAblations), name)}; }

// Returns those with the fewest rows that hold all of the shape's, or the most there are, and from 64 rows on
// those with half as many. Split-K is for tiles that run at once.
Candidates that_fit(const Candidates& all, const Shape& shape, const dualgemm_device_t& device) {
  const dualgemm::Machine machine{device.sm_count, device.clusters_of_2, device.clusters_of_4};
  int32_t fit = 8;
  while (fit < shape.m && fit < 256) fit *= 2;
  Candidates out;
  for (const Instance* const instance : all) {
    const dualgemm::TilePlan& tile = instance->plan.tile;
    const bool rows_fit = tile.m == fit || (fit >= 64 && tile.m == fit / 2);
    const int64_t tiles = dualgemm::mean_tiles({shape.m, shape.n, shape.k}, tile);
    if (rows_fit && (tile.split_k == 1 || tiles <= dualgemm::clusters_at_once(machine, instance->plan)))
      out.push_back(instance);
  }
  return out;
}

std::vector<Idea> ideas_sm90(const Shape& shape, const dualgemm_device_t& device) {
  const Candidates chosen{budget_of(shape, DUALGEMM_DTYPE_FP16, device).instance};
  return {
      {"two-pass",
       "Both products and the activation in one kernel, or two GEMMs and an activation kernel",
       {{"one kernel (ships)", chosen},
        {"two GEMMs, activation", that_fit(ones_of_two_gemms(dualgemm::Arch::kSm90), shape, device),
         kNotModelled,
         /*two_pass=*/true}}},
      {"sequential",
       "The two products of a tile",
       {{"from each k-tile (ships)", chosen},
        {"one after the other", that_fit(pointers(all_of(kSequentialSm90)), shape, device), kNotModelled}}}};
}

// A launch that the library has checked, on the current device.
struct Checked {
  dualgemm::Problem problem;
  dualgemm_device_t device;

  explicit Checked(const dualgemm_args_t& args) {
    check(dualgemm::validate(&args, &problem), "validate");
    check(dualgemm::query_current_device(&device), "query_current_device");
  }
};

void run(const Instance& instance, const dualgemm_args_t& args, cudaStream_t stream) {
  const Checked checked(args);
  check(dualgemm::launch_instance(checked.problem, instance, checked.device, stream), instance.name);
}

// Does the same without the pass over A, which a launch before it has made.
void run_on_prepared_a(const Instance& instance, const dualgemm_args_t& args, cudaStream_t stream) {
  const Checked checked(args);
  dualgemm::Params params;
  check(dualgemm::make_params(checked.problem, instance, &params), "make_params");
  const dualgemm::Machine machine = dualgemm::machine_of(args, checked.device);
  const int64_t ctas = dualgemm::grid_size(checked.problem, instance.plan, machine);
  dualgemm::LaunchConfig launch;
  dualgemm::make_launch_config(checked.problem, instance, machine, ctas, stream, &launch);
  void* arguments[] = {&params};
  check_cuda(cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void*>(instance.kernel), arguments),
             instance.name);
}

}  // namespace

std::vector<const Instance*> ones_of_two_gemms(dualgemm::Arch arch) {
  Candidates out = pointers(dualgemm::instances(arch));
  std::erase_if(out, [](const Instance* x) {
    return x->plan.mma.accumulators != 1 || x->plan.tile.grouped || !x->plan.packed_a() ||
           x->epilogue.general || !x->epilogue.output(dualgemm::CType::kFp16);
  });
  return out;
}

const std::vector<Idea>& ideas() {
  static const std::vector<Idea> all = {
      {"two-pass",
       "Both products and the activation in one kernel, or two GEMMs and an activation kernel",
       {{"one kernel (ships)", shipped("m128n128k256")},
        {"two GEMMs, activation", shipped("m128n128k256_one"), kNotModelled, /*two_pass=*/true}}},
      {"sequential",
       "The two products of a tile, one CTA",
       {{"interleaved, one mma (ships)", shipped("m128n128k256")},
        {"interleaved, two mma", built("m128n128k256_two_mma")},
        {"one after the other", built("m128n128k256_sequential"), kNotModelled}}},
      {"sequential",
       "The two products of a tile, a pair",
       {{"interleaved, one mma (ships)", shipped("m256n128k256")},
        {"interleaved, two mma", built("m256n128k256_two_mma")}}},
      {"pair",
       "One CTA or a pair for a tile, 64 columns",
       {{"1 SM (ships)", shipped("m128n64k256")}, {"2 SMs (ships)", shipped("m256n64k256")}}},
      {"pair",
       "One CTA or a pair for a tile, 128 columns",
       {{"1 SM (ships)", shipped("m128n128k256")}, {"2 SMs (ships)", shipped("m256n128k256")}}},
      {"split-k",
       "Split-K over a cluster, few rows",
       {{"whole (ships)", shipped("m64n128k256")}, {"in four (ships)", shipped("m64n128k256s4")}}},
      {"split-k",
       "Split-K over a cluster, one CTA",
       {{"whole (ships)", shipped("m128n64k256")},
        {"in two (ships)", shipped("m128n64k256s2")},
        {"in four (ships)", shipped("m128n64k256s4")}}},
      {"split-k",
       "Split-K over a cluster, pairs",
       {{"whole (ships)", shipped("m256n128k256")}, {"in two (ships)", shipped("m256n128k256s2")}}},
      {"depth",
       "Stages of the operand ring",
       {{"7 (ships)", shipped("m256n64k256")},
        {"6", built("m256n64k256_depth6")},
        {"5", built("m256n64k256_depth5")},
        {"4", built("m256n64k256_depth4")},
        {"3", built("m256n64k256_depth3")},
        {"2", built("m256n64k256_depth2")},
        {"1", built("m256n64k256_depth1")}}},
      {"k-order",
       "Where along K each CTA starts",
       {{"all at 0 (ships)", shipped("m128n64k256")},
        {"each elsewhere", built("m128n64k256_rotated"), kNotModelled}}},
      {"scale-ring",
       "Scale factors in shared memory",
       {{"4 stages of 2 k-tiles (ships)", shipped("m256n64k256")},
        {"one with each stage of operands", built("m256n64k256_scale1")},
        {"2 stages of 4 k-tiles", built("m256n64k256_scale4")}}},
      {"scale-copy",
       "Copies of scale factors to tensor memory",
       {{"with each step (ships)", shipped("m256n64k256")},
        {"all steps of a k-tile first", built("m256n64k256_copy_first"), kNotModelled},
        {"a k-tile ahead", built("m256n64k256_copy_next"), kNotModelled}}},
      {"collector",
       "A of the second mma of a step",
       {{"kept in the collector (ships)", shipped("m256n64k256")},
        {"read again", built("m256n64k256_read_a_twice")}}},
      {"accumulators",
       "Pairs of accumulators, 64 columns",
       {{"two (ships)", shipped("m128n64k256")}, {"one", built("m128n64k256_acc1")}}},
      {"accumulators",
       "Pairs of accumulators, 128 columns of a pair",
       {{"one (ships)", shipped("m256n128k256")}, {"two, overlapping (ships)", shipped("m256n128k256o")}}},
      {"store",
       "How C is written",
       {{"from registers, 7 stages (ships)", shipped("m256n64k256")},
        {"from registers, 6 stages", built("m256n64k256_depth6")},
        {"bulk copies, 6 stages", built("m256n64k256_depth6_bulk"), kNotModelled}}},
      {"activation",
       "Reciprocals of the activation",
       {{"one per result (ships)", shipped("m256n64k256")},
        {"one for two results", built("m256n64k256_shared_rcp"), kNotModelled}}},
  };
  return all;
}

std::vector<Idea> ideas_for(const Shape& shape, const dualgemm_device_t& device) {
  return device.cc_major == 9 ? ideas_sm90(shape, device) : ideas();
}

void load(const Instance& instance) { check(dualgemm::load_instance(instance), "load_instance"); }

void launch(const Way& way, const Instance& instance, const dualgemm_args_t& args,
            const Intermediates& intermediates, cudaStream_t stream) {
  if (args.c_dtype != DUALGEMM_DTYPE_FP16) throw std::runtime_error("ablations are built for fp16 only");
  if (!way.two_pass) return run(instance, args, stream);

  if (args.ldc != args.n) throw std::runtime_error("two-pass: C has to be compact");
  dualgemm_args_t gate = args;
  gate.products = 1;
  gate.b2 = gate.sfb2 = nullptr;
  gate.ldb2 = 0;
  gate.alpha2 = 1;
  gate.alpha2_dev = nullptr;
  gate.c = intermediates.gates;
  run(instance, gate, stream);
  dualgemm_args_t up = gate;
  up.b1 = args.b2;
  up.ldb1 = args.ldb2;
  up.sfb1 = args.sfb2;
  up.alpha1 = args.alpha2;
  up.alpha1_dev = args.alpha2_dev;
  up.c = intermediates.ups;
  up.flags |= DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  run_on_prepared_a(instance, up, stream);
  const Products products{intermediates.gates, intermediates.ups, args.n, DUALGEMM_DTYPE_FP16};
  check_cuda(launch_activation(products, {args.m, args.n}, args.c, DUALGEMM_DTYPE_FP16, stream),
             "activation");
}

}  // namespace bench
