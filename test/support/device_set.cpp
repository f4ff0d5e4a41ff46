// device_set.cpp -- see device_set.h.
#include "support/device_set.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ref/formats.h"

namespace dualgemm_test {
namespace {

constexpr uint16_t kPoison = 0xFFFF;    // of C: a NaN in every output type
constexpr uint8_t kLargest = 0x77;      // of A and B: twice 6
constexpr uint8_t kNan = 0x7F;          // of scale factors
constexpr size_t kGuardElements = 512;  // on either side of C; keeps C aligned

bool offsets(dualgemm_group_mode_t mode) { return mode == DUALGEMM_GROUP_OFFSETS; }

bool own_alphas(const ProblemSet& set) {
  return std::any_of(set.problems.begin(), set.problems.end(), [&](const Problem& p) {
    return p.alpha1 != set.problems[0].alpha1 || p.alpha2 != set.problems[0].alpha2;
  });
}

size_t room(size_t problems, int64_t stride, int64_t size) { return (problems - 1) * stride + size; }

// Puts each `bytes[i]` at its place, and `fill` everywhere else.
template <class At>
std::vector<uint8_t> laid_out(size_t size, uint8_t fill, const ProblemSet& set,
                              const std::vector<uint8_t> Problem::*bytes, At at) {
  std::vector<uint8_t> out(size, fill);
  for (size_t i = 0; i < set.problems.size(); ++i) {
    const std::vector<uint8_t>& from = set.problems[i].*bytes;
    if (at(i) + from.size() > size) throw std::logic_error("a problem does not fit into its buffer");
    std::copy(from.begin(), from.end(), out.begin() + at(i));
  }
  return out;
}

}  // namespace

void check_status(dualgemm_status_t status) {
  if (status != DUALGEMM_STATUS_SUCCESS)
    throw std::runtime_error(std::string(dualgemm_status_name(status)) + ": " + dualgemm_last_error());
}

DeviceSet::DeviceSet(const ProblemSet& set, const SetOptions& options)
    : options_(options),
      mode_(set.mode),
      m_(set.m),
      n_(set.n),
      ldc_(set.n + options.ldc_padding),
      stride_a_(offsets(mode_) ? 0 : m_ * set.problems.at(0).lda + 32 * options.gap),
      stride_b1_(n_ * set.problems[0].ldb1 + 2 * 32 * options.gap),
      stride_b2_(n_ * set.problems[0].ldb2 + 3 * 32 * options.gap),
      stride_c_(offsets(mode_) ? 0 : m_ * ldc_ + 8 * options.gap),
      stride_sfa_(offsets(mode_) ? 0 : ref::sf_bytes(m_, set.k) + 16 * options.gap),
      stride_sfb1_(ref::sf_bytes(n_, set.k) + 4 * 16 * options.gap),
      stride_sfb2_(ref::sf_bytes(n_, set.k) + 5 * 16 * options.gap),
      a_(room(set.problems.size(), stride_a_, m_ * set.problems[0].lda) / 2),
      b1_(room(set.problems.size(), stride_b1_, n_ * set.problems[0].ldb1) / 2),
      b2_(room(set.problems.size(), stride_b2_, n_ * set.problems[0].ldb2) / 2),
      sfa_(room(set.problems.size(), stride_sfa_, sfa_bytes(set))),
      sfb1_(room(set.problems.size(), stride_sfb1_, ref::sf_bytes(n_, set.k))),
      sfb2_(room(set.problems.size(), stride_sfb2_, ref::sf_bytes(n_, set.k))),
      alphas_(2 * set.problems.size()),
      group_rows_(set.problems.size() + 1),
      c_(room(set.problems.size(), stride_c_, m_ * ldc_) + 2 * kGuardElements) {
  dualgemm_args_init(&args_);
  args_.m = set.m;
  args_.n = set.n;
  args_.k = set.k;
  args_.a = a_.data();
  args_.b1 = b1_.data();
  args_.b2 = b2_.data();
  args_.sfa = sfa_.data();
  args_.sfb1 = sfb1_.data();
  args_.sfb2 = sfb2_.data();
  args_.c = c_.data() + kGuardElements;
  args_.lda = set.problems[0].lda;
  args_.ldb1 = set.problems[0].ldb1;
  args_.ldb2 = set.problems[0].ldb2;
  args_.ldc = ldc_;
  if (options.gap != 0) {
    args_.batch_stride_a = stride_a_;
    args_.batch_stride_b1 = stride_b1_;
    args_.batch_stride_b2 = stride_b2_;
    args_.batch_stride_c = stride_c_;
    args_.batch_stride_sfa = stride_sfa_;
    args_.batch_stride_sfb1 = stride_sfb1_;
    args_.batch_stride_sfb2 = stride_sfb2_;
  }
  args_.c_dtype = options.dtype;
  args_.activation = options.activation;
  args_.instance_id = options.instance_id;
  args_.max_sms = options.max_sms;
  args_.flags = options.flags;
  const int32_t problems = static_cast<int32_t>(set.problems.size());
  if (mode_ == DUALGEMM_GROUP_NONE) {
    args_.batch = problems;
  } else {
    args_.group_mode = mode_;
    args_.groups = problems;
    args_.group_rows = group_rows_.data();
    args_.expected_rows = options.expected_rows;
  }
  // Both kinds of alphas count: with alphas on the device the host's are 1/2, which changes no bit.
  if (options.alphas_on_device || own_alphas(set)) {
    args_.alpha1 = args_.alpha2 = 0.5f;
    args_.alpha1_dev = alphas_.data();
    args_.alpha2_dev = args_.alpha1_dev + problems;
    args_.alpha_stride = own_alphas(set) ? 1 : 0;
  } else {
    args_.alpha1 = set.problems[0].alpha1;
    args_.alpha2 = set.problems[0].alpha2;
  }
  upload(set);
  poison();
}

size_t DeviceSet::sfa_bytes(const ProblemSet& set) const {
  if (!offsets(mode_)) return ref::sf_bytes(m_, set.k);
  const int64_t groups = static_cast<int64_t>(set.problems.size());
  const int64_t most =
      options_.any_division ? (m_ + 127 * std::min(groups, m_)) / 128 : set.row_blocks().back();
  return std::max<int64_t>(most, 1) * ref::sf_bytes(128, set.k);  // a pointer to nothing is refused
}

void DeviceSet::poison() { c_.upload(std::vector<uint16_t>(c_.size(), kPoison)); }

void DeviceSet::upload(const ProblemSet& set) {
  const std::vector<int32_t> group_rows = set.group_rows();
  const std::vector<int64_t> blocks = set.row_blocks();
  const bool one_after_the_other = offsets(mode_);
  rows_.clear();
  first_rows_.clear();
  std::vector<float> alphas;
  for (size_t i = 0; i < set.problems.size(); ++i) {
    rows_.push_back(set.problems[i].m);
    first_rows_.push_back(one_after_the_other ? group_rows[i] : 0);
    alphas.push_back(2 * set.problems[i].alpha1);
  }
  for (const Problem& p : set.problems) alphas.push_back(2 * p.alpha2);

  const int64_t band = ref::sf_bytes(128, set.k);
  const auto put = [&](DeviceArray<uint8_t>& to, uint8_t fill, const std::vector<uint8_t> Problem::*bytes,
                       auto at) { to.upload(laid_out(to.size(), fill, set, bytes, at)); };
  put(a_, kLargest, &Problem::a,
      [&](size_t i) { return (i * stride_a_ + first_rows_[i] * set.problems[i].lda) / 2; });
  put(b1_, kLargest, &Problem::b1, [&](size_t i) { return i * stride_b1_ / 2; });
  put(b2_, kLargest, &Problem::b2, [&](size_t i) { return i * stride_b2_ / 2; });
  put(sfa_, kNan, &Problem::sfa,
      [&](size_t i) { return one_after_the_other ? blocks[i] * band : i * stride_sfa_; });
  put(sfb1_, kNan, &Problem::sfb1, [&](size_t i) { return i * stride_sfb1_; });
  put(sfb2_, kNan, &Problem::sfb2, [&](size_t i) { return i * stride_sfb2_; });
  alphas_.upload(alphas);
  upload_group_rows(group_rows);
}

void DeviceSet::upload_group_rows(const std::vector<int32_t>& rows) {
  if (mode_ != DUALGEMM_GROUP_NONE) group_rows_.upload(rows);
}

void DeviceSet::launch(cudaStream_t stream) const { check_status(dualgemm_launch_ex(&args_, stream)); }

int32_t DeviceSet::split_k() const {
  dualgemm_device_t device;
  check_status(dualgemm_current_device(&device));
  int32_t id = 0;
  check_status(dualgemm_select_instance(&args_, &device, &id));
  if (id == 0) return 1;  // no kernel runs
  dualgemm_instance_info_t info;
  check_status(dualgemm_instance_info(id, &info));
  return info.split_k;
}

std::vector<Output> DeviceSet::download() const {
  std::vector<uint16_t> c = c_.host();
  std::vector<Output> out;
  const int32_t split = split_k();
  for (size_t i = 0; i < rows_.size(); ++i) {
    Output& one = out.emplace_back(Output{rows_[i], n_, options_.dtype, {}, split});
    for (int64_t row = 0; row < rows_[i]; ++row) {
      const auto begin = c.begin() + kGuardElements + i * stride_c_ + (first_rows_[i] + row) * ldc_;
      one.bits.insert(one.bits.end(), begin, begin + n_);
      std::fill_n(begin, n_, kPoison);  // the rest belongs to no problem
    }
  }
  const auto written = std::find_if(c.begin(), c.end(), [&](uint16_t bits) { return bits != kPoison; });
  if (written != c.end()) {
    const int64_t element = written - c.begin() - static_cast<int64_t>(kGuardElements);
    const std::string where = "element " + std::to_string(element) + " of C (ldc " + std::to_string(ldc_) +
                              ", " + std::to_string(stride_c_) + " from problem to problem)";
    throw std::runtime_error(where + " belongs to no problem and was written");
  }
  return out;
}

std::vector<Output> run(const ProblemSet& set, const SetOptions& options) {
  const DeviceSet device(set, options);
  device.launch(nullptr);
  return device.download();
}

}  // namespace dualgemm_test
