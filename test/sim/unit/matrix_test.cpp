// matrix_test.cpp -- ldmatrix and stmatrix against the picture of the PTX ISA: thread 4 * r + c / 2 has
// elements (r, c) and (r, c + 1) of each 8 x 8 matrix, and those of its transpose with .trans.
#include "sim/decode/program.h"
#include "sim/unit/recorder.hpp"
#include "support/catch.hpp"

namespace matrix_test {

using namespace sim_test;
using sim::FaultKind;

constexpr uint32_t kRowStride = 48;  // rows need not touch

static std::string vector_of(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "%m" : ", %m") + std::to_string(i);
  return "{" + out + "}";
}

// A warp runs `body` with %r3 the address of its row in shared memory; before it, the 32 rows are loaded from
// memory and afterwards they are stored there.
static std::string text(const std::string& body) {
  return ".version 8.8\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 rows, .param .u64 values)\n{\n"
         ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b32 %m<4>;\n"
         ".shared .align 16 .b8 tile[1536];\n"
         "ld.param.u64 %rd1, [rows]; ld.param.u64 %rd2, [values]; mov.u32 %r1, %tid.x;\n"
         "mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 48, %r2;\n"
         "mul.wide.u32 %rd3, %r1, 16; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n"
         "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1]; st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};\n"
         "ld.global.v4.u32 {%m0, %m1, %m2, %m3}, [%rd2]; cvt.u64.u32 %rd4, %r3; cvta.shared.u64 %rd5, %rd4;\n"
         "bar.warp.sync 0xffffffff;\n" +
         body +
         "\nbar.warp.sync 0xffffffff;\n"
         "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3]; st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};\n"
         "st.global.v4.u32 [%rd2], {%m0, %m1, %m2, %m3};\nret;\n}\n";
}

struct State {
  std::vector<uint16_t> rows, values;  // of 32 rows of 8, of 32 threads of 8
};

static State run(const std::string& body, sim::Observer* observer = nullptr) {
  State state;
  for (uint16_t i = 0; i < 256; ++i) {
    state.rows.push_back(i);
    state.values.push_back(uint16_t(1000 + i));
  }
  Machine machine;
  uint16_t* rows = machine.make(state.rows);
  uint16_t* values = machine.make(state.values);
  sim::LaunchOptions options;
  options.machine = sim::kH200;
  options.observer = observer;
  machine.run(text(body), shape(1, 32), {&rows, &values}, options);
  return {machine.fetch(rows, 256), machine.fetch(values, 256)};
}

static uint32_t row_of(int matrix, uint32_t row, uint32_t column) {
  return uint32_t(matrix) * 64 + row * 8 + column;
}
static uint32_t value_of(int matrix, uint32_t row, uint32_t column) {
  return (row * 4 + column / 2) * 8 + uint32_t(matrix) * 2 + column % 2;
}

TEST_CASE("ldmatrix and stmatrix move one, two and four matrices, as they lie and transposed", "[matrix]") {
  const int count = GENERATE(1, 2, 4);
  const bool transposed = GENERATE(false, true);
  const std::string form = ".sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "");
  CAPTURE(form);
  const State before = run("");
  const bool generic = count == 2;
  const std::string address = generic ? "[%rd5]" : "[%r3]", space = generic ? "" : ".shared";
  const State loaded = run("ldmatrix" + form + space + ".b16 " + vector_of(count) + ", " + address + ";");
  const State stored = run("stmatrix" + form + space + ".b16 " + address + ", " + vector_of(count) + ";");
  CHECK(loaded.rows == before.rows);
  CHECK(stored.values == before.values);
  State expect_loaded = before, expect_stored = before;
  for (int m = 0; m < count; ++m)
    for (uint32_t r = 0; r < 8; ++r)
      for (uint32_t c = 0; c < 8; ++c) {
        const uint32_t value = transposed ? value_of(m, c, r) : value_of(m, r, c);
        expect_loaded.values[value] = before.rows[row_of(m, r, c)];
        expect_stored.rows[row_of(m, r, c)] = before.values[value];
      }
  CHECK(loaded.values == expect_loaded.values);
  CHECK(stored.rows == expect_stored.rows);
}

TEST_CASE("ldmatrix and stmatrix touch a row for each lane that gives an address", "[matrix]") {
  Recorder seen;
  run("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%m0, %m1}, [%r3];", &seen);
  size_t rows = 0;
  for (const sim::Access& access : seen.accessed)
    rows += access.inst->operation == sim::Operation::ldmatrix && !access.region.write &&
            access.region.bytes == 16 && access.region.address % kRowStride == 1024 % kRowStride;
  CHECK(rows == 16);
}

TEST_CASE("ldmatrix and stmatrix refuse rows that are misaligned or elsewhere, and lanes apart", "[matrix]") {
  const auto kind = [](const std::string& body) { return fault_of([&] { run(body); }).kind(); };
  CHECK(kind("add.u32 %r3, %r3, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%m0}, [%r3];") ==
        FaultKind::kMisaligned);
  CHECK(kind("stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%m0};") == FaultKind::kBounds);
  CHECK(kind("{ .reg .pred p; setp.lt.u32 p, %r1, 16; "
             "@p ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%m0}, [%r3]; }") == FaultKind::kProtocol);
  CHECK(kind("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%m0}, [%r3];") == FaultKind::kUnsupported);
}

TEST_CASE("ldmatrix brings what nobody wrote as poison of the registers that it goes to",
          "[matrix][poison]") {
  // The distance of rows of 16 bytes is 48 bytes. The addresses of the last matrix point between the rows.
  const std::string load =
      "setp.ge.u32 p, %r1, 24; @p add.u32 %r3, %r3, 16;"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " +
      vector_of(4) + ", [%r3]; mad.lo.u32 %r3, %r1, 48, %r2;";
  const auto values = [&](const std::string& use) {
    return run("{ .reg .pred p; " + load + use + " }").values;
  };
  const State before = run("");
  const auto loaded = values("mov.u32 %m3, 0;");
  for (int m = 0; m < 3; ++m)
    for (uint32_t r = 0; r < 8; ++r)
      for (uint32_t c = 0; c < 8; ++c) CHECK(loaded[value_of(m, r, c)] == before.rows[row_of(m, r, c)]);
  const auto fault = fault_of([&] { values(""); });
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "of shared memory of CTA rank 0 was never written; it came by"));
}

}  // namespace matrix_test
