// model.h -- the cost model as the tables of host/MODEL.md: which instance each class of shapes gets, what
// that moves and multiplies, the time the model predicts, and how far the model is from published times.
#pragma once

#include <string>

#include "dualgemm.h"

namespace bench {

// Returns Markdown with a heading above each table. `device` says what the launch may use; no GPU is asked or
// needed.
std::string model_markdown(const dualgemm_device_t& device);

}  // namespace bench
