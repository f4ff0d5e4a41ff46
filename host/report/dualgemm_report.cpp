// dualgemm_report.cpp -- dualgemm-report: what a report of a bug should say of a machine and of the library,
// and which kernel instance a launch would run.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "host/include/dualgemm.h"

namespace {

constexpr const char* kUsage =
    R"(dualgemm-report [MxNxK]... [--products 1|2] [--a-dtype nvfp4|bf16|fp16] [--dtype bf16|fp16|fp32|nvfp4|fp8]

Prints the GPUs, the driver, the CUDA runtime and the library of this machine, and for each size the kernel
instance that a launch with compact tensors would run on the current device, and its workspace.
)";

// By their numbers in dualgemm_dtype_t.
constexpr std::array<std::string_view, 5> kTypes = {"bf16", "fp16", "fp32", "nvfp4", "fp8"};

struct Size {
  int32_t m, n, k;
};

struct Options {
  std::vector<Size> sizes;
  int32_t products = 2, a_dtype = DUALGEMM_DTYPE_NVFP4, c_dtype = DUALGEMM_DTYPE_BF16;
};

[[noreturn]] void refuse(const char* argument, const char* what) {
  std::fprintf(stderr, "dualgemm-report: %s: %s\n", argument, what);
  std::exit(2);
}

int32_t read_type(const char* word) {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i] == word) return static_cast<int32_t>(i);
  refuse(word, "must be bf16, fp16, fp32, nvfp4 or fp8");
}

Size read_size(const char* word) {
  Size size{};
  const char* at = word;
  for (int32_t* extent : {&size.m, &size.n, &size.k}) {
    char* end = nullptr;
    const long value = *at >= '0' && *at <= '9' ? std::strtol(at, &end, 10) : -1;
    const char behind = extent == &size.k ? '\0' : 'x';
    if (value < 0 || value > INT32_MAX || *end != behind)
      refuse(word, "must be a size such as 16x4096x7168, or an option of --help");
    *extent = static_cast<int32_t>(value);
    at = end + 1;
  }
  return size;
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (word != "--products" && word != "--a-dtype" && word != "--dtype") {
      options.sizes.push_back(read_size(words[i]));
      continue;
    }
    if (++i == count) refuse(words[i - 1], "needs a value");
    if (word == "--a-dtype") options.a_dtype = read_type(words[i]);
    else if (word == "--dtype") options.c_dtype = read_type(words[i]);
    else if (std::strcmp(words[i], "1") != 0 && std::strcmp(words[i], "2") != 0)
      refuse(words[i], "must be 1 or 2");
    else options.products = words[i][0] - '0';
  }
  return options;
}

// A line of the report. A value of several lines is one of several calls with the same name.
[[gnu::format(printf, 2, 3)]] void line(const char* name, const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::printf("%-12s", name);
  std::vprintf(format, values);
  std::printf("\n");
  va_end(values);
}

// The file that has this function, of those that are loaded.
const char* file_of(const char* function) {
  Dl_info found;
  const void* address = dlsym(RTLD_DEFAULT, function);
  return address != nullptr && dladdr(address, &found) != 0 ? found.dli_fname : "an unknown file";
}

// 13000 is CUDA 13.0.
std::string cuda_version(cudaError_t (*ask)(int*)) {
  int version = 0;
  if (const cudaError_t error = ask(&version); error != cudaSuccess)
    return std::string("unknown: ") + cudaGetErrorString(error);
  if (version == 0) return "none";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The variables are main's, since a program that is linked for a glibc older than its machine's may see no
// `environ`.
void report_system(char** variables) {
  utsname system{};
  uname(&system);
  line("system", "%s %s, %s, glibc %s", system.sysname, system.release, system.machine,
       gnu_get_libc_version());
  for (; *variables != nullptr; ++variables)
    for (const char* prefix : {"CUDA_", "DUALGEMM_", "SIM_"})
      if (std::strncmp(*variables, prefix, std::strlen(prefix)) == 0) line("variable", "%s", *variables);
}

void report_library() {
  line("library", "%s", dualgemm_build_info());
  line("library", "%s, %" PRId32 " instances", file_of("dualgemm_version"), dualgemm_instance_count());
  if (dualgemm_version() != DUALGEMM_VERSION)
    line("library", "this program is of another version: %d.%d.%d", DUALGEMM_VERSION_MAJOR,
         DUALGEMM_VERSION_MINOR, DUALGEMM_VERSION_PATCH);
}

void report_cuda() {
  line("runtime", "CUDA %s, %s", cuda_version(cudaRuntimeGetVersion).c_str(),
       file_of("cudaRuntimeGetVersion"));
  line("driver", "CUDA %s", cuda_version(cudaDriverGetVersion).c_str());
  if (std::FILE* file = std::fopen("/proc/driver/nvidia/version", "r")) {
    std::array<char, 256> text{};
    if (std::fgets(text.data(), text.size(), file) != nullptr) {
      text[std::strcspn(text.data(), "\n")] = '\0';
      line("driver", "%s", text.data());
    }
    std::fclose(file);
  }
}

// What the library knows of the current device, which is what it chooses by.
void report_device(int ordinal) {
  const std::string name = "GPU " + std::to_string(ordinal);
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  if (dualgemm_current_device(&device) != DUALGEMM_STATUS_SUCCESS) {
    line(name.c_str(), "%s", dualgemm_last_error());
    return;
  }
  size_t free_bytes = 0, bytes = 0;
  const cudaError_t error = cudaMemGetInfo(&free_bytes, &bytes);
  line(name.c_str(),
       "%s, compute capability %" PRId32 ".%" PRId32 ", %" PRId32 " SMs, clusters of 2: %" PRId32
       ", of 4: %" PRId32,
       device.name, device.cc_major, device.cc_minor, device.sm_count, device.clusters_of_2,
       device.clusters_of_4);
  if (error == cudaSuccess) line(name.c_str(), "%zu MiB of memory, %zu free", bytes >> 20, free_bytes >> 20);
  else line(name.c_str(), "cudaMemGetInfo: %s", cudaGetErrorString(error));
}

void report_devices() {
  int count = 0, current = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    line("GPU", "none: %s", error == cudaSuccess ? "CUDA counts 0" : cudaGetErrorString(error));
    return;
  }
  cudaGetDevice(&current);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (const cudaError_t error = cudaSetDevice(ordinal); error != cudaSuccess)
      line("GPU", "%d: cudaSetDevice: %s", ordinal, cudaGetErrorString(error));
    else report_device(ordinal);
  }
  cudaSetDevice(current);
}

// Which tuning file the launches below go by, or why one was refused; nothing where there is none.
void report_tuning() {
  dualgemm_tuning_info_t info;
  dualgemm_tuning_info_init(&info);
  if (dualgemm_tuning_info(&info) != DUALGEMM_STATUS_SUCCESS) return;
  if (info.path[0] != '\0') line("tuning", "%s, %" PRId32 " entries", info.path, info.entries);
  if (info.message[0] != '\0') line("tuning", "%s", info.message);
}

// The arguments of a launch. Questions follow no pointer, so tensors lie where nothing is, far apart.
dualgemm_args_t arguments_of(const Options& options, const Size& size) {
  uintptr_t next = 0;
  const auto tensor = [&next] { return reinterpret_cast<void*>(next += uintptr_t{1} << 56); };
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = size.m, args.n = size.n, args.k = size.k;
  args.products = options.products, args.a_dtype = options.a_dtype, args.c_dtype = options.c_dtype;
  args.a = tensor(), args.b1 = tensor(), args.sfb1 = tensor(), args.c = tensor();
  if (options.products == 2) args.b2 = tensor(), args.sfb2 = tensor();
  if (options.a_dtype == DUALGEMM_DTYPE_NVFP4) args.sfa = tensor();
  if (options.c_dtype == DUALGEMM_DTYPE_NVFP4) args.sfc = tensor();
  return args;
}

std::string instance_of(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  int32_t id = 0;
  if (dualgemm_select_instance(&args, &device, &id) != DUALGEMM_STATUS_SUCCESS) return dualgemm_last_error();
  if (id == 0) return "no kernel";
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  if (dualgemm_instance_info(id, &info) != DUALGEMM_STATUS_SUCCESS) return dualgemm_last_error();
  return std::string(info.name) + " (" + std::to_string(id) + ")";
}

void report_size(const Options& options, const Size& size) {
  const std::string name =
      std::to_string(size.m) + "x" + std::to_string(size.n) + "x" + std::to_string(size.k);
  dualgemm_args_t args = arguments_of(options, size);
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  size_t bytes = 0;
  if (dualgemm_current_device(&device) != DUALGEMM_STATUS_SUCCESS ||
      dualgemm_can_implement(&args) != DUALGEMM_STATUS_SUCCESS ||
      dualgemm_workspace_size(&args, &bytes) != DUALGEMM_STATUS_SUCCESS) {
    line("launch", "%s: %s", name.c_str(), dualgemm_last_error());
    return;
  }
  line("launch", "%s, %" PRId32 " product%s, A %s, C %s: %s", name.c_str(), options.products,
       options.products == 1 ? "" : "s", kTypes[options.a_dtype].data(), kTypes[options.c_dtype].data(),
       instance_of(args, device).c_str());
  if (bytes == 0) return;
  args.workspace = reinterpret_cast<void*>(uintptr_t{1} << 48);  // where no tensor is
  args.workspace_size = bytes;
  line("launch", "%s, with %zu bytes of workspace: %s", name.c_str(), bytes,
       instance_of(args, device).c_str());
}

}  // namespace

int main(int count, char** words, char** variables) {
  const Options options = read_options(count, words);
  report_system(variables);
  report_library();
  report_cuda();
  report_devices();
  report_tuning();
  for (const Size& size : options.sizes) report_size(options, size);
}
