// parallel.cpp -- see parallel.h.
#include "mutation/parallel.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mutation {
namespace {

struct Child {
  pid_t pid;
  int pipe;
  size_t job;
  std::string text;
};

void write_all(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);
    done += static_cast<size_t>(n);
  }
}

Child start(size_t index, unsigned seconds, const std::function<std::string(size_t)>& job) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    signal(SIGPROF, SIG_DFL);
    // The limit is one of processor time: how many others share the machine makes no difference.
    const itimerval limit{{0, 0}, {static_cast<time_t>(seconds), 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    int status = 0;
    try {
      write_all(ends[1], job(index));
    } catch (const std::exception& error) {
      write_all(ends[1], error.what());
      status = 2;
    }
    _exit(status);  // no destructors: they belong to the parent
  }
  close(ends[1]);
  return {pid, ends[0], index, {}};
}

std::string how_it_died(int status, const std::string& text) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGPROF) return "time-out";
    return std::string("signal ") + strsignal(WTERMSIG(status));
  }
  return "exit " + std::to_string(WEXITSTATUS(status)) + ": " + text;
}

}  // namespace

void run_forked(size_t count, unsigned workers, unsigned seconds,
                const std::function<std::string(size_t)>& job,
                const std::function<void(size_t, const std::string&)>& done,
                const std::function<void(size_t, const std::string&)>& died) {
  std::vector<Child> children;
  size_t next = 0;
  while (next < count || !children.empty()) {
    while (next < count && children.size() < workers) children.push_back(start(next++, seconds, job));
    std::vector<pollfd> files;
    for (const Child& child : children) files.push_back({child.pipe, POLLIN, 0});
    if (poll(files.data(), files.size(), -1) < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
    }
    for (size_t i = children.size(); i-- > 0;) {
      if (files[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t n = read(children[i].pipe, buffer, sizeof buffer);
      if (n > 0) {
        children[i].text.append(buffer, static_cast<size_t>(n));
        continue;
      }
      const Child child = std::move(children[i]);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      close(child.pipe);
      int status = 0;
      while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
      }
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) done(child.job, child.text);
      else died(child.job, how_it_died(status, child.text));
    }
  }
}

unsigned default_workers() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : cores;
}

}  // namespace mutation
