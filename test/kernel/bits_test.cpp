// bits_test.cpp -- the bits of C that plain instances write for a set of problems, against those on record: a
// rearrangement of the kernel keeps them all. On record are the instances of two products for an A in NVFP4,
// and those of one product that write FP16. sm100.txt.gz is of the simulated B200. In sm90.txt.gz a SwiGLU is
// of a real H100, and one product of the simulated H100: one product needs no ex2 and no rcp, so a GPU and
// the simulator have to agree on it. An H200 gave the same bits for the problems that were on record on
// 2026-11-26 (test/EVIDENCE.md). Where the bits are meant to change, these commands write the records anew,
// and the commit that changes a record says why. The first is for sm100:
//
//     build/kernel_test "[.record]" && gzip -9nc build/test/kernel/sm100.txt > test/kernel/bits/sm100.txt.gz
//
// The second runs on an H100 or H200. The third runs without a GPU: it writes the lines of one product anew,
// keeps the others, and warns of a SwiGLU that is not on record yet.
//
//     make test-gpu ARGS="[.record]" && gzip -9nc build/test/kernel/sm90.txt > test/kernel/bits/sm90.txt.gz
//     SIM_MACHINE=h100 build/kernel_test "[.record]" &&
//       gzip -9nc build/test/kernel/sm90.txt > test/kernel/bits/sm90.txt.gz
//
// An instance without any line is new: it is skipped with a warning until it is recorded.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "kernel/grouped.h"
#include "support/extras.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

struct Case {
  std::string name;
  std::function<ProblemSet()> problems;
  SetOptions options;
};

// Returns problems of one shape, on full-range data, so that no bit of an accumulator is known in advance.
std::function<ProblemSet()> batch(int32_t problems, int32_t m, int32_t n, int32_t k, uint64_t seed,
                                  Alphas alphas = Alphas::kShared) {
  return [=] { return make_batch(Data::kFullRange, problems, m, n, k, seed, alphas); };
}

// Adds one launch in all the ways that change no bit of it.
void add_launch_cases(std::vector<Case>& cases, const SetOptions& plain, const std::string& prefix,
                      const std::function<ProblemSet()>& problems) {
  const auto add = [&](const char* name, auto change) {
    cases.push_back({prefix + name, problems, plain});
    change(cases.back().options);
  };
  add("plain", [](SetOptions&) {});
  add("pdl", [](SetOptions& o) { o.flags = DUALGEMM_FLAG_PDL; });
  add("pdl-static-weights",
      [](SetOptions& o) { o.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS; });
  add("padded", [](SetOptions& o) {
    o.ldc_padding = 24;
    o.gap = 5;
  });
}

std::vector<Case> dense_cases(const NamedInstance& instance) {
  const SetOptions plain = use(instance);
  const int32_t tile_m = instance.info.tile_m, tile_n = instance.info.tile_n, tile_k = instance.info.tile_k;
  const int32_t slices = instance.info.split_k;
  std::vector<Case> cases = {
      {"whole-tile", batch(1, tile_m, tile_n, 2 * slices * tile_k, 1), plain},
      {"every-stage-twice", batch(1, 40, tile_n, (2 * instance.info.stages + 1) * slices * tile_k, 2), plain},
      {"ragged-m", batch(1, tile_m + 5, 72, slices * tile_k, 3), plain},
      {"ragged-n", batch(1, 33, tile_n + 8, slices * tile_k, 4), plain},
      {"ragged-k-tile", batch(1, tile_m, tile_n, (slices + 1) * tile_k - 64, 5), plain},
      {"ragged-k-step", batch(1, 40, tile_n, (slices + 1) * tile_k - 48, 6), plain},
      {"ragged-all", batch(1, tile_m - 1, 2 * tile_n - 8, 2 * slices * tile_k - 208, 7), plain},
      {"one-row", batch(1, 1, tile_n + 24, 3 * slices * tile_k - 16, 8), plain},
      {"k-16", batch(1, 33, 72, 16, 9), plain},  // split: all slices but one are empty
  };
  cases.push_back({"device-alphas", batch(1, 33, 72, slices * tile_k, 15), plain});
  cases.back().options.alphas_on_device = true;
  if (slices > 2)
    cases.push_back({"one-slice-empty", batch(1, 33, 72, (slices - 1) * tile_k - 16, 10), plain});
  if (slices == 1) {  // a split launches all its tiles at once
    SetOptions in_turn = plain;
    in_turn.max_sms = instance.info.cta_group;
    cases.push_back({"tiles-in-turn", batch(1, tile_m + 9, tile_n + 8, 2 * tile_k + 80, 11), in_turn});
    cases.push_back({"batch-in-turn", batch(3, tile_m + 1, 72, 3 * tile_k - 48, 12, Alphas::kOwn), in_turn});
  }
  add_launch_cases(cases, plain, "", batch(1, tile_m / 2 + 5, 72, (slices + 1) * tile_k - 80, 13));
  add_launch_cases(cases, plain, "batch-",
                   batch(3, tile_m / 2 + 5, 40, slices * tile_k - 112, 14, Alphas::kOwn));
  return cases;
}

std::vector<Case> grouped_cases(const NamedInstance& instance) {
  const SetOptions plain = use(instance);
  SetOptions in_turn = plain;
  in_turn.max_sms = instance.info.cta_group;
  const int32_t tile_m = instance.info.tile_m, tile_n = instance.info.tile_n, tile_k = instance.info.tile_k;
  std::vector<Case> cases;
  for (dualgemm_group_mode_t mode : kGroupModes) {
    const auto groups = [=](std::vector<int32_t> rows, int32_t n, int32_t k, uint64_t seed) {
      return [=] { return make_groups(mode, Data::kFullRange, rows, n, k, seed, 3); };
    };
    const std::string prefix = text(mode) + std::string("-");
    const std::vector<int32_t> ragged = {tile_m / 2 + 1, 0, tile_m + 1, 1};
    cases.push_back({prefix + "whole-tile", groups({tile_m, tile_m}, tile_n, 2 * tile_k, 20), plain});
    cases.push_back({prefix + "every-stage-twice",
                     groups({40}, tile_n, (2 * instance.info.stages + 1) * tile_k, 21), plain});
    cases.push_back({prefix + "in-turn", groups(ragged, tile_n + 8, 3 * tile_k - 48, 22), in_turn});
    cases.push_back({prefix + "k-16", groups({0, 33, 0, 7}, 72, 16, 23), plain});
    add_launch_cases(cases, plain, prefix, groups(ragged, 40, tile_k - 176, 24));
  }
  return cases;
}

// Of one product these cases suffice, which differ in how K, tiles and groups are walked through.
bool suits_one_product(const std::string& name) {
  constexpr std::array kNames = {"every-stage-twice", "ragged-all", "k-16",     "one-slice-empty",
                                 "batch-in-turn",     "in-turn",    "batch-pdl"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* end) { return name.ends_with(end); });
}

ProblemSet one_product_of(ProblemSet set, dualgemm_dtype_t a_dtype) {
  leave_one_product(set, DUALGEMM_LINEAR_ACTIVATION_NONE);
  if (a_dtype == DUALGEMM_DTYPE_NVFP4) return set;
  uint64_t seed = 1;
  for (Problem& p : set.problems) p = with_sixteen_bits(p, a_dtype, ++seed);
  return set;
}

std::vector<Case> cases_of(const NamedInstance& instance) {
  std::vector<Case> cases = instance.info.grouped ? grouped_cases(instance) : dense_cases(instance);
  if (instance.info.products == 2) return cases;
  std::erase_if(cases, [](const Case& c) { return !suits_one_product(c.name); });
  for (Case& c : cases)
    c.problems = [two = c.problems, a_dtype = c.options.a_dtype] { return one_product_of(two(), a_dtype); };
  return cases;
}

// Returns the plain instances, of two products for an A in NVFP4, of one for any A. The other types of C
// differ in one conversion, so one product is on record in FP16 alone.
std::vector<NamedInstance> instances_on_record() {
  std::vector<NamedInstance> all = plain_instances();
  for (const NamedInstance& instance : one_product_instances())
    if (instance.info.general == 0 && instance.dtype == DUALGEMM_DTYPE_FP16) all.push_back(instance);
  return all;
}

std::string key(const NamedInstance& instance, const Case& c) { return instance.name + (" " + c.name); }

// Returns FNV-1a, 64 bits, over the bytes of all rows of all problems. DeviceSet::download has C filled with
// NaN before the launch and throws when a byte outside these rows has changed, so this is all that a launch
// wrote.
std::string hash(const std::vector<Output>& problems) {
  uint64_t state = 0xCBF29CE484222325u;
  for (const Output& problem : problems) {
    for (uint16_t bits : problem.bits) {
      for (int shift : {0, 8}) state = (state ^ (bits >> shift & 0xFF)) * 0x100000001B3u;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, state);
  return text;
}

// With PDL the launch that counts follows one that it may overlap, of the same problems into another C.
std::string hash(const Case& c) {
  const ProblemSet set = c.problems();
  const DeviceSet device(set, c.options);
  std::optional<DeviceSet> before;
  if (c.options.flags & DUALGEMM_FLAG_PDL) before.emplace(set, c.options).launch(nullptr);
  device.launch(nullptr);
  return hash(device.download());
}

// The instances of this device have names that begin with their architecture.
bool record_is_of_a_gpu() { return plain_instances().front().name.starts_with("sm90"); }
// A program that was carried to another machine is told where the records are there.
std::string record_path() {
  const char* const told = std::getenv("BITS_DIRECTORY");
  return std::string(told ? told : BITS_DIRECTORY) + (record_is_of_a_gpu() ? "/sm90.txt" : "/sm100.txt");
}

// A SwiGLU takes ex2 and rcp, which a GPU rounds otherwise than the simulator: its lines are compared on the
// kind of machine that wrote them.
bool comparable(const NamedInstance& instance) {
  return instance.info.products == 1 || record_is_of_a_gpu() != simulated();
}

bool on_record(const std::map<std::string, std::string>& recorded, const NamedInstance& instance) {
  const std::string first = instance.name + " ";
  const auto line = recorded.lower_bound(first);
  return line != recorded.end() && line->first.starts_with(first);
}

// Returns the cases that there is time for. A launch with PDL or with pitches differs from the plain one
// in its loads and stores, and an instance for BF16 from that for FP16 in one conversion.
std::vector<Case> some_cases_of(const NamedInstance& instance) {
  std::vector<Case> cases = cases_of(instance);
  if (thorough()) return cases;
  const bool bf16 = instance.dtype == DUALGEMM_DTYPE_BF16;
  size_t turn = static_cast<size_t>(instance.id);
  std::erase_if(cases, [&](const Case& c) {
    const bool way = c.options.flags != 0 || c.options.gap != 0;
    return (way || bf16) && ++turn % 4 != 0;
  });
  return cases;
}

// Maps "instance case" to its hash. A line that says something else, or says it twice, is an error of its
// own.
std::map<std::string, std::string> record() {
  std::ifstream file(record_path());
  REQUIRE(file.is_open());
  std::map<std::string, std::string> out;
  for (std::string line; std::getline(file, line);) {
    INFO("line of the record: " << line);
    const size_t last_space = line.rfind(' ');
    REQUIRE(last_space != std::string::npos);
    REQUIRE(out.emplace(line.substr(0, last_space), line.substr(last_space + 1)).second);
  }
  return out;
}

}  // namespace

TEST_CASE("every instance writes the bits on record", "[bits]") {
  const std::map<std::string, std::string> recorded = record();
  for (const NamedInstance& instance : instances_on_record()) {
    if (!comparable(instance)) continue;
    DYNAMIC_SECTION(instance.name) {
      if (!on_record(recorded, instance)) {
        WARN(instance.name << " is not on record");
        continue;
      }
      for (const Case& c : some_cases_of(instance)) {
        INFO(key(instance, c));
        const auto line = recorded.find(key(instance, c));
        if (line == recorded.end()) FAIL_CHECK("not on record");
        else CHECK(hash(c) == line->second);
      }
    }
  }
}

TEST_CASE("the record has the instances of the day on which it began", "[bits]") {
  const std::map<std::string, std::string> recorded = record();
  size_t compared[2] = {};
  for (const NamedInstance& instance : instances_on_record())
    if (comparable(instance) && on_record(recorded, instance)) ++compared[instance.info.products - 1];
  CHECK(compared[0] >= (record_is_of_a_gpu() ? 43 : 13));
  if (comparable(plain_instances().front())) CHECK(compared[1] >= 28);
  else WARN("a SwiGLU is skipped: its record is of a machine that rounds ex2 and rcp otherwise");
}

TEST_CASE("every line on record belongs to an instance", "[bits]") {
  std::map<std::string, std::string> recorded = record();
  for (const NamedInstance& instance : instances_on_record()) {
    for (const Case& c : cases_of(instance)) recorded.erase(key(instance, c));
  }
  for (const auto& [line, bits] : recorded) FAIL_CHECK(line << " " << bits << ": there is no such case");
}

TEST_CASE("write the record of bits anew", "[.record]") {
  const std::map<std::string, std::string> before = record();
  std::string lines;
  for (const NamedInstance& instance : instances_on_record()) {
    for (const Case& c : cases_of(instance)) {
      const std::string line = key(instance, c);
      if (comparable(instance)) lines += line + " " + hash(c) + "\n";
      else if (const auto old = before.find(line); old != before.end())
        lines += line + " " + old->second + "\n";
      else WARN(line << " is not on record: a GPU has to record it");
    }
  }
  std::ofstream file(record_path());
  REQUIRE((file << lines << std::flush).good());
}
