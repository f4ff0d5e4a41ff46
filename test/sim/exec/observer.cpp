// observer.cpp -- see observer.h.
#include "sim/exec/observer.h"

namespace sim {

const char* name_of(AsyncIssue::Kind kind) {
  switch (kind) {
    case AsyncIssue::Kind::kBulkLoad: return "bulk load";
    case AsyncIssue::Kind::kBulkStore: return "bulk store";
    case AsyncIssue::Kind::kBulkShared: return "bulk copy between CTAs";
    case AsyncIssue::Kind::kTensorLoad: return "TMA load";
    case AsyncIssue::Kind::kTensorStore: return "TMA store";
    case AsyncIssue::Kind::kCpAsync: return "cp.async";
    case AsyncIssue::Kind::kStAsync: return "st.async";
    case AsyncIssue::Kind::kTryCancel: return "try_cancel";
    case AsyncIssue::Kind::kMma: return "tcgen05.mma";
    case AsyncIssue::Kind::kTmemCopy: return "tcgen05.cp";
    case AsyncIssue::Kind::kCommit: return "tcgen05.commit";
    case AsyncIssue::Kind::kTmemLoad: return "tcgen05.ld";
    case AsyncIssue::Kind::kTmemStore: return "tcgen05.st";
    case AsyncIssue::Kind::kWgmma: return "wgmma";
  }
  return "asynchronous operation";
}

}  // namespace sim
