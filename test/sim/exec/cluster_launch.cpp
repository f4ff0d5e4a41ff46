// cluster_launch.cpp -- what clusterlaunchcontrol.query_cancel reads in a response (PTX ISA 9.7.13.18).
#include "sim/exec/cluster_launch.h"

#include <cstring>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"

namespace sim {
namespace {

struct Response {
  uint32_t x, y, z, tag;
};
static_assert(sizeof(Response) == kCancelBytes);
constexpr uint32_t kCancelled = 0x434C4301, kFailed = 0x434C4300;  // "CLC" and a bit

}  // namespace

std::vector<uint8_t> cancel_response(const std::optional<Dim3>& first_cta) {
  const Dim3 cta = first_cta.value_or(Dim3{0, 0, 0});
  const Response response{cta.x, cta.y, cta.z, first_cta ? kCancelled : kFailed};
  std::vector<uint8_t> bytes(sizeof response);
  std::memcpy(bytes.data(), &response, sizeof response);
  return bytes;
}

namespace op {

void query_cancel(Exec& x, const Inst& inst) {
  const Operand &to = inst.operands[0], &from = inst.operands[1];
  if (from.kind != Operand::Kind::kVector)
    throw Fault(FaultKind::kUnsupported,
                "clusterlaunchcontrol.query_cancel of a register of fewer than 128 bits");
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t halves[2] = {x.source(from.items[0], lane), x.source(from.items[1], lane)};
    Response response;
    std::memcpy(&response, halves, sizeof response);
    if (response.tag != kCancelled && response.tag != kFailed)
      throw Fault(FaultKind::kProtocol,
                  "the 16 bytes are no response: clusterlaunchcontrol.try_cancel did not write them");
    const bool cancelled = response.tag == kCancelled;
    if (inst.has(Q::kIsCanceled)) {
      x.cta.cancel_failed = x.cta.cancel_failed || !cancelled;
      x.write(to.value, lane, cancelled);
      continue;
    }
    if (!cancelled)
      throw Fault(FaultKind::kProtocol,
                  "clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed");
    if (to.kind == Operand::Kind::kVector) {
      x.write(to.items[0], lane, response.x);
      x.write(to.items[1], lane, response.y);
      x.write(to.items[2], lane, response.z);
      x.write(to.items[3], lane, {0, kWhole},
              x.origin("the fourth element of get_first_ctaid, which is undefined"));
    } else {
      x.write(to.value, lane,
              inst.has(Q::kFirstX)   ? response.x
              : inst.has(Q::kFirstY) ? response.y
                                     : response.z);
    }
  }
}

}  // namespace op
}  // namespace sim
