// environment_test.cpp -- the tuning file of DUALGEMM_TUNING, which a process reads once. Each question is
// put to a child that has called nothing yet. The parent calls nothing of the library.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

#include "host/include/dualgemm.h"
#include "support/catch.hpp"
#include "support/stream.h"
#include "support/tuning.h"
#include "unit/host/arguments.h"

using namespace dualgemm_test;

namespace {

// Runs a function in a child with this variable; returns what the function returns, or throws with.
std::string in_child(const std::string& path, const std::function<std::string()>& function) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    setenv("DUALGEMM_TUNING", path.c_str(), 1);
    std::string said;
    try {
      said = function();
    } catch (const std::exception& error) {
      said = std::string("threw: ") + error.what();
    }
    const bool written = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char part[256];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
    said.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0) said += ", and ended with " + std::to_string(status);
  return said;
}

// The tensors lie where nothing is; the file names the last instance that takes the launch.
dualgemm_args_t args() {
  dualgemm_args_t args = valid_args();
  args.c_dtype = DUALGEMM_DTYPE_FP16;
  return args;
}

std::string chosen() {
  const dualgemm_args_t asked = args();
  const dualgemm_device_t device = current_device();
  int32_t id = 0;
  check_status(dualgemm_select_instance(&asked, &device, &id));
  return dualgemm::instance(id - 1).name;
}

// Returns the text of a file for this machine, and the instance that it names, which is not the usual one.
std::string good_file(std::string* name) {
  const std::string both = in_child("", [] {
    const std::string usual = chosen();
    const dualgemm_device_t device = current_device();
    std::string other;
    for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
      dualgemm_args_t asked = args();
      asked.instance_id = id;
      const dualgemm::Instance& one = dualgemm::instance(id - 1);
      if (!one.epilogue.general && one.name != usual &&
          dualgemm_can_implement_on(&asked, &device) == DUALGEMM_STATUS_SUCCESS)
        other = one.name;
    }
    return other + "\n" + tuning_text({"2 NVFP4 FP16 plain dense 1 128 512 256 " + other});
  });
  *name = both.substr(0, both.find('\n'));
  return both.substr(both.find('\n') + 1);
}

}  // namespace

TEST_CASE("environment: the first question about the current device reads the file", "[environment]") {
  std::string name;
  const TemporaryFile file(good_file(&name), "environment");
  const std::function<void()> firsts[] = {[] { check_status(dualgemm_init()); },
                                          [] {
                                            const dualgemm_args_t asked = args();
                                            check_status(dualgemm_can_implement(&asked));
                                          },
                                          [] {
                                            const dualgemm_args_t asked = args();
                                            size_t bytes = 0;
                                            check_status(dualgemm_workspace_size(&asked, &bytes));
                                          },
                                          [] { tuning_info(); },
                                          // Without problems and K nothing is read from the tensors.
                                          [] {
                                            DeviceArray<uint8_t> c(1 << 20);
                                            dualgemm_args_t asked = args();
                                            asked.k = 0, asked.c = c.data();
                                            check_status(dualgemm_launch_ex(&asked, nullptr));
                                          }};
  for (const auto& first : firsts)
    CHECK(in_child(file.path(), [&] {
            first();
            return chosen();
          }) == name);
  const std::string told = in_child(file.path(), [] {
    const dualgemm_tuning_info_t info = tuning_info();
    return std::string(info.path) + " " + std::to_string(info.entries) + " " +
           std::to_string(info.from_environment) + " " + std::to_string(info.status) + " " + info.message;
  });
  CHECK(told == file.path() + " 1 1 0 ");
}

TEST_CASE("environment: a question about a described device reads no file", "[environment]") {
  std::string name;
  const TemporaryFile file(good_file(&name), "environment");
  CHECK(in_child(file.path(), chosen) != name);
}

TEST_CASE("environment: a launch into a capture reads nothing, one after it does", "[environment]") {
  std::string name;
  const TemporaryFile file(good_file(&name), "environment");
  CHECK(in_child(file.path(), [&] {
          const DeviceArray<uint8_t> c(1 << 20);
          dualgemm_args_t asked = args();
          asked.k = 0, asked.c = c.data();
          std::string in_capture;
          const Captured graph([&](cudaStream_t stream) {
            check_status(dualgemm_launch_ex(&asked, stream));
            in_capture = chosen();
          });
          check_status(dualgemm_launch_ex(&asked, nullptr));
          return (in_capture == chosen() ? "read in the capture: " : "") + chosen();
        }) == name);
}

TEST_CASE("environment: a file that is refused changes nothing, and tuning_info says why", "[environment]") {
  std::string name;
  const std::string good = good_file(&name);
  const TemporaryFile file(good + "more\n", "environment");
  const std::string told = in_child(file.path(), [&] {
    check_status(dualgemm_init());
    const dualgemm_tuning_info_t info = tuning_info();
    if (chosen() == name) return std::string("is in force");
    return std::string(info.message) + " " + std::to_string(info.entries) + info.path + " " +
           std::to_string(info.from_environment) + " " + std::to_string(info.status);
  });
  CHECK(told == "DUALGEMM_TUNING=" + file.path() + ": line 8: nothing may follow the line \"end\" 0 1 2");
  CHECK_THAT(in_child("/nowhere/at/all", [] { return std::string(tuning_info().message); }),
             Catch::StartsWith("DUALGEMM_TUNING=/nowhere/at/all: cannot be opened: "));
  CHECK(in_child("", [] { return std::string(tuning_info().message); }).empty());
}

TEST_CASE("environment: a file that the program has loaded, or its wish for none, stays", "[environment]") {
  std::string name;
  const TemporaryFile file(good_file(&name), "environment");
  CHECK(in_child(file.path(), [] {
          check_status(dualgemm_load_tuning(nullptr));
          check_status(dualgemm_init());
          return chosen() + tuning_info().path;
        }) != name + file.path());
  // A file that is refused says nothing about that of the environment.
  CHECK(in_child(file.path(), [] {
          dualgemm_load_tuning("/nowhere/at/all");
          check_status(dualgemm_init());
          return chosen();
        }) == name);
}
