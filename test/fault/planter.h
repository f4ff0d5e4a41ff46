// planter.h -- what planting bugs by hand takes: places of a kernel by name, the edits that several bugs
// share, and what a right report says of the rings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fault/planted.h"

namespace fault {

class Planter {
 public:
  using Edit = std::function<void(Function&)>;
  Planter(const Function& kernel, std::string instance)
      : kernel_(kernel), instance_(std::move(instance)), places_(kernel) {}

 protected:
  // The n-th `opcode` inlined through `path`. std::runtime_error: there are fewer.
  size_t at(const std::string& opcode, const std::string& path, size_t n = 0) const;
  const Statement& statement(size_t i) const { return kernel_.body[i]; }
  // The statement with this spelling that computes `reg`.
  size_t writer(uint32_t reg, const std::string& opcode) const;

  void plant(int number, const std::string& bug, size_t at, Edit edit, Expectation expected);
  void absent(int number, const std::string& bug, const std::string& why);

  static Edit no_wait(size_t wait);            // an mbarrier.try_wait succeeds at once
  static Edit without_bytes(size_t arrive);    // arrive.expect_tx becomes a plain arrive
  static Edit arrival_instead(size_t commit);  // an arrival of the thread, without waiting for the mma

  const Function& kernel_;
  std::string instance_;
  Places places_;
  std::vector<Planted> out_;
};

// What the checkers say of the stages of shared memory and of the accumulators.
inline const Answer kStageRace = {
    {"race-async"}, {"cp.async.bulk.tensor", "tcgen05.mma", "tcgen05.cp"}, {}, {}};
inline const Answer kFullBarrier = {{"mbarrier-*", "deadlock"}, {}, {"full"}, {}};
inline const Answer kEmptyBarrier = {{"mbarrier-*", "deadlock"}, {}, {"empty"}, {}};
inline const Answer kTensorRace = {{"race-tensor"}, {"tcgen05.ld", "tcgen05.mma", "tcgen05.cp"}, {}, {}};
inline const Answer kTensorFence = {{"tensor-fence"}, {"tcgen05.ld", "tcgen05.mma"}, {}, {}};

// The parts of the list, by what the kernel has.
std::vector<Planted> planted_in_cta(const Function& kernel, const std::string& instance);
std::vector<Planted> planted_in_pair(const Function& kernel, const std::string& instance);
std::vector<Planted> planted_in_split(const Function& kernel, const std::string& instance);

}  // namespace fault
