// tensormap_ops_test.cpp -- tensor maps that a kernel changes and copies before it loads through them.
#include "sim/unit/copies_fixture.hpp"
#include "sim/unit/fault_of.hpp"
#include "sim/unit/recorder.hpp"

namespace tensormap_ops_test {

using namespace sim_test;
using sim::FaultKind;

constexpr uint32_t kMapWord = 704;  // of the allocation: where the kernel keeps its map, behind the tensor

// Warp 0 copies the map of the parameters to shared memory, 1024 bytes behind the box; thread 0 does `change`
// to the copy; then warp 0 copies it to global memory. %r30 is the address of the copy in shared memory,
// %rd20 of the copy in global memory.
static std::string through_shared(const std::string& change, const std::string& size = "128") {
  return kInit + std::string(R"(
    add.u32 %r30, %r3, 1024; add.s64 %rd20, %rd9, 2816;
    setp.ge.u32 %p5, %r1, 32;
    @%p5 bra READY;
    mul.wide.u32 %rd21, %r1, 4; add.s64 %rd22, %rd5, %rd21; ld.u32 %r31, [%rd22];
    shl.b32 %r32, %r1, 2; add.u32 %r32, %r30, %r32; st.shared.u32 [%r32], %r31;
    bar.warp.sync -1;
  )") + change +
         R"(
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd20], [%r30], )" +
         size + R"(;
    fence.proxy.tensormap::generic.acquire.gpu [%rd20], 128;
  READY:
  )";
}

const char* const kLoad = R"(
    mov.u32 %r20, 0; mov.u32 %r21, 4;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
    @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%r3], [%rd20, {%r20, %r21}], [%r2];
)";

static Words loaded(const std::string& change, const std::string& mode, sim::Observer* observer = nullptr,
                    const std::string& size = "128") {
  Machine machine;
  Words words = counting(kMapWord + 32, 1);
  uint32_t* in = machine.make(words);
  const Tensor tensor = matrix(0, 4, 0);
  Case c{through_shared(change, size) + kLoad + kWait + kReport + kLeave, 256, 1, encode(tensor, in), mode};
  c.observer = observer;
  return run(machine, in, c);
}

static FaultKind fault(const std::string& change, const std::string& size = "128") {
  return fault_of([&] { loaded(change, "default", nullptr, size); }).kind();
}

TEST_CASE("a load goes by the map that the kernel has changed", "[tensor]") {
  const std::string mode = GENERATE("default", "late", "tear", "random");
  CAPTURE(mode);
  Tensor tensor = matrix(0, 4, 0);
  tensor.base += 48;
  tensor.dims[1] = 7;
  const std::vector<int64_t> from = elements(tensor);
  const Words out = loaded(R"(
    add.s64 %rd23, %rd9, 400; mov.u32 %r33, 7;
    @!%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r30], %rd23;
    @!%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r30], 1, %r33;)",
                           mode);
  for (size_t i = 0; i < from.size(); ++i) {
    CAPTURE(i);
    CHECK(out[i] == (from[i] >= 0 ? uint32_t(from[i]) + 1 : 0));
  }
}

TEST_CASE("tensormap.replace is a store of the whole map, cp_fenceproxy an access of the warp and a release",
          "[tensor][observer]") {
  Recorder seen;
  loaded("@!%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r30], 1, 7;", "default", &seen);
  std::vector<sim::Access> maps;
  for (const sim::Access& access : seen.accessed)
    if (access.region.bytes == 128) maps.push_back(access);
  REQUIRE(maps.size() == 1 + 32 + 32);
  for (size_t i = 0; i < maps.size(); ++i) {
    CAPTURE(i);
    CHECK(maps[i].region.write == (i == 0 || i > 32));
    CHECK(maps[i].collective == (i > 0));
    CHECK(maps[i].order == sim::Order::kWeak);
    CHECK(maps[i].thread.lane == (i == 0 ? 0 : (i - 1) % 32));
    CHECK((maps[i].region.memory == sim::Memory::kGlobal) == (i > 32));
  }
  std::vector<sim::SyncEvent> fences;
  for (const sim::SyncEvent& fence : seen.of(sim::SyncEvent::Kind::kFence))
    if (fence.fence == sim::SyncEvent::Fence::kProxyTensormap) fences.push_back(fence);
  REQUIRE(fences.size() == 33);
  CHECK(fences[0].order == sim::Order::kRelease);
  CHECK(fences[0].scope == sim::Scope::kGpu);
  CHECK(fences[0].mask == 0xFFFFFFFF);
  CHECK(fences[1].order == sim::Order::kAcquire);
}

TEST_CASE("tensormap.replace and cp_fenceproxy refuse what their sections do not allow", "[tensor]") {
  const auto replaced = [](const std::string& field, const std::string& operands) {
    return fault("@!%p1 tensormap.replace.tile." + field + " " + operands + ";");
  };
  CHECK(replaced("rank.shared::cta.b1024.b32", "[%r30], 5") == FaultKind::kProtocol);
  CHECK(replaced("box_dim.shared::cta.b1024.b32", "[%r30], 5, 1") == FaultKind::kProtocol);
  CHECK(replaced("box_dim.shared::cta.b1024.b32", "[%r30], 0, 257") == FaultKind::kProtocol);
  CHECK(replaced("global_stride.shared::cta.b1024.b64", "[%r30], 4, 64") == FaultKind::kProtocol);
  CHECK(replaced("rank.shared::cta.b1024.b32", "[%r30+64], 1") == FaultKind::kMisaligned);
  CHECK(replaced("rank.global.b1024.b32", "[%rd5], 1") == FaultKind::kBounds);  // a parameter
  CHECK(replaced("swizzle_mode.shared::cta.b1024.b32", "[%r30], 4") == FaultKind::kUnsupported);
  CHECK(replaced("swizzle_atomicity.shared::cta.b1024.b32", "[%r30], 0") == FaultKind::kUnsupported);
  // Fields that do not go together are found when the map is used.
  CHECK(replaced("global_stride.shared::cta.b1024.b64", "[%r30], 0, 8") == FaultKind::kProtocol);
  // A map into which something else was stored is none.
  CHECK(fault("@!%p1 st.shared.u8 [%r30+30], 1; @!%p1 tensormap.replace.tile.rank.shared::cta.b1024.b32 "
              "[%r30], 1;") == FaultKind::kProtocol);
  CHECK(fault("", "64") == FaultKind::kProtocol);
  CHECK(fault("@%p1 bra READY;") == FaultKind::kDeadlock);  // one lane waits there for the others
}

}  // namespace tensormap_ops_test
