// operands.cpp -- see operands.h.
#include "operands.h"

#include <algorithm>

#include "bench/arguments.h"
#include "bench/random_operands.h"

namespace bench {
namespace {

using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr size_t kNumberBytes = size_t{4} << 20;

size_t count(int64_t bytes) { return static_cast<size_t>(bytes); }

// What the tensors of a set have.
struct Sizes {
  size_t a, b, sfa, sfb, c, sfc;       // bytes
  int64_t row_factors, row_exponents;  // numbers, where A is in FP8
};

Sizes sizes_of_tensors(const Shape& s, const Epilogue& epilogue) {
  const dualgemm_args_t args = timed_sizes(s, epilogue);
  const int64_t matrices = s.offsets() ? 1 : s.problems(), rows = matrices * s.m;
  Sizes out{};
  out.a = count(rows * args.lda * s.a_bits() / 8);
  out.b = count(int64_t{s.problems()} * s.n * args.ldb1 / 2);
  out.sfb = count(s.problems()) * s.sfb_bytes();
  if (s.fp8_a()) {
    out.row_factors = rows;
    out.row_exponents = int64_t{s.problems()} * s.n;
  }
  out.c = count(rows * args.ldc * epilogue.bits() / 8);
  for (int32_t i = 0; i < s.problems(); ++i) {
    const int32_t room = s.offsets() ? s.rows(i) : s.m;
    if (s.packed_a()) out.sfa += dualgemm_sf_size(room, s.k);
    if (epilogue.blocks()) out.sfc += dualgemm_sf_size(room, s.n);
  }
  return out;
}

// The contents of group_rows; one zero where there are no groups.
std::vector<int32_t> rows_of_groups(const Shape& s) {
  if (!s.offsets()) return s.grouped() ? s.group_rows : std::vector<int32_t>{0};
  std::vector<int32_t> out{0};
  for (const int32_t rows : s.group_rows) out.push_back(out.back() + rows);
  return out;
}

}  // namespace

RandomNumbers::RandomNumbers(dualgemm_dtype_t a_dtype) {
  dualgemm_test::Rng random(1);
  const auto upload = [this](Kind kind, const std::vector<uint8_t>& bytes) {
    numbers_[kind] = std::make_unique<DeviceArray<uint8_t>>(bytes);
  };
  upload(kCodes, random_codes(1, 2 * int64_t{kNumberBytes}, random));
  if (a_dtype != DUALGEMM_DTYPE_NVFP4) {
    const int bytes = a_dtype == DUALGEMM_DTYPE_FP8_E4M3 ? 1 : 2;
    upload(kElements, random_a(1, int64_t{kNumberBytes} / bytes, a_dtype, random));
  }
  std::vector<uint8_t> scales(kNumberBytes);
  for (uint8_t& scale : scales) scale = random_factor(b_dtype_for(a_dtype), random.bits());
  upload(kScales, scales);
}

// Each time the numbers begin elsewhere, so that no two tensors hold the same.
void RandomNumbers::fill(Kind kind, const DeviceArray<uint8_t>& memory) const {
  for (size_t at = 0; at < memory.size();) {
    const size_t from = next_++ * 4096 * 257 % kNumberBytes;
    const size_t bytes = std::min(kNumberBytes - from, memory.size() - at);
    check_cuda(cudaMemcpyAsync(memory.data() + at, numbers_[kind]->data() + from, bytes,
                               cudaMemcpyDeviceToDevice, nullptr),
               "cudaMemcpyAsync");
    at += bytes;
  }
}

dualgemm_args_t timed_sizes(const Shape& shape, const Epilogue& epilogue) {
  dualgemm_args_t args = sizes_of(shape, epilogue);
  if (shape.offsets()) args.expected_rows = 0;
  return args;
}

double timed_bytes(const Shape& shape, const Epilogue& epilogue) {
  const Sizes x = sizes_of_tensors(shape, epilogue);
  return static_cast<double>(x.a + x.sfa + x.c + x.sfc) + shape.products * static_cast<double>(x.b + x.sfb);
}

TimedOperands::TimedOperands(const Shape& s, const Epilogue& epilogue, const RandomNumbers& numbers,
                             const DeviceArray<uint8_t>& workspace)
    : a_(sizes_of_tensors(s, epilogue).a),
      b1_(sizes_of_tensors(s, epilogue).b),
      b2_(s.products == 2 ? b1_.size() : 0),
      sfa_(sizes_of_tensors(s, epilogue).sfa),
      sfb1_(sizes_of_tensors(s, epilogue).sfb),
      sfb2_(s.products == 2 ? sfb1_.size() : 0),
      a_row_factors_(factors_of_rows(sizes_of_tensors(s, epilogue).row_factors)),
      b1_row_exponents_(exponents_of_rows(0, sizes_of_tensors(s, epilogue).row_exponents)),
      b2_row_exponents_(
          exponents_of_rows(1, s.products == 2 ? sizes_of_tensors(s, epilogue).row_exponents : 0)),
      c_(sizes_of_tensors(s, epilogue).c),
      sfc_(sizes_of_tensors(s, epilogue).sfc),
      group_rows_(rows_of_groups(s)),
      args_(timed_sizes(s, epilogue)) {
  numbers.fill(s.packed_a() ? RandomNumbers::kCodes : RandomNumbers::kElements, a_);
  for (const Bytes* codes : {&b1_, &b2_}) numbers.fill(RandomNumbers::kCodes, *codes);
  for (const Bytes* scales : {&sfa_, &sfb1_, &sfb2_}) numbers.fill(RandomNumbers::kScales, *scales);
  args_.a = a_.data(), args_.b1 = b1_.data(), args_.b2 = b2_.data();
  args_.sfa = sfa_.data(), args_.sfb1 = sfb1_.data(), args_.sfb2 = sfb2_.data();
  args_.a_row_scale = a_row_factors_.data();
  args_.b1_row_exponent = b1_row_exponents_.data(), args_.b2_row_exponent = b2_row_exponents_.data();
  args_.c = c_.data(), args_.sfc = sfc_.data();
  if (s.grouped()) args_.group_rows = group_rows_.data();
  if (epilogue.encodes()) args_.c_global_scale = encode_scale_of(s, epilogue);
  args_.workspace = workspace.size() > 0 ? workspace.data() : nullptr;
  args_.workspace_size = workspace.size();
}

}  // namespace bench
