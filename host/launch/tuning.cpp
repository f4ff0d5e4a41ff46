// tuning.cpp -- see tuning.h. Entries are appended to static memory and never change: a thread that still
// chooses by an older file finds it as it was. A file that has been read before takes no memory again.

#include "host/launch/tuning.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "host/common/cuda_error.h"
#include "host/common/device.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/common/text.h"
#include "host/common/tuning_file.h"

namespace dualgemm {
namespace {

constexpr Structure kTuningInfoStructure = {"info", "dualgemm_tuning_info_t", "dualgemm_tuning_info_init",
                                            sizeof(dualgemm_tuning_info_t), sizeof(dualgemm_tuning_info_t)};

// These limits are for all files that a process loads.
constexpr size_t kMostEntries = 8192, kMostTunings = 256;
constexpr off_t kMostFileBytes = 4 << 20;

constexpr const char* kVariable = "DUALGEMM_TUNING";

// The mutex guards all of it. What launches read without the mutex is published in `in_force` and `settled`.
struct State {
  std::mutex mutex;
  std::array<TunedEntry, kMostEntries> entries{};
  std::array<Tuning, kMostTunings> tunings{};
  size_t entry_count = 0, tuning_count = 0;
  // What became of the last file that was read.
  dualgemm_status_t status = DUALGEMM_STATUS_SUCCESS;
  char message[sizeof dualgemm_tuning_info_t::message] = {};
  bool from_environment = false;
  char path[sizeof dualgemm_tuning_info_t::path] = {};  // of the file in force
};
constinit State state;
constinit std::atomic<const Tuning*> in_force{nullptr};
// Is true when DUALGEMM_TUNING is not to be read any more: its file was read, it names none, or a program has
// loaded one.
constinit std::atomic<bool> settled{false};

// Returns the end of a path that is very long, for a message.
const char* shown_path(const char* path) {
  constexpr size_t kMost = 400;
  const size_t length = std::strlen(path);
  return length > kMost ? path + length - kMost : path;
}

// Returns the version, and a number that is another one when the library has other instances or another CUDA.
Text<48> make_library_key() {
  TuningSum sum;
  sum.add(dualgemm_build_info());
  for (const Instance& instance : instances()) {
    Text<96> text;
    text.add(" %s %" PRId32 " %" PRId32 " %" PRId32, instance.name, instance.smem_bytes,
             instance.plan.threads, instance.plan.operands.stages);
    sum.add(text.get());
  }
  Text<48> key;
  key.add("%d.%d.%d-%016" PRIx64, DUALGEMM_VERSION_MAJOR, DUALGEMM_VERSION_MINOR, DUALGEMM_VERSION_PATCH,
          sum.get());
  return key;
}
const char* library_key() {
  static const Text<48> key = make_library_key();
  return key.get();
}

// Holds the bytes of a file, in memory that it maps itself.
class FileText {
 public:
  ~FileText() {
    if (bytes_) munmap(bytes_, size_);
    if (file_ >= 0) close(file_);
  }
  FileText() = default;
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;

  // Returns why the file cannot be read, or an empty text.
  Text<128> read(const char* path);
  std::string_view get() const { return {static_cast<const char*>(bytes_), size_}; }

 private:
  static Text<128> error(const char* what) {
    Text<128> text;
    char buffer[96];
    text.add("%s: %s", what, strerror_r(errno, buffer, sizeof buffer));
    return text;
  }
  int file_ = -1;
  void* bytes_ = nullptr;
  size_t size_ = 0;
};

Text<128> FileText::read(const char* path) {
  Text<128> refused;
  file_ = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) return error("cannot be opened");
  struct stat about {};
  if (fstat(file_, &about) != 0) return error("cannot be looked at");
  if (!S_ISREG(about.st_mode)) return refused.add("is no ordinary file"), refused;
  if (about.st_size == 0) return refused.add("line 1: the file is empty"), refused;
  if (about.st_size > kMostFileBytes)
    return refused.add("has %jd bytes, and a tuning file at most %jd", static_cast<intmax_t>(about.st_size),
                       static_cast<intmax_t>(kMostFileBytes)),
           refused;
  const auto size = static_cast<size_t>(about.st_size);
  void* const bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return error("no memory");
  bytes_ = bytes;
  size_ = size;
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(file_, static_cast<char*>(bytes) + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error("cannot be read");
    if (got == 0) return refused.add("became shorter while it was read"), refused;
    done += static_cast<size_t>(got);
  }
  return refused;
}

bool same_entries(std::span<const TunedEntry> left, std::span<const TunedEntry> right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const TunedEntry& x, const TunedEntry& y) {
                      return x.weights == y.weights && x.rows == y.rows && x.index == y.index;
                    });
}

// Reads one file and puts it in force. `name` is what messages call it: "path", or the variable.
class Loading {
 public:
  Loading(const char* name, const char* path, const dualgemm_device_t& device)
      : name_(name), path_(path), device_(device) {}

  dualgemm_status_t load();

 private:
  // Says what is wrong with a line, or with line = 0 what is wrong with the file.
  [[gnu::format(printf, 4, 5)]] dualgemm_status_t refuse(dualgemm_status_t status, int32_t line,
                                                         const char* format, ...);
  dualgemm_status_t check_place(const TuningPlace& place);
  dualgemm_status_t add_entry(const TuningLine& line, int32_t number);
  dualgemm_status_t publish();

  const char *name_, *path_;
  const dualgemm_device_t& device_;
  size_t count_ = 0;  // entries of this file, which follow those of the files before
};

dualgemm_status_t Loading::refuse(dualgemm_status_t status, int32_t line, const char* format, ...) {
  char why[384];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  Text<24> where;
  if (line > 0) where.add("line %" PRId32 ": ", line);
  return fail(status, "%s=%s: %s%s", name_, shown_path(path_), where.get(), why);
}

// Checks that the file is for this device, driver and library. A message names what differs.
dualgemm_status_t Loading::check_place(const TuningPlace& place) {
  const std::string_view gpu{device_.name, strnlen(device_.name, sizeof device_.name)};
  const auto length = [](std::string_view text) {
    return static_cast<int>(std::min<size_t>(text.size(), 67));
  };
  if (place.gpu != gpu || place.sms != device_.sm_count)
    return refuse(DUALGEMM_STATUS_NOT_SUPPORTED, place.gpu_line,
                  "gpu %.*s with %" PRId32 " SMs: the current device is %.*s with %" PRId32,
                  length(place.gpu), place.gpu.data(), place.sms, length(gpu), gpu.data(), device_.sm_count);
  if (place.driver != device_.driver_version)
    return refuse(DUALGEMM_STATUS_NOT_SUPPORTED, place.driver_line,
                  "driver %" PRId32 ": that of this machine is %" PRId32, place.driver,
                  device_.driver_version);
  if (place.library != library_key())
    return refuse(DUALGEMM_STATUS_NOT_SUPPORTED, place.library_line, "library %.*s: this one is %s",
                  length(place.library), place.library.data(), library_key());
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t Loading::add_entry(const TuningLine& line, int32_t number) {
  const Arch arch = served_architecture(device_)->arch;
  const InstanceKind kind{arch, static_cast<CType>(line.c_dtype), line.general,
                          static_cast<CType>(line.a_dtype), line.products};
  const int name = static_cast<int>(std::min<size_t>(line.instance.size(), 80));
  int32_t index = 0;
  while (index < instance_count() && instance(index).name != line.instance) ++index;
  if (index == instance_count())
    return refuse(DUALGEMM_STATUS_INVALID_VALUE, number, "\"%.*s\": the library has no such instance", name,
                  line.instance.data());
  const Instance& named = instance(index);
  if (!is_kind(named, kind) || named.plan.tile.grouped != line.grouped)
    return refuse(DUALGEMM_STATUS_INVALID_VALUE, number, "%.*s: does not compute what the line says", name,
                  line.instance.data());
  if (state.entry_count + count_ == kMostEntries)
    return refuse(DUALGEMM_STATUS_NOT_SUPPORTED, number,
                  "a process has room for %zu entries of all files it loads", kMostEntries);
  state.entries[state.entry_count + count_++] = {
      {kind, line.grouped, line.problems, line.n, line.k}, line.rows, index, number};
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t Loading::publish() {
  const std::span<TunedEntry> entries{state.entries.data() + state.entry_count, count_};
  std::sort(entries.begin(), entries.end(), comes_before);
  for (size_t i = 1; i < count_; ++i)
    if (!comes_before(entries[i - 1], entries[i]))
      return refuse(DUALGEMM_STATUS_INVALID_VALUE, std::max(entries[i - 1].line, entries[i].line),
                    "line %" PRId32 " is about the same size",
                    std::min(entries[i - 1].line, entries[i].line));
  const Tuning* known = nullptr;
  for (size_t i = 0; i < state.tuning_count && !known; ++i)
    if (const Tuning& before = state.tunings[i];
        before.sms == device_.sm_count && before.driver == device_.driver_version &&
        std::memcmp(before.gpu, device_.name, sizeof before.gpu) == 0 &&
        same_entries(before.entries, entries))
      known = &before;
  if (!known) {
    if (state.tuning_count == kMostTunings)
      return refuse(DUALGEMM_STATUS_NOT_SUPPORTED, 0, "a process has room for %zu files", kMostTunings);
    Tuning& tuning = state.tunings[state.tuning_count++];
    std::memcpy(tuning.gpu, device_.name, sizeof tuning.gpu);
    tuning.sms = device_.sm_count;
    tuning.driver = device_.driver_version;
    tuning.entries = entries;
    state.entry_count += count_;
    known = &tuning;
  }
  std::snprintf(state.path, sizeof state.path, "%s", path_);
  in_force.store(known, std::memory_order_release);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t Loading::load() {
  FileText file;
  if (const Text<128> refused = file.read(path_); refused.get()[0] != '\0')
    return refuse(DUALGEMM_STATUS_INVALID_VALUE, 0, "%s", refused.get());
  TuningReader reader(file.get());
  TuningPlace place;
  // These lines are checked first, since the file of another build may have other entries.
  if (reader.read_place(&place)) {
    if (auto status = check_place(place)) return status;
    for (TuningLine line; reader.read_entry(&line);)
      if (auto status = add_entry(line, reader.line())) return status;
  }
  if (reader.fault()[0] != '\0')
    return refuse(DUALGEMM_STATUS_INVALID_VALUE, reader.line(), "%s", reader.fault());
  return publish();
}

// Loads a file, under the mutex, and notes what became of it.
dualgemm_status_t load_noted(const char* name, const char* path, const dualgemm_device_t& device) {
  state.status = Loading(name, path, device).load();
  state.from_environment = name == kVariable;
  std::snprintf(state.message, sizeof state.message, "%s",
                state.status == DUALGEMM_STATUS_SUCCESS ? "" : dualgemm_last_error());
  return state.status;
}

dualgemm_status_t load(const char* path, const dualgemm_device_t& device) {
  if (auto status = check_device(device)) return status;
  const std::lock_guard lock(state.mutex);
  if (auto status = load_noted("path", path, device)) return status;
  settled.store(true, std::memory_order_release);
  return DUALGEMM_STATUS_SUCCESS;
}

void forget() {
  const std::lock_guard lock(state.mutex);
  state.status = DUALGEMM_STATUS_SUCCESS;
  state.message[0] = state.path[0] = '\0';
  state.from_environment = false;
  in_force.store(nullptr, std::memory_order_release);
  settled.store(true, std::memory_order_release);
}

// Returns the path that the variable has, or null if there is nothing to read, now or later.
const char* environment_path() {
  const char* const path = std::getenv(kVariable);
  if (path && path[0] != '\0') return path;
  settled.store(true, std::memory_order_release);
  return nullptr;
}

}  // namespace

const Tuning* tuning_for(const dualgemm_device_t& device) {
  const Tuning* const tuning = in_force.load(std::memory_order_acquire);
  if (!tuning || tuning->sms != device.sm_count || tuning->driver != device.driver_version ||
      std::strncmp(tuning->gpu, device.name, sizeof tuning->gpu) != 0)
    return nullptr;
  return tuning;
}

void read_environment_tuning(const dualgemm_device_t& device) {
  if (settled.load(std::memory_order_acquire)) return;
  const char* const path = environment_path();
  const UnreportedErrors unreported;
  if (!path || check_device(device) != DUALGEMM_STATUS_SUCCESS) return;
  const std::lock_guard lock(state.mutex);
  if (settled.load(std::memory_order_relaxed)) return;
  load_noted(kVariable, path, device);
  settled.store(true, std::memory_order_release);
}

void read_environment_tuning(const dualgemm_device_t& device, cudaStream_t stream) {
  if (settled.load(std::memory_order_acquire) || !environment_path()) return;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
  if (cudaStreamIsCapturing(stream, &capture) != cudaSuccess || capture != cudaStreamCaptureStatusNone)
    return;
  read_environment_tuning(device);
}

}  // namespace dualgemm

using namespace dualgemm;

void dualgemm_tuning_info_init_sized(dualgemm_tuning_info_t* info, size_t struct_size) noexcept {
  init_structure(info, struct_size, nullptr, 0);
}

dualgemm_status_t dualgemm_load_tuning(const char* path) noexcept {
  clear_last_error();
  if (!path) return forget(), DUALGEMM_STATUS_SUCCESS;
  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  return load(path, device);
}

dualgemm_status_t dualgemm_tuning_info(dualgemm_tuning_info_t* info) noexcept {
  clear_last_error();
  if (auto status = check_structure(kTuningInfoStructure, info)) return status;
  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  read_environment_tuning(device);
  dualgemm_tuning_info_t known{};
  const std::lock_guard lock(state.mutex);
  known.status = state.status;
  known.from_environment = state.from_environment;
  known.library = library_key();
  std::memcpy(known.path, state.path, sizeof known.path);
  std::memcpy(known.message, state.message, sizeof known.message);
  if (const Tuning* const tuning = tuning_for(device))
    known.entries = static_cast<int32_t>(tuning->entries.size());
  write_structure(kTuningInfoStructure, &known, info);
  return DUALGEMM_STATUS_SUCCESS;
}
