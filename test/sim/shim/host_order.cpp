// host_order.cpp -- see host_order.h.
#include "sim/shim/host_order.h"

#include <algorithm>

#include "sim/shim/held.h"
#include "sim/shim/judging.h"
#include "sim/shim/state.h"

namespace sim::shim {

bool contains(const Frontier& frontier, uint64_t id) {
  return std::find(frontier.begin(), frontier.end(), id) != frontier.end();
}

void merge(Frontier& into, const Frontier& from) {
  for (const uint64_t id : from)
    if (!contains(into, id)) into.push_back(id);
}

const HostOrder::Device& HostOrder::of(int device) const {
  static const Device kNone;
  const auto found = devices_.find(device);
  return found == devices_.end() ? kNone : found->second;
}

Frontier HostOrder::before(Runtime& runtime, const Stream& stream) const {
  const Device& device = of(stream.device);
  Frontier after = host_;
  merge(after, device.floor);
  merge(after, stream.done);
  Streams& streams = runtime.streams;
  if (streams.is_legacy(stream)) {
    streams.for_each([&](const Stream& other) {
      if (other.device == stream.device && streams.is_blocking(other)) merge(after, other.done);
    });
    merge(after, device.blocking_orphans);
  } else if (streams.is_blocking(stream)) {
    merge(after, streams.legacy(stream.device).done);
  }
  return after;
}

Frontier HostOrder::everything(Runtime& runtime, int device) const {
  Frontier all = host_;
  merge(all, of(device).floor);
  runtime.streams.for_each([&](const Stream& stream) {
    if (stream.device == device) merge(all, stream.done);
  });
  merge(all, of(device).blocking_orphans);
  merge(all, of(device).other_orphans);
  return all;
}

void HostOrder::host_waits(Runtime& runtime, const char* what, Frontier frontier) {
  run_held(runtime);
  merge(frontier, host_);
  WorkInProgress work{what, std::move(frontier)};
  WorkInProgress* const outer = current;
  current = &work;
  host_ = {announce(runtime, HostWork::Kind::kHost, {})};
  current = outer;
}

void HostOrder::orphan(const Stream& stream) {
  Device& device = devices_[stream.device];
  merge((stream.flags & cudaStreamNonBlocking) ? device.other_orphans : device.blocking_orphans, stream.done);
}

uint64_t HostOrder::announce(Runtime& runtime, HostWork::Kind kind, std::vector<Region> regions,
                             const std::string& what) {
  if (current == nullptr) return 0;
  current->id = next_++;
  const LaunchOptions options = launch_options(runtime);
  if (options.observer != nullptr)
    options.observer->host({kind, current->id, current->after, current->programmatic, std::move(regions),
                            what.empty() ? current->what : what, current->device});
  return current->id;
}

void append_region(std::vector<Region>& out, uint64_t address, uint64_t n, bool write) {
  constexpr uint64_t kMost = uint64_t(1) << 30;
  for (; n != 0; n -= std::min(n, kMost), address += kMost) {
    Region region;
    region.write = write;
    region.address = address;
    region.bytes = uint32_t(std::min(n, kMost));
    out.push_back(region);
    if (n <= kMost) break;
  }
}

}  // namespace sim::shim
