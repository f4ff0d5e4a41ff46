// table.h -- the text of a table of approximate results: for each of them, how many units of its format's
// last place it lies from the correctly rounded result. Most results are correctly rounded, so the text is
// short; it still determines every bit.
#pragma once

#include <string>

#include "test/sim/conformance/record.h"

namespace conformance {

// `name` is approximate/INSTRUCTION: it says the function and the format of `inputs` and `results`.
std::string table_text(const std::string& name, const Bytes& inputs, const Bytes& results);
Bytes table_results(const std::string& name, const Bytes& inputs, const std::string& text);

}  // namespace conformance
