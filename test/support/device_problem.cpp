// device_problem.cpp -- see device_problem.h.
#include "support/device_problem.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "kernel/instance.h"

namespace dualgemm_test {
namespace {

constexpr uint8_t kPoison = 0xFF;     // a NaN in every output type
constexpr size_t kGuardBytes = 1024;  // on either side of C; keeps C aligned

}  // namespace

void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void check_status(dualgemm_status_t status) {
  if (status != DUALGEMM_STATUS_SUCCESS)
    throw std::runtime_error(std::string(dualgemm_status_name(status)) + ": " + dualgemm_last_error());
}

DeviceBuffer::DeviceBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes != 0) check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
}

DeviceBuffer::DeviceBuffer(const std::vector<uint8_t>& bytes) : DeviceBuffer(bytes.size()) {
  upload(bytes.data(), bytes.size());
}

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

void DeviceBuffer::upload(const void* from, size_t bytes, size_t offset) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpy(static_cast<uint8_t*>(data_) + offset, from, bytes, cudaMemcpyHostToDevice),
             "upload");
}

void DeviceBuffer::download(void* to, size_t bytes, size_t offset) const {
  if (bytes == 0) return;
  check_cuda(cudaMemcpy(to, static_cast<uint8_t*>(data_) + offset, bytes, cudaMemcpyDeviceToHost),
             "download");
}

DeviceProblem::DeviceProblem(const Problem& p, const LaunchOptions& options)
    : options_(options),
      m_(p.m),
      n_(p.n),
      ldc_(p.n + options.ldc_padding),
      a_(p.a),
      b1_(p.b1),
      b2_(p.b2),
      sfa_(p.sfa),
      sfb1_(p.sfb1),
      sfb2_(p.sfb2),
      alphas_(2 * sizeof(float)),
      c_(m_ * ldc_ * 2 + 2 * kGuardBytes) {
  dualgemm_args_init(&args_);
  args_.m = p.m;
  args_.n = p.n;
  args_.k = p.k;
  args_.a = a_.get();
  args_.b1 = b1_.get();
  args_.b2 = b2_.get();
  args_.sfa = sfa_.get();
  args_.sfb1 = sfb1_.get();
  args_.sfb2 = sfb2_.get();
  args_.c = static_cast<uint8_t*>(c_.get()) + kGuardBytes;
  args_.lda = p.lda;
  args_.ldb1 = p.ldb1;
  args_.ldb2 = p.ldb2;
  args_.ldc = ldc_;
  if (options.alphas_on_device) {
    const float alphas[2] = {p.alpha1, p.alpha2};
    alphas_.upload(alphas, sizeof alphas);
    args_.alpha1_dev = static_cast<const float*>(alphas_.get());
    args_.alpha2_dev = args_.alpha1_dev + 1;
  } else {
    args_.alpha1 = p.alpha1;
    args_.alpha2 = p.alpha2;
  }
  args_.c_dtype = options.dtype;
  args_.activation = options.activation;
  args_.config_id = options.config_id;
  args_.max_sms = options.max_sms;
  args_.flags = options.flags;
  poison();
}

void DeviceProblem::poison() {
  const std::vector<uint8_t> bytes(m_ * ldc_ * 2 + 2 * kGuardBytes, kPoison);
  c_.upload(bytes.data(), bytes.size());
}

void DeviceProblem::upload(const Problem& p) {
  a_.upload(p.a.data(), p.a.size());
  b1_.upload(p.b1.data(), p.b1.size());
  b2_.upload(p.b2.data(), p.b2.size());
  sfa_.upload(p.sfa.data(), p.sfa.size());
  sfb1_.upload(p.sfb1.data(), p.sfb1.size());
  sfb2_.upload(p.sfb2.data(), p.sfb2.size());
}

void DeviceProblem::launch(cudaStream_t stream) const { check_status(dualgemm_launch_ex(&args_, stream)); }

Output DeviceProblem::download() const {
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::vector<uint8_t> bytes(m_ * ldc_ * 2 + 2 * kGuardBytes);
  c_.download(bytes.data(), bytes.size());
  Output out{m_, n_, options_.dtype, std::vector<uint16_t>(m_ * n_)};
  const auto poisoned = [&](size_t begin, size_t end, const std::string& where) {
    for (size_t i = begin; i < end; ++i) {
      if (bytes[i] != kPoison)
        throw std::runtime_error("byte " + std::to_string(i - begin) + " " + where + " was written");
    }
  };
  poisoned(0, kGuardBytes, "in front of C");
  for (int64_t row = 0; row < m_; ++row) {
    const size_t begin = kGuardBytes + row * ldc_ * 2;
    std::copy_n(&bytes[begin], n_ * 2, reinterpret_cast<uint8_t*>(&out.bits[row * n_]));
    poisoned(begin + n_ * 2, begin + ldc_ * 2, "between columns n and ldc of row " + std::to_string(row));
  }
  poisoned(kGuardBytes + m_ * ldc_ * 2, bytes.size(), "behind C");
  return out;
}

Output run(const Problem& problem, const LaunchOptions& options) {
  DeviceProblem device(problem, options);
  device.launch(nullptr);
  return device.download();
}

namespace {

dualgemm_activation_t activation_of(const dualgemm::Instance& instance) {
  return static_cast<dualgemm_activation_t>(instance.epilogue.activation);
}

}  // namespace

std::vector<NamedConfig> all_configs() {
  std::vector<NamedConfig> out;
  for (int32_t id = 1; id <= dualgemm_config_count(); ++id) {
    NamedConfig config{id, {}, activation_of(dualgemm::instance(id - 1))};
    check_status(dualgemm_config_info(id, &config.info));
    out.push_back(config);
  }
  return out;
}

std::vector<dualgemm_activation_t> all_activations() {
  std::set<dualgemm_activation_t> out;
  for (const dualgemm::Instance& instance : dualgemm::instances()) out.insert(activation_of(instance));
  return {out.begin(), out.end()};
}

std::vector<NamedConfig> configs_computing(dualgemm_activation_t activation) {
  std::vector<NamedConfig> out = all_configs();
  std::erase_if(out, [&](const NamedConfig& config) { return config.activation != activation; });
  return out;
}

namespace {

std::vector<NamedConfig> configs_where(bool grouped) {
  std::vector<NamedConfig> out = configs_computing(kDefaultActivation);
  std::erase_if(out, [&](const NamedConfig& config) { return (config.info.grouped != 0) != grouped; });
  return out;
}

}  // namespace

std::vector<NamedConfig> dense_configs() { return configs_where(false); }
std::vector<NamedConfig> grouped_configs() { return configs_where(true); }

LaunchOptions use(const NamedConfig& config) {
  LaunchOptions options;
  options.dtype = static_cast<dualgemm_dtype_t>(config.info.c_dtype);
  options.activation = config.activation;
  options.config_id = config.id;
  return options;
}

}  // namespace dualgemm_test
