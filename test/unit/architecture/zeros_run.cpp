// zeros_run.cpp -- launches the kernel of zeros.cuh through the public interface, as it would be on a Hopper
// GPU: the table has it for compute capability 9.0, and refuses there what is compiled for another. Every
// element of C is zero afterwards and nothing around it was written. It is one program for the simulated H200
// and for a real one (record.sh). Exit status 0 says that all of it holds.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "kernel/instance.h"
#include "test/support/device_memory.h"

namespace {

using dualgemm_test::check_cuda;
using Memory = dualgemm_test::DeviceArray<uint8_t>;

int failures = 0;

void check(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("WRONG: %s\n", what.c_str());
}

struct Case {
  const char* name;
  int32_t m, n, k, problems;
  int32_t group_mode;
  std::vector<int32_t> group_rows;
  uint32_t flags;
};

constexpr int kPoison = 0xA5, kGuardRows = 2;

// Returns the rows of problem p that C has to be zero in, as [first, end) over all rows of C.
std::pair<int64_t, int64_t> rows_of(const Case& x, int32_t p) {
  if (x.group_mode == DUALGEMM_GROUP_OFFSETS) return {x.group_rows[p], x.group_rows[p + 1]};
  const int32_t rows = x.group_mode == DUALGEMM_GROUP_MASKED ? x.group_rows[p] : x.m;
  return {int64_t{p} * x.m, int64_t{p} * x.m + rows};
}

void check_output(const Case& x, const std::vector<uint16_t>& c, int64_t ldc) {
  constexpr uint16_t kUntouched = kPoison << 8 | kPoison;
  std::vector<bool> owned(c.size() / ldc, false);
  for (int32_t p = 0; p < x.problems; ++p)
    for (auto [row, end] = rows_of(x, p); row < end; ++row) owned[row] = true;
  int64_t wrong = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    const bool inside = owned[i / ldc] && static_cast<int64_t>(i % ldc) < x.n;
    wrong += c[i] != (inside ? 0 : kUntouched);
  }
  check(wrong == 0, std::string(x.name) + ": " + std::to_string(wrong) + " wrong elements");
}

// Returns the id of the instance of zeros.cuh for groups, or of the other.
int32_t zeros_id(bool grouped) {
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    dualgemm_instance_info_t info;
    dualgemm_instance_info_init(&info);
    check(dualgemm_instance_info(id, &info) == DUALGEMM_STATUS_SUCCESS, "instance_info");
    if (std::strstr(info.name, "zeros") && (info.grouped != 0) == grouped) return id;
  }
  check(false, "the table has the two instances of zeros.cuh");
  return 0;
}

void run(const Case& x) {
  const bool grouped = x.group_mode != DUALGEMM_GROUP_NONE, offsets = x.group_mode == DUALGEMM_GROUP_OFFSETS;
  const int64_t a_problems = offsets ? 1 : x.problems, ldc = x.n + 8;
  const size_t pitch = (x.k + 31) / 32 * 16;
  const Memory a(a_problems * x.m * pitch, 0x22), b1(x.problems * x.n * pitch, 0x33),
      b2(x.problems * x.n * pitch, 0x44);
  const int32_t sfa_rows = offsets ? x.m + 127 * x.problems : x.m;
  const auto sf_bytes = [&](int32_t rows) { return dualgemm_sf_size(rows, x.k); };
  const Memory sfa(a_problems * sf_bytes(sfa_rows), 0x38), sfb1(x.problems * sf_bytes(x.n), 0x38),
      sfb2(x.problems * sf_bytes(x.n), 0x38);
  const dualgemm_test::DeviceArray<uint16_t> c((a_problems * x.m + kGuardRows) * ldc, kPoison);
  const dualgemm_test::DeviceArray<int32_t> rows(x.group_rows);

  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = x.m, args.n = x.n, args.k = x.k;
  args.a = a.data(), args.b1 = b1.data(), args.b2 = b2.data();
  args.sfa = sfa.data(), args.sfb1 = sfb1.data(), args.sfb2 = sfb2.data();
  args.lda = args.ldb1 = args.ldb2 = static_cast<int64_t>(pitch) * 2;
  args.c = c.data(), args.ldc = ldc;
  args.c_dtype = DUALGEMM_DTYPE_FP16;
  args.flags = x.flags;
  args.instance_id = zeros_id(grouped);
  if (grouped) {
    args.group_mode = x.group_mode, args.groups = x.problems;
    args.group_rows = rows.data();
  } else {
    args.batch = x.problems;
  }
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  const dualgemm_status_t status = dualgemm_launch_ex(&args, stream);
  check(status == DUALGEMM_STATUS_SUCCESS, std::string(x.name) + ": " + dualgemm_last_error());
  check_cuda(cudaStreamSynchronize(stream), x.name);
  check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
  check_output(x, c.host(), ldc);
}

// Returns the arguments of some launch on addresses that are never followed.
dualgemm_args_t some_arguments() {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = args.n = args.k = 256;
  const auto address = [](uintptr_t i) { return reinterpret_cast<void*>(i << 30); };
  args.a = address(1), args.b1 = address(2), args.b2 = address(3);
  args.sfa = address(4), args.sfb1 = address(5), args.sfb2 = address(6), args.c = address(7);
  args.c_dtype = DUALGEMM_DTYPE_FP16;
  return args;
}

// What is compiled for another architecture is refused by name, and never chosen.
void check_choice(const dualgemm_device_t& device) {
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    dualgemm_instance_info_t info;
    dualgemm_instance_info_init(&info);
    check(dualgemm_instance_info(id, &info) == DUALGEMM_STATUS_SUCCESS, "instance_info");
    dualgemm_args_t args = some_arguments();
    args.instance_id = id;
    args.c_dtype = info.general ? DUALGEMM_DTYPE_FP32 : info.c_dtype;
    if (info.grouped || info.cc_major == device.cc_major) continue;
    check(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_NOT_SUPPORTED &&
              std::strstr(dualgemm_last_error(), info.name) != nullptr,
          std::string(info.name) + " on " + device.name + ": " + dualgemm_last_error());
  }
  const dualgemm_device_t b200 = {
      sizeof(dualgemm_device_t), 10, 0, 148, device.driver_version, 0, "NVIDIA B200", 0, 0, 0};
  for (const dualgemm_device_t& one : {device, b200}) {
    dualgemm_args_t args = some_arguments();
    int32_t id = 0;
    dualgemm_instance_info_t info;
    dualgemm_instance_info_init(&info);
    check(dualgemm_select_instance(&args, &one, &id) == DUALGEMM_STATUS_SUCCESS &&
              dualgemm_instance_info(id, &info) == DUALGEMM_STATUS_SUCCESS && info.cc_major == one.cc_major,
          std::string("choice on a ") + one.name + ": " + dualgemm_last_error());
  }
}

}  // namespace

int main() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS, dualgemm_last_error());
  check(device.cc_major == 9 && device.cc_minor == 0, "the device is of compute capability 9.0");
  check(dualgemm_init() == DUALGEMM_STATUS_SUCCESS, dualgemm_last_error());
  check_choice(device);

  const std::vector<Case> cases = {
      {"whole tiles", 128, 128, 512, 1, DUALGEMM_GROUP_NONE, {}, 0},
      {"ragged", 130, 200, 272, 1, DUALGEMM_GROUP_NONE, {}, 0},
      {"one row, less than a k-tile", 1, 136, 80, 1, DUALGEMM_GROUP_NONE, {}, 0},
      {"rings twice around", 70, 72, 256 * 13 + 16, 1, DUALGEMM_GROUP_NONE, {}, 0},
      {"more tiles than SMs", 1090, 1160, 272, 1, DUALGEMM_GROUP_NONE, {}, 0},
      {"batch", 140, 136, 592, 3, DUALGEMM_GROUP_NONE, {}, 0},
      {"offsets", 300, 136, 528, 5, DUALGEMM_GROUP_OFFSETS, {0, 70, 70, 199, 200, 300}, 0},
      {"masked", 140, 136, 528, 5, DUALGEMM_GROUP_MASKED, {70, 0, 140, 1, 129}, 0},
      {"PDL", 130, 200, 272, 1, DUALGEMM_GROUP_NONE, {}, DUALGEMM_FLAG_PDL},
      {"PDL, static weights",
       130,
       200,
       272,
       1,
       DUALGEMM_GROUP_NONE,
       {},
       DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS},
  };
  for (const Case& x : cases) run(x);
  if (failures) std::printf("%d failures\n", failures);
  else std::printf("correct: %zu launches on %s\n", cases.size(), device.name);
  return failures ? 1 : 0;
}
