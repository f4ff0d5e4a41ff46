// small.cpp -- functions that take numbers: sizes and offsets of scale factors, names, defaults, instances,
// devices.

#include "fuzz/answer.h"
#include "fuzz/problems.h"
#include "fuzz/targets.h"

namespace dualgemm_fuzz {

// The drawing of the manual, as formulas.
static void offsets(Bytes& bytes) {
  const auto number = [&bytes](int32_t now) {
    return bytes.one_in(2) ? bytes.below(500) : static_cast<int32_t>(notable_integer(bytes, now));
  };
  const int32_t rows = number(128), k = number(64), row = number(rows), block = number(k / 16);
  const size_t size = dualgemm_sf_size(rows, k);
  const int64_t padded_rows = (int64_t{rows} + 127) / 128 * 128, factors = (int64_t{k} + 63) / 64 * 4;
  require(size == (rows < 0 || k < 0 ? 0 : static_cast<size_t>(padded_rows * factors)),
          "sf_size(%d, %d) = %zu", rows, k, size);
  const bool there = rows >= 0 && k >= 0 && row >= 0 && block >= 0 && row < padded_rows && block < factors;
  const int64_t r = row, b = block;
  const int64_t expected =
      there ? r / 128 * 128 * factors + b / 4 * 512 + r % 32 * 16 + r % 128 / 32 * 4 + b % 4 : -1;
  require(dualgemm_sf_offset(rows, k, row, block) == expected, "sf_offset(%d, %d, %d, %d) is not %lld", rows,
          k, row, block, static_cast<long long>(expected));
}

static void names(Bytes& bytes) {
  const auto status = static_cast<dualgemm_status_t>(bytes.raw<int32_t>() >> bytes.below(32));
  require(*dualgemm_status_name(status) != '\0' && *dualgemm_status_string(status) != '\0',
          "a status without a name");
  require(dualgemm_version() == DUALGEMM_VERSION && *dualgemm_build_info() != '\0', "the version");
}

// A caller of any release has a structure of another size; all of it is set, and nothing behind.
template <class Args>
static void defaults(Bytes& bytes, void (*init)(Args*, size_t)) {
  init(nullptr, bytes.below(1000));
  Args full;
  init(&full, sizeof full);
  const size_t size = static_cast<size_t>(bytes.one_in(2) ? bytes.below(5000) : bytes.below(600));
  std::vector<uint8_t> now(size, bytes.raw<uint8_t>()), expected(size);
  if (size == 0) return;
  init(reinterpret_cast<Args*>(now.data()), size);
  std::memcpy(expected.data(), &full, std::min(size, sizeof full));
  const auto written = static_cast<uint32_t>(size);
  std::memcpy(expected.data(), &written, std::min(size, sizeof written));
  require(now == expected, "defaults of %zu bytes", size);
}

static void instances(Bytes& bytes) {
  const int32_t id = bytes.one_in(2) ? bytes.below(100) : bytes.raw<int32_t>();
  dualgemm_instance_info_t info = blank_info();
  info.name = "untouched";
  const dualgemm_instance_info_t before = info;
  const Answer answer = steady_answer([&] { return dualgemm_instance_info(id, &info); });
  require(answer.good() == (id >= 1 && id <= dualgemm_instance_count()), "instance %d: \"%s\"", id,
          answer.text.c_str());
  require(answer.good() || std::memcmp(&info, &before, sizeof info) == 0, "a refusal writes");
  require(!answer.good() || (info.name && info.tile_m > 0 && info.tile_n > 0), "instance %d is empty", id);
  require(!answer_of(dualgemm_instance_info(id, nullptr)).good(), "an instance into NULL");
}

// Any number of devices are there; the library knows the first 64.
static void devices(Bytes& bytes) {
  const int32_t ordinal = bytes.below(80);
  cudaSetDevice(ordinal);
  dualgemm_device_t device = blank_device();
  const dualgemm_device_t before = device;
  const Answer answer = steady_answer([&] { return dualgemm_current_device(&device); });
  require(answer.good() == (ordinal < 64), "device %d: \"%s\"", ordinal, answer.text.c_str());
  require(answer.good() ? device.ordinal == ordinal : std::memcmp(&device, &before, sizeof device) == 0,
          "device %d says that it is %d", ordinal, device.ordinal);
  require(answer_of(dualgemm_init()).good() == (ordinal < 64), "init of device %d", ordinal);
  require(!answer_of(dualgemm_current_device(nullptr)).good(), "a device into NULL");
  cudaSetDevice(0);
}

void look_up(Bytes& bytes) {
  switch (bytes.below(11)) {
    case 0: return names(bytes);
    case 1: return instances(bytes);
    case 2: return devices(bytes);
    case 3: return defaults(bytes, dualgemm_args_init_sized);
    case 4: return defaults(bytes, dualgemm_sf_args_init_sized);
    case 5: return defaults(bytes, dualgemm_quantize_args_init_sized);
    case 6: return defaults(bytes, dualgemm_moe_permute_args_init_sized);
    case 7: return defaults(bytes, dualgemm_moe_combine_args_init_sized);
    case 8: return defaults(bytes, dualgemm_moe_gather_args_init_sized);
    default: return offsets(bytes);
  }
}

}  // namespace dualgemm_fuzz
