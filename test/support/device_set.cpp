// device_set.cpp -- see device_set.h.
#include "support/device_set.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "ref/dual_gemm.h"
#include "ref/formats.h"

namespace dualgemm_test {

constexpr uint8_t kLargest = 0x77;                                  // of A and B: twice 6
constexpr uint8_t kNan = 0x7F;                                      // of scale factors, and of FP8
constexpr uint8_t kMxNan = 0xFF;                                    // of those of MXFP4
constexpr int16_t kInfinite = std::numeric_limits<int16_t>::max();  // an exponent that no sum survives
constexpr float kBesideAmax = 12345;

static bool offsets(dualgemm_group_mode_t mode) { return mode == DUALGEMM_GROUP_OFFSETS; }

static bool own_alphas(const ProblemSet& set) {
  return std::any_of(set.problems.begin(), set.problems.end(), [&](const Problem& p) {
    return p.alpha1 != set.problems[0].alpha1 || (p.products == 2 && p.alpha2 != set.problems[0].alpha2);
  });
}

static bool own_encodes(const ProblemSet& set) {
  return std::any_of(set.problems.begin(), set.problems.end(),
                     [&](const Problem& p) { return p.encode != set.problems[0].encode; });
}

// Returns the elements in 16 bytes, and `elements` or as many as the next 16 bytes take.
static int64_t step(dualgemm_dtype_t dtype) { return 128 / bits_of(dtype); }
static int64_t pitch(int64_t elements, dualgemm_dtype_t dtype) {
  return (elements + step(dtype) - 1) / step(dtype) * step(dtype);
}

static size_t room(size_t problems, int64_t stride, int64_t size) { return (problems - 1) * stride + size; }

// Returns how many factors of rows there are, NaN between them included. A problem without rows has none.
static size_t row_factors(const ProblemSet& set, const std::vector<float> Problem::*factors, int64_t stride) {
  const bool any = std::any_of(set.problems.begin(), set.problems.end(),
                               [&](const Problem& p) { return !(p.*factors).empty(); });
  return any ? room(set.problems.size(), stride, set.m) : 0;
}

// Returns how many exponents of rows of B there are, those between problems included.
static size_t exponents_of(const ProblemSet& set, const std::vector<int16_t>& first, int64_t stride) {
  return first.empty() ? 0 : room(set.problems.size(), stride, set.n);
}

static size_t bias_size(const ProblemSet& set) {
  return set.problems[0].bias_dtype == DUALGEMM_DTYPE_FP32 ? sizeof(float) : sizeof(uint16_t);
}
// Returns what the biases of all problems take, if there are any.
static size_t bias_bytes(const ProblemSet& set, const std::vector<float>& bias, int64_t stride) {
  return bias.empty() ? 0 : room(set.problems.size(), stride, set.n) * bias_size(set);
}

// Returns the biases as the device gets them, with NaN between those of two problems.
static std::vector<uint8_t> biases(const ProblemSet& set, const std::vector<float> Problem::*bias,
                                   int64_t stride) {
  const size_t size = bias_size(set);
  std::vector<uint8_t> out(bias_bytes(set, set.problems[0].*bias, stride), 0xFF);
  for (size_t i = 0; i < set.problems.size() && !out.empty(); ++i)
    for (int32_t n = 0; n < set.n; ++n) {
      const auto bits = std::bit_cast<uint32_t>((set.problems[i].*bias).at(static_cast<size_t>(n)));
      const uint32_t value = size == 4 ? bits : bits >> 16;  // a bf16 is the upper half of a float
      std::memcpy(&out[(i * stride + n) * size], &value, size);
    }
  return out;
}

// Puts each `bytes[i]` at its place, and `fill` everywhere else.
template <class At>
static std::vector<uint8_t> laid_out(size_t size, uint8_t fill, const ProblemSet& set,
                                     const std::vector<uint8_t> Problem::*bytes, At at) {
  std::vector<uint8_t> out(size, fill);
  for (size_t i = 0; i < set.problems.size(); ++i) {
    const std::vector<uint8_t>& from = set.problems[i].*bytes;
    if (at(i) + from.size() > size) throw std::logic_error("a problem does not fit into its buffer");
    std::copy(from.begin(), from.end(), out.begin() + at(i));
  }
  return out;
}

void check_status(dualgemm_status_t status) {
  if (status != DUALGEMM_STATUS_SUCCESS)
    throw std::runtime_error(std::string(dualgemm_status_name(status)) + ": " + dualgemm_last_error());
}

DeviceSet::DeviceSet(const ProblemSet& set, const SetOptions& options)
    : options_(options),
      mode_(set.mode),
      m_(set.m),
      n_(set.n),
      ldc_(pitch(set.n + options.ldc_padding, options.dtype)),
      stride_a_(offsets(mode_) ? 0 : m_ * set.problems.at(0).lda + 32 * options.gap),
      stride_b1_(n_ * set.problems[0].ldb1 + 2 * 32 * options.gap),
      stride_b2_(n_ * set.problems[0].ldb2 + 3 * 32 * options.gap),
      stride_c_(offsets(mode_) ? 0 : m_ * ldc_ + step(options.dtype) * options.gap),
      stride_sfa_(offsets(mode_) ? 0 : ref::sf_bytes(m_, set.k) + 16 * options.gap),
      stride_sfb1_(set.problems[0].sfb_bytes() + 4 * 16 * options.gap),
      stride_sfb2_(set.problems[0].sfb_bytes() + 5 * 16 * options.gap),
      a_(room(set.problems.size(), stride_a_, m_ * set.problems[0].lda) * bits_of(options.a_dtype) / 8),
      b1_(room(set.problems.size(), stride_b1_, n_ * set.problems[0].ldb1) / 2),
      b2_(room(set.problems.size(), stride_b2_, n_ * set.problems[0].ldb2) / 2),
      sfa_(packed_a() ? room(set.problems.size(), stride_sfa_, row_blocks(set) * ref::sf_bytes(128, set.k))
                      : 0),
      sfb1_(room(set.problems.size(), stride_sfb1_, set.problems[0].sfb_bytes())),
      sfb2_(room(set.problems.size(), stride_sfb2_, set.problems[0].sfb_bytes())),
      stride_rows_(offsets(mode_) ? 0 : m_ + options.gap),
      stride_c_rows_(offsets(mode_) ? 0 : m_ + 2 * options.gap),
      stride_bias_(n_ + options.gap),
      alphas_(2 * set.problems.size()),
      encode_(set.problems.size()),
      row_scale_(row_factors(set, &Problem::row_scale, stride_rows_)),
      c_row_scale_(row_factors(set, &Problem::c_row_scale, stride_c_rows_)),
      bias1_(bias_bytes(set, set.problems[0].bias1, stride_bias_)),
      bias2_(bias_bytes(set, set.problems[0].bias2, stride_bias_)),
      stride_exponents_(n_ + options.gap),
      b1_exponents_(exponents_of(set, set.problems[0].b1_exponents, stride_exponents_)),
      b2_exponents_(exponents_of(set, set.problems[0].b2_exponents, stride_exponents_)),
      group_rows_(set.problems.size() + 1),
      c_("C", {options.dtype, static_cast<int64_t>(set.problems.size()), m_, n_, ldc_, stride_c_}),
      amax_(3) {
  dualgemm_args_init(&args_);
  set_tensors(set);
  if (options.gap != 0) set_strides();
  set_epilogue(set);
  set_problems(set);
  if (set.problems[0].mxfp4()) set_mxfp4();
  if (set.problems[0].products == 1) set_one_product(set);
  args_.instance_id = options.instance_id;
  args_.max_sms = options.max_sms;
  args_.flags = options.flags;
  // A launch gets the room that makes it faster, full of NaN.
  size_t bytes = 0;
  if (dualgemm_workspace_size(&args_, &bytes) == DUALGEMM_STATUS_SUCCESS && bytes > 0) {
    workspace_.emplace(bytes);
    args_.workspace = workspace_->data();
    args_.workspace_size = bytes;
  }
  upload(set);
  poison();
}

void DeviceSet::set_tensors(const ProblemSet& set) {
  const auto problems = static_cast<int64_t>(set.problems.size());
  args_.m = set.m;
  args_.n = set.n;
  args_.k = set.k;
  args_.a_dtype = options_.a_dtype;
  args_.a = a_.data();
  args_.b1 = b1_.data();
  args_.b2 = b2_.data();
  args_.sfa = sfa_.data();
  args_.sfb1 = sfb1_.data();
  args_.sfb2 = sfb2_.data();
  args_.lda = set.problems[0].lda;
  args_.ldb1 = set.problems[0].ldb1;
  args_.ldb2 = set.problems[0].ldb2;
  args_.c = c_.data();
  args_.ldc = ldc_;
  args_.c_dtype = options_.dtype;
  if (options_.dtype == DUALGEMM_DTYPE_NVFP4) {
    const int64_t stride =
        offsets(mode_) ? 0 : static_cast<int64_t>(ref::sf_bytes(m_, n_)) + 6 * 16 * options_.gap;
    sfc_.emplace(GuardedFactors::Layout{n_, row_blocks(set), problems, stride});
    args_.sfc = sfc_->data();
    if (options_.gap != 0) args_.batch_stride_sfc = stride;
  }
  if (!options_.d) return;
  args_.d_dtype = options_.d_dtype;
  for (int side : {0, 1}) {
    const int64_t unit = step(options_.d_dtype), ldd = pitch(n_, options_.d_dtype) + (side + 1) * unit;
    const int64_t stride = offsets(mode_) ? 0 : m_ * ldd + (side + 2) * unit * options_.gap;
    d_[side].emplace(side == 0 ? "D1" : "D2",
                     GuardedMatrix::Layout{options_.d_dtype, problems, m_, n_, ldd, stride});
    (side == 0 ? args_.d1 : args_.d2) = d_[side]->data();
    (side == 0 ? args_.ldd1 : args_.ldd2) = ldd;
    if (options_.gap != 0) (side == 0 ? args_.batch_stride_d1 : args_.batch_stride_d2) = stride;
  }
}

void DeviceSet::set_strides() {
  args_.batch_stride_a = stride_a_;
  args_.batch_stride_b1 = stride_b1_;
  args_.batch_stride_b2 = stride_b2_;
  args_.batch_stride_c = stride_c_;
  if (packed_a()) args_.batch_stride_sfa = stride_sfa_;
  args_.batch_stride_sfb1 = stride_sfb1_;
  args_.batch_stride_sfb2 = stride_sfb2_;
  // Strides of what is not there are refused.
  if (row_scale_.data()) args_.batch_stride_a_row_scale = stride_rows_;
  if (c_row_scale_.data()) args_.batch_stride_c_row_scale = stride_c_rows_;
}

void DeviceSet::set_epilogue(const ProblemSet& set) {
  const Problem& first = set.problems[0];
  args_.activation = options_.activation;
  // An activation gets its own parameters; those of another are refused.
  if (options_.activation == DUALGEMM_ACTIVATION_SWIGLU ||
      options_.activation == DUALGEMM_ACTIVATION_SWIGLU_STEP) {
    args_.swiglu_alpha = static_cast<float>(first.parameters.alpha);
    args_.swiglu_beta = static_cast<float>(first.parameters.beta);
    args_.swiglu_limit = static_cast<float>(first.parameters.limit);
  }
  if (options_.activation == DUALGEMM_ACTIVATION_SITU) {
    args_.situ_gate = static_cast<float>(first.parameters.situ_gate);
    args_.situ_up = static_cast<float>(first.parameters.situ_up);
  }
  args_.a_row_scale = row_scale_.data();
  args_.c_row_scale = c_row_scale_.data();
  args_.bias1 = bias1_.data();
  args_.bias2 = bias2_.data();
  args_.bias_dtype = first.bias_dtype;
  if (args_.bias1 || args_.bias2) args_.bias_stride = stride_bias_;
  if (options_.amax) args_.amax_out = amax_.data() + 1;
  if (options_.dtype != DUALGEMM_DTYPE_NVFP4 && options_.dtype != DUALGEMM_DTYPE_FP8_E4M3) return;
  const bool own = own_encodes(set);
  if (options_.encode_on_device || own) {
    args_.c_global_scale = 0.5f;
    args_.c_global_scale_dev = encode_.data();
    args_.c_global_scale_stride = own ? 1 : 0;
  } else {
    args_.c_global_scale = first.encode;
  }
}

void DeviceSet::set_problems(const ProblemSet& set) {
  const auto problems = static_cast<int32_t>(set.problems.size());
  if (mode_ == DUALGEMM_GROUP_NONE) {
    args_.batch = problems;
  } else {
    args_.group_mode = mode_;
    args_.groups = problems;
    args_.group_rows = group_rows_.data();
    args_.expected_rows = options_.expected_rows;
  }
  // Both kinds of alphas count: with alphas on the device the host's are 1/2, which changes no bit.
  if (options_.alphas_on_device || own_alphas(set)) {
    args_.alpha1 = args_.alpha2 = 0.5f;
    args_.alpha1_dev = alphas_.data();
    args_.alpha2_dev = args_.alpha1_dev + problems;
    args_.alpha_stride = own_alphas(set) ? 1 : 0;
  } else {
    args_.alpha1 = set.problems[0].alpha1;
    args_.alpha2 = set.problems[0].alpha2;
  }
}

void DeviceSet::set_mxfp4() {
  args_.b_dtype = DUALGEMM_DTYPE_MXFP4;
  args_.b1_row_exponent = b1_exponents_.data();
  args_.b2_row_exponent = b2_exponents_.data();
  if (options_.gap != 0 && (args_.b1_row_exponent || args_.b2_row_exponent))
    args_.batch_stride_b_row_exponent = stride_exponents_;
}

// Takes back what belongs to the second product.
void DeviceSet::set_one_product(const ProblemSet& set) {
  args_.products = 1;
  args_.linear_activation = set.problems[0].linear_activation;
  args_.b2 = args_.sfb2 = nullptr;
  args_.ldb2 = args_.batch_stride_b2 = args_.batch_stride_sfb2 = 0;
  args_.alpha2 = 1;
  args_.alpha2_dev = nullptr;
  args_.b2_row_exponent = nullptr;
  if (!args_.b1_row_exponent) args_.batch_stride_b_row_exponent = 0;
  args_.d2 = nullptr;
  args_.ldd2 = args_.batch_stride_d2 = 0;
  if (std::all_of(set.problems.begin(), set.problems.end(), [](const Problem& p) { return p.c_add.empty(); }))
    return;  // a problem without rows has no addends
  c_add_.resize(
      static_cast<size_t>(room(set.problems.size(), stride_c_, m_ * ldc_) * bits_of(options_.dtype) / 8));
  if (!options_.add_in_place) c_add_device_.emplace(c_add_.size());
  args_.c_add = options_.add_in_place ? args_.c : c_add_device_->data();
  args_.ld_c_add = ldc_;
  args_.batch_stride_c_add = args_.batch_stride_c;
}

// Puts the addends where C has its elements, and NaN everywhere else.
void DeviceSet::lay_out_c_add(const ProblemSet& set) {
  std::fill(c_add_.begin(), c_add_.end(), uint8_t{0xFF});
  const int64_t bytes = bits_of(options_.dtype) / 8;
  for (size_t i = 0; i < set.problems.size(); ++i)
    for (int64_t at = 0; at < static_cast<int64_t>(set.problems[i].c_add.size()); ++at) {
      const int64_t row = at / n_, column = at % n_;
      const float x = set.problems[i].c_add[static_cast<size_t>(at)];
      const uint32_t value = bytes == 4 ? std::bit_cast<uint32_t>(x) : bits_of_number(options_.dtype, x);
      const auto place = static_cast<int64_t>(i) * stride_c_ + (rows_[i].first + row) * ldc_ + column;
      std::memcpy(&c_add_[static_cast<size_t>(place * bytes)], &value, static_cast<size_t>(bytes));
    }
  if (c_add_device_) c_add_device_->upload(c_add_);
}

int64_t DeviceSet::row_blocks(const ProblemSet& set) const {
  if (!offsets(mode_)) return (m_ + 127) / 128;
  const auto groups = static_cast<int64_t>(set.problems.size());
  const int64_t most =
      options_.any_division ? (m_ + 127 * std::min(groups, m_)) / 128 : set.row_blocks().back();
  return std::max<int64_t>(most, 1);  // a pointer to nothing is refused
}

void DeviceSet::poison() {
  c_.poison();
  if (sfc_) sfc_->poison();
  for (std::optional<GuardedMatrix>& d : d_)
    if (d) d->poison();
  amax_.upload({kBesideAmax, options_.amax_before, kBesideAmax});
  if (workspace_) workspace_->fill(0xFF);
  if (adds() && options_.add_in_place)
    check_cuda(cudaMemcpy(c_.data(), c_add_.data(), c_add_.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
}

void DeviceSet::upload(const ProblemSet& set) {
  const std::vector<int32_t> group_rows = set.group_rows();
  const std::vector<int64_t> blocks = set.row_blocks();
  const bool one_after_the_other = offsets(mode_);
  rows_.clear();
  blocks_.clear();
  encodes_.clear();
  std::vector<float> alphas, encodes;
  for (size_t i = 0; i < set.problems.size(); ++i) {
    const Problem& p = set.problems[i];
    rows_.push_back({one_after_the_other ? group_rows[i] : 0, p.m});
    blocks_.push_back({one_after_the_other ? blocks[i] : 0, p.m});
    encodes_.push_back(p.encode);
    encodes.push_back(2 * p.encode);
    alphas.push_back(2 * p.alpha1);
  }
  for (const Problem& p : set.problems) alphas.push_back(2 * p.alpha2);

  const int64_t band = ref::sf_bytes(128, set.k);
  const auto put = [&](DeviceArray<uint8_t>& to, uint8_t fill, const std::vector<uint8_t> Problem::*bytes,
                       auto at) { to.upload(laid_out(to.size(), fill, set, bytes, at)); };
  upload_a(set);
  put(b1_, kLargest, &Problem::b1, [&](size_t i) { return i * stride_b1_ / 2; });
  put(b2_, kLargest, &Problem::b2, [&](size_t i) { return i * stride_b2_ / 2; });
  if (packed_a())
    put(sfa_, kNan, &Problem::sfa,
        [&](size_t i) { return one_after_the_other ? blocks[i] * band : i * stride_sfa_; });
  const uint8_t nan = set.problems[0].mxfp4() ? kMxNan : kNan;
  put(sfb1_, nan, &Problem::sfb1, [&](size_t i) { return i * stride_sfb1_; });
  put(sfb2_, nan, &Problem::sfb2, [&](size_t i) { return i * stride_sfb2_; });
  alphas_.upload(alphas);
  encode_.upload(encodes);
  upload_rows(row_scale_, set, &Problem::row_scale, stride_rows_);
  upload_rows(c_row_scale_, set, &Problem::c_row_scale, stride_c_rows_);
  bias1_.upload(biases(set, &Problem::bias1, stride_bias_));
  bias2_.upload(biases(set, &Problem::bias2, stride_bias_));
  upload_exponents(b1_exponents_, set, &Problem::b1_exponents);
  upload_exponents(b2_exponents_, set, &Problem::b2_exponents);
  upload_group_rows(group_rows);
  if (adds()) lay_out_c_add(set);
}

// Puts the rows of each problem at their places, and the largest codes, or NaN in other types, everywhere
// else.
void DeviceSet::upload_a(const ProblemSet& set) {
  const bool fp8 = options_.a_dtype == DUALGEMM_DTYPE_FP8_E4M3;
  std::vector<uint8_t> all(a_.size(), packed_a() ? kLargest : fp8 ? kNan : 0xFF);
  for (size_t i = 0; i < set.problems.size(); ++i) {
    const Problem& p = set.problems[i];
    const std::vector<uint8_t> own = p.a_of(options_.a_dtype);
    const int64_t at =
        (static_cast<int64_t>(i) * stride_a_ + rows_[i].first * p.lda) * bits_of(options_.a_dtype) / 8;
    if (static_cast<size_t>(at) + own.size() > all.size())
      throw std::logic_error("a problem does not fit into its buffer");
    std::copy(own.begin(), own.end(), all.begin() + at);
  }
  a_.upload(all);
}

// Puts the exponents of each problem's rows of B at their places, and infinite ones everywhere else.
void DeviceSet::upload_exponents(DeviceArray<int16_t>& to, const ProblemSet& set,
                                 const std::vector<int16_t> Problem::*exponents) {
  std::vector<int16_t> all(to.size(), kInfinite);
  for (size_t i = 0; i < set.problems.size() && !all.empty(); ++i) {
    const std::vector<int16_t>& own = set.problems[i].*exponents;
    std::copy(own.begin(), own.end(), all.begin() + i * stride_exponents_);
  }
  to.upload(all);
}

// Puts the factors of each problem's rows at their places, and NaN everywhere else.
void DeviceSet::upload_rows(DeviceArray<float>& to, const ProblemSet& set,
                            const std::vector<float> Problem::*factors, int64_t stride) {
  std::vector<float> all(to.size(), std::numeric_limits<float>::quiet_NaN());
  for (size_t i = 0; i < set.problems.size() && !all.empty(); ++i) {
    const std::vector<float>& own = set.problems[i].*factors;
    std::copy(own.begin(), own.end(), all.begin() + i * stride + rows_[i].first);
  }
  to.upload(all);
}

void DeviceSet::upload_group_rows(const std::vector<int32_t>& rows) {
  if (mode_ != DUALGEMM_GROUP_NONE) group_rows_.upload(rows);
}

void DeviceSet::launch(cudaStream_t stream) const { check_status(dualgemm_launch_ex(&args_, stream)); }

int32_t parts_of(const dualgemm_instance_info_t& info) {
  return info.stream_k != 0 ? ref::kAnyParts : info.split_k;
}

int32_t DeviceSet::split_k() const {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  int32_t id = 0;
  check_status(dualgemm_select_instance(&args_, &device, &id));
  if (id == 0) return 1;  // no kernel runs
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  check_status(dualgemm_instance_info(id, &info));
  return parts_of(info);
}

std::vector<Output> DeviceSet::download() const {
  std::vector<Output> out = c_.download(rows_);
  const int32_t split = split_k();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].split_k = split;
    out[i].encode = encodes_[i];
  }
  if (!sfc_) return out;
  std::vector<std::vector<uint8_t>> factors = sfc_->download(blocks_);
  for (size_t i = 0; i < out.size(); ++i) out[i].factors = std::move(factors[i]);
  return out;
}

std::vector<Output> DeviceSet::download_d(int side) const {
  std::vector<Output> out = d_[side].value().download(rows_);
  const int32_t split = split_k();
  for (Output& one : out) one.split_k = split;
  return out;
}

float DeviceSet::amax() const {
  const std::vector<float> values = amax_.host();
  if (values[0] != kBesideAmax || values[2] != kBesideAmax)
    throw std::runtime_error("a float beside amax_out was written");
  return values[1];
}

std::vector<Output> run(const ProblemSet& set, const SetOptions& options) {
  const DeviceSet device(set, options);
  device.launch(nullptr);
  return device.download();
}

}  // namespace dualgemm_test
