// load.cpp -- see load.h.

#include "host/launch/load.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "host/common/device.h"
#include "host/launch/prepare_a.h"

namespace dualgemm {
namespace {

// Remembers which instances were loaded. Loading an instance again does no harm: instances beyond kInstances
// are loaded by each launch. After cudaDeviceReset nothing has to be loaded again: the attribute survives,
// and the code loads when it is used, also in a capture (seen on an H200, driver 580; CUDA documents
// neither).
class Loaded {
 public:
  bool has(int32_t index) const {
    return index < kInstances && (words_[word(index)].load(std::memory_order_acquire) & bit(index)) != 0;
  }
  void add(int32_t index) {
    if (index < kInstances) words_[word(index)].fetch_or(bit(index), std::memory_order_release);
  }

 private:
  static constexpr int32_t kInstances = 512;
  static size_t word(int32_t index) { return static_cast<size_t>(index) / 64; }
  static uint64_t bit(int32_t index) { return uint64_t{1} << index % 64; }
  std::array<std::atomic<uint64_t>, kInstances / 64> words_{};
};

// Constant-initialised like everything in the library, so that a call from a static constructor finds it
// ready.
constinit std::array<Loaded, kMaxDevices> loaded_on;

// Returns the shared memory of a CTA that is to have an SM for itself. Half of the most that a CTA may have
// is enough: the system takes 1 KiB more for each CTA, so two such CTAs would need more than an SM has.
int32_t smem_bytes_alone(const Instance& instance) {
  return std::max(instance.smem_bytes, limits_of(instance.plan.arch).max_smem_bytes / 2);
}

}  // namespace

int32_t smem_bytes_of_launch(const Instance& instance, int64_t ctas, const Machine& machine) {
  const Plan& plan = instance.plan;
  const int64_t sms =
      int64_t{plan.cluster_size()} * clusters_at_once(machine, plan.arch, plan.cluster_size());
  return plan.ctas_per_sm > 1 && ctas <= sms ? smem_bytes_alone(instance) : instance.smem_bytes;
}

int32_t most_smem_bytes(const Instance& instance) {
  return instance.plan.ctas_per_sm > 1 ? smem_bytes_alone(instance) : instance.smem_bytes;
}

dualgemm_status_t load_instance(const Instance& instance) {
  if (auto status = load_prepare_a(instance.plan)) return status;
  return load_kernel(reinterpret_cast<const void*>(instance.kernel), most_smem_bytes(instance));
}

dualgemm_status_t load_once(const dualgemm_device_t& device, const IndexedInstance& indexed) {
  Loaded& loaded = loaded_on[static_cast<size_t>(device.ordinal)];
  if (loaded.has(indexed.index)) return DUALGEMM_STATUS_SUCCESS;
  if (auto status = load_instance(*indexed.instance)) return status;
  loaded.add(indexed.index);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t load_all(const dualgemm_device_t& device) {
  const Arch arch = served_architecture(device)->arch;
  for (int32_t i = 0; i < instance_count(); ++i)
    if (const Instance& one = instance(i); one.plan.arch == arch)
      if (auto status = load_once(device, {&one, i})) return status;
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
