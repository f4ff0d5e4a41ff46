// command_test.cpp -- dualgemm-sim from outside: its answers, its exit status and its files, on the programs
// of command_program_test.cu.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.hpp"

namespace command_test {

using dualgemm_test::contains;

struct Answer {
  int status = -1;
  std::string text;  // standard output and error together
};

static Answer shell(const std::string& line) {
  Answer answer;
  FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) answer.text.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) answer.status = WEXITSTATUS(status);
  INFO(answer.text);
  REQUIRE(answer.status >= 0);
  return answer;
}

static Answer command(const std::string& arguments) { return shell(COMMAND " " + arguments); }

static std::string read(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

// This is a name for a file that goes with the test.
struct File {
  explicit File(const std::string& name)
      : path(std::filesystem::temp_directory_path() / ("command_test." + std::to_string(getpid()) + name)) {}
  ~File() { std::remove(path.c_str()); }
  File(const File&) = delete;
  std::string path;
};

const std::string program = COMMAND_PROGRAM;

TEST_CASE("a clean program is clean", "[command]") {
  const Answer answer = command(program);
  CHECK(answer.status == 0);
  CHECK_THAT(answer.text, contains("the program ran"));
  CHECK_THAT(answer.text, contains("1 run, 1 grid: 0 E, 0 S, 0 A\n"));
}

TEST_CASE("a race is an error, with the line that shows it again", "[command]") {
  const Answer answer = command("--quiet " + program + " race");
  CHECK(answer.status == 1);
  CHECK_THAT(answer.text, contains("command_program_test.cu:"));
  CHECK_THAT(answer.text, contains("exchange<false>"));
  CHECK_THAT(answer.text, contains("replay    dualgemm-sim --mode default --seed 0 " + program + " race"));
}

TEST_CASE("a deadlock is an error that names the barrier", "[command]") {
  const Answer answer = command("--timeout 60 --quiet " + program + " deadlock");
  CHECK(answer.status == 1);
  CHECK_THAT(answer.text, contains("E deadlock: "));
  CHECK_THAT(answer.text, contains("mbarrier 1 of 1 initialised at unit/command_program_test.cu:"));
}

TEST_CASE("an access out of bounds is an error at its line", "[command]") {
  const Answer answer = command("--quiet " + program + " bounds");
  CHECK(answer.status == 1);
  CHECK_THAT(answer.text, contains("E machine-bounds"));
  CHECK_THAT(answer.text, contains("st.global.u32"));
}

TEST_CASE("a program that fails, hangs or launches nothing was not judged", "[command]") {
  const Answer failed = command(program + " fail");
  CHECK(failed.status == 3);
  CHECK_THAT(failed.text, contains("ended with status 7"));
  const Answer nothing = command(program + " nothing");
  CHECK(nothing.status == 3);
  CHECK_THAT(nothing.text, contains("made no launch"));
  const Answer asleep = command("--timeout 0.5 " + program + " sleep");
  CHECK(asleep.status == 3);
  CHECK_THAT(asleep.text, contains("ran out of time"));
  const Answer missing = command("./no_such_program");
  CHECK(missing.status == 3);
  CHECK_THAT(missing.text, contains("./no_such_program cannot be started"));
}

TEST_CASE("a run in which nothing changes is given up, which is no error, or not, as asked", "[command]") {
  const Answer given_up = command("--quiet --patience 1000 " + program + " count");
  CHECK(given_up.status == 3);
  CHECK_THAT(given_up.text, contains("U machine-unsupported: gave up after "));
  CHECK_THAT(given_up.text, contains("unit/command_program_test.cu:"));
  CHECK_THAT(given_up.text, contains("--patience or SIM_PATIENCE"));
  CHECK_THAT(given_up.text, contains("0 E, 0 S, 0 A; 1 that the simulator could not judge"));
  CHECK(command("--quiet " + program + " count").status == 0);
  CHECK(command("--patience 0 " + program).status == 2);
}

TEST_CASE("runs that failed in one way are one line", "[command]") {
  const Answer failed = command("--mode default,late --seeds 4 --quiet " + program + " fail");
  CHECK_THAT(failed.text, contains("the program ended with status 7 in 8 of 8 runs: default:0 default:1 "
                                   "default:2 default:3 late:0 late:1 and 2 more\n"));
}

TEST_CASE("a program with its own copy of the runtime is told how to compile", "[command]") {
  for (const std::string option : {"", "--quiet "}) {
    const Answer answer = command(option + COMMAND_PROGRAM_STATIC);
    CHECK(answer.status == 3);
    const size_t told =
        answer.text.find("holds its own copy of the CUDA runtime: compile with -cudart shared");
    REQUIRE(told != std::string::npos);
    CHECK_THAT(answer.text.substr(told + 10), !contains("its own copy"));
    CHECK_THAT(answer.text, !contains("is not simulated"));
  }
  CHECK_THAT(command("--quiet " + program + " nothing").text, !contains("-cudart shared"));
}

TEST_CASE("from which class on findings fail is chosen", "[command]") {
  // A finding of class S fails the command unless its rule is allowed, or all findings of its class are.
  CHECK(command("--quiet " + program + " same").status == 1);
  CHECK_THAT(command("--quiet " + program + " same").text, contains("0 E, 1 S"));
  CHECK(command("--quiet --allow warp-same-write " + program + " same").status == 0);
  CHECK_THAT(command("--quiet --allow warp-same-write " + program + " same").text,
             contains("0 E, 0 S, 0 A, 1 allowed"));
  CHECK(command("--quiet --fail-on E " + program + " same").status == 0);
  CHECK_THAT(command("--quiet --fail-on E " + program + " same").text, contains("S warp-same-write: "));
  CHECK(command("--quiet --fail-on E " + program + " race").status == 1);
  CHECK(command("--quiet --fail-on S " + program + " same").status == 1);
  // Advice fails where it is asked for.
  CHECK(command("--quiet " + program + " advice").status == 0);
  CHECK_THAT(command("--quiet " + program + " advice").text, contains("0 E, 0 S, 1 A"));
  CHECK(command("--quiet --fail-on S " + program + " advice").status == 0);
  CHECK(command("--quiet --fail-on A " + program + " advice").status == 1);
  CHECK(command("--quiet --fail-on A --allow prefetch-outside " + program + " advice").status == 0);
  CHECK(command("--quiet --fail-on A " + program).status == 0);
  CHECK(command("--fail-on X " + program).status == 2);
}

TEST_CASE("behind an error that is let pass the next one is found", "[command]") {
  const Answer one = command("--quiet " + program + " 'bounds twice'");
  CHECK(one.status == 1);
  CHECK_THAT(one.text, contains("1 E, "));
  const Answer both = command("--quiet --continue " + program + " 'bounds twice'");
  CHECK(both.status == 1);
  CHECK_THAT(both.text, contains("2 E, "));
  CHECK_THAT(both.text, contains("--continue " + program));
}

TEST_CASE("behind a trap or a deadlock the later launches are judged if that is asked for", "[command]") {
  const auto [what, rule] =
      GENERATE(table<std::string, std::string>({{"trap", "E machine-trap: "}, {"deadlock", "E deadlock: "}}));
  const std::string arguments = program + " '" + what + ", then a race'";
  const Answer one = command("--quiet " + arguments);
  CHECK(one.status == 1);
  CHECK_THAT(one.text, contains(rule) && contains("1 run, 1 grid: 1 E, "));
  const Answer both = command("--quiet --continue " + arguments);
  CHECK(both.status == 1);
  CHECK_THAT(both.text, contains(rule) && contains("E race-data: ") && contains("1 run, 2 grids: "));
  const std::string note = "it may follow from what an earlier grid did not do";
  CHECK(both.text.find(note) > both.text.find("E race-data: "));
  CHECK(both.text.find(note) < both.text.size());
  CHECK_THAT(command("--quiet --continue " + program + " race").text, !contains(note));
}

TEST_CASE("a kernel with what the simulator lacks is refused by its launch, and those beside it are judged",
          "[command]") {
  const Answer answer = command("--quiet " COMMAND_LACKING);
  CHECK(answer.status == 3);
  CHECK_THAT(answer.text,
             contains("U machine-unsupported: launch of (anonymous namespace)::multiply(float*, int): ") &&
                 contains("mma.sync.aligned.m16n8k8") &&
                 contains("1 run, 1 grid: 0 E, 0 S, 0 A; 1 that the simulator could not judge"));
}

TEST_CASE("the lowest lane is elected in every schedule if that is asked for", "[command]") {
  CHECK(command("--quiet --mode random --seeds 8 " + program + " 'lane 0'").status == 1);
  CHECK(command("--quiet --mode random --seeds 8 --elect-lowest " + program + " 'lane 0'").status == 0);
}

TEST_CASE("what only strict-tensor shows counts where it was asked for by name", "[command]") {
  const Answer all = command("--quiet --mode all " + program + " beyond");
  CHECK(all.status == 0);
  CHECK_THAT(all.text, contains("only strict-tensor showed 2 E, 0 S, 0 A and 0 failed runs"));
  CHECK_THAT(all.text, contains(": 0 E, 0 S, 0 A\n"));
  const Answer asked = command("--quiet --mode default,strict-tensor " + program + " beyond");
  CHECK(asked.status == 1);
  CHECK_THAT(asked.text, !contains("only strict-tensor"));
  CHECK(command("--quiet --mode all " + program + " race").status == 1);
}

TEST_CASE("a run that strict-tensor fails as others do counts", "[command]") {
  const Answer answer = command("--quiet --mode all " + program + " fail");
  CHECK(answer.status == 3);
  CHECK_THAT(answer.text, contains("ended with status 7"));
  CHECK_THAT(answer.text, !contains("only strict-tensor"));
}

TEST_CASE("a schedule that is named beside all runs once, and counts", "[command]") {
  const Answer all = command("--quiet --mode all " + program);
  CHECK(command("--quiet --mode all,late " + program).text == all.text);
  CHECK(command("--quiet --mode all,strict-tensor " + program + " beyond").status == 1);
  CHECK(command("--quiet --mode all,lat " + program).status == 2);
}

TEST_CASE("what lies behind a box that its module does not align is judged as hardware aligns it",
          "[command]") {
  CHECK(command("--quiet " + program + " box").status == 0);
  const std::string shifted = "--quiet --mode random --seed 0 ";
  for (const std::string what : {" box", " 'box, killed'"}) {
    const Answer answer = command(shifted + program + what);
    CHECK(answer.status == 1);
    CHECK_THAT(answer.text, contains("S shared-alignment: ") && contains("0 E, 1 S, 0 A\n"));
    CHECK(command("--allow shared-alignment " + shifted + program + what).status == 0);
  }
}

TEST_CASE("an error that only the alignment of shared memory brings about is of class S", "[command]") {
  CHECK(command("--quiet " + program + " rounded").status == 0);
  const std::string shifted = "--quiet --mode random --seed 0 ";
  const Answer lacking = command(shifted + program + " rounded");
  CHECK(lacking.status == 1);
  CHECK(command("--fail-on E " + shifted + program + " rounded").status == 0);
  CHECK_THAT(lacking.text,
             contains("S shared-alignment: dynamic shared memory is aligned to 16 bytes only, as "
                      "its module declares, and this kernel needs more: access of 4 bytes at") &&
                 contains("machine-bounds is not found in the same run") &&
                 contains("what lies behind it is judged with the memory at a multiple of 1024") &&
                 contains("0 E, 1 S, 0 A\n"));
  CHECK(command("--allow shared-alignment " + shifted + program + " rounded").status == 0);
  const Answer all = command("--continue " + shifted + program + " rounded");
  CHECK_THAT(all.text, contains("and so machine-bounds: access of 4 bytes") && contains("0 E, 1 S, 0 A"));

  for (const std::string what : {"'rounded, then a race'", "'box, then a race'"}) {
    const Answer behind = command(shifted + program + " " + what);
    CHECK(behind.status == 1);
    CHECK_THAT(behind.text,
               contains("E race-data: ") && contains("1 run, 2 grids: ") && contains(" 1 S, 0 A\n"));
  }

  const Answer outside = command(shifted + program + " 'rounded, outside'");
  CHECK(outside.status == 1);
  CHECK_THAT(outside.text, contains("E machine-bounds: ") && contains("1 E, 0 S, 0 A"));
  CHECK_THAT(outside.text, !contains("as its module declares"));
}

TEST_CASE("the rules of the machine hold without any check", "[command]") {
  CHECK(command("--quiet --checks none " + program + " registers").status == 1);
  CHECK_THAT(command("--quiet --checks none " + program + " registers").text,
             contains("S setmaxnreg-warpgroup"));
}

TEST_CASE("what a program hears of a fault has the short name of the kernel", "[command]") {
  const Answer answer = command(program + " bounds");
  CHECK_THAT(answer.text, contains("in kernel (anonymous namespace)::outside(int*), CTA (0,0,0)"));
  CHECK_THAT(answer.text, !contains("_ZN"));
}

TEST_CASE("wrong usage is refused with the argument and its value", "[command]") {
  const auto refused = [](const std::string& arguments, const std::string& why) {
    const Answer answer = command(arguments);
    CHECK(answer.status == 2);
    CHECK_THAT(answer.text, contains(why));
  };
  refused("", "no program");
  refused("--mode lat " + program, "--mode lat");
  refused("--checks races " + program, "\"races\"");
  refused("--seed x " + program, "--seed");
  refused("--seeds 0 " + program, "--seeds");
  refused("--bogus " + program, "--bogus");
  refused("--names no/such/file " + program, "no/such/file");
  refused("--allow no-such-rule " + program, "--allow no-such-rule");
  refused("--allow machine-trap " + program, "class E cannot be allowed");
}

TEST_CASE("options behind the program are the program's", "[command]") {
  const Answer answer = command(program + " clean --mode nonsense");
  CHECK(answer.status == 0);
}

TEST_CASE("rules and modes are listed", "[command]") {
  const Answer rules = command("--rules");
  CHECK(rules.status == 0);
  CHECK_THAT(rules.text, contains("E machine-deadlock"));
  CHECK_THAT(rules.text, contains("U machine-unsupported"));
  const Answer modes = command("--list-modes");
  CHECK(modes.status == 0);
  CHECK_THAT(modes.text, contains("default "));
}

TEST_CASE("many runs give one report, with the runs that showed each finding", "[command]") {
  const File file(".json");
  const Answer answer =
      command("--quiet --seeds 3 --seed 5 --jobs 2 --json " + file.path + " " + program + " race");
  CHECK(answer.status == 1);
  CHECK_THAT(answer.text, contains("3 runs, 3 grids"));
  const auto report = nlohmann::json::parse(read(file.path));
  CHECK(report.at("status") == 1);
  REQUIRE(report.at("runs").size() == 3);
  CHECK(report.at("runs")[2].at("seed") == 7);
  REQUIRE(!report.at("findings").empty());
  for (const auto& finding : report.at("findings")) CHECK(finding.at("seen").size() == 3);
}

TEST_CASE("a trace of the same schedule is the same", "[command]") {
  const File first(".a"), second(".b");
  for (const File* file : {&first, &second})
    REQUIRE(command("--quiet --trace " + file->path + " " + program).status == 0);
  const std::string trace = read(first.path);
  CHECK_THAT(trace, contains("bar.sync"));
  CHECK_THAT(trace, contains(". barrier arrive"));
  CHECK(trace == read(second.path));
}

TEST_CASE("the machine is chosen by option or environment, and an unknown one lists all", "[command]") {
  const Answer family = command("--machine b300 --quiet " + program + " race");
  CHECK(family.status == 1);
  CHECK_THAT(family.text,
             contains("replay    dualgemm-sim --mode default --seed 0 --machine B300 " + program));
  const Answer hopper = command("--machine h200 " + program);
  CHECK(hopper.status == 3);
  CHECK_THAT(hopper.text,
             contains("nothing that the H200 (compute capability 9.0) runs") && contains("compute_100f"));
  const Answer unknown = command("--machine b100 " + program);
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.text, contains("no machine is named \"b100\"; the machines are B200, B300, H200, H100"));
  CHECK(command("--machine b200,sms=7 " + program).status == 0);
  CHECK_THAT(command("--machine h200,sms=7 " + program).text,
             contains("nothing that the H200,sms=7 (compute"));
  const Answer no_part = command("--machine b200,sms=0 " + program);
  CHECK(no_part.status == 2);
  CHECK_THAT(no_part.text, contains("b200,sms=0: sms must be from 1 to 148"));

  const auto beside = [&](const std::string& machine, const std::string& options) {
    return shell("SIM_MACHINE=" + machine + " " COMMAND " " + options + program);
  };
  CHECK_THAT(beside("h200", "").text, contains("nothing that the H200"));
  CHECK(beside("h200", "--machine b200 ").status == 0);
  CHECK(beside("", "").status == 0);
  CHECK(beside("b100", "").status == 2);

  const std::string runtime = std::filesystem::path(COMMAND).parent_path() / "sim";
  const auto run = [&](const std::string& machine) {
    return shell("SIM_MACHINE=" + machine + " LD_LIBRARY_PATH=" + runtime + " " + program);
  };
  CHECK(run("b300").status == 0);
  CHECK_THAT(run("h200").text, contains("nothing that the H200"));
  const Answer refused = run("b100");
  CHECK(refused.status == 2);
  CHECK_THAT(refused.text,
             contains("SIM_MACHINE: no machine is named \"b100\"; the machines are B200, B300, H200, H100"));
}

TEST_CASE("the environment says how many devices there are", "[command][devices]") {
  const std::string runtime = std::filesystem::path(COMMAND).parent_path() / "sim";
  const auto run = [&](const std::string& devices) {
    return shell("SIM_DEVICES=" + devices + " LD_LIBRARY_PATH=" + runtime + " " + program +
                 " 'second device'");
  };
  CHECK(run("2").status == 0);
  CHECK(run("1").status == 1);
  CHECK(run("").status == 1);
  for (const char* devices : {"0", "129", "two"}) {
    const Answer refused = run(devices);
    CHECK(refused.status == 2);
    CHECK_THAT(refused.text,
               contains("SIM_DEVICES: '" + std::string(devices) + "' is no number from 1 to 128"));
  }
}

}  // namespace command_test
