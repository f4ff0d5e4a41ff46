// names.cpp -- see names.h.
#include "sim/judge/names.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/decode/program.h"
#include "sim/judge/report.h"
#include "sim/text.h"

namespace sim {

static std::string at_line(const std::string& line) {
  if (line.empty()) return "";
  const std::string quoted = quote_source(line);
  return " at " + line + (quoted.empty() ? "" : " `" + quoted + "`");
}

// Returns the smallest interval that holds every shared region of one CTA in `regions`; bytes 0 when there is
// none.
static Region hull(const std::vector<Region>& regions, uint64_t cta) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const Region& region : regions) {
    if (region.memory != Memory::kShared || region.cta != cta) continue;
    begin = std::min(begin, region.address);
    end = std::max(end, region.address + region.bytes);
  }
  Region out;
  out.memory = Memory::kShared;
  out.cta = cta;
  if (begin < end) {
    out.address = begin;
    out.bytes = uint32_t(end - begin);
  }
  return out;
}

NameTable read_names(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("name table " + file + " cannot be read");
  try {
    const nlohmann::json root = nlohmann::json::parse(in);
    for (const auto& [key, value] : root.items())
      if (key != "shared" && key != "tensor") throw std::runtime_error("unknown list \"" + key + "\"");
    NameTable table;
    for (const auto& row : root.value("shared", nlohmann::json::array()))
      table.shared.push_back({row.at("offset"), row.at("bytes"), row.at("name")});
    for (const auto& row : root.value("tensor", nlohmann::json::array()))
      table.tensor.push_back({row.at("column"), row.at("columns"), row.at("name")});
    return table;
  } catch (const std::exception& error) {
    throw std::runtime_error("name table " + file + ": " + error.what());
  }
}

std::string source_line(const Inst& inst) {
  const ptx::Statement& statement = *inst.statement;
  std::string_view chain = statement.site.source, line;
  while (true) {
    const size_t end = chain.find(" <- ");
    const std::string_view link = chain.substr(0, end);
    const size_t in = link.find(" in ");
    line = link.substr(0, in);
    const bool wrapper = in != std::string_view::npos && link.substr(in + 4).starts_with(statement.opcode);
    if (!wrapper || end == std::string_view::npos) return std::string(line);
    chain = chain.substr(end + 4);
  }
}

std::string quote_source(const std::string& line) {
  const size_t colon = line.rfind(':');
  if (colon == std::string::npos) return "";
  std::ifstream in(line.substr(0, colon));
  std::string text;
  int left = 0;
  try {
    left = std::stoi(line.substr(colon + 1));
  } catch (const std::exception&) {
    return "";
  }
  while (left > 0 && std::getline(in, text)) --left;
  if (left != 0 || !in) return "";
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// CTAs are numbered afresh in every grid, and have other memory.
void Names::start(const GridStart& grid) {
  learned_.start(grid.work);
  *learned_ = Learned{};
  learned_->param_base = grid.param_base;
  if (grid.kernel != nullptr && grid.config != nullptr)
    learned_->window = grid.kernel->dynamic_smem_offset + grid.config->dynamic_smem;
  learned_->param_bytes = grid.kernel != nullptr ? grid.kernel->info.param_bytes : 0;
}

void Names::sync(const SyncEvent& event) {
  if (event.kind == SyncEvent::Kind::kCtaStart && event.object >= learned_->window)
    learned_->shift = event.object - learned_->window;
  if (event.kind != SyncEvent::Kind::kMbarrierInit || event.inst == nullptr) return;
  const Place place{event.mbarrier.cta, event.inst->statement->site.source};
  const auto [entry, fresh] = learned_->barriers.try_emplace({event.mbarrier.cta, event.mbarrier.offset});
  if (!fresh && entry->second.place == place) return;  // initialised again
  entry->second = {place, ++learned_->barriers_of[place], source_line(*event.inst), 8, ""};
}

void Names::learn_load(const AsyncIssue& issue) {
  std::string detail;
  if (issue.map != nullptr) {
    const uint64_t offset = issue.map_address - learned_->param_base;
    if (issue.map_address >= learned_->param_base && offset < learned_->param_bytes)
      detail = "parameter+" + hex(offset);
    else if (const auto* whole = allocation(issue.map_address))
      detail = whole->what + "+" + hex(issue.map_address - whole->base);
    if (!detail.empty()) detail = " (tensor map at " + detail + ")";
  }
  std::vector<uint64_t> ctas;
  for (const Region& region : issue.writes)
    if (region.memory == Memory::kShared && std::find(ctas.begin(), ctas.end(), region.cta) == ctas.end())
      ctas.push_back(region.cta);
  for (const uint64_t cta : ctas) {
    const Region whole = hull(issue.writes, cta);
    const auto [entry, fresh] = learned_->shared.try_emplace({cta, whole.address});
    if (!fresh) {
      entry->second.bytes = std::max<uint64_t>(entry->second.bytes, whole.bytes);
      continue;
    }
    // A load that reaches several CTAs counts in each of them.
    const Place place{cta, issue.inst->statement->site.source};
    entry->second = {place, ++learned_->loads_of[place], source_line(*issue.inst), whole.bytes, detail};
    entry->second.line = std::string("the ") + name_of(issue.kind) + at_line(entry->second.line);
  }
}

void Names::learn_columns(const AsyncIssue& issue, const char* what) {
  for (const Region& region : issue.writes) {
    if (region.memory != Memory::kTensor) continue;
    auto& known = learned_->tensor[region.cta];
    const bool there = std::any_of(known.begin(), known.end(), [&](const Columns& columns) {
      return columns.first == region.column && columns.count == region.columns;
    });
    if (!there) known.push_back({region.column, region.columns, what + at_line(source_line(*issue.inst))});
  }
}

void Names::issue(const AsyncIssue& issue) {
  if (issue.inst == nullptr) return;
  switch (issue.kind) {
    case AsyncIssue::Kind::kTensorLoad:
    case AsyncIssue::Kind::kBulkLoad:
    case AsyncIssue::Kind::kBulkShared: learn_load(issue); break;
    case AsyncIssue::Kind::kMma: learn_columns(issue, "accumulator of tcgen05.mma"); break;
    case AsyncIssue::Kind::kTmemCopy: learn_columns(issue, "scale factors copied"); break;
    case AsyncIssue::Kind::kTmemStore: learn_columns(issue, "stored"); break;
    default: break;
  }
}

const GlobalMemory::Allocation* Names::allocation(uint64_t address) const { return memory_.find(address, 1); }

std::string Names::of(const MbarrierRef& mbarrier) const {
  const auto found = learned_->barriers.find({mbarrier.cta, mbarrier.offset});
  if (found == learned_->barriers.end()) return "";
  const Known& known = found->second;
  return "mbarrier " + std::to_string(known.ordinal) + " of " +
         std::to_string(learned_->barriers_of.at(known.place)) + " initialised" + at_line(known.line);
}

std::string Names::of(const Region& region) const {
  if (region.memory == Memory::kGlobal) {
    const GlobalMemory::Allocation* whole = allocation(region.address);
    return whole == nullptr ? "" : whole->what + " of " + std::to_string(whole->size) + " bytes";
  }
  if (region.memory == Memory::kTensor) {
    const uint32_t end = region.column + std::max<uint32_t>(1, region.columns);
    for (const NameTable::Tensor& row : table_.tensor)
      if (row.column < end && region.column < row.column + row.columns) return row.name;
    const auto known = learned_->tensor.find(region.cta);
    if (known == learned_->tensor.end()) return "";
    for (const Columns& columns : known->second)
      if (columns.first < end && region.column < columns.first + columns.count)
        return "columns " + std::to_string(columns.first) + ".." +
               std::to_string(columns.first + columns.count - 1) + " (" + columns.name + ")";
    return "";
  }
  const uint64_t end = region.address + std::max<uint32_t>(1, region.bytes);
  for (const NameTable::Shared& row : table_.shared)
    if (row.offset + learned_->shift < end && region.address < row.offset + learned_->shift + row.bytes)
      return row.name;
  if (region.bytes <= 8) {  // a barrier's own word
    const std::string barrier = of(MbarrierRef{region.cta, uint32_t(region.address & ~uint64_t(7))});
    if (!barrier.empty()) return barrier;
  }
  auto next = learned_->shared.lower_bound({region.cta, end});
  if (next == learned_->shared.begin()) return "";
  --next;
  const auto& [place, known] = *next;
  if (place.first != region.cta || place.second + known.bytes <= region.address) return "";
  return "destination " + std::to_string(known.ordinal) + " of " + known.line + known.detail;
}

}  // namespace sim
