// collector_protocol.h -- the collector of a tensor core, a buffer that keeps the A of one tcgen05.mma for
// the next. The simulated machine reads A from memory every time, so it computes what is meant; a real tensor
// core that was told to take A from the collector may take whatever is there.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "sim/check/protocol_image.h"

namespace sim::protocol {

class CollectorProtocol {
 public:
  CollectorProtocol(const FindingSink& sink, const SharedImage& image) : sink_(sink), image_(image) {}
  void start();
  void issue(const AsyncIssue& issue);
  void sync(const SyncEvent& event);

 private:
  struct Matrix {
    uint64_t descriptor = 0;  // or address in tensor memory
    bool in_tmem = false;
    uint32_t form = 0;             // the fields of the instruction descriptor that say how A is read
    std::vector<uint64_t> copies;  // the copy that wrote where A begins, in each CTA; 0: no copy
    bool operator==(const Matrix&) const = default;
  };
  struct Collector {
    bool used = false;  // by any MMA
    bool valid = false;
    Matrix a;
    Site by;  // the MMA that filled it, or that dropped what it held
  };
  Matrix matrix(const AsyncIssue& issue) const;
  void check(const AsyncIssue& issue, const Collector& collector, const Matrix& a);

  const FindingSink& sink_;
  const SharedImage& image_;
  std::unordered_map<uint64_t, Collector> collectors_;  // by CTA, of a pair the even one
  std::set<const Inst*> said_;
};

}  // namespace sim::protocol
