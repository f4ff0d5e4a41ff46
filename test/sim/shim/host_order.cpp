// host_order.cpp -- see host_order.h.
#include "sim/shim/host_order.h"

#include <algorithm>

#include "sim/shim/judging.h"
#include "sim/shim/state.h"

namespace sim::shim {

void merge(Frontier& into, const Frontier& from) {
  for (const uint64_t id : from)
    if (std::find(into.begin(), into.end(), id) == into.end()) into.push_back(id);
}

Frontier HostOrder::before(Runtime& runtime, const Stream& stream) const {
  Frontier after = host_;
  merge(after, stream.done);
  Streams& streams = runtime.streams;
  if (streams.is_legacy(stream)) {
    streams.for_each([&](const Stream& other) {
      if (streams.is_blocking(other)) merge(after, other.done);
    });
    merge(after, blocking_orphans_);
  } else if (streams.is_blocking(stream)) {
    merge(after, streams.find(nullptr).done);
  }
  return after;
}

Frontier HostOrder::everything(Runtime& runtime) const {
  Frontier all = host_;
  runtime.streams.for_each([&](const Stream& stream) { merge(all, stream.done); });
  merge(all, blocking_orphans_);
  merge(all, other_orphans_);
  return all;
}

void HostOrder::host_waits(Runtime& runtime, const char* what, Frontier frontier) {
  merge(frontier, host_);
  WorkInProgress work{what, std::move(frontier)};
  WorkInProgress* const outer = current;
  current = &work;
  host_ = {announce(runtime, HostWork::Kind::kHost, {})};
  current = outer;
}

void HostOrder::orphan(const Stream& stream) {
  merge((stream.flags & cudaStreamNonBlocking) ? other_orphans_ : blocking_orphans_, stream.done);
}

uint64_t HostOrder::announce(Runtime& runtime, HostWork::Kind kind, std::vector<Region> regions,
                             const std::string& what) {
  if (current == nullptr) return 0;
  current->id = next_++;
  const LaunchOptions options = launch_options(runtime);
  if (options.observer != nullptr)
    options.observer->host({kind, current->id, current->after, current->programmatic, std::move(regions),
                            what.empty() ? current->what : what});
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
