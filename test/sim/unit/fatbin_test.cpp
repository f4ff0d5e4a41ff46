// fatbin_test.cpp -- containers built here byte by byte, in each of the three storages, must give back their
// text; every machine gets the PTX that stands for what its driver would run; and whatever is damaged,
// foreign or not for the machine must be refused by name.
#include <cuda_runtime_api.h>
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <vector>

#include "sim/shim/fatbin.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"

namespace fatbin_test {

// The constructors that nvcc generates call these.
extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_stub, char*, const char* device_name, int, uint3*,
                            uint3*, dim3*, dim3*, int*);
}

using dualgemm_test::contains;
using namespace sim::shim;

constexpr uint64_t kTargetA = 0x100000, kTargetF = 0x200000, kLz4 = 0x2000, kZstd = 0x8000;
constexpr uint16_t kPtx = 1, kCubin = 2;

template <class T>
static void put(std::vector<uint8_t>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

class Container {
 public:
  Container() : bytes_(16) {
    put<uint32_t>(bytes_, 0, 0xBA55ED50);
    put<uint16_t>(bytes_, 4, 1);
    put<uint16_t>(bytes_, 6, 16);
  }

  Container& add(uint16_t kind, uint32_t arch, uint64_t flags, const std::string& text) {
    std::vector<uint8_t> payload(text.begin(), text.end());
    payload.push_back(0);
    const uint64_t text_size = payload.size();
    if (flags & kZstd) payload = zstd(payload);
    if (flags & kLz4) payload = lz4(payload);
    const bool packed = flags & (kZstd | kLz4);
    const size_t stored = payload.size();
    payload.resize((stored + 7) / 8 * 8);

    std::vector<uint8_t> header(0x50);
    put<uint16_t>(header, 0, kind);
    put<uint32_t>(header, 4, 0x50);
    put<uint64_t>(header, 8, payload.size());
    put<uint32_t>(header, 16, packed ? static_cast<uint32_t>(stored) : 0);
    put<uint32_t>(header, 28, arch);
    put<uint64_t>(header, 40, flags);
    put<uint64_t>(header, 56, packed ? text_size : 0);
    bytes_.insert(bytes_.end(), header.begin(), header.end());
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    put<uint64_t>(bytes_, 8, bytes_.size() - 16);
    return *this;
  }

  // The wrapper points into this object.
  const void* wrapper() {
    wrapper_.data = bytes_.data();
    return &wrapper_;
  }
  std::vector<uint8_t>& bytes() { return bytes_; }
  void set_wrapper_version(uint32_t version) { wrapper_.version = version; }

 private:
  static std::vector<uint8_t> zstd(const std::vector<uint8_t>& plain) {
    std::vector<uint8_t> packed(ZSTD_compressBound(plain.size()));
    packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
    return packed;
  }
  static std::vector<uint8_t> lz4(const std::vector<uint8_t>& plain) {
    std::vector<uint8_t> packed(static_cast<size_t>(LZ4_compressBound(static_cast<int>(plain.size()))));
    packed.resize(static_cast<size_t>(LZ4_compress_default(
        reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(packed.data()),
        static_cast<int>(plain.size()), static_cast<int>(packed.size()))));
    return packed;
  }

  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* data = nullptr;
    const void* unused = nullptr;
  } wrapper_;
  std::vector<uint8_t> bytes_;
};

static std::string long_text() {
  std::string text = ".version 9.0\n.target sm_100f\n";
  for (int i = 0; i < 2000; ++i)
    text += "add.s32 %r" + std::to_string(i % 37) + ", %r1, " + std::to_string(i) + ";\n";
  return text;
}

static std::string selected_target(Container& container, const sim::Machine& machine = sim::kB200) {
  const auto entries = fatbin_entries(container.wrapper());
  return select_ptx(entries, machine).name();
}

TEST_CASE("every storage gives back the text that went in", "[fatbin]") {
  const uint64_t storage = GENERATE(uint64_t{0}, kZstd, kLz4);
  Container container;
  container.add(kPtx, 100, kTargetF | storage, long_text());
  const auto entries = fatbin_entries(container.wrapper());
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name() == "compute_100f");
  CHECK(unpack_ptx(entries[0]) == long_text());
}

TEST_CASE("text that compresses as well as text can is no damage", "[fatbin]") {
  const uint64_t storage = GENERATE(kZstd, kLz4);
  const std::string text(size_t{10} << 20, '\n');
  Container container;
  container.add(kPtx, 100, storage, text);
  CHECK(unpack_ptx(fatbin_entries(container.wrapper()).at(0)) == text);
}

TEST_CASE("the newest PTX the device can compile is chosen", "[fatbin]") {
  SECTION("newer wins, cubins of other devices and newer devices do not count") {
    Container c;
    c.add(kPtx, 90, 0, "x").add(kPtx, 100, 0, "y").add(kPtx, 120, 0, "z").add(kCubin, 90, 0, "elf");
    CHECK(selected_target(c) == "compute_100");
  }
  SECTION("an own-architecture target wins over the plain one") {
    Container c;
    c.add(kPtx, 100, kTargetF, "f").add(kPtx, 100, kTargetA, "a").add(kPtx, 100, 0, "plain");
    CHECK(selected_target(c) == "compute_100a");
  }
  SECTION("a suffixed target of an older architecture does not run here") {
    Container c;
    c.add(kPtx, 90, kTargetA, "a").add(kPtx, 80, 0, "plain");
    CHECK(selected_target(c) == "compute_80");
  }
}

TEST_CASE("each machine takes plain PTX up to its own number, its family's and what is for it alone",
          "[fatbin]") {
  struct Image {
    uint32_t arch;
    uint64_t flags;
    const char* name;
    bool b200, b300, h200, h100;  // runs there
  };
  const Image image = GENERATE(values<Image>({{80, 0, "compute_80", true, true, true, true},
                                              {90, 0, "compute_90", true, true, true, true},
                                              {90, kTargetA, "compute_90a", false, false, true, true},
                                              {100, 0, "compute_100", true, true, false, false},
                                              {100, kTargetA, "compute_100a", true, false, false, false},
                                              {100, kTargetF, "compute_100f", true, true, false, false},
                                              {101, kTargetF, "compute_101f", false, false, false, false},
                                              {103, 0, "compute_103", false, true, false, false},
                                              {103, kTargetA, "compute_103a", false, true, false, false},
                                              {103, kTargetF, "compute_103f", false, true, false, false},
                                              {120, 0, "compute_120", false, false, false, false}}));
  CAPTURE(image.name);
  Container c;
  c.add(kPtx, image.arch, image.flags, "x");
  const auto check = [&](const sim::Machine& machine, bool runs) {
    CAPTURE(machine.name);
    if (runs) CHECK(selected_target(c, machine) == image.name);
    else CHECK_THROWS_WITH(selected_target(c, machine), contains(machine.name) && contains(image.name));
  };
  check(sim::kB200, image.b200);
  check(sim::kB300, image.b300);
  check(sim::kH200, image.h200);
  check(sim::kH100, image.h100);
}

TEST_CASE("a cubin that runs goes before any PTX, and its own PTX stands for it", "[fatbin]") {
  SECTION("a family cubin on a chip of the family, beside newer PTX") {
    Container c;
    c.add(kCubin, 100, kTargetF, "elf").add(kPtx, 100, kTargetF, "f").add(kPtx, 103, kTargetA, "a");
    CHECK(selected_target(c, sim::kB300) == "compute_100f");
    CHECK(selected_target(c, sim::kB200) == "compute_100f");
  }
  SECTION("the cubin of this very chip before the family's") {
    Container c;
    c.add(kCubin, 100, kTargetF, "elf").add(kPtx, 100, kTargetF, "f");
    c.add(kCubin, 103, kTargetA, "elf").add(kPtx, 103, kTargetA, "a");
    CHECK(selected_target(c, sim::kB300) == "compute_103a");
    CHECK(selected_target(c, sim::kB200) == "compute_100f");
  }
  SECTION("a plain cubin of a lower minor number") {
    Container c;
    c.add(kCubin, 100, 0, "elf").add(kPtx, 100, 0, "x").add(kPtx, 90, 0, "y");
    CHECK(selected_target(c, sim::kB300) == "compute_100");
    CHECK(selected_target(c, sim::kH200) == "compute_90");
  }
  SECTION("an H200 prefers its plain cubin to PTX for it alone, and of two cubins that for it alone") {
    Container c;
    c.add(kCubin, 90, 0, "elf").add(kPtx, 90, 0, "x").add(kPtx, 90, kTargetA, "a");
    CHECK(selected_target(c, sim::kH200) == "compute_90");
    c.add(kCubin, 90, kTargetA, "elf");
    CHECK(selected_target(c, sim::kH200) == "compute_90a");
  }
}

TEST_CASE("a fat binary without usable PTX says what it holds and how to build it", "[fatbin]") {
  SECTION("machine code alone") {
    Container c;
    c.add(kCubin, 100, kTargetF, "elf");
    CHECK_THROWS_WITH(selected_target(c), contains("sm_100f") && contains("-gencode arch=compute_100f"));
  }
  SECTION("only newer PTX") {
    Container c;
    c.add(kPtx, 103, kTargetF, "x");
    CHECK_THROWS_WITH(selected_target(c), contains("compute_103f"));
  }
  SECTION("older PTX beside native machine code would run different code than the device") {
    Container c;
    c.add(kPtx, 90, 0, "x").add(kCubin, 100, kTargetA, "elf");
    CHECK_THROWS_WITH(selected_target(c), contains("sm_100a") && contains("PTX is missing"));
  }
  SECTION("PTX of another target than the machine code that would run") {
    Container c;
    c.add(kPtx, 100, 0, "x").add(kCubin, 100, kTargetF, "elf");
    CHECK_THROWS_WITH(selected_target(c), contains("B200 would run the sm_100f cubin"));
  }
  SECTION("the advice is for the machine") {
    Container c;
    c.add(kCubin, 90, kTargetA, "elf");
    CHECK_THROWS_WITH(selected_target(c, sim::kH200),
                      contains("H200 would run the sm_90a cubin") && contains("-gencode arch=compute_90a"));
  }
}

TEST_CASE("damaged or foreign containers are refused", "[fatbin]") {
  Container c;
  c.add(kPtx, 100, kTargetF | kZstd, long_text());
  SECTION("wrapper of relocatable device code") {
    c.set_wrapper_version(2);
    CHECK_THROWS_WITH(fatbin_entries(c.wrapper()), contains("-rdc=false"));
  }
  SECTION("container magic") {
    c.bytes()[0] ^= 1;
    CHECK_THROWS_AS(fatbin_entries(c.wrapper()), FatbinError);
  }
  SECTION("entry longer than the container") {
    put<uint64_t>(c.bytes(), 16 + 8, c.bytes().size());
    CHECK_THROWS_WITH(fatbin_entries(c.wrapper()), contains("byte 16 of the fat binary"));
  }
  SECTION("compressed flag without a compressed size") {
    put<uint32_t>(c.bytes(), 16 + 16, 0);
    CHECK_THROWS_WITH(fatbin_entries(c.wrapper()), contains("byte 16 of the fat binary"));
  }
  SECTION("an entry damaged behind a whole one") {
    const size_t second = c.bytes().size();
    c.add(kPtx, 100, 0, "x");
    put<uint32_t>(c.bytes(), second + 4, 63);
    CHECK_THROWS_WITH(fatbin_entries(c.wrapper()),
                      contains("byte " + std::to_string(second) + " of the fat binary"));
  }
  SECTION("an uncompressed size that no such payload unpacks to") {
    Container small;
    const uint64_t storage = GENERATE(kZstd, kLz4);
    small.add(kPtx, 100, storage, "x");
    const uint64_t stored = small.bytes()[16 + 16];
    put<uint64_t>(small.bytes(), 16 + 56, uint64_t{1} << 31);
    REQUIRE(stored < 64);
    CHECK_THROWS_WITH(fatbin_entries(small.wrapper()), contains("byte 16") && contains("claims more bytes"));
  }
  SECTION("payload that is no frame") {
    c.bytes()[16 + 0x50] ^= 0xff;
    const auto entries = fatbin_entries(c.wrapper());
    CHECK_THROWS_WITH(unpack_ptx(entries[0]), contains("does not decompress"));
  }
  SECTION("wrong uncompressed size") {
    put<uint64_t>(c.bytes(), 16 + 56, 17);
    const auto entries = fatbin_entries(c.wrapper());
    CHECK_THROWS_WITH(unpack_ptx(entries[0]), contains("does not decompress"));
  }
}

// This is a fat binary with one kernel, as a program's constructors register it.
class Registered {
 public:
  explicit Registered(Container& container)
      : handle_(__cudaRegisterFatBinary(const_cast<void*>(container.wrapper()))) {
    __cudaRegisterFunction(handle_, &stub_, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
  }
  ~Registered() { __cudaUnregisterFatBinary(handle_); }
  Registered(const Registered&) = delete;
  cudaError_t launch(void** args = nullptr) const {
    const cudaError_t result = cudaLaunchKernel(&stub_, dim3{1, 1, 1}, dim3{1, 1, 1}, args, 0, nullptr);
    cudaGetLastError();
    return result;
  }

 private:
  void** handle_;
  const char stub_ = 0;
};

struct OnMachine {
  explicit OnMachine(const sim::Machine& machine) { sim::shim::set_machine(machine); }
  ~OnMachine() { sim::shim::set_machine(sim::kB200); }
};

// Stores the number of SMs.
static std::string counts_sms(const std::string& target) {
  return ".version 8.8\n.target sm_" + target +
         "\n.address_size 64\n.entry kernel(.param .u64 out)\n{ .reg .b32 n; .reg .b64 to;\n"
         "ld.param.u64 to, [out]; mov.u32 n, %nsmid; st.global.u32 [to], n; ret; }\n";
}

TEST_CASE("a program runs on the machine it was built for, and the others have no image of it", "[fatbin]") {
  struct Build {
    uint32_t arch;
    uint64_t flags;
    const char* target;
    bool b200, b300, h200;
  };
  const Build build = GENERATE(values<Build>({{90, kTargetA, "90a", false, false, true},
                                              {100, kTargetA, "100a", true, false, false},
                                              {100, kTargetF, "100f", true, true, false},
                                              {103, kTargetA, "103a", false, true, false},
                                              {90, 0, "90", true, true, true}}));
  CAPTURE(build.target);
  Container c;
  c.add(kCubin, build.arch, build.flags, "elf").add(kPtx, build.arch, build.flags, counts_sms(build.target));
  const Registered program(c);
  const auto check = [&](const sim::Machine& machine, bool runs) {
    CAPTURE(machine.name);
    const OnMachine here(machine);
    void* out = nullptr;
    REQUIRE(cudaMalloc(&out, sizeof(int)) == cudaSuccess);
    void* args[] = {&out};
    CHECK(program.launch(args) == (runs ? cudaSuccess : cudaErrorNoKernelImageForDevice));
    int sms = 0;
    if (runs) CHECK(cudaMemcpy(&sms, out, sizeof sms, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(sms == (runs ? machine.sms : 0));
    cudaFree(out);
  };
  check(sim::kB200, build.b200);
  check(sim::kB300, build.b300);
  check(sim::kH200, build.h200);
}

TEST_CASE("PTX with an instruction that its target lacks is invalid on every machine that compiles it",
          "[fatbin]") {
  Container c;
  c.add(kPtx, 90, 0,
        ".version 8.8\n.target sm_90\n.address_size 64\n.entry kernel()\n{ .reg .b64 a, b;\n"
        "add.rn.f32x2 a, b, b; ret; }\n");
  const Registered program(c);
  const sim::Machine machine = GENERATE(sim::kB200, sim::kH200);
  const OnMachine here(machine);
  CHECK(program.launch() == cudaErrorInvalidPtx);
  CHECK_THAT(sim::shim::last_fault_text(), contains("needs .target sm_100") && contains("PTX line 6"));
}

TEST_CASE("a fat binary that cannot be loaded fails when used, every time, and spoils nothing else",
          "[fatbin]") {
  Container c;
  const bool has_ptx = GENERATE(true, false);
  if (has_ptx)
    c.add(kPtx, 100, kTargetF, ".version 9.0\n.target sm_100f\n.address_size 64\nthis is no PTX\n");
  else c.add(kCubin, 100, kTargetF, "elf");
  const cudaError_t expected = has_ptx ? cudaErrorInvalidPtx : cudaErrorNoKernelImageForDevice;

  static const char stub = 0;
  void** handle = __cudaRegisterFatBinary(const_cast<void*>(c.wrapper()));
  __cudaRegisterFunction(handle, &stub, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  CHECK(cudaGetLastError() == cudaSuccess);
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK(cudaLaunchKernel(&stub, dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr, 0, nullptr) == expected);
    CHECK_FALSE(sim::shim::last_fault_text().empty());
    CHECK(cudaGetLastError() == expected);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
  __cudaUnregisterFatBinary(handle);
  CHECK(cudaLaunchKernel(&stub, dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr, 0, nullptr) ==
        cudaErrorInvalidDeviceFunction);
  sim::shim::clear_fault();
}

}  // namespace fatbin_test
