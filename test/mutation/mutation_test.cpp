// mutation_test.cpp -- surgery on PTX keeps the program together; the list of mutants names each once; and
// one bug of every kind is caught. The whole list is `make mutation`.
#include <algorithm>
#include <set>

#include "mutation/judges.h"
#include "mutation/planted.h"
#include "mutation/soak.h"
#include "mutation/trial.h"
#include "support/catch.hpp"
#include "support/known_bugs.h"

using namespace mutation;
using namespace dualgemm_test;

namespace {

Function function_of(const std::string& body) {
  return sim::ptx::parse(
             ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
             ".reg .b32 %r<9>;\n.reg .pred %p<3>;\n" +
             body + "\nret;\n}\n")
      .functions.at(0);
}

const std::string kLoop =
    "mov.u32 %r1, 0;\nL: add.s32 %r1, %r1, 1;\nbar.sync 0;\nsetp.lt.s32 %p1, %r1, 5;\n@%p1 bra L;\n";

size_t target(const Function& f) {
  for (const Statement& s : f.body)
    if (s.opcode == "bra") return static_cast<size_t>(s.operands.at(0).value);
  return ~size_t(0);
}

const Mutant& mutant_named(const std::vector<Mutant>& all, const std::string& id) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Mutant& mutant) { return mutant.id == id; });
  if (found == all.end()) FAIL("no mutant " << id);
  return *found;
}

// Checks that these mutants are killed with the right diagnosis, and the shipping kernel is clean.
void check_caught(Bench& bench, const std::vector<const char*>& ids) {
  const std::vector<Mutant> all = sweep(bench.kernel(), bench.subject(), Breadth::kAll);
  for (const char* id : ids) {
    const Mutant& mutant = mutant_named(all, id);
    const Verdict verdict =
        try_out(bench, mutant, expectation_of(mutant, bench.rings_of(mutant.ptx_line)), escalation().size());
    INFO(id << ": " << verdict.report);
    CHECK(verdict.killed());
    CHECK(verdict.diagnosed);
  }
  bench.use(nullptr);
  CHECK(bench.run({"default", 0}).outcome == Outcome::kClean);
}

// Checks that the bugs planted by hand are killed in the default schedule with the right diagnosis, and the
// shipping kernel is clean. A bug that stands in `settled` has been killed in another instance: the campaign
// plants it in each.
void check_planted(Bench& bench, std::set<std::string>& settled) {
  for (const Planted& p : planted_bugs(bench)) {
    if (!settled.insert(p.bug).second) continue;
    const Verdict verdict = try_out(bench, p.mutant, p.expected, 1);
    INFO(p.mutant.id << ": " << verdict.report);
    CHECK(verdict.diagnosed);
  }
  bench.use(nullptr);
  CHECK(bench.run({"default", 0}).outcome == Outcome::kClean);
}

}  // namespace

TEST_CASE("a branch reaches the same statement after others were taken out or put in", "[mutation]") {
  Function f = function_of(kLoop);
  REQUIRE(target(f) == 1);
  SECTION("one before is erased") {
    erase(f, 0);
    CHECK(is(f.body[target(f)], "add"));
  }
  SECTION("its own target is erased: the next one is reached") {
    erase(f, 1);
    CHECK(is(f.body[target(f)], "bar.sync"));
  }
  SECTION("one after is erased") {
    erase(f, 2);
    CHECK(is(f.body[target(f)], "add"));
  }
  SECTION("one is inserted at the target: it belongs to the loop") {
    insert(f, 1, make(f.body[1], "membar.gl", {}));
    CHECK(is(f.body[target(f)], "membar"));
  }
  SECTION("one is inserted before") {
    insert(f, 0, make(f.body[1], "membar.gl", {}));
    CHECK(is(f.body[target(f)], "add"));
  }
}

TEST_CASE("a moved statement stands directly beside the other one, whichever way it went", "[mutation]") {
  Function f = function_of(kLoop);
  SECTION("forward, after") {
    move_behind(f, 0, 2);
    CHECK(is(f.body[1], "bar.sync"));
    CHECK(is(f.body[2], "mov"));
    CHECK(is(f.body[target(f)], "add"));
  }
  SECTION("backward, before") {
    move_before(f, 2, 1);
    CHECK(is(f.body[1], "bar.sync"));
    CHECK(is(f.body[2], "add"));
  }
  SECTION("backward, after") {
    move_behind(f, 3, 0);
    CHECK(is(f.body[1], "setp"));
    CHECK(is(f.body[target(f)], "add"));
  }
  CHECK(f.body.size() == 6);
}

TEST_CASE("an operand is changed for one statement alone", "[mutation]") {
  Function f = function_of("mov.u32 %r1, 7;\nadd.s32 %r2, %r1, 3;\nsub.s32 %r3, %r1, 1;\n");
  const size_t registers = f.registers.size();
  add_to_operand(f, 1, 1, 5);  // a register: computed before
  REQUIRE(f.body.size() == 5);
  CHECK(is(f.body[1], "add.s32"));
  CHECK(f.body[1].operands[0].reg == registers);
  CHECK(f.body[2].operands[1].reg == registers);
  CHECK(f.body[3].operands[1].reg == f.body[0].operands[0].reg);
  add_to_operand(f, 2, 2, 5);  // an integer: in place
  CHECK(f.body.size() == 5);
  CHECK(f.body[2].operands[2].value == 8);
}

TEST_CASE("every mutant has a name of its own and changes the kernel", "[mutation]") {
  const auto [instance, least] =
      GENERATE(table<const char*, size_t>({{"m128n64k256_fp16", 400}, {"m64n128k256s4_general_nvfp4", 90}}));
  const Bench bench(instance);
  std::set<std::string> names;
  const auto all = sweep(bench.kernel(), bench.subject(), Breadth::kAll);
  CHECK(all.size() > least);
  // A change of nothing would survive the campaign, which makes them all.
  size_t turn = 0;
  for (const Mutant& mutant : all) {
    CHECK(names.insert(mutant.id).second);
    if (++turn % 3 != 0) continue;
    Function edited = bench.kernel();
    mutant.edit(edited);
    INFO(mutant.id);
    CHECK_FALSE(same_statements(edited, bench.kernel()));
  }
}

TEST_CASE(
    "every known bug is planted in a small kernel or in the shipping kernel, and excused where it cannot be",
    "[mutation]") {
  std::set<int> small, planted, excused;
#define SUBJECT(Type, subject)
#define DEFECT(name, number, ...) small.insert(number);
#define DEFECT_UNDER(mode, seed, name, number, ...) small.insert(number);
#define WRONG(name, number, text) small.insert(number);
#define CORRECT(name, text)
#define END(Type, subject)
#include "sim/defects/defects.def"
  for (const char* instance : {"m128n64k256_fp16", "m256n64k256_fp16", "m64n128k256s4_fp16",
                               "m256n128k256o_fp16", "m64n128k256g_fp16"}) {
    const Bench bench(instance);
    for (const Planted& p : planted_bugs(bench)) {
      CHECK(p.absent.empty() == bool(p.mutant.edit));
      (p.absent.empty() ? planted : excused).insert(p.number);
    }
  }
  int number = 0;
  for (const dualgemm_test::KnownBug& bug : dualgemm_test::kKnownBugs) {
    CAPTURE(bug.number, bug.text);
    CHECK(bug.number == ++number);
    if (bug.number < dualgemm_test::kFirstOfAnyProgram)
      CHECK((planted.contains(number) != excused.contains(number)));
    CHECK((planted.contains(number) || small.contains(number)));
  }
  for (const std::set<int>* room : {&small, &planted, &excused})
    CHECK((*room->begin() >= 1 && *room->rbegin() <= number));
}

TEST_CASE("one bug of every kind is caught in the shipping kernel", "[mutation]") {
  Bench bench("m128n64k256_fp16");
  check_caught(bench, {
                          "no wait mbarrier.try_wait @ mma_role/multiply/begin_k_tile/wait #0",
                          "no wait mbarrier.try_wait @ load_role/wait #0",
                          "other parity mbarrier.try_wait @ load_role/wait #1",
                          "arrive without bytes mbarrier.arrive @ load_role/load_role #0",
                          "arrive at once tcgen05.commit @ mma_role/multiply/give_back/commit #1",
                          "phase not flipped xor.b32 @ mma_role/multiply/give_back/operator++ #0",
                          "delete tcgen05.wait::ld @ epilogue_role/load_fragment #0",
                          "delete bar.sync @ prologue #0",
                          "delete fence.mbarrier_init @ prologue #0",
                          "delete barrier.cta.sync @ allocate_tensor_memory #0",
                          "delete griddepcontrol.wait @ kernel #0",
                          "delete tcgen05.dealloc @ teardown #0",
                          "sfb 4 columns on tcgen05.mma @ mma_role/multiply/issue/issue #0",
                          "outer coordinate + 1 cp.async.bulk.tensor @ load_role/load/load #0",
                          "32 lanes on tcgen05.ld @ epilogue_role/load_fragment #0",
                      });
  // The next grid reads weights before it waits, as STATIC_WEIGHTS allows.
  for (const Planted& p : planted_bugs(bench)) {
    if (p.number != 87) continue;
    const Verdict verdict = try_out(bench, p.mutant, p.expected, 1);
    INFO(p.mutant.id << ": " << verdict.report);
    CHECK(verdict.diagnosed);
  }
}

TEST_CASE("one bug of every kind is caught in the epilogue of a general instance", "[mutation]") {
  Bench along_rows("m128n64k256_general_nvfp4");
  check_caught(
      along_rows,
      {
          "no wait mbarrier.try_wait @ epilogue_role/wait_for_accumulators/wait #0",
          "delete tcgen05.fence::before_thread_sync @ epilogue_role #0",
          "delete st.global @ "
          "epilogue_role/finish/finish/store_preactivations/store_both/store_floats/store/store_row #3",
          "a plain store red @ epilogue_role/finish/finish/raise_amax #0",
          "own value redux.sync @ epilogue_role/finish/finish/raise_amax/__reduce_max_sync #0",
          "delete st.global @ epilogue_role/finish/store/store_floats/store/store_block #1",
          "delete st.global @ epilogue_role/complete_tile/complete_tile/zero_factors #0",
      });
  std::set<std::string> settled;
  check_planted(along_rows, settled);
  Bench down_columns("m64n128k256s4_general_nvfp4");
  check_caught(
      down_columns,
      {
          ".gpu to .cta red @ reducing_epilogue_role/finish/finish/raise_amax #0",
          "16 lanes away shfl.sync @ reducing_epilogue_role/finish/store/store_floats/store/transpose_16x16 #0",
          "another rank mapa @ reducing_epilogue_role/send_sums #0",
      });
}

// What stands in a kernel of one product only once, or otherwise than in one of two.
TEST_CASE("bugs of kernels of one product are caught", "[mutation]") {
  Bench whole("m128n128k256_one_fp16");
  check_caught(whole, {
                          "no wait mbarrier.try_wait @ load_role/wait #1",
                          "delete tcgen05.cp @ mma_role/multiply/issue/begin_step/copy_scales/copy_scales #1",
                          "sfb 4 columns on tcgen05.mma @ mma_role/multiply/issue/issue #0",
                          "b 1024 bytes on tcgen05.mma @ mma_role/multiply/issue/issue #3",
                          "delete tcgen05.wait::ld @ epilogue_role/load_fragment #0",
                      });
  Bench pair("m256n128k256_one_fp16");
  check_caught(pair, {
                         "phase not flipped xor.b32 @ epilogue_role/operator++ #0",
                         "delete mbarrier.arrive @ load_role/load_role #0",
                     });
}

// Instances for compute capability 9.0 are those of the simulated H100.
TEST_CASE("one bug of every kind is caught in a kernel of warps that prepare A", "[.][on_h100]") {
  Bench bench("sm90m8n32k256s2_fp16");
  std::set<std::string> settled;
  check_planted(bench, settled);
}

TEST_CASE("bugs of groups, of panels of A, of an A of 16 bits and of passes over A are caught",
          "[.][on_h100]") {
  std::set<std::string> settled;
  for (const char* instance :
       {"sm90m16n128k256g_fp16", "sm90m128n64k256x_fp16", "sm90m64n64k256_abf16_bf16"}) {
    Bench bench(instance);
    check_planted(bench, settled);
  }
  for (const char* instance : {"sm90m128n64k256xg_fp16", "sm90m64n64k256s2x_afp16_fp16"}) {
    Bench bench(instance, Part::kPass);
    check_planted(bench, settled);
  }
}

// Results of one product reach beyond what lies under those of two.
TEST_CASE("results over a ring that is read are seen in a kernel of one product", "[.][on_h100]") {
  Bench bench("sm90m8n64k256s2_one_fp16");
  size_t seen = 0;
  for (const Planted& p : planted_bugs(bench)) {
    if (p.number != 47) continue;
    const Verdict verdict = try_out(bench, p.mutant, p.expected, 1);
    INFO(p.mutant.id << ": " << verdict.report);
    CHECK(verdict.diagnosed);
    ++seen;
  }
  CHECK(seen == 1);
}

// The campaign has all schedules for each.
TEST_CASE("a control is clean under the first schedules of the campaign", "[mutation]") {
  Bench bench("m128n64k256_fp16");
  for (const Mutant& control : controls(bench.kernel(), bench.subject())) {
    const Verdict verdict = try_out(bench, control, {}, 3);
    INFO(control.id << ": " << verdict.report);
    CHECK_FALSE(verdict.killed());
  }
}

// `make soak` has all schedules for every kernel. Here each kernel has some of them, in turn.
TEST_CASE("kernels of every tile are clean under the schedules of a soak, of which each has some in turn",
          "[soak]") {
  AllowList allowed(MUTATION_ALLOW_LIST);
  const auto check = [&allowed](Bench& bench, const NamedInstance& instance, const Schedule& schedule) {
    INFO(instance.name << ", " << schedule.mode << " seed " << schedule.seed);
    CHECK(complaint(bench.run(schedule), allowed) == "");
  };
  const std::vector<Schedule> schedules = soak_schedules(1, 1);
  size_t turn = 0;
  const auto check_in_turn = [&](const NamedInstance& instance, size_t turns) {
    Bench bench(instance.name);
    for (size_t i = turn++ % turns; i < schedules.size(); i += turns) check(bench, instance, schedules[i]);
  };
  for (const NamedInstance& instance : plain_instances())
    if (instance.dtype == DUALGEMM_DTYPE_FP16) check_in_turn(instance, 6);  // BF16 differs in one conversion
  // A general epilogue is the only part that is not that of a plain instance.
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances_in_turn(grouped))
      check_in_turn(instance, schedules.size());
  // Kernels of one product share every role but the accumulators, so each tile has one schedule.
  for (const NamedInstance& instance : dualgemm_test::in_turn(dualgemm_test::one_product_instances()))
    check_in_turn(instance, schedules.size());
}
