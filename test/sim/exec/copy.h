// copy.h -- a copy in flight: where its bytes come from, the image of them that it makes when its sources are
// read, and the pieces in which that image lands (is written to its destination). The image is laid out as in
// shared memory, where a copy is always one contiguous region; the global side of a copy is a list of spans.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/exec/policy.h"
#include "sim/mem/global.h"

namespace sim {

struct Cta;

// Counts the operations of one bulk or cp.async group that have not read their sources, and that have not
// completed.
struct CopyGroup {
  int unread = 0, pending = 0;
};

class Copy {
 public:
  struct Span {
    uint32_t at;  // in the image
    uint32_t bytes;
    uint64_t global;
  };
  struct Target {  // one region of shared memory and the barrier that counts its bytes, which cp.async lacks
    Cta* cta;
    uint32_t offset;
    Cta* barrier_cta = nullptr;
    uint32_t barrier = 0;
  };

  uint64_t bytes = 0;
  // A copy reads global spans or shared memory, or asks the machine for its image. If it does none of these,
  // its image was there at issue.
  std::vector<Span> sources;
  Cta* source = nullptr;
  uint32_t source_offset = 0;
  std::function<std::vector<uint8_t>()> answer;
  std::array<uint8_t, 16> fill{};  // the image where `sources` leave gaps
  // It writes the whole image to every target, or parts of the image to global spans.
  std::vector<Target> targets;
  std::vector<Span> destinations;
  std::shared_ptr<CopyGroup> group;
  std::vector<uint8_t> image;  // empty until the sources are read

  void join(const std::shared_ptr<CopyGroup>& of);
  bool sources_read() const { return !image.empty(); }
  bool complete() const { return planned_ && pieces_.empty(); }
  uint32_t ranks() const;  // CTAs of the cluster whose memory it still touches
  // True for stores to global memory and for cp.async: hardware keeps the memory of a CTA that has exited
  // until they are over. The checkers report that nobody waited for them.
  bool may_outlive_cta() const;

  void read(GlobalMemory& memory);                   // captures the sources
  void piece(GlobalMemory& memory, Policy& policy);  // one more piece lands and is counted
  void give_up();                                    // nothing more lands, but everything counts as if it had

  // Tells the observer the exact bytes.
  void footprint(AsyncIssue& facts) const;

 private:
  struct Piece {  // image bytes [begin, end) for targets [first, last); stores: for global memory
    size_t first, last;
    uint64_t begin, end;
  };
  void plan(uint32_t count);
  void land(const Piece& piece, GlobalMemory& memory) const;
  std::vector<Piece> pieces_;
  bool planned_ = false;
};

}  // namespace sim
