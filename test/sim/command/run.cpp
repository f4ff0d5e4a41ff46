// run.cpp -- see run.h.
#include "sim/command/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

namespace command {
namespace {

// Makes a temporary file that is deleted with this object.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/dualgemm-sim.XXXXXX";
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::runtime_error(path_ + " cannot be made: " + std::strerror(errno));
    close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void set_or_clear(const char* name, const std::string& value) {
  if (value.empty()) unsetenv(name);
  else setenv(name, value.c_str(), 1);
}

// Runs in the child and never returns. A failed exec is told through `alarm`, which a successful one closes.
[[noreturn]] void become(const RunOptions& options, const std::string& report, int alarm) {
  setpgid(0, 0);                     // to be ended with all it starts
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // and not to outlive the command
  // Every run gets the same addresses; where that is forbidden, it does without.
  personality(ADDR_NO_RANDOMIZE);
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string path =
      options.runtime + (before != nullptr && *before != 0 ? std::string(":") + before : "");
  set_or_clear("LD_LIBRARY_PATH", path);
  set_or_clear("SIM_MACHINE", options.machine);
  set_or_clear("SIM_MODE", options.mode);
  set_or_clear("SIM_SEED", std::to_string(options.seed));
  set_or_clear("SIM_CHECKS", options.checks);
  set_or_clear("SIM_TRACE", options.trace);
  set_or_clear("SIM_NAMES", options.names);
  set_or_clear("SIM_JSON", report);
  set_or_clear("SIM_CONTINUE", options.go_on ? "1" : "");
  set_or_clear("SIM_ELECT_LOWEST", options.elect_lowest ? "1" : "");
  set_or_clear("SIM_PATIENCE", std::to_string(options.patience));
  set_or_clear("SIM_ALIGN_AS_DECLARED", options.align_as_declared ? "" : "0");
  set_or_clear("SIM_QUIET", "1");
  if (options.quiet) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  std::vector<char*> words;
  for (const std::string& word : options.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t told = write(alarm, &why, sizeof why);
  _exit(127);
}

// Waits until the child ends or its time is up; then its whole process group is ended.
int wait_for(pid_t child, double timeout, bool* timed_out) {
  using Clock = std::chrono::steady_clock;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
  int status = 0;
  while (waitpid(child, &status, timeout > 0 ? WNOHANG : 0) == 0) {
    if (Clock::now() >= end) {
      *timed_out = true;
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

void read_report(const std::string& path, RunResult& result) {
  std::ifstream in(path);
  const nlohmann::json report = nlohmann::json::parse(in, nullptr, false);
  if (report.is_discarded()) return;  // it never came to a launch, or was ended while it wrote
  result.judged = report.at("finished");
  result.grids = report.at("grids");
  result.findings = report.at("findings").get<std::vector<sim::Report>>();
  result.certificate = report.at("certificate").get<sim::CertificateText>();
}

}  // namespace

RunResult run(const RunOptions& options) {
  const TemporaryFile report;
  int alarm[2];
  if (pipe2(alarm, O_CLOEXEC) != 0) throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("no child process: ") + std::strerror(errno));
  if (child == 0) become(options, report.path(), alarm[1]);
  close(alarm[1]);
  int why = 0;
  const bool failed = read(alarm[0], &why, sizeof why) == ssize_t(sizeof why);
  close(alarm[0]);

  RunResult result;
  result.mode = options.mode;
  result.seed = options.seed;
  const int status = wait_for(child, options.timeout, &result.timed_out);
  if (failed)
    throw std::runtime_error("program " + options.program[0] + " cannot be started: " + std::strerror(why));
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  else result.status = WEXITSTATUS(status);
  read_report(report.path(), result);
  return result;
}

}  // namespace command
