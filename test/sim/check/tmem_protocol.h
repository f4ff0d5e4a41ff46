// tmem_protocol.h -- what tensor memory holds, as far as operations say: whose scale factors a column carries
// and whether an accumulator was already read out. Allocation, bounds, alignment and cells never written are
// the machine's faults.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/check/protocol_image.h"

namespace sim::protocol {

class TmemProtocol {
 public:
  TmemProtocol(const FindingSink& sink, const SharedImage& image) : sink_(sink), image_(image) {}
  void start();
  void issue(const AsyncIssue& issue);
  void sync(const SyncEvent& event);

 private:
  static constexpr size_t kColumns = 512;
  // Identifies the operands of an MMA by their bytes and the copies that wrote them. Two MMAs of one k-tile
  // share A or B.
  struct Operands {
    uint64_t a = 0, a_copy = 0, b = 0, b_copy = 0;
    bool same_a(const Operands& o) const { return a == o.a && a_copy == o.a_copy; }
    bool same_b(const Operands& o) const { return b == o.b && b_copy == o.b_copy; }
  };
  struct Column {
    bool used = false;  // as scale factors, since it was written
    Operands user;      // the MMA that used it last
    Site user_site, writer;
    bool read_out = false;  // by tcgen05.ld, since an MMA or tcgen05.st wrote it
    Site reader;
  };
  using Columns = std::array<Column, kColumns>;

  Columns& of(uint64_t cta);
  Operands operands(const AsyncIssue& issue) const;
  void mma(const AsyncIssue& issue);
  void check_scales(const AsyncIssue& issue, const Region& region, const Operands& operands);
  void check_accumulator(const AsyncIssue& issue, const Region& region);
  bool first_time(const char* rule_id, const Inst* inst) { return said_.emplace(rule_id, inst).second; }

  const FindingSink& sink_;
  const SharedImage& image_;
  std::unordered_map<uint64_t, Columns> ctas_;
  std::set<std::pair<const char*, const Inst*>> said_;
};

}  // namespace sim::protocol
