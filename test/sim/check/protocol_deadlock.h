// protocol_deadlock.h -- why a grid cannot move: who waits for which barrier and phase, what that phase still
// lacks, who brought it in earlier phases, who runs in a circle, and the cycle these waits form.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/mbarrier_protocol.h"

namespace sim::protocol {

class DeadlockExplainer {
 public:
  DeadlockExplainer(const FindingSink& sink, const MbarrierProtocol& mbarriers)
      : sink_(sink), mbarriers_(mbarriers) {}
  void start(uint32_t threads_per_cta);
  void sync(const SyncEvent& event);
  void spins(const Spin& spin) { spins_.push_back(spin); }
  void explain();

 private:
  struct WarpId {
    uint64_t cta = 0;
    uint32_t warp = 0;
    auto operator<=>(const WarpId&) const = default;
  };
  // Says what lanes of a warp wait for, according to the last event that they reported.
  struct Waiting {
    enum class For : uint8_t { kMbarrier, kNamedBarrier, kClusterBarrier, kColumns };
    For what = For::kMbarrier;
    uint32_t lanes = 0;
    SyncEvent event;
  };
  struct Warp {
    uint32_t live = 0;
    std::vector<Waiting> waiting;
  };
  // Holds the open generation of a barrier of threads, and who came to the last one that ended.
  struct Meeting {
    uint64_t generation = 0;
    int64_t asked = 0;
    std::map<WarpId, uint32_t> here, before;
    void arrive(uint64_t in, const WarpId& who, uint32_t lanes);
    void leave(uint64_t from);
  };
  struct Cta {
    uint64_t cluster = 0;
    std::map<uint64_t, Meeting> named;
    std::map<uint64_t, SyncEvent> columns;  // of tensor memory, by the first: who allocated them
  };
  // A reason is one wait, explained.
  struct Reason {
    WarpId who;
    std::string subject, what;  // "CTA 0 warp 1 lane 0", "waits for ..."
    std::vector<std::string> lines;
    std::string advice;         // told once, however many waits it is for
    std::vector<WarpId> lacks;  // warps that can end it
    std::string missing;        // the one thing that would
    Site site;
    bool has_mbarrier = false;
    MbarrierRef mbarrier;
    std::optional<Region> region;
  };

  void clear(const SyncEvent& event);
  void set(Waiting::For what, const SyncEvent& event);
  Reason reason(const WarpId& who, const Waiting& waiting) const;
  void explain_mbarrier(const Waiting& waiting, Reason& out) const;
  void hint(const MbarrierRecord& barrier, const Waiting& waiting, Reason& out) const;
  void explain_meeting(const Meeting* meeting, const std::vector<WarpId>& expected, Reason& out) const;
  void explain_named(const Waiting& waiting, Reason& out) const;
  void explain_cluster(Reason& out) const;
  void explain_columns(const Waiting& waiting, Reason& out) const;
  bool asks_for_columns(uint64_t cta) const;
  static Reason reason(const Spin& spin);
  static void list(const std::vector<Reason>& reasons, uint64_t first_cta, Finding& out);
  std::vector<WarpId> cycle(const std::vector<Reason>& reasons) const;

  const FindingSink& sink_;
  const MbarrierProtocol& mbarriers_;
  uint32_t threads_ = 0;
  std::map<WarpId, Warp> warps_;
  std::map<uint64_t, Cta> ctas_;
  std::map<uint64_t, Meeting> clusters_;
  std::vector<Spin> spins_;
};

}  // namespace sim::protocol
