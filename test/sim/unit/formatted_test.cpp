// formatted_test.cpp -- printf and assert in device code: what format strings become, and calls of vprintf
// and __assertfail.
#include <bit>
#include <cstdio>

#include "sim/engine/formatted.h"
#include "sim/unit/lanes_fixture.hpp"
#include "support/catch.hpp"

namespace formatted_test {

using namespace sim_test;
using sim::FaultKind;

// Formats with these arguments, of 4 or 8 bytes. Each of them has to be asked for at its size.
struct Argument {
  Argument(int v) : value(uint32_t(v)), bytes(4) {}
  Argument(int64_t v) : value(uint64_t(v)), bytes(8) {}
  Argument(double v) : value(std::bit_cast<uint64_t>(v)), bytes(8) {}
  uint64_t value;
  uint32_t bytes;
};

static sim::Formatted formatted(const std::string& text, const std::vector<Argument>& arguments = {}) {
  size_t next = 0;
  const sim::Formatted out = sim::format(
      text, {[&](uint32_t bytes) {
               const Argument& argument = arguments.at(next++);
               CHECK(argument.bytes == bytes);
               return argument.value;
             },
             [](uint64_t address, size_t longest) { return std::to_string(address).substr(0, longest); }});
  CHECK(next == arguments.size());
  CHECK(out.arguments == int(arguments.size()));
  return out;
}

TEST_CASE("every conversion that the guide lists is formatted as by C, with an argument of its size",
          "[formatted]") {
  const int64_t big = int64_t{1} << 40;
  const std::tuple<const char*, Argument, const char*> cases[] = {
      {"%d", -7, "-7"},
      {"%i", -7, "-7"},
      {"%+5d|", 7, "   +7|"},
      {"%-5d|", 7, "7    |"},
      {"%05d", -7, "-0007"},
      {"% d", 7, " 7"},
      {"%.3d", 7, "007"},
      {"%hd", 65537, "1"},
      {"%hd", 0xFFFF, "-1"},
      {"%ld", big, "1099511627776"},
      {"%lld", -big, "-1099511627776"},
      {"%u", -1, "4294967295"},
      {"%hu", -1, "65535"},
      {"%lu", int64_t{-1}, "18446744073709551615"},
      {"%o", 8, "10"},
      {"%#o", 8, "010"},
      {"%x", 0xAB, "ab"},
      {"%#X", 0xAB, "0XAB"},
      {"%llx", big, "10000000000"},
      {"%p", int64_t{0x1234}, "0x1234"},
      {"%e", 1.5, "1.500000e+00"},
      {"%.1E", 1.5, "1.5E+00"},
      {"%f", 1.5, "1.500000"},
      {"%7.2F|", 1.5, "   1.50|"},
      {"%hf", 1.5, "1.500000"},
      {"%g", 1e-10, "1e-10"},
      {"%G", 1e-10, "1E-10"},
      {"%a", 0.5, "0x1p-1"},
      {"%A", 0.5, "0X1P-1"},
      {"%c", 'q', "q"},
      {"%3c", 'q', "  q"},
      {"%s", int64_t{12345}, "12345"},
      {"%.2s", int64_t{12345}, "12"},
      {"%-7s|", int64_t{12345}, "12345  |"},
      {"%s", int64_t{0}, "(null)"},
  };
  for (const auto& [text, argument, expected] : cases) {
    INFO(text);
    CHECK(formatted(text, {argument}).text == expected);
  }
  CHECK(formatted("%*d|%*d|", {5, 7, -5, 7}).text == "    7|7    |");
  CHECK(formatted("%d of %d: %s\n", {1, 2, int64_t{3}}).text == "1 of 2: 3\n");
  CHECK(formatted("%c", {0}).text == std::string(1, '\0'));
}

TEST_CASE("what is no conversion stays as it is, and what only C knows is refused", "[formatted]") {
  CHECK(formatted("").text.empty());
  for (const char* text : {"100%", "%y", "%-08y", "%5.3", "%l", "% "}) CHECK(formatted(text).text == text);
  CHECK(formatted("%%").text == "%");
  CHECK(formatted("%y%d", {1}).text == "%y1");
  for (const char* text : {"%n", "%hn", "%zu", "%hhd", "%Lf", "%.*f", "%jd", "%S", "%m"}) {
    INFO(text);
    const auto fault = fault_of([&] { formatted(text); });
    CHECK(fault.kind() == FaultKind::kUnsupported);
    CHECK(says(fault, text));
  }
  CHECK(fault_of([&] { formatted("%9999999999d"); }).kind() == FaultKind::kUnsupported);
  CHECK(fault_of([&] { formatted("%*d", {1 << 30}); }).kind() == FaultKind::kUnsupported);
}

TEST_CASE("arguments behind the 32nd are not looked at", "[formatted]") {
  std::string text, expected;
  std::vector<Argument> arguments;
  for (int i = 0; i < 34; ++i) {
    text += "%d ";
    if (i < 32) arguments.emplace_back(i);
    expected += (i < 32 ? std::to_string(i) : "%d") + " ";
  }
  CHECK(formatted(text, arguments).text == expected);
}

namespace {

// Runs a kernel and returns what its printf and assert wrote.
struct Output {
  std::FILE *out = std::tmpfile(), *err = std::tmpfile();
  ~Output() {
    std::fclose(out);
    std::fclose(err);
  }
  static std::string text(std::FILE* file) {
    std::rewind(file);
    std::string all;
    for (int c; (c = std::fgetc(file)) != EOF;) all += char(c);
    return all;
  }
  std::vector<uint32_t> run(const std::string& body, uint32_t threads) {
    Machine machine;
    uint32_t* to = machine.make<uint32_t>(threads);
    sim::LaunchOptions options;
    options.out = out;
    options.err = err;
    // "%d %f %s\n" and "two"
    const std::string before = R"(
      .extern .func (.param .b32 status) vprintf (.param .b64 a, .param .b64 b);
      .extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
      .global .align 1 .b8 form[10] = {37, 100, 32, 37, 102, 32, 37, 115, 10, 0};
      .global .align 1 .b8 two[4] = {116, 119, 111, 0};)";
    machine.run(kernel_text(kOut, kProlog + body, before), shape(1, threads), {&to}, options);
    return machine.fetch(to, threads);
  }
};

// Calls vprintf with what `store` puts first, 2.5 and "two".
std::string call(const std::string& guard, const std::string& store) {
  return R"(.local .align 8 .b8 held[24]; .param .b64 f; .param .b64 a; .param .b32 status;
    mov.u64 %rd2, held; cvta.local.u64 %rd3, %rd2;
    mov.u32 %r2, -7;)" +
         store + R"(
    mov.f64 %rd5, 0d4004000000000000; st.local.b64 [held+8], %rd5;
    cvta.global.u64 %rd6, two; st.local.u64 [held+16], %rd6;
    cvta.global.u64 %rd4, form;
    st.param.b64 [f], %rd4; st.param.b64 [a], %rd3;
    )" + guard +
         R"( call (status), vprintf, (f, a);
    )" + guard +
         R"( ld.param.b32 %r2, [status];
    st.global.u32 [%rd1], %r2; ret;)";
}

}  // namespace

TEST_CASE("lanes that call vprintf print one after the other, and get the number of arguments",
          "[formatted]") {
  Output output;
  const auto got = output.run(call("setp.gt.u32 %p1, %r1, 1; @%p1", "st.local.u32 [held], %r1;"), 4);
  CHECK(Output::text(output.out) == "2 2.500000 two\n3 2.500000 two\n");
  CHECK(got == std::vector<uint32_t>{uint32_t(-7), uint32_t(-7), 3, 3});
}

TEST_CASE("an argument of vprintf that nobody wrote is poison, and a format that is null gives -1",
          "[formatted]") {
  Output output;
  CHECK(fault_of([&] { output.run(call("", ""), 1); }).kind() == FaultKind::kPoison);
  CHECK(output.run("mov.u64 %rd2, 0; call (%r2), vprintf, (%rd2, %rd2); st.global.u32 [%rd1], %r2; ret;",
                   1) == std::vector<uint32_t>{0xFFFFFFFF});
  CHECK(Output::text(output.out).empty());
}

TEST_CASE("a failed assertion prints a line for each lane, and ends the grid", "[formatted]") {
  Output output;
  const auto fault = fault_of([&] {
    output.run(R"(cvta.global.u64 %rd2, two; mov.u32 %r2, 9; setp.gt.u32 %p1, %r1, 1;
                  @%p1 call __assertfail, (%rd2, %rd2, %r2, %rd2, %rd2); st.global.u32 [%rd1], %r1; ret;)",
               4);
  });
  CHECK(fault.kind() == FaultKind::kAssert);
  CHECK(says(fault, "assertion failed: two, two:9 in two"));
  CHECK(Output::text(output.err) ==
        "two:9: two: block: [0,0,0], thread: [2,0,0] Assertion `two` failed.\n"
        "two:9: two: block: [0,0,0], thread: [3,0,0] Assertion `two` failed.\n");
}

TEST_CASE("a function without a body that the machine does not provide is refused at the launch",
          "[formatted]") {
  for (const char* declared :
       {".extern .func puts (.param .b64 a);", ".extern .func vprintf (.param .b64 a);"}) {
    const std::string name = declared[14] == 'p' ? "puts" : "vprintf";
    const auto fault = lanes_fault("call " + name + ", (%rd1); ret;", 1, declared);
    CHECK(fault.kind() == FaultKind::kUnsupported);
    CHECK(says(fault, name));
  }
}

}  // namespace formatted_test
