// structure_test.cpp -- structures whose size is not the library's: what is never read, never written, and
// refused. validate_*_test.cpp and conversion_test.cpp have what is inside them.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace structure_test {

using dualgemm_test::b200;
using dualgemm_test::valid_args;

extern "C" {
void c99_device_init(dualgemm_device_t* device);
void c99_instance_info_init(dualgemm_instance_info_t* info);
}

// Memory that ends where no memory follows: whoever touches a byte behind it ends the program.
class EndOfMemory {
 public:
  EndOfMemory() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    start_ = mmap(nullptr, 3 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(start_ != MAP_FAILED);
    REQUIRE(mprotect(bytes() + 2 * page_, page_, PROT_NONE) == 0);
  }
  EndOfMemory(const EndOfMemory&) = delete;
  EndOfMemory& operator=(const EndOfMemory&) = delete;
  ~EndOfMemory() { munmap(start_, 3 * page_); }

  // Returns the last `size` bytes, with `from` at their beginning and zeros behind it.
  void* last(size_t size, const void* from, size_t from_size) const {
    unsigned char* const place = bytes() + 2 * page_ - size;
    std::memset(place, 0, size);
    std::memcpy(place, from, std::min(size, from_size));
    return place;
  }

 private:
  unsigned char* bytes() const { return static_cast<unsigned char*>(start_); }
  size_t page_;
  void* start_;
};

// A structure of the interface, a function that takes it, and its initialiser's name.
struct Kind {
  size_t first_size;  // of the first release that has it, 0.2.0 or later
  std::string init;
  std::vector<unsigned char> good;
  std::function<dualgemm_status_t(void*)> call;
};

template <class T>
static std::vector<unsigned char> bytes_of(const T& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  return {bytes, bytes + sizeof value};
}

static std::vector<Kind> kinds() {
  dualgemm_sf_args_t sf;
  dualgemm_sf_args_init(&sf);
  dualgemm_quantize_args_t quantize;
  dualgemm_quantize_args_init(&quantize);
  dualgemm_moe_permute_args_t permute;
  dualgemm_moe_permute_args_init(&permute);
  permute.experts = 1;
  dualgemm_moe_gather_args_t gather;
  dualgemm_moe_gather_args_init(&gather);
  dualgemm_moe_combine_args_t combine;
  dualgemm_moe_combine_args_init(&combine);
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  dualgemm_tuning_info_t tuning;
  dualgemm_tuning_info_init(&tuning);
  static const dualgemm_args_t args = valid_args();
  static const dualgemm_device_t described = b200();
  return {
      {440, "dualgemm_args_init", bytes_of(args),
       [](void* x) { return dualgemm_can_implement_on(static_cast<dualgemm_args_t*>(x), &described); }},
      {sizeof sf, "dualgemm_sf_args_init", bytes_of(sf),
       [](void* x) { return dualgemm_sf_swizzle_host(static_cast<dualgemm_sf_args_t*>(x)); }},
      {152, "dualgemm_quantize_args_init", bytes_of(quantize),
       [](void* x) { return dualgemm_quantize_host_ex(static_cast<dualgemm_quantize_args_t*>(x)); }},
      {sizeof permute, "dualgemm_moe_permute_args_init", bytes_of(permute),
       [](void* x) { return dualgemm_moe_permute_host(static_cast<dualgemm_moe_permute_args_t*>(x)); }},
      {sizeof gather, "dualgemm_moe_gather_args_init", bytes_of(gather),
       [](void* x) { return dualgemm_moe_gather_host(static_cast<dualgemm_moe_gather_args_t*>(x)); }},
      {sizeof combine, "dualgemm_moe_combine_args_init", bytes_of(combine),
       [](void* x) { return dualgemm_moe_combine_host(static_cast<dualgemm_moe_combine_args_t*>(x)); }},
      {100, "dualgemm_device_init", bytes_of(described),
       [](void* x) { return dualgemm_can_implement_on(&args, static_cast<dualgemm_device_t*>(x)); }},
      {100, "dualgemm_device_init", bytes_of(device),
       [](void* x) { return dualgemm_current_device(static_cast<dualgemm_device_t*>(x)); }},
      {96, "dualgemm_instance_info_init", bytes_of(info),
       [](void* x) { return dualgemm_instance_info(1, static_cast<dualgemm_instance_info_t*>(x)); }},
      {sizeof tuning, "dualgemm_tuning_info_init", bytes_of(tuning),
       [](void* x) { return dualgemm_tuning_info(static_cast<dualgemm_tuning_info_t*>(x)); }},
  };
}

static void set_size(void* structure, size_t size) {
  const auto own = static_cast<uint32_t>(size);
  std::memcpy(structure, &own, sizeof own);
}

TEST_CASE("of a structure whose size fits no release nothing but the size is read", "[host][abi]") {
  const EndOfMemory memory;
  for (const Kind& kind : kinds())
    for (const size_t size : {size_t{0}, size_t{4}, kind.first_size - 1, size_t{4097}, size_t{0xFFFFFFFF}}) {
      void* const structure = memory.last(4, kind.good.data(), kind.good.size());
      set_size(structure, size);
      INFO(kind.init << ", " << size);
      CHECK(kind.call(structure) == DUALGEMM_STATUS_VERSION_MISMATCH);
      const std::string text = dualgemm_last_error();
      INFO(text);
      CHECK(text.find("struct_size=" + std::to_string(size) + ": ") == 0);
      CHECK(text.find(size > 4096 ? ": above 4096, " : ": below ") != std::string::npos);
      CHECK(text.find("call " + kind.init) != std::string::npos);
    }
}

TEST_CASE("of a structure of the library's size nothing behind it is read or written", "[host][abi]") {
  const EndOfMemory memory;
  for (const Kind& kind : kinds()) {
    INFO(kind.init);
    CHECK(kind.call(memory.last(kind.good.size(), kind.good.data(), kind.good.size())) ==
          DUALGEMM_STATUS_SUCCESS);
  }
}

TEST_CASE("a structure of up to 4,096 bytes may be a newer program's", "[host][abi]") {
  const EndOfMemory memory;
  for (const Kind& kind : kinds())
    for (const size_t size : {kind.good.size() + 8, size_t{4096}}) {
      INFO(kind.init << ", " << size);
      void* const structure = memory.last(size, kind.good.data(), kind.good.size());
      set_size(structure, size);
      CHECK(kind.call(structure) == DUALGEMM_STATUS_SUCCESS);
      uint32_t own = 0;
      std::memcpy(&own, structure, sizeof own);
      CHECK(own == size);
    }
}

TEST_CASE("what is read is refused with bytes set that the library does not know", "[host][abi]") {
  const EndOfMemory memory;
  const std::vector<Kind> all = kinds();
  for (const Kind& kind : std::vector<Kind>(all.begin(), all.begin() + 6)) {
    const size_t known = kind.good.size();
    auto* const structure = static_cast<unsigned char*>(memory.last(known + 8, kind.good.data(), known));
    set_size(structure, known + 8);
    structure[known + 7] = 1;
    CHECK(kind.call(structure) == DUALGEMM_STATUS_VERSION_MISMATCH);
    CHECK(std::string(dualgemm_last_error()) ==
          "struct_size=" + std::to_string(known + 8) + ": byte " + std::to_string(known + 7) +
              " is set, but this library knows only " + std::to_string(known) + " bytes");
  }
}

TEST_CASE("what is filled is filled to its own size, with zeros where the library knows nothing",
          "[host][abi]") {
  struct {
    dualgemm_device_t known;
    unsigned char unknown[8], behind[8];
  } device;
  struct {
    dualgemm_instance_info_t known;
    unsigned char unknown[8], behind[8];
  } info;
  std::memset(&device, 0xEE, sizeof device);
  std::memset(&info, 0xEE, sizeof info);
  device.known.struct_size = sizeof device - 8;
  info.known.struct_size = sizeof info - 8;
  REQUIRE(dualgemm_current_device(&device.known) == DUALGEMM_STATUS_SUCCESS);
  REQUIRE(dualgemm_instance_info(1, &info.known) == DUALGEMM_STATUS_SUCCESS);
  CHECK(device.known.sm_count > 0);
  CHECK(info.known.tile_k > 0);
  CHECK(info.known.cc_major > 0);
  for (size_t i = 0; i < 8; ++i) {
    CHECK(device.unknown[i] == 0);
    CHECK(info.unknown[i] == 0);
    CHECK(device.behind[i] == 0xEE);
    CHECK(info.behind[i] == 0xEE);
  }
}

TEST_CASE("what is refused is not written", "[host][abi]") {
  dualgemm_instance_info_t info;
  std::memset(&info, 0xEE, sizeof info);
  info.struct_size = 87;
  CHECK(dualgemm_instance_info(1, &info) == DUALGEMM_STATUS_VERSION_MISMATCH);
  CHECK(info.struct_size == 87);
  CHECK(static_cast<uint32_t>(info.tile_m) == 0xEEEEEEEE);
  info.struct_size = sizeof info;
  CHECK(dualgemm_instance_info(0, &info) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(static_cast<uint32_t>(info.tile_m) == 0xEEEEEEEE);
}

TEST_CASE("initialisers set the size and nothing else but defaults", "[host][abi]") {
  dualgemm_device_t device;
  dualgemm_instance_info_t info;
  std::memset(&device, 0xEE, sizeof device);
  std::memset(&info, 0xEE, sizeof info);
  c99_device_init(&device);
  c99_instance_info_init(&info);
  CHECK(device.struct_size == sizeof device);
  CHECK(info.struct_size == sizeof info);
  device.struct_size = info.struct_size = 0;
  for (const unsigned char byte : bytes_of(device)) CHECK(byte == 0);
  for (const unsigned char byte : bytes_of(info)) CHECK(byte == 0);
  dualgemm_device_init(nullptr);
  dualgemm_instance_info_init(nullptr);
}

}  // namespace structure_test
