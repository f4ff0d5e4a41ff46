// progress.h -- what the program does now, on a terminal: one line of stderr that the next one, or the next
// row of a table, replaces. Where stderr is no terminal nothing is written.
#pragma once

#include <string>

namespace bench {

void show_progress(const std::string& text);
void clear_progress();

}  // namespace bench
