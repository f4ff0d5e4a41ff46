// names.h -- what the bytes of a run are called. Names are learned from the program itself: a barrier is
// known by the line that initialised it, shared memory by the TMA load that fills it, tensor memory by the
// instruction that writes it, global memory by its allocation. A table of the user takes precedence over all
// learned names.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/exec/per_grid.h"
#include "sim/mem/global.h"

namespace sim {

// {"shared": [{"offset": 1024, "bytes": 16384, "name": "A stage 0"}],
//  "tensor": [{"column": 0, "columns": 128, "name": "accumulator 0"}]}
// Offsets count from the start of a CTA's shared window, where the first 1024 bytes are the system's.
struct NameTable {
  struct Shared {
    uint64_t offset, bytes;
    std::string name;
  };
  struct Tensor {
    uint32_t column, columns;
    std::string name;
  };
  std::vector<Shared> shared;
  std::vector<Tensor> tensor;
};
// Throws std::runtime_error, which names the file and what is wrong with it.
NameTable read_names(const std::string& file);

class Names : public Observer {
 public:
  explicit Names(GlobalMemory& memory) : memory_(memory) {}
  void set_table(NameTable table) { table_ = std::move(table); }

  void start(const GridStart& grid) override;
  void resume(uint64_t work) override { learned_.resume(work); }
  void finish(const char*) override { learned_.finish(); }
  void issue(const AsyncIssue& issue) override;
  void sync(const SyncEvent& event) override;

  // The name is empty when nothing is known.
  std::string of(const Region& region) const;
  std::string of(const MbarrierRef& mbarrier) const;
  // Returns the allocation that holds a global address, or null when there is none.
  const GlobalMemory::Allocation* allocation(uint64_t address) const;

 private:
  using Place = std::pair<uint64_t, std::string>;  // CTA, the whole chain of source lines
  // One of the things that a line of the source made.
  struct Known {
    Place place;
    uint32_t ordinal;  // from 1
    std::string line;  // the link of the chain that says most
    uint64_t bytes = 0;
    std::string detail;
  };
  struct Columns {
    uint32_t first, count;
    std::string name;
  };
  void learn_load(const AsyncIssue& issue);
  void learn_columns(const AsyncIssue& issue, const char* what);

  GlobalMemory& memory_;
  NameTable table_;
  struct Learned {        // of a grid
    uint64_t window = 0;  // bytes of a shared window that starts where it always does
    uint64_t shift = 0;   // by which the schedule lets it start later: the table does not move
    uint64_t param_base = 0, param_bytes = 0;
    std::map<std::pair<uint64_t, uint64_t>, Known> barriers, shared;  // by CTA and offset
    std::map<Place, uint32_t> barriers_of, loads_of;                  // how many a line made
    std::map<uint64_t, std::vector<Columns>> tensor;                  // by CTA
  };
  PerGrid<Learned> learned_;
};

// Returns where an instruction stands, as "sm100/mma.cuh:41": the innermost line of its chain, or the line
// that calls a function which only wraps the instruction. It is empty without line information.
std::string source_line(const Inst& inst);
// Returns the text of "file:line" where the file can be read from the current directory, else an empty text.
std::string quote_source(const std::string& line);

}  // namespace sim
