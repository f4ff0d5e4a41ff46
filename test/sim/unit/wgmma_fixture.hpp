// wgmma_fixture.hpp -- programs of wgmma instructions and what they ought to compute. The layouts of shared
// memory and of registers are written down here a second time, from the element's side: where row and column
// of a matrix lie.
#pragma once

#include <bit>
#include <functional>
#include <memory>
#include <random>
#include <set>

#include "sim/check/protocol.h"
#include "sim/check/race.h"
#include "sim/schedule/schedule.h"
#include "sim/unit/machine_fixture.hpp"

namespace wgmma_test {

using sim_test::Machine;
using Matrix = std::vector<std::vector<int>>;  // small integers, which all formats hold

// A format of operands, with the name that it has in an instruction.
struct Format {
  const char* name;
  int bits, mantissa_bits, bias;

  uint32_t bytes() const { return uint32_t(bits) / 8; }
  uint32_t depth() const { return 32 / bytes(); }  // of a matrix
  uint32_t encode(int value) const {
    if (value == 0) return 0;
    const int magnitude = std::abs(value), exponent = std::bit_width(unsigned(magnitude)) - 1;
    const int significand = mantissa_bits >= exponent ? magnitude << (mantissa_bits - exponent)
                                                      : magnitude >> (exponent - mantissa_bits);
    return (value < 0 ? 1u << (bits - 1) : 0) | uint32_t(exponent + bias) << mantissa_bits |
           (uint32_t(significand) & ((1u << mantissa_bits) - 1));
  }
};
inline constexpr Format kF16{"f16", 16, 10, 15}, kBf16{"bf16", 16, 7, 127}, kE4m3{"e4m3", 8, 3, 7},
    kE5m2{"e5m2", 8, 2, 15};

// A layout says where a 16-byte chunk of elements along the contiguous dimension lies: `chunk` counts along
// this dimension, `line` along the other one.
struct Layout {
  const char* name;
  bool mn_major;
  uint32_t swizzle;  // bits 62 and 63 of the descriptor
  uint32_t leading, stride;
  std::function<uint32_t(uint32_t line, uint32_t chunk)> place;

  uint64_t descriptor(uint32_t at) const {
    return at >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | uint64_t(swizzle) << 62;
  }
  uint32_t element(uint32_t row, uint32_t k, uint32_t bytes) const {
    const uint32_t per_chunk = 16 / bytes;
    return mn_major ? place(k, row / per_chunk) + bytes * (row % per_chunk)
                    : place(row, k / per_chunk) + bytes * (k % per_chunk);
  }
};

// Tiles of `rows` rows of 32 bytes, or MN-major of 16 elements; the largest take 256 rows of 128 bytes.
inline std::vector<Layout> layouts(uint32_t rows) {
  const uint32_t lines_bytes = rows * 16;  // of a column of chunks
  return {
      {"K-major", false, 0, lines_bytes, 128,
       [=](uint32_t r, uint32_t c) { return c * lines_bytes + r / 8 * 128 + r % 8 * 16; }},
      {"K-major, 128 bytes", false, 1, 16, 1024,
       [](uint32_t r, uint32_t c) { return r * 128 + (c ^ r % 8) * 16; }},
      {"K-major, 64 bytes", false, 2, 16, 512,
       [](uint32_t r, uint32_t c) { return r * 64 + (c ^ r / 2 % 4) * 16; }},
      {"K-major, 32 bytes", false, 3, 16, 256,
       [](uint32_t r, uint32_t c) { return r * 32 + (c ^ r / 4 % 2) * 16; }},
      {"MN-major", true, 0, 16 * 128 * 4, 128,
       [](uint32_t k, uint32_t c) { return k / 8 * 8192 + c * 128 + k % 8 * 16; }},
      // A block of 64, 32 or 16 elements along M or N, 8 deep, is a pattern; blocks follow along K first.
      {"MN-major, 128 bytes", true, 1, 2048, 1024,
       [](uint32_t k, uint32_t c) { return c / 8 * 2048 + k * 128 + (c % 8 ^ k % 8) * 16; }},
      {"MN-major, 64 bytes", true, 2, 1024, 512,
       [](uint32_t k, uint32_t c) { return c / 4 * 1024 + k * 64 + (c % 4 ^ k / 2 % 4) * 16; }},
      {"MN-major, 32 bytes", true, 3, 512, 256,
       [](uint32_t k, uint32_t c) { return c / 2 * 512 + k * 32 + (c % 2 ^ k / 4 % 2) * 16; }},
  };
}

inline Matrix random_matrix(uint32_t rows, uint32_t columns, uint32_t seed, int most = 8) {
  std::mt19937 random(seed);
  Matrix out(rows, std::vector<int>(columns));
  for (auto& row : out)
    for (int& value : row) value = int(random() % uint32_t(2 * most + 1)) - most;
  return out;
}

// Where the matrices begin in dynamic shared memory.
constexpr uint32_t kA = 0, kB = 16384, kImageBytes = kB + 32768;

// One program: its threads fill shared memory from `image`, load accumulators and fragments of A, run `body`
// and store the accumulators %f0... Every warpgroup is given the same. Registers: %r0 thread, %r1 shared
// memory, %rd10 and %rd11 descriptors of A and B, %a0..3 the fragments, %p1 true, %p2 false.
struct Program {
  uint32_t n = 64, warpgroups = 1, threads = 128;  // `warpgroups` store results
  Format a_format = kF16, b_format = kF16;
  std::string body;
  std::string before = "fence.proxy.async; bar.sync 0;";  // after the image was stored
  std::string fence = "wgmma.fence.sync.aligned;";        // after the registers were loaded
  std::string after;                                      // before the results are stored

  std::string types() const { return std::string(a_format.name) + "." + b_format.name; }
  std::string accumulators(uint32_t first = 0) const {
    std::string out = "{";
    for (uint32_t i = 0; i < n / 2; ++i) out += (i ? ", %f" : "%f") + std::to_string(first + i);
    return out + "}";
  }
  // wgmma.mma_async with A in registers or, with `shared`, in shared memory; `end` are the operands behind
  // the descriptors.
  std::string mma(bool shared, const std::string& end, uint32_t first = 0, const std::string& a = "",
                  const std::string& b = "%rd11") const {
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(a_format.depth()) +
           ".f32." + types() + " " + accumulators(first) + ", " +
           (!a.empty() ? a
            : shared   ? "%rd10"
                       : "{%a0, %a1, %a2, %a3}") +
           ", " + b + ", " + end + ";\n";
  }
  std::string text(uint64_t a_descriptor, uint64_t b_descriptor) const {
    std::string out = R"(.version 8.8
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 image, .param .u64 c, .param .u64 a, .param .u64 d)
{
  .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .b32 %a<8>; .reg .f32 %f<512>;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd0, [image]; ld.param.u64 %rd1, [c]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [d];
  setp.eq.u32 %p1, %r0, %r0; setp.ne.u32 %p2, %r0, %r0;
  mov.u32 %r1, smem; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r2;
  add.u64 %rd4, %rd0, %rd4;
  mov.u32 %r4, 0;
FILL:
  ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd4]; st.shared.v4.u32 [%r3], {%r5, %r6, %r7, %r8};
  add.u32 %r3, %r3, )" +
                      std::to_string(16 * threads) + "; add.u64 %rd4, %rd4, " + std::to_string(16 * threads) +
                      "; add.u32 %r4, %r4, " + std::to_string(16 * threads) + R"(;
  setp.lt.u32 %p3, %r4, )" +
                      std::to_string(kImageBytes) + R"(; @%p3 bra FILL;
  mul.lo.u32 %r9, %r0, )" +
                      std::to_string(2 * n) + R"(; cvt.u64.u32 %rd5, %r9;
  add.u64 %rd1, %rd1, %rd5; add.u64 %rd3, %rd3, %rd5; cvt.u64.u32 %rd6, %r2; add.u64 %rd2, %rd2, %rd6;
)";
    out += before;
    for (uint32_t i = 0; i < n / 2; ++i)
      out += "ld.global.f32 %f" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) + "];\n";
    out +=
        "ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%rd2];\n"
        "shr.u32 %r10, %r1, 4; cvt.u64.u32 %rd12, %r10;\n"
        "add.u64 %rd10, %rd12, " +
        std::to_string(a_descriptor) + "; add.u64 %rd11, %rd12, " + std::to_string(b_descriptor) + ";\n" +
        fence + body + after;
    for (uint32_t i = 0; i < n / 2; ++i)
      out += "st.global.f32 [%rd3+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
    return out + "END: ret;\n}\n";
  }
};

struct Problem {
  Program program;
  Layout a_layout = layouts(64)[1], b_layout = layouts(64)[1];
  Matrix a, b, c;  // b has n rows
  explicit Problem(Program p)
      : program(std::move(p)),
        a(random_matrix(64, depth(), 1)),
        b(random_matrix(program.n, depth(), 2)),
        c(random_matrix(64, program.n, 3, 100)) {
    b_layout = layouts(program.n)[1];
  }
  uint32_t depth() const { return program.a_format.depth(); }
};

// What the checkers found, rule by rule.
struct Verdicts {
  std::set<std::string> rules;
  sim::RaceChecker race{[this](sim::Finding f) { rules.insert(f.rule->id); }};
  sim::ProtocolChecker protocol{[this](sim::Finding f) { rules.insert(f.rule->id); }, &race};
  sim::Observers both;
  Verdicts() {
    both.add(race);
    both.add(protocol);
  }
};

// Runs the problem and returns D of the last warpgroup.
inline Matrix run(const Problem& problem, const std::string& mode = "default", uint64_t seed = 0,
                  sim::Observer* observer = nullptr) {
  const Program& program = problem.program;
  std::vector<uint8_t> image(kImageBytes);
  const auto put = [&](uint32_t base, const Matrix& matrix, const Layout& layout, const Format& format) {
    for (uint32_t row = 0; row < matrix.size(); ++row)
      for (uint32_t k = 0; k < problem.depth(); ++k) {
        const uint32_t code = format.encode(matrix[row][k]);
        std::memcpy(&image[base + layout.element(row, k, format.bytes())], &code, format.bytes());
      }
  };
  put(kA, problem.a, problem.a_layout, program.a_format);
  put(kB, problem.b, problem.b_layout, program.b_format);
  std::vector<float> c(program.threads * program.n / 2);
  std::vector<uint32_t> fragments(program.threads * 4);
  // Element (row, column) of D is in register 4 * (column / 8) + 2 * (row % 16 / 8) + column % 2 of this
  // thread. Byte i of a row of A is byte i % 4 of register 2 * (i / 16) + row % 16 / 8 of the thread that has
  // column i / 2 of D.
  const auto thread = [](uint32_t row, uint32_t column) {
    return row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  };
  const auto place = [&](uint32_t row, uint32_t column) {
    return thread(row, column) * program.n / 2 + 4 * (column / 8) + 2 * (row % 16 / 8) + column % 2;
  };
  for (uint32_t group = 0; group < program.threads / 128; ++group)
    for (uint32_t row = 0; row < 64; ++row) {
      for (uint32_t column = 0; column < program.n; ++column)
        c[group * 64 * program.n + place(row, column)] = float(problem.c[row][column]);
      const uint32_t size = program.a_format.bytes();
      for (uint32_t i = 0; i < 32; i += size)
        fragments[(group * 128 + thread(row, i / 2)) * 4 + 2 * (i / 16) + row % 16 / 8] |=
            program.a_format.encode(problem.a[row][i / size]) << 8 * (i % 4);
    }
  Machine machine;
  uint8_t* image_at = machine.make(image);
  float* c_at = machine.make(c);
  uint32_t* a_at = machine.make(fragments);
  float* d_at = machine.make<float>(c.size());
  const auto policy = sim::make_policy(mode, seed);
  sim::LaunchOptions options;
  options.policy = policy.get();
  options.machine = sim::kH200;
  options.observer = observer;
  machine.run(program.text(problem.a_layout.descriptor(kA), problem.b_layout.descriptor(kB)),
              sim_test::shape(1, program.threads, 1, kImageBytes), {&image_at, &c_at, &a_at, &d_at}, options);
  const size_t results = 64 * program.n;  // of a warpgroup
  const std::vector<float> d = machine.fetch(d_at + (program.warpgroups - 1) * results, results);
  Matrix out(64, std::vector<int>(program.n));
  for (uint32_t row = 0; row < 64; ++row)
    for (uint32_t column = 0; column < program.n; ++column) out[row][column] = int(d[place(row, column)]);
  return out;
}

// Returns factor * A * B^T + C.
inline Matrix expected(const Problem& problem, int factor = 1, bool accumulate = true) {
  Matrix out(64, std::vector<int>(problem.program.n));
  for (uint32_t row = 0; row < 64; ++row)
    for (uint32_t column = 0; column < problem.program.n; ++column) {
      int sum = 0;
      for (uint32_t k = 0; k < problem.depth(); ++k) sum += problem.a[row][k] * problem.b[column][k];
      out[row][column] = factor * sum + (accumulate ? problem.c[row][column] : 0);
    }
  return out;
}

inline constexpr const char* kWait = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";

}  // namespace wgmma_test
