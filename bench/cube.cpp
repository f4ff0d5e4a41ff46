// cube.cpp -- see cube.h.
#include "bench/cube.h"

#include <fmt/format.h>

#include <cstdint>

#include "bench/names.h"

namespace bench {
namespace {

struct LaunchForm {
  const char* name;
  dualgemm_group_mode_t group_mode;
  int32_t batch;
};
constexpr LaunchForm kLaunchForms[] = {{"one problem", DUALGEMM_GROUP_NONE, 1},
                                       {"batch", DUALGEMM_GROUP_NONE, 2},
                                       {"OFFSETS", DUALGEMM_GROUP_OFFSETS, 1},
                                       {"MASKED", DUALGEMM_GROUP_MASKED, 1}};

constexpr uint32_t kFlags[] = {0, DUALGEMM_FLAG_PDL, DUALGEMM_FLAG_BATCH_INVARIANT,
                               DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_BATCH_INVARIANT};

// Tensors of a launch have addresses of their own; nobody looks there.
void* address(int32_t i) { return reinterpret_cast<void*>(uintptr_t{0x1'0000'0000} * (1 + i)); }

dualgemm_args_t arguments_of(const Combination& x) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = 300, args.n = 1024, args.k = 512;
  args.products = x.products;
  args.a = address(0), args.b1 = address(1);
  args.sfa = address(3), args.sfb1 = address(4);
  if (x.products == 2) args.b2 = address(2), args.sfb2 = address(5);
  args.c = address(6);
  args.c_dtype = x.c_dtype;
  if (x.c_dtype == DUALGEMM_DTYPE_NVFP4) args.sfc = address(7);
  args.activation = x.activation;
  args.linear_activation = x.linear_activation;
  if (x.biases) args.bias1 = address(8);
  if (x.biases && x.products == 2) args.bias2 = address(9);
  if (x.c_add) args.c_add = address(12);
  if (x.row_scale) args.a_row_scale = static_cast<const float*>(address(10));
  args.batch = x.batch;
  args.group_mode = x.group_mode;
  if (x.group_mode != DUALGEMM_GROUP_NONE)
    args.groups = 8, args.group_rows = static_cast<const int32_t*>(address(11));
  args.flags = x.flags;
  args.max_sms = x.max_sms;
  return args;
}

}  // namespace

bool takes_addend(dualgemm_dtype_t c_dtype) {
  return c_dtype != DUALGEMM_DTYPE_NVFP4 && c_dtype != DUALGEMM_DTYPE_FP8_E4M3;
}

std::vector<Combination> every_combination() {
  std::vector<Combination> all;
  const auto add = [&all](Combination x) {
    for (const LaunchForm& launch : kLaunchForms)
      for (const bool biases : {false, true})
        for (const bool row_scale : {false, true})
          for (const uint32_t flags : kFlags)
            for (const int32_t max_sms : {0, 2}) {
              x.biases = biases, x.row_scale = row_scale;
              x.group_mode = launch.group_mode, x.batch = launch.batch;
              x.flags = flags, x.max_sms = max_sms;
              all.push_back(x);
            }
  };
  for (const Named<dualgemm_dtype_t>& output : kOutputs) {
    for (const Named<dualgemm_activation_t>& activation : kActivations)
      add({.products = 2, .c_dtype = output.number, .activation = activation.number});
    for (const Named<dualgemm_linear_activation_t>& activation : kLinearActivations)
      for (const bool c_add : {false, true})
        if (!c_add || takes_addend(output.number))
          add({.products = 1,
               .c_dtype = output.number,
               .linear_activation = activation.number,
               .c_add = c_add});
  }
  return all;
}

std::string cube_markdown(const dualgemm_device_t& device) {
  std::string text = "| output | products |";
  for (const LaunchForm& launch : kLaunchForms) text += fmt::format(" {} |", launch.name);
  text += "\n| --- | --- | --- | --- | --- | --- |\n";
  const std::vector<Combination> all = every_combination();
  std::string refusal;
  for (const int32_t products : {2, 1})
    for (const Named<dualgemm_dtype_t>& output : kOutputs) {
      text += fmt::format("| {} | {} |", output.name, products);
      for (const LaunchForm& launch : kLaunchForms) {
        int32_t accepted = 0, asked = 0;
        for (const Combination& x : all) {
          if (x.products != products || x.c_dtype != output.number || x.group_mode != launch.group_mode ||
              x.batch != launch.batch)
            continue;
          const dualgemm_args_t args = arguments_of(x);
          const bool taken = dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS;
          if (!taken && refusal.empty()) refusal = dualgemm_last_error();
          accepted += taken;
          ++asked;
        }
        text += fmt::format(" {} of {} |", accepted, asked);
      }
      text += "\n";
    }
  return refusal.empty() ? text : text + "\nThe first refusal: " + refusal + "\n";
}

}  // namespace bench
