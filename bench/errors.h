// errors.h -- how far each activation is from the exact one, in every output type.
#pragma once

#include <string>

namespace bench {

// Runs the library and returns a table in Markdown. It needs a device, which may be the simulated one: that
// computes ex2 and rcp as an H200 does.
std::string errors_markdown();

}  // namespace bench
