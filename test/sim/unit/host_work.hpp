// host_work.hpp -- what tests of the order of host work share: a watcher that remembers this order, streams,
// events.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"

namespace {

class Recorder : public sim::Observer {
 public:
  Recorder() {
    sim::LaunchOptions options;
    options.observer = this;
    sim::shim::set_launch_options(options);
  }
  ~Recorder() override { sim::shim::set_launch_options({}); }
  void host(const sim::HostWork& work) override { works.push_back(work); }

  const sim::HostWork& last(const std::string& what) const {
    for (auto work = works.rbegin(); work != works.rend(); ++work)
      if (work->what.find(what) != std::string::npos) return *work;
    FAIL("no work is called " << what);
    throw 0;
  }
  // Says whether `later` is after `earlier`, at once or through others.
  bool ordered(const sim::HostWork& earlier, const sim::HostWork& later) const {
    std::vector<uint64_t> open = later.after;
    while (!open.empty()) {
      const uint64_t id = open.back();
      open.pop_back();
      if (id == earlier.id) return true;
      for (const sim::HostWork& work : works)
        if (work.id == id && id > earlier.id) open.insert(open.end(), work.after.begin(), work.after.end());
    }
    return false;
  }
  bool ordered(const std::string& earlier, const std::string& later) const {
    return ordered(last(earlier), last(later));
  }
  std::vector<sim::HostWork> works;
};

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    REQUIRE(cudaStreamCreateWithFlags(&handle, flags) == cudaSuccess);
  }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { REQUIRE(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming) == cudaSuccess); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

}  // namespace
