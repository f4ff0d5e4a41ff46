// planter.h -- what planting bugs by hand takes: places of a kernel by name, the edits that several bugs
// share, and what a right report says of the rings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mutation/planted.h"

namespace mutation {

class Planter {
 public:
  using Edit = std::function<void(Function&)>;
  explicit Planter(const Bench& bench)
      : bench_(bench), kernel_(bench.kernel()), plan_(bench.subject().plan()), places_(bench.kernel()) {}

 protected:
  // Returns the n-th `opcode` inlined through `path`. Throws std::runtime_error when there are fewer.
  size_t at(const std::string& opcode, const std::string& path, size_t n = 0) const;
  // These return those of them that work on a barrier of the ring: one, or all.
  size_t at_ring(const std::string& opcode, const std::string& path, const std::string& ring,
                 size_t n = 0) const;
  std::vector<size_t> all_at_ring(const std::string& opcode, const std::string& path,
                                  const std::string& ring) const;
  const Statement& statement(size_t i) const { return kernel_.body[i]; }
  // Returns the ring of those that free stages whose waits cover the other's: a load role waits for a scale
  // stage first, and what frees it comes after what frees the stages of the same k-tiles.
  const char* covering_ring() const {
    const bool scales = plan_.scales.stages * plan_.scales.k_tiles <= plan_.operands.stages;
    return scales ? "scale_empty" : "empty";
  }
  // Returns the statement with this spelling that computes `reg`.
  size_t writer(uint32_t reg, const std::string& opcode) const;

  void plant(int number, const std::string& bug, size_t at, Edit edit, Expectation expected);
  void absent(int number, const std::string& bug, const std::string& why);

  // Takes out the arrives of a cluster barrier, and the wait that follows each directly: one, or those of
  // different roles that meet there.
  static Edit without_barrier(std::vector<size_t> arrives);
  static Edit no_wait(size_t wait);  // an mbarrier.try_wait succeeds at once
  static Edit no_waits(std::vector<size_t> waits);
  static Edit erased(std::vector<size_t> statements);
  // The barriers of the ring are initialised for `delta` arrivals more.
  Edit count_changed(const std::string& ring, int64_t delta) const;
  static Edit without_bytes(size_t arrive);    // arrive.expect_tx becomes a plain arrive
  static Edit arrival_instead(size_t commit);  // an arrival of the thread, without waiting for the mma

  const Bench& bench_;
  const Function& kernel_;
  const dualgemm::Plan& plan_;
  Places places_;
  std::vector<Planted> out_;
};

// The checkers say this of the stages of shared memory and of the accumulators.
inline const Answer kStageRace = {
    {"race-async"}, {"cp.async.bulk.tensor", "tcgen05.mma", "tcgen05.cp"}, {}, {}};
inline const Answer kFullBarrier = {{"mbarrier-*", "deadlock"}, {}, {"full"}, {}};
inline const Answer kEmptyBarrier = {{"mbarrier-*", "deadlock"}, {}, {"empty"}, {}};
inline const Answer kScaleBarrier = {{"mbarrier-*", "deadlock"}, {}, {"scale_full", "scale_empty"}, {}};
inline const Answer kNotDrained = {
    {"exit-*", "mbarrier-commit-overtaken"}, {"tcgen05.commit"}, {}, {"exit", "is freed"}};
inline const Answer kTensorRace = {{"race-tensor"}, {"tcgen05.ld", "tcgen05.mma", "tcgen05.cp"}, {}, {}};
inline const Answer kTensorFence = {{"tensor-fence", "relaxed-wait"}, {"tcgen05.ld", "tcgen05.mma"}, {}, {}};
// The sums that another CTA sends, and those that go to different CTAs than the bytes that count for them.
inline const Answer kSent = {{"race-*", "proxy-*"}, {"st.async"}, {}, {"was never written"}};
inline const Answer kOtherCta = {{}, {}, {}, {"st.async"}};
inline Answer barrier_of(const char* ring) { return {{"mbarrier-*", "deadlock"}, {}, {ring}, {"mbarrier"}}; }

// These are the parts of the list, by what the kernel has.
std::vector<Planted> planted_in_cta(const Bench& bench);
std::vector<Planted> planted_in_pair(const Bench& bench);
std::vector<Planted> planted_in_split(const Bench& bench);
std::vector<Planted> planted_in_overlapped(const Bench& bench);
std::vector<Planted> planted_in_grouped(const Bench& bench);
std::vector<Planted> planted_in_general(const Bench& bench);
std::vector<Planted> planted_in_sm90(const Bench& bench);
std::vector<Planted> planted_in_pass(const Bench& bench);

}  // namespace mutation
