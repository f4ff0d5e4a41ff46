// convert_test.cpp -- scale factors from rows to atoms and back, on the device and by the twins on the host,
// byte by byte against the drawing of the layout: ragged rows and blocks, pitches that are aligned and not,
// batches and groups; every byte around them, and every row that is not in use, stays. All of it is judged.
#include "kernel/convert.h"
#include "kernel/judged.h"
#include "support/device_set.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

struct Case {
  Division division;
  int32_t k;
  int64_t gap = 0;    // bytes of a row beyond the last factor
  size_t shift = 0;   // bytes off alignment
  int64_t apart = 0;  // between two matrices: bytes of rows, 16 bytes of atoms
};

// The buffers of a case, as they are before and after.
struct Factors {
  int64_t pitch, linear_stride, atom_stride;
  Buffer linear, atoms, linear_after, atoms_after;

  explicit Factors(const Case& x)
      : pitch(x.k / 16 + x.gap),
        linear_stride(x.division.rows * pitch + x.apart),
        atom_stride(x.division.blocks * static_cast<int64_t>(ref::sf_bytes(128, x.k)) + 16 * x.apart),
        linear(static_cast<size_t>(x.division.matrices * linear_stride), x.shift),
        atoms(static_cast<size_t>(x.division.matrices * atom_stride)),
        linear_after(linear),
        atoms_after(atoms) {
    Rng random(static_cast<uint64_t>(x.k + x.division.rows));
    for (const InUse& use : x.division.in_use) {
      const int64_t first =
          use.matrix * atom_stride + use.block * static_cast<int64_t>(ref::sf_bytes(128, x.k));
      const int64_t blocks = (use.count + 127) / 128;
      for (size_t i = 0; i < static_cast<size_t>(blocks) * ref::sf_bytes(128, x.k); ++i)
        atoms_after.host()[first + static_cast<int64_t>(i)] = 0;
      for (int64_t row = 0; row < use.count; ++row)
        for (int64_t block = 0; block < x.k / 16; ++block) {
          const auto factor = static_cast<uint8_t>(random.below(256));
          const int64_t at = use.matrix * linear_stride + (use.first + row) * pitch + block;
          linear_after.host()[at] = factor;
          atoms_after.host()[first + static_cast<int64_t>(ref::sf_offset(x.k, row, block))] = factor;
        }
    }
  }
};

dualgemm_sf_args_t args_of(const Case& x, const Factors& f, const int32_t* group_rows) {
  dualgemm_sf_args_t args;
  dualgemm_sf_args_init(&args);
  args.rows = x.division.rows;
  args.k = x.k;
  args.batch = x.division.batch;
  args.group_mode = x.division.mode;
  args.groups = x.division.groups();
  args.group_rows = x.division.mode == DUALGEMM_GROUP_NONE ? nullptr : group_rows;
  args.pitch = x.gap == 0 ? 0 : f.pitch;
  return args;
}

void check_case(const Case& x) {
  INFO(x.division.text() << ", k " << x.k << ", gap " << x.gap << ", shift " << x.shift);
  const Factors f(x);
  const DeviceArray<int32_t> group_rows(x.division.group_rows);
  for (const bool to_atoms : {true, false}) {
    const Buffer &before = to_atoms ? f.linear_after : f.atoms_after, &poison = to_atoms ? f.atoms : f.linear,
                 &after = to_atoms ? f.atoms_after : f.linear_after;
    const DeviceBuffer from(before), to(poison);
    dualgemm_sf_args_t args = args_of(x, f, group_rows.data());
    if (x.apart != 0 && x.division.mode != DUALGEMM_GROUP_OFFSETS) {
      args.batch_stride_src = to_atoms ? f.linear_stride : f.atom_stride;
      args.batch_stride_dst = to_atoms ? f.atom_stride : f.linear_stride;
    }
    args.src = from.data();
    args.dst = to.data();
    check_status(to_atoms ? dualgemm_sf_swizzle(&args, nullptr) : dualgemm_sf_unswizzle(&args, nullptr));
    CHECK(to.difference(after) == "");
    CHECK(from.difference(before) == "");

    Buffer host_from(before), host_to(poison);
    args.src = host_from.data();
    args.dst = host_to.data();
    args.group_rows = x.division.mode == DUALGEMM_GROUP_NONE ? nullptr : x.division.group_rows.data();
    check_status(to_atoms ? dualgemm_sf_swizzle_host(&args) : dualgemm_sf_unswizzle_host(&args));
    CHECK(difference(host_to, after) == "");
  }
}

}  // namespace

TEST_CASE("factors go from rows to atoms and back, whatever the rows, blocks and pitches", "[convert]") {
  Judged judged;
  const int32_t ks[] = {16, 48, 64, 256, 272, 512, 528, 2880};
  const std::vector<Division> all = divisions();
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < std::size(ks); ++j) {
      if ((i + j) % 3 != 0) continue;
      const int64_t gaps[] = {0, 1, (16 - ks[j] / 16 % 16) % 16 + 16};
      check_case({all[i], ks[j], gaps[(i + 2 * j) % 3], (i + j) % 2 * 5, all[i].matrices > 1 ? 3 : 0});
    }
  CHECK(judged.findings() == "");
}

TEST_CASE("factors: every number of rows from 1 to 300", "[convert]") {
  for (int32_t rows = 1; rows <= 300; rows += rows < 40 ? 1 : 13) check_case({batch_of(rows), 80});
}

TEST_CASE("factors: wide rows, which are read and written 16 bytes at a time", "[convert]") {
  Judged judged;
  for (const int32_t k : {256, 1024, 1040}) check_case({batch_of(150, 2), k, (16 - k / 16 % 16) % 16, 0, 16});
  CHECK(judged.findings() == "");
}

// Eight CTAs run on each of 148 SMs.
TEST_CASE("factors: a CTA moves those of several tiles", "[convert][grouped]") {
  for (const Division& division : many_problems(140)) check_case({division, 5120});
}

TEST_CASE("factors: whatever stands in group_rows is clamped", "[convert][grouped]") {
  Judged judged;
  Division wild = offsets({40, 60}, 0, 0);
  wild.group_rows = {-7, 40, 1000000};
  check_case({wild, 80});
  wild = offsets({50, 0, 0}, 0, 50);
  wild.group_rows = {0, 50, 20, -1};
  check_case({wild, 80});
  wild = masked({0, 77, 77}, 0);
  wild.group_rows = {-1, 78, 2147483647};
  check_case({wild, 80});
  CHECK(judged.findings() == "");
}

TEST_CASE("factors: with PDL a swizzle reads and writes nothing before what precedes it has ended",
          "[convert][pdl]") {
  const Case x{batch_of(150), 272};
  const Factors f(x);
  const DeviceBuffer linear(f.linear_after), atoms(f.atoms), back(f.linear);
  dualgemm_sf_args_t there = args_of(x, f, nullptr);
  there.flags = DUALGEMM_FLAG_PDL;
  dualgemm_sf_args_t home = there;
  there.src = linear.data();
  there.dst = atoms.data();
  home.src = atoms.data();
  home.dst = back.data();
  Judged judged;
  const Stream stream;
  for (int i = 0; i < 2; ++i) {  // the second swizzle writes what the first unswizzle reads
    check_status(dualgemm_sf_swizzle(&there, stream.get()));
    check_status(dualgemm_sf_unswizzle(&home, stream.get()));
  }
  CHECK(atoms.difference(f.atoms_after) == "");
  CHECK(back.difference(f.linear_after) == "");
  CHECK(judged.findings() == "");
}
