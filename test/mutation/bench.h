// bench.h -- a kernel instance on the simulated device with a problem and its expected result, ready to run
// again and again: as it ships or edited, under any schedule, with every checker watching. The problem is
// small but wraps every ring several times: one CTA or cluster, several tiles, several k-tiles each; with
// stream-K a few teams of CTAs. The result is within its bounds, and has the same bits in every schedule. A
// preceding kernel writes what it reads, and it may start before that one has ended; a following one may
// start before it has ended, and reads weights that the preceding one wrote.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mutation/edit.h"
#include "mutation/mutate.h"
#include "mutation/preceding.h"
#include "sim/check/finding.h"
#include "support/device_problem.h"
#include "support/expected.h"

namespace mutation {

// A schedule is a policy by name and seed (sim/schedule/schedule.h).
struct Schedule {
  std::string mode;
  uint64_t seed = 0;
};

// A sighting is one finding, reduced to what a table can name.
struct Sighting {
  std::string rule, summary;
  sim::Severity severity = sim::Severity::kError;
  std::string later, earlier;                 // `opcode @ path` of both parties, empty when unknown
  uint32_t later_line = 0, earlier_line = 0;  // PTX lines
  std::set<std::string> rings;                // of barriers that it names: "full", "empty"
};

enum class Outcome { kClean, kFault, kHang, kError, kStrict, kWrongValues };
const char* name(Outcome outcome);

struct Run {
  Schedule schedule;
  Outcome outcome = Outcome::kClean;  // the strongest reason to reject the run
  std::string fault;                  // the machine's report, empty when the grid ended
  std::set<std::string> fault_rings;  // of barriers that the report names
  std::string values;                 // the first wrong output
  std::vector<Sighting> sightings;    // E and S
};

// One CTA or cluster works on it. Grouped instances divide the m rows among groups.
struct Shape {
  int32_t m, n, k;
};
// Returns a shape for an instance in which every ring wraps several times in one CTA, and m, n and k are
// ragged.
Shape smoke_shape(const dualgemm_test::NamedInstance& instance);

// The kernel of an instance is attacked, or the pass over A before it.
enum class Part { kKernel, kPass };

class Bench {
 public:
  explicit Bench(const std::string& instance, Part part = Part::kKernel,
                 const Shape* shape = nullptr);  // null: the smoke shape
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  const Subject& subject() const { return subject_; }
  // Returns the function under attack as it ships: the kernel, or of a general instance for compute
  // capability 10.x the epilogue, which is a function of its own; the other roles are those of the plain one.
  const sim::ptx::Function& kernel() const { return kernel_; }
  const Shape& shape() const { return shape_; }
  // Returns the rings of barriers, "full", "window_free", that a statement of the shipping kernel works on,
  // by its PTX line.
  const std::set<std::string>& rings_of(uint32_t ptx_line) const;

  // Says whether a run of the shipping kernel executes a statement, by its PTX line.
  bool reaches(uint32_t ptx_line) const { return reached_.contains(ptx_line); }

  // Every later run executes the kernel with this function edited, or its entry, or with null the shipping
  // one.
  void use(std::function<void(sim::ptx::Function&)> edit, bool in_entry = false);
  Run run(const Schedule& schedule);

 private:
  void load();
  void launch() const;
  void launch_to_load(sim::Observer& observer);
  Sighting sighting(const sim::Finding& finding) const;
  void name_barriers(const std::set<uint32_t>& offsets);
  void add_ring(uint32_t offset,
                std::set<std::string>& rings) const;  // of the barrier there, if there is one
  std::set<std::string> rings_in(const std::string& text) const;
  std::string compare_output();

  Subject subject_;
  std::string entry_;                  // its name in the PTX
  std::vector<std::string> launched_;  // the kernels of a launch, by their names
  Shape shape_{};
  dualgemm_test::ProblemSet set_;
  std::vector<std::shared_ptr<const dualgemm_test::Expected>> expected_;
  std::unique_ptr<dualgemm_test::DeviceSet> device_;
  std::vector<dualgemm_test::Output> bits_;  // of the first run
  PrecedingBuffers preceding_{}, weights_{};
  sim::ptx::Function kernel_;
  std::map<uint32_t, std::string> ring_of_;          // by the offset of a barrier behind the rings of a CTA
  std::map<uint32_t, std::set<std::string>> rings_;  // by the PTX line of a statement
  std::set<uint32_t> reached_;
  std::function<void(sim::ptx::Function&)> edit_;
  bool in_entry_ = false;
  static Bench* loaded_;  // whose edit the runtime applies: it has one editor
};

}  // namespace mutation
