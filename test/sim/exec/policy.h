// policy.h -- every choice the ISA leaves open: who moves next, when asynchronous work lands, whether a wait
// wakes early. A policy sees identities only; whatever it answers is a legal run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {

struct Agent {
  enum class Kind : uint8_t { kWarp, kAsync };
  Kind kind;
  uint64_t id;  // warp: index within the cluster; asynchronous operation: its issue number, rising
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual size_t next(
      const std::vector<Agent>& agents) = 0;   // index of the agent that moves; agents is not empty
  virtual uint32_t quantum() { return 512; }   // instructions a warp may run before the next choice
  virtual bool wake_early() { return false; }  // try_wait returns false although nothing changed
  // True: tcgen05 operations of one thread start in issue order. False: only the pairs the ISA lists stay
  // ordered.
  virtual bool keep_tensor_order() { return true; }
};

// Asynchronous work lands first, oldest first; warps take turns in index order.
class DefaultPolicy : public Policy {
 public:
  size_t next(const std::vector<Agent>& agents) override;

 private:
  uint64_t last_warp_ = ~uint64_t(0);  // nobody yet: the first warp is next
};

}  // namespace sim
