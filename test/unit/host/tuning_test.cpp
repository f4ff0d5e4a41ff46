// tuning_test.cpp -- tuning files: what is read and what is refused, and which entry a launch goes by. The
// device is the simulated B200; nothing is launched.

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/common/tuning_file.h"
#include "host/model/tuned.h"
#include "rules.h"
#include "shapes.h"
#include "support/catch.hpp"
#include "support/tuning.h"

namespace tuning_test {

using namespace dualgemm_test;
using namespace dualgemm;

// A weight of two products that many instances compute.
constexpr int32_t kN = 4096, kK = 7168;

static dualgemm_args_t args_of(int32_t m, int32_t n = kN, int32_t k = kK) {
  dualgemm_args_t args = valid_args();
  args.m = m, args.n = n, args.k = k;
  args.c_dtype = DUALGEMM_DTYPE_FP16;
  for (const void** operand : {&args.b1, &args.b2, &args.sfa, &args.sfb1, &args.sfb2})
    *operand = static_cast<const char*>(*operand) + (uintptr_t{1} << 44);
  return args;
}

static std::string name_of(int32_t id) { return id == 0 ? "no kernel" : instance(id - 1).name; }

static std::string chosen(const dualgemm_args_t& args) {
  return name_of(selected_id(args, current_device()));
}

static std::string entry(int64_t rows, const std::string& name, int32_t n = kN, int32_t k = kK) {
  return "2 NVFP4 FP16 plain dense 1 " + std::to_string(n) + " " + std::to_string(k) + " " +
         std::to_string(rows) + " " + name;
}

// Returns the plain fp16 instances of two products that take a launch, the model's choice left out.
static std::vector<std::string> others(const dualgemm_args_t& args) {
  std::vector<std::string> out;
  const dualgemm_device_t device = current_device();
  const std::string usual = chosen(args);
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    dualgemm_args_t with_id = args;
    with_id.instance_id = id;
    const Instance& one = instance(id - 1);
    if (!one.epilogue.general && one.name != usual &&
        dualgemm_can_implement_on(&with_id, &device) == DUALGEMM_STATUS_SUCCESS)
      out.push_back(one.name);
  }
  REQUIRE(!out.empty());
  return out;
}

static dualgemm_status_t load(const std::string& path) { return dualgemm_load_tuning(path.c_str()); }

TEST_CASE("an entry of a tuning file is the choice for its size, and for no other", "[host][tuning]") {
  const dualgemm_args_t args = args_of(256);
  for (const std::string& name : others(args)) {
    INFO(name);
    const std::string before = chosen(args_of(255)), wide = chosen(args_of(256, kN + 128));
    {
      const Tuned tuned({entry(256, name)});
      CHECK(chosen(args) == name);
      CHECK(chosen(args) == name);  // remembered
      CHECK(chosen(args_of(255)) == before);
      CHECK(chosen(args_of(256, kN + 128)) == wide);
      CHECK(tuning_info().entries == 1);
    }
    CHECK(chosen(args) != name);
    CHECK(tuning_info().entries == 0);
  }
}

TEST_CASE("an entry is for its products, types, epilogue, groups and number of problems", "[host][tuning]") {
  const dualgemm_args_t args = args_of(256);
  const std::string name = others(args).front();
  struct Change {
    const char* what;
    void (*apply)(dualgemm_args_t*);
  };
  const Change changes[] = {
      {"type of C", [](dualgemm_args_t* x) { x->c_dtype = DUALGEMM_DTYPE_BF16; }},
      {"epilogue", [](dualgemm_args_t* x) { x->activation = DUALGEMM_ACTIVATION_GLU; }},
      {"batch", [](dualgemm_args_t* x) { x->batch = 2, x->m = 128; }},
      {"groups",
       [](dualgemm_args_t* x) {
         x->group_mode = DUALGEMM_GROUP_OFFSETS, x->groups = 1;
         x->group_rows = address<const int32_t>(uintptr_t{1} << 46);
       }},
      {"max_sms", [](dualgemm_args_t* x) { x->max_sms = 100; }},
      {"exact", [](dualgemm_args_t* x) { x->flags = DUALGEMM_FLAG_EXACT_ACT; }},
      {"batch invariant", [](dualgemm_args_t* x) { x->flags = DUALGEMM_FLAG_BATCH_INVARIANT; }},
      {"instance_id", [](dualgemm_args_t* x) { x->instance_id = 1; }}};
  for (const Change& change : changes) {
    INFO(change.what);
    dualgemm_args_t other = args;
    change.apply(&other);
    const std::string usual = chosen(other);
    const Tuned tuned({entry(256, name)});
    CHECK(chosen(args) == name);
    CHECK(chosen(other) == usual);
  }
  // Flags that change nothing of what is computed, and alphas, are no other kind.
  const Tuned tuned({entry(256, name)});
  dualgemm_args_t same = args;
  same.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  same.alpha1 = 2;
  CHECK(chosen(same) == name);
}

TEST_CASE("BATCH_INVARIANT chooses as without a tuning file, for every M", "[host][tuning]") {
  std::vector<std::string> lines;
  const auto invariant = [](int32_t m) {
    dualgemm_args_t args = args_of(m);
    args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
    return chosen(args);
  };
  std::vector<std::string> before;
  for (const int32_t m : {1, 16, 100, 256, 4096}) {
    before.push_back(invariant(m));
    lines.push_back(entry(m, others(args_of(m)).back()));
  }
  const Tuned tuned(lines);
  std::vector<std::string> after;
  for (const int32_t m : {1, 16, 100, 256, 4096}) after.push_back(invariant(m));
  CHECK(after == before);
}

TEST_CASE("rows of a batch and of groups are counted over all problems", "[host][tuning]") {
  dualgemm_args_t batch = args_of(64);
  batch.batch = 4;
  dualgemm_args_t offsets = args_of(300);
  offsets.group_mode = DUALGEMM_GROUP_OFFSETS, offsets.groups = 16;
  offsets.group_rows = address<const int32_t>(uintptr_t{1} << 46);
  dualgemm_args_t masked = offsets;
  masked.group_mode = DUALGEMM_GROUP_MASKED, masked.m = 128;
  dualgemm_args_t expected = masked, few = offsets;
  expected.expected_rows = 20;
  few.m = 5, few.expected_rows = 1;  // groups without rows are counted as groups, not as rows
  const struct {
    const char* what;
    dualgemm_args_t args;
    const char* size;
  } cases[] = {{"batch", batch, "dense 4 4096 7168 256 "},
               {"offsets", offsets, "groups 16 4096 7168 300 "},
               {"masked", masked, "groups 16 4096 7168 2048 "},
               {"expected rows", expected, "groups 16 4096 7168 320 "},
               {"few", few, "groups 16 4096 7168 5 "}};
  for (const auto& [what, args, size] : cases) {
    INFO(what);
    for (const std::string& name : others(args)) {
      const Tuned tuned({"2 NVFP4 FP16 plain " + std::string(size) + name});
      CHECK(chosen(args) == name);
    }
  }
}

// The rule of dualgemm.h between two entries, on the model alone.
TEST_CASE("between two entries: the nearer by ratio that the model expects within 5 % of the fastest",
          "[host][tuning]") {
  const InstanceKind kind{Arch::kSm100, CType::kFp16};
  const TunedWeights weights{kind, false, 1, kN, kK};
  const auto cost = [&](int32_t index, int32_t m) {
    Cost c;
    return cost_of(instance(index), {m, kN, kK}, kB200, &c) ? c.total_us
                                                            : std::numeric_limits<double>::infinity();
  };
  int taken_near = 0, taken_far = 0, left = 0;
  for (const IndexedInstance& low : instances_of(kind, false))
    for (const IndexedInstance& high : instances_of(kind, false))
      for (const auto& [m, nearer_low] : {std::pair{96, true}, {100, false}, {127, false}, {65, true}}) {
        const std::vector<TunedEntry> entries = {{weights, 75, low.index, 1}, {weights, 130, high.index, 2}};
        if (m < 75) {
          CHECK(select_tuned(entries, weights, m, {m, kN, kK}, kB200, {}) == -1);
          continue;
        }
        double least = std::numeric_limits<double>::infinity();
        for (const auto& [any, index] : instances_of(kind, false)) least = std::min(least, cost(index, m));
        const int32_t near = nearer_low ? low.index : high.index, far = nearer_low ? high.index : low.index;
        const bool near_is_good = cost(near, m) <= 1.05 * least, far_is_good = cost(far, m) <= 1.05 * least;
        const int32_t expected = near_is_good ? near : far_is_good ? far : -1;
        CHECK(select_tuned(entries, weights, m, {m, kN, kK}, kB200, {}) == expected);
        taken_near += near_is_good, taken_far += !near_is_good && far_is_good, left += expected == -1;
      }
  CHECK((taken_near > 0 && taken_far > 0 && left > 0));
}

TEST_CASE("at equal ratios the entry of fewer rows is taken; beyond all entries none", "[host][tuning]") {
  const InstanceKind kind{Arch::kSm100, CType::kFp16};
  const TunedWeights weights{kind, false, 1, kN, kK};
  const int32_t best = select_instance(kind, {64, kN, kK}, kB200);
  int32_t other = -1;  // as good by the model
  Cost of_best, c;
  REQUIRE(cost_of(instance(best), {64, kN, kK}, kB200, &of_best));
  for (const auto& [any, index] : instances_of(kind, false))
    if (index != best && cost_of(*any, {64, kN, kK}, kB200, &c) && c.total_us <= of_best.total_us)
      other = index;
  if (other < 0) other = best;
  for (const auto& [low, high] : {std::pair{best, other}, {other, best}}) {
    const std::vector<TunedEntry> entries = {{weights, 32, low, 1}, {weights, 128, high, 2}};
    CHECK(select_tuned(entries, weights, 64, {64, kN, kK}, kB200, {}) == low);
    CHECK(select_tuned(entries, weights, 31, {31, kN, kK}, kB200, {}) == -1);
    CHECK(select_tuned(entries, weights, 129, {129, kN, kK}, kB200, {}) == -1);
  }
  CHECK(select_tuned({}, weights, 64, {64, kN, kK}, kB200, {}) == -1);
}

TEST_CASE("an instance that needs a workspace is chosen with one, else the model chooses", "[host][tuning]") {
  const Machine& machine = kH100;
  const InstanceKind kind{Arch::kSm90, CType::kFp16};
  const TunedWeights weights{kind, false, 1, kN, kK};
  const Shape shape{1024, kN, kK};
  int seen = 0;
  for (const auto& [one, index] : instances_of(kind, false)) {
    const std::vector<TunedEntry> entries = {{weights, 1024, index, 1}};
    const Plan& plan = one->plan;
    const auto with = [&](bool room, bool more) {
      return select_tuned(entries, weights, 1024, shape, machine, {true, room, more});
    };
    CHECK(with(true, true) == index);
    CHECK(with(true, false) == (plan.tile.stream_k ? -1 : index));
    CHECK(with(false, false) == (plan.prepared_a() ? -1 : index));
    seen += plan.tile.stream_k;
    // No clusters on this machine.
    const Machine alone{132, -1, -1};
    CHECK(select_tuned(entries, weights, 1024, shape, alone, {true, true, true}) ==
          (plan.cluster_size() > 1 ? -1 : index));
  }
  CHECK(seen > 0);
}

TEST_CASE("a device other than the file's chooses by the model", "[host][tuning]") {
  const dualgemm_args_t args = args_of(256);
  const std::string usual = chosen(args), name = others(args).front();
  const Tuned tuned({entry(256, name)});
  const dualgemm_device_t here = current_device();
  for (const auto change : {+[](dualgemm_device_t* x) { std::strcpy(x->name, "another"); },
                            +[](dualgemm_device_t* x) { --x->sm_count; },
                            +[](dualgemm_device_t* x) { x->driver_version += 10; }}) {
    dualgemm_device_t other = here;
    change(&other);
    CHECK(name_of(selected_id(args, other)) == usual);
  }
  CHECK(name_of(selected_id(args, here)) == name);
}

// Returns what is said of a text, which has to be refused and to change nothing.
static std::string refusal(const std::string& text, dualgemm_status_t status) {
  const dualgemm_args_t args = args_of(512);
  const std::string name = others(args).front();
  const Tuned tuned({entry(512, name)});
  const TemporaryFile file(text, "refused");
  CHECK(load(file.path()) == status);
  const std::string said = dualgemm_last_error();
  CHECK(said.starts_with("path=" + file.path() + ": "));
  const dualgemm_tuning_info_t info = tuning_info();
  CHECK(info.message == said);
  CHECK(info.status == status);
  CHECK(info.from_environment == 0);
  CHECK(info.entries == 1);
  CHECK(chosen(args) == name);
  return said;
}

static std::string with_line(std::string text, const std::string& old_line, const std::string& new_line) {
  const size_t at = text.find(old_line);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old_line.size(), new_line);
}

TEST_CASE("a tuning file for another GPU, driver or library is refused by what differs", "[host][tuning]") {
  const std::string name = others(args_of(256)).front(), good = tuning_text({entry(256, name)});
  const dualgemm_device_t device = current_device();
  const auto refused = [&](const std::string& from, const std::string& to) {
    return refusal(with_line(good, from, to), DUALGEMM_STATUS_NOT_SUPPORTED);
  };
  CHECK_THAT(refused("gpu " + std::string(device.name), "gpu NVIDIA H900"),
             Catch::Contains(": line 2: gpu NVIDIA H900 with 148 SMs: the current device is " +
                             std::string(device.name)));
  CHECK_THAT(refused("sms 148", "sms 147"), Catch::Contains("with 147 SMs"));
  CHECK_THAT(refused("driver " + std::to_string(device.driver_version), "driver 12000"),
             Catch::Contains(": line 4: driver 12000: that of this machine is"));
  const std::string key = tuning_info().library;
  CHECK_THAT(refused("library " + key, "library 0.1.0-0123456789abcdef"),
             Catch::Contains(": line 5: library 0.1.0-0123456789abcdef: this one is " + key));
  // What it is for comes before what it says: another library has other instances.
  CHECK_THAT(refusal(tuning_text({entry(256, "m1n1k1")}, "0.9.9"), DUALGEMM_STATUS_NOT_SUPPORTED),
             Catch::Contains("library 0.9.9"));
}

TEST_CASE("a damaged tuning file is refused by its line", "[host][tuning]") {
  const std::vector<std::string> some = others(args_of(256));
  const std::string first = entry(256, some[0]), second = entry(512, some[1]);
  const std::string good = tuning_text({first, second});
  const auto says = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK_THAT(refusal(text, DUALGEMM_STATUS_INVALID_VALUE), Catch::Contains(part));
  };
  says("", "line 1: the file is empty");
  says("\n", "line 2: the file ends here");
  says("{}\n", "line 1: \"{}\": must be \"dualgemm tuning 1\"");
  says("dualgemm tuning 2\n", "line 1: \"dualgemm tuning 2\"");
  says(std::string("dualgemm\0tuning 1\n", 18), "line 1: a byte of 0");
  says(with_line(good, "sms 148", "sms many"), "line 3: \"many\": is no number");
  says(with_line(good, "sms 148\n", ""), "line 3: \"driver");
  // Every way of being cut off.
  for (size_t size = 0; size < good.size(); ++size)
    refusal(good.substr(0, size), DUALGEMM_STATUS_INVALID_VALUE);
  says(good.substr(0, good.size() - 1), "line 8: the line has no end");
  says(good.substr(0, good.find("end ")), "line 8: the file ends here, without its line \"end\"");
  // Every byte of the entries changed.
  for (size_t at = good.find(first); at < good.size() - 1; ++at) {
    std::string text = good;
    text[at] ^= 1;
    refusal(text, DUALGEMM_STATUS_INVALID_VALUE);
  }
  says(good + "more\n", "line 9: nothing may follow");
  says(with_line(good, first + "\n", ""), "line 7: 2 entries are counted, 1 are there");
  says(with_line(good, " 256 ", " 257 "), "line 8: the lines above have changed");
  says(tuning_text({entry(256, "m1n1k1")}), "line 6: \"m1n1k1\": the library has no such instance");
  says(tuning_text({first, entry(256, some[1])}), "line 7: line 6 is about the same size");
  const std::string cells[] = {"2", "NVFP4", "FP16", "plain", "dense", "1", "4096", "7168", "256", some[0]};
  for (size_t cell = 0; cell < std::size(cells); ++cell)
    for (const char* bad : {"", "0", "-1", "3000000000000000000000", "x y"}) {
      std::string line;
      for (size_t i = 0; i < std::size(cells); ++i)
        line += (i ? " " : "") + (i == cell ? std::string(bad) : cells[i]);
      const std::string text = tuning_text({line});
      says(text, "line 6: \"");
    }
  // Instances that do not compute what the line says.
  for (const auto& [from, to] :
       {std::pair{"FP16", "BF16"}, {"plain", "general"}, {"dense", "groups"}, {"2 ", "1 "}})
    says(tuning_text({with_line(first, from, to)}),
         "line 6: " + some[0] + ": does not compute what the line says");
}

TEST_CASE("comments and empty lines may stand anywhere before the last line", "[host][tuning]") {
  const dualgemm_args_t args = args_of(256);
  const std::string name = others(args).front();
  std::string text = "# made by hand\n\n" + tuning_heading(tuning_info().library) + "  # entries\n" +
                     entry(256, name) + "   # 12.5 us\n\n";
  text += tuning_end(text, 1);
  const TemporaryFile file(text);
  REQUIRE(load(file.path()) == DUALGEMM_STATUS_SUCCESS);
  CHECK(chosen(args) == name);
  CHECK(tuning_info().path == file.path());
  dualgemm_load_tuning(nullptr);
  CHECK(std::string(tuning_info().path).empty());
  // Without an entry a file is good, and the model chooses.
  const Tuned none({});
  CHECK(tuning_info().entries == 0);
  CHECK(tuning_info().path[0] != '\0');
}

TEST_CASE("what is no file that can be read is refused", "[host][tuning]") {
  CHECK(load("/nowhere/tuning") == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK_THAT(dualgemm_last_error(), Catch::Contains("path=/nowhere/tuning: cannot be opened: No such file"));
  CHECK(load("/tmp") == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK_THAT(dualgemm_last_error(), Catch::Contains("is no ordinary file"));
  CHECK(load("/dev/zero") == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK_THAT(dualgemm_last_error(), Catch::Contains("is no ordinary file"));
  CHECK(load(std::string(5000, 'x')) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK_THAT(dualgemm_last_error(), Catch::Contains("cannot be opened: File name too long"));
  const TemporaryFile huge(std::string((4 << 20) + 1, '\n'), "huge");
  CHECK(load(huge.path()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK_THAT(dualgemm_last_error(), Catch::Contains("has 4194305 bytes, and a tuning file at most 4194304"));
}

TEST_CASE("a process has room for a number of entries; a file that comes again takes none",
          "[host][tuning]") {
  const std::string name = others(args_of(256)).front();
  std::vector<std::string> lines;
  for (int64_t rows = 1; rows <= 8192; ++rows) lines.push_back(entry(rows, name, 16));
  // The tests before this one have loaded some, so all of these are too many.
  const Tuned before({entry(1, name)});
  const TemporaryFile full(tuning_text(lines), "full");
  CHECK(load(full.path()) == DUALGEMM_STATUS_NOT_SUPPORTED);
  CHECK_THAT(dualgemm_last_error(), Catch::Contains("room for 8192 entries"));
  for (int i = 0; i < 200; ++i) const Tuned again({entry(1, name)});
}

TEST_CASE("a line that is written is read as it was", "[host][tuning]") {
  const TuningPlace place{"A GPU 80GB", "1.2.3-abc", 132, 13020};
  const TuningLine line{
      1, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP8_E4M3, true, true, 128, 768, 2048, 1024, "sm90m1"};
  std::string text = tuning_heading(place).get();
  text += tuning_entry(line).get();
  TuningSum sum;
  sum.add(text);
  text += tuning_end(1, sum).get();
  CHECK(text.ends_with(dualgemm_test::tuning_end(text.substr(0, text.find("end ")), 1)));
  TuningReader reader(text);
  TuningPlace place_read;
  TuningLine read;
  REQUIRE(reader.read_place(&place_read));
  CHECK((place_read.gpu == place.gpu && place_read.library == place.library && place_read.sms == place.sms &&
         place_read.driver == place.driver));
  REQUIRE(reader.read_entry(&read));
  CHECK(tuning_entry(read).get() == std::string(tuning_entry(line).get()));
  CHECK_FALSE(reader.read_entry(&read));
  CHECK(std::string(reader.fault()).empty());
}

TEST_CASE("tuning_info takes a structure that it knows", "[host][tuning]") {
  CHECK(dualgemm_tuning_info(nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  dualgemm_tuning_info_t info;
  std::memset(&info, 0, sizeof info);
  CHECK(dualgemm_tuning_info(&info) == DUALGEMM_STATUS_VERSION_MISMATCH);
  dualgemm_tuning_info_init(&info);
  CHECK(info.struct_size == sizeof info);
  CHECK(dualgemm_tuning_info(&info) == DUALGEMM_STATUS_SUCCESS);
  CHECK(std::string(info.library).starts_with(std::to_string(DUALGEMM_VERSION_MAJOR) + "."));
}

}  // namespace tuning_test
