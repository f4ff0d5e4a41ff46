// module_test.cpp -- a module that cannot be is refused with the line to blame, whatever numbers and brackets
// it holds: with no crash, and without the memory or the time that it asks for. Each text is the smallest of
// its kind.
#include <cstring>
#include <string>

#include "sim/decode/program.h"
#include "sim/launch.h"
#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace module_test {

using sim::FaultKind;
using sim_test::fault_of;
using sim_test::says;

const std::string kHeader = ".version 9.0\n.target sm_100a\n";

static std::unique_ptr<sim::Module> load(const std::string& text, sim::GlobalMemory& memory) {
  return sim::Module::load(kHeader + text, memory);
}

// Loads the text, notes that it did, and launches kernel k.
static void load_and_launch(const std::string& text, sim::GlobalMemory& memory, bool* loaded) {
  const auto module = load(text, memory);
  *loaded = true;
  sim::launch(*module, "k", {}, nullptr, memory);
}

// In a kernel, on line 3.
static std::string kernel(const std::string& body) { return ".entry k() { " + body + " }"; }

static std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Functions, each of which calls the one before it so many times.
static std::string chain(int functions, int calls) {
  std::string out = ".func f0() { ret; }\n";
  for (int i = 1; i < functions; ++i)
    out += ".func f" + std::to_string(i) + "() { " +
           repeated("call f" + std::to_string(i - 1) + "; ", calls) + "}\n";
  return out + kernel("call f" + std::to_string(functions - 1) + ";");
}

TEST_CASE("numbers that no module has are refused with their line, at load where ptxas would refuse them",
          "[module]") {
  struct Text {
    std::string text;
    FaultKind kind;
    const char* message;
  };
  const Text bad = GENERATE(values<Text>({
      {".global .b8 x[4294967296][4294967296] = {{1}};", FaultKind::kSyntax,
       "ptx:3:13: a variable has at most"},
      {".global .b8 x[1<<40];", FaultKind::kSyntax, "ptx:3:13: a variable has at most"},
      {".global .b8 x[-1];", FaultKind::kSyntax, "ptx:3:13: a variable has at most"},
      {".global .b8 x[1<<31];\n.global .b8 y;", FaultKind::kUnsupported,
       "PTX line 4: variable y does not fit"},
      {".global .b128 x = 1;", FaultKind::kUnsupported, "ptx:3:19: an initial value of 128 bits"},
      {".global .align 0x100000000 .b8 x;", FaultKind::kSyntax, "ptx:3:28: an alignment"},
      {".extern .global .b8 x;", FaultKind::kUnsupported, "PTX line 3: variable x is not defined"},
      {kernel(".reg .b32 r<16777217>;"), FaultKind::kSyntax, "ptx:3:24: impossible number of registers"},
      {kernel(".reg .b32 r<16777216>;"), FaultKind::kSyntax, "ptx:3:24: more registers than"},
      {kernel(".reg .b32 r<4000>; .reg .b32 s<4000>;"), FaultKind::kSyntax, "ptx:3:43: more registers than"},
      {kernel(".local .b8 x[524289];"), FaultKind::kUnsupported,
       "PTX line 3: with x there are more than 524288"},
      {kernel(".shared .b8 x[1<<31]; st.shared.u8 [x], 0;"), FaultKind::kUnsupported,
       "PTX line 3: with x there are more than 2147483648 bytes of shared"},
      {".entry k(.param .b8 x[32765]) { ret; }", FaultKind::kUnsupported,
       "PTX line 3: with x there are more than 32764"},
      {kernel("tcgen05.wait::ld.x99999999999;"), FaultKind::kUnsupported, "PTX line 3: `tcgen05.wait::ld.x9"},
      {kernel("wgmma.m64n;"), FaultKind::kSyntax, "PTX line 3: `wgmma.m64n`"},
      {kernel("frobnicate; wgmma.m64n;"), FaultKind::kSyntax, "PTX line 3: `wgmma.m64n`"},
      {kernel(".reg .b64 a; slct.b64 a, a, a, a;"), FaultKind::kUnsupported, "PTX line 3: `slct.b64"},
      {".func f();\n.func f() { call f; }\n" + kernel("call f;"), FaultKind::kUnsupported,
       "PTX line 4: function f is rec"},
  }));
  CAPTURE(bad.text);
  sim::GlobalMemory memory;
  bool loaded = false;
  const sim::Fault fault = fault_of([&] { load_and_launch(bad.text, memory, &loaded); });
  CHECK(!(loaded && bad.kind == FaultKind::kSyntax));
  CHECK_THAT(fault.what(), dualgemm_test::contains(bad.message));
  CHECK(fault.kind() == bad.kind);
  CHECK(memory.bytes_in_use(0) == 0);
}

TEST_CASE("text that is nested as deep as it likes is refused where it is too deep", "[module]") {
  constexpr int kDeep = 100000;
  const std::string text =
      GENERATE(".global .b8 x[" + repeated("(", kDeep), ".global .b8 x[" + repeated("~", kDeep),
               ".global .b8 x" + repeated("[1]", kDeep) + " = " + repeated("{", kDeep),
               kernel("mov.b64 " + repeated("{", kDeep)), kernel("ld.b64 " + repeated("[x,", kDeep)));
  CAPTURE(text.substr(0, 40));
  sim::GlobalMemory memory;
  const sim::Fault fault = fault_of([&] { load(text, memory); });
  CHECK(says(fault, "nested more than 100 deep"));
  CHECK(says(fault, "ptx:3:"));
  CHECK(fault.kind() == FaultKind::kSyntax);
}

TEST_CASE("functions are followed once, however often they are called, and not without end", "[module]") {
  sim::GlobalMemory memory;
  // Through 60 functions that each call the next twice lead 2^59 ways.
  CHECK(load(chain(60, 2), memory)->program().kernels.at(0).functions.size() == 61);
  bool loaded = false;
  CHECK(says(fault_of([&] { load_and_launch(chain(5000, 1), memory, &loaded); }),
             "is called more than 1000 deep"));
}

TEST_CASE("a label behind the last instruction is one to leave by", "[module]") {
  const char* body = GENERATE("bra end; end:", ".reg .pred p; @p bra end; exit; end:",
                              ".reg .b32 r; t: .branchtargets end; brx.idx r, t; end:");
  CAPTURE(body);
  sim::GlobalMemory memory;
  const auto module =
      load(".func f() { " + std::string(body) + " }\n" + kernel("call f; " + std::string(body)), memory);
  const sim::Kernel& k = module->program().kernels.at(0);
  int branches = 0;
  for (size_t pc = 0; pc < k.code.size(); ++pc) {
    // The function's code follows the kernel's.
    const bool in_kernel = pc < k.functions.at(1).entry;
    for (const uint32_t target : k.code[pc].targets) {
      ++branches;
      REQUIRE(target < k.code.size());
      CHECK((target < k.functions.at(1).entry) == in_kernel);
      CHECK(k.code[target].operation == (in_kernel ? sim::Operation::exit : sim::Operation::ret));
    }
  }
  CHECK(branches == 2);
}

TEST_CASE("initial values stand at their offsets, and the rest is zero", "[module]") {
  sim::GlobalMemory memory;
  const auto module = load(
      ".global .b16 x[2][3] = {{1, 2}, {-1}};\n.global .v2 .f32 y[2] = {{1.0}, {2, 0f40400000}};", memory);
  const sim::GlobalVariable *x = module->find_global("x"), *y = module->find_global("y");
  REQUIRE(x->size == 12);
  REQUIRE(y->size == 16);
  const uint16_t xs[6] = {1, 2, 0, 0xFFFF, 0, 0};
  const float ys[4] = {1, 0, 2, 3};
  CHECK(std::memcmp(reinterpret_cast<const void*>(x->address), xs, sizeof xs) == 0);
  CHECK(std::memcmp(reinterpret_cast<const void*>(y->address), ys, sizeof ys) == 0);
}

}  // namespace module_test
