// planted_test.cpp -- two judges on the same kernels: compute-sanitizer on an H200 (sanitizer.txt) and
// dualgemm-sim, on every kernel of planted.cu with its bug and without. What our judge says is stated here.
// Where the sanitizer does not report a bug, the reason stands here, too; it is our reading, since the
// sanitizer gives no reasons.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/known_bugs.h"

namespace {

// A kernel with its bug has the number of that in support/known_bugs.h, our first finding of class E, and why
// the sanitizer is silent or says less.
struct Planted {
  int number;
  const char* name;
  const char* rule;
  const char* why;
};
constexpr Planted kPlanted[] = {
    {74, "missing_syncthreads", "machine-poison", ""},
    {74, "missing_second_syncthreads", "race-data", ""},
    {8, "missing_full_wait", "race-async", ""},
    {9, "missing_empty_wait", "race-async", ""},
    {30, "missing_empty_arrive", "deadlock", ""},
    {5, "wrong_parity", "deadlock", ""},
    {2, "expect_too_small", "mbarrier-bytes-in-other-phase",
     "no tool counts a barrier's bytes against the copies that complete them"},
    {3, "expect_too_large", "deadlock", ""},
    {12, "missing_proxy_fence", "proxy-fence",
     "no tool knows proxies: the barrier between is all it looks for"},
    {19, "missing_read_wait", "race-async", "what a bulk store reads is not tracked after its issue"},
    {20, "missing_last_wait", "store-unwaited-at-exit",
     "no tool asks whether a CTA's bulk stores ended before it did"},
    {23, "missing_cluster_init_sync", "mbarrier-init-order",
     "the order of initialisation and remote arrival is not tracked across the CTAs of a cluster"},
    {22, "missing_init_sync", "machine-protocol", ""},
    {34, "missing_cluster_exit_sync", "exit-pending", ""},
    {32, "arrive_at_own_barrier", "deadlock",
     "the kernel's wait gives up after 0.2 s, so it ends there; "
     "a wait that nothing can end is a deadlock here"},
};

// These tools of the sanitizer reported, for every kernel and twin.
struct Sanitizer {
  std::map<std::string, std::set<std::string>> planted, correct;
};

Sanitizer read_sanitizer() {
  std::ifstream in(CONFORMANCE_DIRECTORY "/sanitizer.txt");
  Sanitizer out;
  std::string line;
  std::getline(in, line);
  REQUIRE(line.rfind("Version ", 0) == 0);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name, twin, tool, verdict;
    words >> name >> twin >> tool >> verdict;
    INFO(line);
    REQUIRE((verdict == "clean" || verdict == "reported"));
    REQUIRE((twin == "planted" || twin == "correct"));
    std::set<std::string>& tools = (twin == "planted" ? out.planted : out.correct)[name];
    if (verdict == "reported") tools.insert(tool);
  }
  return out;
}

struct Verdict {
  int status = -1;
  std::string first;  // rule of the first finding that fails, empty: none
};

// Findings of class `fail_on`, 'E' or 'S', and worse fail.
Verdict judge(const std::string& arguments, char fail_on) {
  const std::string json = "planted_test." + std::to_string(getpid()) + ".json";
  const int status =
      std::system((std::string(COMMAND " --machine h200 --fail-on ") + fail_on +
                   " --quiet --timeout 60 --json " + json + " " PLANTED " " + arguments + " >/dev/null 2>&1")
                      .c_str());
  Verdict verdict;
  if (WIFEXITED(status)) verdict.status = WEXITSTATUS(status);
  std::ifstream in(json);
  INFO(arguments);
  REQUIRE(in.good());
  const nlohmann::json report = nlohmann::json::parse(in);
  std::remove(json.c_str());
  for (const auto& finding : report.at("findings"))
    if (verdict.first.empty() &&
        (finding.at("severity") == "E" || (finding.at("severity") == "S" && fail_on == 'S')))
      verdict.first = finding.at("rule");
  return verdict;
}

std::string joined(const std::set<std::string>& tools) {
  std::string out;
  for (const std::string& tool : tools) out += (out.empty() ? "" : ", ") + tool;
  return out.empty() ? "clean" : out;
}

}  // namespace

TEST_CASE("planted: ours names every bug and nothing in a correct twin; the sanitizer's silence is explained",
          "[planted]") {
  Sanitizer sanitizer = read_sanitizer();
  REQUIRE(sanitizer.planted.size() == std::size(kPlanted));
  std::printf("bug %-28s %-32s %s\n", "kernel", "compute-sanitizer on an H200", "dualgemm-sim");
  for (const Planted& planted : kPlanted) {
    CAPTURE(planted.name);
    REQUIRE(std::any_of(std::begin(dualgemm_test::kKnownBugs), std::end(dualgemm_test::kKnownBugs),
                        [&](const dualgemm_test::KnownBug& bug) { return bug.number == planted.number; }));
    REQUIRE(sanitizer.planted.count(planted.name) == 1);
    const std::set<std::string>& tools = sanitizer.planted[planted.name];
    const Verdict bug = judge(planted.name, 'S');
    const Verdict correct = judge(planted.name + std::string(" --correct"), 'E');
    std::printf("%3d %-28s %-32s %s%s%s\n", planted.number, planted.name, joined(tools).c_str(),
                bug.first.c_str(), *planted.why == 0 ? "" : ": ", planted.why);
    CHECK(bug.status == 1);
    CHECK(bug.first == planted.rule);
    CHECK(tools.empty() == (*planted.why != 0));
    CHECK(correct.status == 0);
    CHECK(correct.first == "");
    CHECK(sanitizer.correct[planted.name].empty());
  }
}
