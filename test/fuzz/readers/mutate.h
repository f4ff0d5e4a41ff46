// mutate.h -- changes to PTX text and to fat binaries that keep most of their form, so that most inputs get
// past the first line. Bytes alone seldom do.
#pragma once

#include <random>
#include <string>
#include <string_view>

namespace dualgemm_fuzz {

using Random = std::minstd_rand;

bool is_container(std::string_view input);

// Changes lines, tokens, numbers and qualifiers.
void mutate_text(std::string& text, Random& random);

// Changes the text of the first PTX entry, headers of entries, or bytes.
void mutate_container(std::string& container, Random& random);

// Returns a container of one entry, stored plainly, by LZ4 or by zstd.
std::string pack(std::string_view text, Random& random);

}  // namespace dualgemm_fuzz
