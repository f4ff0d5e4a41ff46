// inputs.cpp -- see inputs.h.
#include "inputs.h"

#include <algorithm>
#include <utility>

#include "budget.h"
#include "host/launch/prepare_a.h"
#include "host/launch/validate.h"

namespace bench {

namespace {

size_t sf_size(int64_t rows, int32_t k) { return dualgemm_sf_size(static_cast<int32_t>(rows), k); }

// Returns the blocks of a row that have a factor each.
int32_t blocks_of(dualgemm_dtype_t dtype, int32_t k) { return k / (dtype == DUALGEMM_DTYPE_MXFP4 ? 32 : 16); }

// Writes the scale factors of `rows` rows of a type, from byte `at` on; the rest of their blocks stays zero.
void put_scales(std::vector<uint8_t>& out, size_t at, dualgemm_dtype_t dtype, int32_t rows, int32_t k,
                Rng& random) {
  for (int32_t row = 0; row < rows; ++row)
    for (int32_t block = 0; block < blocks_of(dtype, k); ++block)
      out[at + dualgemm_sf_offset_of(dtype, rows, k, row, block)] = random_factor(dtype, random.bits());
}

std::vector<Place> places_of(const Shape& shape) {
  std::vector<Place> places;
  int64_t row = 0;
  size_t sfa = 0, sfc = 0;
  for (int32_t p = 0; p < shape.problems(); ++p) {
    // The alphas are in eighths and sixteenths, so that a neighbour's alpha is far outside every bound.
    places.push_back(
        {row, sfa, sfc, 1 - static_cast<float>(p % 7) / 16, 0.5f + static_cast<float>(p % 5) / 8});
    if (shape.problems() == 1 && !shape.grouped()) places[0].alpha1 = places[0].alpha2 = 1;
    const int32_t room = shape.offsets() ? shape.rows(p) : shape.m;
    row += room;
    if (shape.packed_a()) sfa += sf_size(room, shape.k);
    sfc += sf_size(room, shape.n);
  }
  places.push_back({row, sfa, sfc, 0, 0});  // the end
  return places;
}

std::vector<uint8_t> scales_of_a(const Shape& shape, const std::vector<Place>& places, Rng& random) {
  std::vector<uint8_t> out(places.back().sfa);
  if (!shape.packed_a()) return out;
  for (int32_t p = 0; p < shape.problems(); ++p)
    put_scales(out, places[p].sfa, shape.a_dtype, shape.rows(p), shape.k, random);
  return out;
}

// Return what B1 (side 0) and B2 (side 1) have; of one product B2 has nothing.
std::vector<uint8_t> codes_of_b(const Shape& shape, int side, Rng& random) {
  if (side >= shape.products) return {};
  return random_codes(int64_t{shape.n} * shape.problems(), shape.k, random);
}
std::vector<uint8_t> scales_of_b(const Shape& shape, int side, Rng& random) {
  if (side >= shape.products) return {};
  const size_t one = shape.sfb_bytes();
  std::vector<uint8_t> out(one * shape.problems());
  for (int32_t p = 0; p < shape.problems(); ++p)
    put_scales(out, p * one, shape.b_dtype(), shape.n, shape.k, random);
  return out;
}

// Returns the rows of B1 (side 0) or B2 (side 1) of all problems that have exponents: those in MXFP4.
int64_t rows_with_exponents(const Shape& shape, int side) {
  return shape.fp8_a() && side < shape.products ? int64_t{shape.n} * shape.problems() : 0;
}

// Returns alpha1 of all problems, then alpha2.
std::vector<float> alphas_of(const Shape& shape, const std::vector<Place>& places) {
  std::vector<float> out;
  for (int32_t p = 0; p < shape.problems(); ++p) out.push_back(places[p].alpha1);
  for (int32_t p = 0; p < shape.problems(); ++p) out.push_back(places[p].alpha2);
  return out;
}

// Returns the contents of group_rows. With OFFSETS there is one more entry than there are groups. A shape
// without groups has one zero.
std::vector<int32_t> group_rows_of(const Shape& shape, const std::vector<Place>& places) {
  if (!shape.offsets()) return shape.grouped() ? shape.group_rows : std::vector<int32_t>{0};
  std::vector<int32_t> out;
  for (const Place& place : places) out.push_back(static_cast<int32_t>(place.row));
  return out;
}

// Returns one row of codes out of `rows`, from the codes of that row on.
Row row_of(dualgemm_dtype_t dtype, const uint8_t* codes, const uint8_t* scales, int32_t rows, int32_t row,
           int32_t k) {
  Row out{std::vector<uint8_t>(codes, codes + k / 2), std::vector<uint8_t>(dualgemm_sf_size_of(dtype, 1, k))};
  if (dtype == DUALGEMM_DTYPE_MXFP4) out.elements = ref::Elements::kMxfp4;
  for (int32_t block = 0; block < blocks_of(dtype, k); ++block)
    out.scales[dualgemm_sf_offset_of(dtype, 1, k, 0, block)] =
        scales[dualgemm_sf_offset_of(dtype, rows, k, row, block)];
  return out;
}

// Returns one row of an A that has no scale factors, from that row on.
Row plain_row(const uint8_t* elements, const Shape& shape) {
  Row out{std::vector<uint8_t>(elements, elements + int64_t{shape.k} * shape.a_bits() / 8), {}};
  out.elements = shape.fp8_a()                          ? ref::Elements::kE4m3
                 : shape.a_dtype == DUALGEMM_DTYPE_BF16 ? ref::Elements::kBf16
                                                        : ref::Elements::kFp16;
  return out;
}

}  // namespace

size_t workspace_bytes(const Shape& shape, const Epilogue& epilogue) {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check(dualgemm_current_device(&device), "dualgemm_current_device");
  if (device.cc_major != 9) return 0;
  const dualgemm_args_t args = described_args(shape, epilogue);
  dualgemm::Problem problem;
  check(dualgemm::validate(&args, &problem), "validate");
  size_t bytes = 0;
  for (const dualgemm::Instance& instance : dualgemm::instances(dualgemm::Arch::kSm90))
    if (instance.plan.tile.grouped == problem.grouped() && instance.plan.mma.products == problem.products)
      bytes = std::max(bytes, dualgemm::workspace_bytes(problem, instance.plan));
  return bytes;
}

InputSet::InputSet(const Shape& s, const Epilogue& epilogue, const DeviceArray<uint8_t>& workspace,
                   Rng& random, bool with_a)
    : shape_(s),
      places_(places_of(s)),
      rows_(places_.back().row),
      codes_{random_a(with_a ? rows_ : 0, s.k, s.a_dtype, random), codes_of_b(s, 0, random),
             codes_of_b(s, 1, random)},
      scales_{with_a ? scales_of_a(s, places_, random) : std::vector<uint8_t>{}, scales_of_b(s, 0, random),
              scales_of_b(s, 1, random)},
      a_(codes_[0]),
      b1_(codes_[1]),
      b2_(codes_[2]),
      sfa_(scales_[0]),
      sfb1_(scales_[1]),
      sfb2_(scales_[2]),
      a_row_factors_(factors_of_rows(s.fp8_a() ? rows_ : 0)),
      b1_row_exponents_(exponents_of_rows(0, rows_with_exponents(s, 0))),
      b2_row_exponents_(exponents_of_rows(1, rows_with_exponents(s, 1))),
      c_(rows_ * epilogue.pitch(s.n) * epilogue.bits() / 8),
      sfc_(epilogue.blocks() ? places_.back().sfc : 0),
      alphas_(alphas_of(s, places_)),
      group_rows_(group_rows_of(s, places_)),
      args_(sizes_of(s, epilogue)) {
  args_.workspace = workspace.data();
  args_.workspace_size = workspace.size();
  if (epilogue.encodes()) args_.c_global_scale = encode_scale_of(s, epilogue);
  bind();
}

InputSet::InputSet(const InputSet& other)
    : shape_(other.shape_),
      places_(other.places_),
      rows_(other.rows_),
      a_(other.a_),
      b1_(other.b1_),
      b2_(other.b2_),
      sfa_(other.sfa_),
      sfb1_(other.sfb1_),
      sfb2_(other.sfb2_),
      a_row_factors_(other.a_row_factors_),
      b1_row_exponents_(other.b1_row_exponents_),
      b2_row_exponents_(other.b2_row_exponents_),
      c_(other.c_),
      sfc_(other.sfc_),
      alphas_(other.alphas_),
      group_rows_(other.group_rows_),
      args_(other.args_) {
  bind();
}

void InputSet::bind() {
  args_.a = a_.data();
  args_.b1 = b1_.data();
  args_.b2 = b2_.data();
  args_.sfa = sfa_.data();
  args_.sfb1 = sfb1_.data();
  args_.sfb2 = sfb2_.data();
  args_.a_row_scale = a_row_factors_.data();
  args_.b1_row_exponent = b1_row_exponents_.data();
  args_.b2_row_exponent = b2_row_exponents_.data();
  args_.c = c_.data();
  args_.sfc = sfc_.data();
  if (shape_.grouped()) args_.group_rows = group_rows_.data();
  if (shape_.grouped() || shape_.problems() > 1) {
    args_.alpha1_dev = alphas_.data();
    if (shape_.products == 2) args_.alpha2_dev = args_.alpha1_dev + shape_.problems();
    args_.alpha_stride = 1;
  }
}

void InputSet::expect_a(dualgemm_dtype_t a_dtype, std::vector<uint8_t> codes, std::vector<uint8_t> scales,
                        float alpha1) {
  shape_.a_dtype = a_dtype;
  codes_[0] = std::move(codes);
  scales_[0] = std::move(scales);
  places_[0].alpha1 = alpha1;
}

Row InputSet::row_of_a(int32_t problem, int32_t row) const {
  const Place& at = places_[problem];
  const uint8_t* const elements = &codes_[0][(at.row + row) * shape_.k * shape_.a_bits() / 8];
  if (shape_.packed_a())
    return row_of(shape_.a_dtype, elements, &scales_[0][at.sfa], room(problem), row, shape_.k);
  Row out = plain_row(elements, shape_);
  if (shape_.fp8_a()) out.factor = factor_of_row(at.row + row);
  return out;
}

Row InputSet::row_of_b(int side, int32_t problem, int32_t row) const {
  const int64_t of_all = int64_t{problem} * shape_.n + row;
  Row out = row_of(shape_.b_dtype(), &codes_[1 + side][of_all * shape_.k / 2],
                   &scales_[1 + side][problem * shape_.sfb_bytes()], shape_.n, row, shape_.k);
  if (shape_.fp8_a()) out.exponent = exponent_of_row(side, of_all);
  return out;
}

double set_bytes(const Shape& shape, const Epilogue& epilogue) {
  const std::vector<Place> places = places_of(shape);
  const double weights =
      1.0 * shape.products * shape.problems() * (shape.n * (shape.k / 2.0) + shape.sfb_bytes());
  const double c_row = static_cast<double>(epilogue.pitch(shape.n)) * epilogue.bits() / 8;
  const double rest = places.back().row * (shape.k * shape.a_bits() / 8.0 + c_row) + places.back().sfa +
                      (epilogue.blocks() ? places.back().sfc : 0);
  return weights + rest;
}

int sets_that_fit(double bytes, double flops, int wanted) {
  const double fit = std::min(16e9 / bytes, 1e13 / flops);
  return std::min(wanted, std::max(2, static_cast<int>(fit)));
}

int input_sets_of(const Shape& shape, int wanted, const Epilogue& epilogue) {
  return sets_that_fit(set_bytes(shape, epilogue), shape.flops(), wanted);
}

}  // namespace bench
