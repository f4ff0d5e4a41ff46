// source_map.cpp -- see source_map.h.
#include "sim/parse/source_map.h"

#include <charconv>

#include "sim/text.h"

namespace sim::ptx {

// Each .loc may be called from the one before it, so that without an end a text as long as the module would
// stand at every statement.
constexpr int kMostLinks = 100;

// "dualgemm::mma_role<Traits<4>>(Params const&)" becomes "mma_role", because a chain of full signatures
// would hide the lines.
static std::string short_name(const std::string& mangled) {
  const std::string full = readable(mangled);
  std::string name;
  int depth = 0;  // inside <> or ()
  for (size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (depth == 0 && full.compare(i, 8, "operator") == 0) return full.substr(i, full.find('(', i + 10) - i);
    if (c == '(' && full.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 20;
    } else if (c == '(' && depth == 0) {
      break;  // parameters
    } else if (c == '<' || c == '(') {
      ++depth;
    } else if (c == '>' || c == ')') {
      --depth;
    } else if (depth == 0) {
      if (c == ':' || c == ' ') {
        name.clear();  // a qualifier or the return type of a template
      } else {
        name += c;
      }
    }
  }
  return name.empty() ? full : name;
}

void SourceMap::add_file(int64_t number, std::string_view path) {
  // The last two components name a file well enough; the rest is where it happened to be compiled.
  size_t cut = path.rfind('/');
  if (cut != std::string_view::npos && cut > 0) cut = path.rfind('/', cut - 1);
  files_[number] = std::string(cut == std::string_view::npos ? path : path.substr(cut + 1));
}

uint32_t SourceMap::add_location(SourcePosition at, std::string_view function, int64_t function_offset,
                                 SourcePosition inlined_at) {
  uint32_t caller = kNowhere;
  if (!function.empty()) {
    const auto found = latest_.find(inlined_at);
    if (found != latest_.end()) caller = found->second;
  }
  const uint32_t index = static_cast<uint32_t>(locations_.size());
  locations_.push_back({at, function, function_offset, inlined_at, caller});
  latest_[at] = index;
  return index;
}

std::string SourceMap::place(SourcePosition at) const {
  const auto file = files_.find(at.file);
  return (file == files_.end() ? "file " + std::to_string(at.file) : file->second) + ":" +
         std::to_string(at.line);
}

const std::string& SourceMap::function_name(std::string_view label, int64_t offset) const {
  const auto [entry, fresh] = names_.try_emplace({label, offset});
  if (fresh) entry->second = read_name(label, offset);
  return entry->second;
}

// A label stands at the start of a line or behind blanks, and ends with a colon; no byte has one.
void SourceMap::index_labels() const {
  size_t begin = 0;
  for (size_t colon = strings_.find(':'); colon != std::string_view::npos;
       colon = strings_.find(':', begin)) {
    std::string_view label = strings_.substr(begin, colon - begin);
    label.remove_prefix(label.find_last_of(" \t\n") + 1);  // npos + 1 is 0
    begin = colon + 1;
    labels_.try_emplace(label, begin);
  }
}

std::string SourceMap::read_name(std::string_view label, int64_t offset) const {
  if (labels_.empty()) index_labels();
  const auto found = labels_.find(label);
  if (found == labels_.end()) return {};
  size_t next = found->second;
  // One character stands behind each .b8, or several do.
  std::string mangled;
  for (int64_t i = 0;; ++i) {
    next = strings_.find_first_not_of(", \t\n", next);
    if (next == std::string_view::npos) return {};
    if (strings_.substr(next).starts_with(".b8")) next = strings_.find_first_not_of(" \t", next + 3);
    if (next == std::string_view::npos) return {};
    unsigned code = 0;
    const auto [end, error] =
        std::from_chars(strings_.data() + next, strings_.data() + strings_.size(), code);
    if (error != std::errc()) return {};
    next = static_cast<size_t>(end - strings_.data());
    if (i < offset) continue;
    if (code == 0) return short_name(mangled);
    mangled += static_cast<char>(code);
  }
}

// Appends the place of a location to the text of a chain, and returns its caller.
uint32_t SourceMap::append(std::string& out, uint32_t location) const {
  const Location& here = locations_[location];
  out += (out.empty() ? "" : " <- ") + place(here.at);
  if (here.function.empty()) return kNowhere;
  const std::string& function = function_name(here.function, here.function_offset);
  if (!function.empty()) out += " in " + function;
  if (here.caller == kNowhere) out += " <- " + place(here.call_site);
  return here.caller;
}

const std::string& SourceMap::text_of_callers(uint32_t location) const {
  const auto [entry, fresh] = callers_.try_emplace(location);
  std::string& out = entry->second;
  if (!fresh) return out;
  for (int links = 1; location != kNowhere; ++links) {
    if (links == kMostLinks) {
      out += " <- ...";
      break;
    }
    location = append(out, location);
  }
  return out;
}

std::string SourceMap::text(uint32_t location) const {
  std::string out;
  if (location == kNowhere) return out;
  const uint32_t caller = append(out, location);
  return caller == kNowhere ? out : out + " <- " + text_of_callers(caller);
}

}  // namespace sim::ptx
