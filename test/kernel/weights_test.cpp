// weights_test.cpp -- orders in which checkpoints hold gate and up, read where they lie: one buffer with
// one behind the other or with their rows interleaved, factors in rows and in the atoms of both. Each
// launch has the bits of one with two plain tensors.
#include <algorithm>
#include <vector>

#include "kernel/grouped.h"
#include "ref/formats.h"

using namespace dualgemm_test;

namespace {

constexpr int32_t kRows = 33, kColumns = 136, kK = 272;
constexpr int64_t kPitch = 288;  // elements, of a row of gate or up
constexpr int64_t kRowBytes = kPitch / 2, kBlocks = kK / 16;

// Gate and up in one buffer: elements, factors in rows and, of the whole buffer, in atoms.
struct Both {
  std::vector<uint8_t> elements, linear, atoms;

  Both(const Problem& p, dualgemm_row_order_t order, bool up_first)
      : elements(2 * kColumns * kRowBytes, 0xFF),
        linear(2 * kColumns * kBlocks),
        atoms(ref::sf_bytes(2 * kColumns, kK)) {
    for (int64_t side = 0; side < 2; ++side) {
      const bool up = (side == 1) != up_first;
      const std::vector<uint8_t>&from = up ? p.b2 : p.b1, &factors = up ? p.sfb2 : p.sfb1;
      for (int64_t row = 0; row < kColumns; ++row) {
        const int64_t to = order == DUALGEMM_ROWS_STACKED ? side * kColumns + row : 2 * row + side;
        const auto begin = from.begin() + row * (up ? p.ldb2 : p.ldb1) / 2;
        std::copy(begin, begin + kK / 2, elements.begin() + to * kRowBytes);
        for (int64_t block = 0; block < kBlocks; ++block)
          linear[static_cast<size_t>(to * kBlocks + block)] = atoms[ref::sf_offset(kK, to, block)] =
              factors[ref::sf_offset(kK, row, block)];
      }
    }
  }
};

// Launches `p` with these weights, on the device, and compares with two plain tensors.
void check_weights(const Problem& p, const void* b1, const void* b2, int64_t ldb, const void* sfb1,
                   const void* sfb2) {
  const DeviceProblem device(p, {});
  dualgemm_args_t args = device.args();
  args.b1 = b1;
  args.b2 = b2;
  args.ldb1 = args.ldb2 = ldb;
  args.sfb1 = sfb1;
  args.sfb2 = sfb2;
  check_status(dualgemm_launch_ex(&args, nullptr));
  CHECK((device.download().bits == run(p).bits));
}

}  // namespace

TEST_CASE("weights: one buffer with gate or up first, or with interleaved rows, is read in place",
          "[weights]") {
  const Problem p = make_problem(Data::kFullRange, kRows, kColumns, kK, 1);
  for (const auto order : {DUALGEMM_ROWS_STACKED, DUALGEMM_ROWS_INTERLEAVED})
    for (const bool up_first : {false, true}) {
      INFO("order " << order << (up_first ? ", up first" : ", gate first"));
      const Both both(p, order, up_first);
      std::vector<uint8_t> split[2];
      for (std::vector<uint8_t>& one : split) one.resize(ref::sf_bytes(kColumns, kK));
      check_status(
          dualgemm_sf_split_host(both.atoms.data(), kColumns, kK, order, split[0].data(), split[1].data()));
      const DeviceArray<uint8_t> elements(both.elements), sf1(split[0]), sf2(split[1]);
      const bool stacked = order == DUALGEMM_ROWS_STACKED;
      const uint8_t *const first = elements.data(), *const second =
                                                        first + (stacked ? kColumns * kRowBytes : kRowBytes);
      check_weights(p, up_first ? second : first, up_first ? first : second, stacked ? kPitch : 2 * kPitch,
                    up_first ? sf2.data() : sf1.data(), up_first ? sf1.data() : sf2.data());
    }
}

TEST_CASE("weights: factors in rows are moved to atoms for each of gate and up", "[weights][convert]") {
  const Problem p = make_problem(Data::kFullRange, kRows, kColumns, kK, 2);
  for (const auto order : {DUALGEMM_ROWS_STACKED, DUALGEMM_ROWS_INTERLEAVED}) {
    INFO("order " << order);
    const Both both(p, order, false);
    const bool stacked = order == DUALGEMM_ROWS_STACKED;
    const DeviceArray<uint8_t> elements(both.elements), linear(both.linear),
        sf1(ref::sf_bytes(kColumns, kK), 0xFF), sf2(ref::sf_bytes(kColumns, kK), 0xFF);
    dualgemm_sf_args_t args;
    dualgemm_sf_args_init(&args);
    args.rows = kColumns;
    args.k = kK;
    args.pitch = stacked ? kBlocks : 2 * kBlocks;
    args.src = linear.data();
    args.dst = sf1.data();
    check_status(dualgemm_sf_swizzle(&args, nullptr));
    args.src = linear.data() + (stacked ? kColumns * kBlocks : kBlocks);
    args.dst = sf2.data();
    check_status(dualgemm_sf_swizzle(&args, nullptr));
    check_weights(p, elements.data(), elements.data() + (stacked ? kColumns * kRowBytes : kRowBytes),
                  stacked ? kPitch : 2 * kPitch, sf1.data(), sf2.data());
  }
}
