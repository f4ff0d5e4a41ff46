// device_problem.cpp -- see device_problem.h.
#include "support/device_problem.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>

#include "support/extras.h"

namespace dualgemm_test {
DeviceProblem::DeviceProblem(const Problem& problem, const LaunchOptions& options)
    : set_(set_of(problem), options) {}

void DeviceProblem::upload(const Problem& problem) { set_.upload(set_of(problem)); }

Output run(const Problem& problem, const LaunchOptions& options) {
  DeviceProblem device(problem, options);
  device.launch(nullptr);
  return device.download();
}

static bool of_fp8(const NamedInstance& x) { return x.info.a_dtype == DUALGEMM_DTYPE_FP8_E4M3; }

std::vector<NamedInstance> one_product_instances() {
  std::vector<NamedInstance> out = instances_of_device(1);
  std::erase_if(out, of_fp8);
  return out;
}
std::vector<NamedInstance> fp8_instances(int32_t products) {
  std::vector<NamedInstance> out = instances_of_device(products);
  std::erase_if(out, [](const NamedInstance& x) { return !of_fp8(x); });
  return out;
}

std::vector<NamedInstance> instances_of_device(int32_t products) {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  constexpr const char* kTypes[] = {"_bf16", "_fp16", "_fp32", "_nvfp4", "_fp8"};
  std::vector<NamedInstance> out;
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    dualgemm_instance_info_t info;
    dualgemm_instance_info_init(&info);
    check_status(dualgemm_instance_info(id, &info));
    if (info.cc_major != device.cc_major || info.products != products) continue;
    if (info.general == 0) out.push_back({id, info, static_cast<dualgemm_dtype_t>(info.c_dtype), info.name});
    else
      for (const dualgemm_dtype_t dtype : kOutputs)
        out.push_back({id, info, dtype, std::string(info.name) + kTypes[dtype]});
  }
  return out;
}

std::vector<NamedInstance> sixteen_bit_instances() {
  std::vector<NamedInstance> out = instances_of_device();
  std::erase_if(out,
                [](const NamedInstance& x) { return x.info.a_dtype == DUALGEMM_DTYPE_NVFP4 || of_fp8(x); });
  return out;
}
std::vector<NamedInstance> all_instances() {
  std::vector<NamedInstance> out = instances_of_device();
  std::erase_if(out, [](const NamedInstance& x) { return x.info.a_dtype != DUALGEMM_DTYPE_NVFP4; });
  return out;
}

template <class Wanted>
static std::vector<NamedInstance> instances_where(const Wanted& wanted) {
  std::vector<NamedInstance> out = all_instances();
  std::erase_if(out, [&](const NamedInstance& instance) { return !wanted(instance.info); });
  return out;
}

std::vector<NamedInstance> plain_instances() {
  return instances_where([](const dualgemm_instance_info_t& info) { return info.general == 0; });
}
std::vector<NamedInstance> dense_instances() {
  return instances_where(
      [](const dualgemm_instance_info_t& info) { return info.general == 0 && info.grouped == 0; });
}
std::vector<NamedInstance> grouped_instances() {
  return instances_where(
      [](const dualgemm_instance_info_t& info) { return info.general == 0 && info.grouped != 0; });
}
std::vector<NamedInstance> general_instances(bool grouped) {
  return instances_where([&](const dualgemm_instance_info_t& info) {
    return info.general != 0 && (info.grouped != 0) == grouped;
  });
}

std::vector<NamedInstance> general_instances_in_turn(bool grouped) {
  return in_turn(general_instances(grouped));
}

std::vector<NamedInstance> in_turn(const std::vector<NamedInstance>& all) {
  std::map<std::string, std::vector<NamedInstance>> tiles;
  for (const NamedInstance& instance : all) tiles[tile_of(instance)].push_back(instance);
  std::vector<NamedInstance> out;
  for (const auto& [tile, instances] : tiles) out.push_back(instances.at(out.size() % instances.size()));
  return out;
}

std::string tile_of(const NamedInstance& instance) {
  const std::string& name = instance.name;
  const size_t type = name.find("_a");  // "sm90m64n64k256_abf16_fp16": the type of A is part of it
  return name.substr(0, name.find('_', type == std::string::npos ? 0 : type + 1));
}

std::optional<std::string> general_tile(const std::string& tile) {
  const int rows = std::stoi(tile.substr(tile.find('m', tile.starts_with("sm90") ? 4 : 0) + 1));
  if (128 % rows != 0 && rows % 128 != 0) return std::nullopt;
  const std::vector<NamedInstance> all = all_instances();
  const bool same = std::any_of(all.begin(), all.end(), [&](const NamedInstance& instance) {
    return instance.info.general != 0 && tile_of(instance) == tile;
  });
  const size_t columns = tile.find("n128");
  return same || columns == std::string::npos ? tile : std::string(tile).replace(columns, 4, "n64");
}

NamedInstance general_instance(const std::string& tile, dualgemm_dtype_t dtype) {
  for (const NamedInstance& instance : all_instances())
    if (instance.info.general != 0 && instance.dtype == dtype && tile_of(instance) == tile) return instance;
  throw std::invalid_argument("no general instance of " + tile + " with type " + std::to_string(dtype));
}

LaunchOptions use(const NamedInstance& instance) {
  LaunchOptions options;
  options.dtype = instance.dtype;
  options.a_dtype = static_cast<dualgemm_dtype_t>(instance.info.a_dtype);
  options.instance_id = instance.id;
  return options;
}

SetOptions use_all_of(const NamedInstance& instance, ProblemSet& set) {
  SetOptions options = use(instance);
  const bool one_product = instance.info.products == 1, general = instance.info.general != 0;
  if (one_product && !general) leave_one_product(set, DUALGEMM_LINEAR_ACTIVATION_NONE);
  if (!general) return options;
  // The types of the biases, and of gate and up, take turns.
  const auto turn = static_cast<size_t>(instance.id + instance.dtype);
  Rng rng(2);
  for (Problem& p : set.problems) {
    p.bias_dtype = turn % 2 == 0 ? DUALGEMM_DTYPE_BF16 : DUALGEMM_DTYPE_FP32;
    give_everything(p, rng);
  }
  give_encode(set, options.dtype);
  options.encode_on_device = true;
  options.d = options.amax = true;
  options.d_dtype = kBeforeActivation[turn % std::size(kBeforeActivation)];
  if (one_product) {
    leave_one_product(
        set, static_cast<dualgemm_linear_activation_t>(turn % (DUALGEMM_LINEAR_ACTIVATION_RELU2 + 1)));
    if (instance.dtype != DUALGEMM_DTYPE_NVFP4 && instance.dtype != DUALGEMM_DTYPE_FP8_E4M3)
      give_c_add(set, 11);
  }
  return options;
}

}  // namespace dualgemm_test
