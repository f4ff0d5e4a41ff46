// protocol_memory_test.cpp -- the protocol checker on copies, descriptors and tensor memory.
#include "protocol_stream.hpp"
#include "support/catch.hpp"

namespace protocol_memory_test {

using namespace sim_test;
using Kind = AsyncIssue::Kind;

const MbarrierRef kFull{0, 0x400};
const Thread kLoader{0, 0, 0}, kMma{0, 1, 0};

static sim::TensorMap map_of(sim::Swizzle swizzle, uint32_t type = 0) {
  sim::TensorMap map;
  map.type = type;
  map.rank = 2;
  map.box = {128, 128, 1, 1, 1};
  map.swizzle = swizzle;
  return map;
}

// Version bits 46-48 = 1; swizzle mode 2 is 128 bytes, 4 is 64.
static uint64_t descriptor(uint64_t start, uint64_t stride, uint64_t mode) {
  return start / 16 | stride / 16 << 32 | uint64_t(1) << 46 | mode << 61;
}

constexpr uint32_t kIdesc = 1u << 27 | 16u << 17;  // block-scaled, M = 128, N = 128

// A stream with a barrier for tiles of 128 rows of 128 bytes, which land and are waited for one by one.
struct Tiles : Stream {
  Tiles() { init(kFull, 1); }
  void tile(uint64_t address, const sim::TensorMap& map) {
    arrive(kFull, kLoader, 0x4000);
    AsyncIssue issue = load(kFull, kLoader, address, 0x4000);
    issue.map = &map;
    land(kFull, send(issue), 0x4000);
    wait(kFull, kMma, parity++ % 2);
  }
  uint32_t parity = 0;
};

// Issues one MMA on the tiles at the two addresses: D in columns 0..127, scale factors in 128.. and 132...
static AsyncIssue mma(Stream& s, uint64_t a, uint64_t b, bool accumulate = false, uint64_t mode = 2,
                      uint64_t stride = 1024) {
  AsyncIssue issue = s.operation(Kind::kMma, kMma, "tcgen05.mma");
  issue.scaled = true;
  issue.accumulate = accumulate;
  issue.cta_group = 1;
  issue.idesc = kIdesc;
  issue.a_desc = descriptor(a, stride, mode);
  issue.b_desc = descriptor(b, stride, mode);
  issue.reads = {Stream::shared(0, a, 0x4000), Stream::shared(0, b, 0x4000), Stream::tensor(0, 128, 4),
                 Stream::tensor(0, 132, 4)};
  if (accumulate) issue.reads.push_back(Stream::tensor(0, 0, 128));
  issue.writes = {Stream::tensor(0, 0, 128, true)};
  return issue;
}

static void scales(Stream& s) {
  AsyncIssue cp = s.operation(Kind::kTmemCopy, kMma, "tcgen05.cp");
  cp.writes = {Stream::tensor(0, 128, 8, true)};
  s.send(cp);
}

static void tmem_load(Stream& s) {
  AsyncIssue ld = s.operation(Kind::kTmemLoad, {0, 0, 0}, "tcgen05.ld");
  ld.mask = 0xFFFFFFFF;
  ld.reads = {Stream::tensor(0, 0, 128)};
  s.send(ld);
}

TEST_CASE("protocol: descriptors agree with the maps that wrote the matrices", "[protocol]") {
  const sim::TensorMap map = map_of(sim::Swizzle::k128B);
  Tiles s;
  s.tile(0x4000, map);
  s.tile(0x8000, map);
  scales(s);
  s.send(mma(s, 0x4000, 0x8000));
  CHECK(s.rules() == "");
}

TEST_CASE("protocol: bytes stored by threads belong to no map", "[protocol]") {
  const sim::TensorMap other = map_of(sim::Swizzle::k64B);
  Tiles s;
  s.tile(0x4000, other);
  sim::Access store;
  store.thread = kLoader;
  store.region = Stream::shared(0, 0x4000, 4, true);
  s.checker.accesses({store});
  scales(s);
  s.send(mma(s, 0x4000, 0x10000));
  CHECK(s.rules() == "");
}

TEST_CASE("protocol: a matrix read with another swizzle than it was written with", "[protocol]") {
  const sim::TensorMap map = map_of(sim::Swizzle::k128B), other = map_of(sim::Swizzle::k64B);
  Tiles s;
  s.tile(0x4000, map);
  s.tile(0x8000, other);
  scales(s);
  const AsyncIssue op = mma(s, 0x4000, 0x8000);
  s.send(op);
  s.send(op);  // said once
  REQUIRE(s.rules() == "descriptor-swizzle");
  CHECK(
      s.findings[0].summary ==
      "matrix B is read with 128-byte swizzle, but the tensor map that wrote its bytes has 64-byte swizzle");
  CHECK(s.findings[0].earlier.inst == s.at("cp.async.bulk.tensor"));
}

TEST_CASE("protocol: scale factors are copied from bytes written without swizzle", "[protocol]") {
  const bool swizzled = GENERATE(false, true);
  const sim::TensorMap map = map_of(swizzled ? sim::Swizzle::k128B : sim::Swizzle::kNone);
  Tiles s;
  s.tile(0x4000, map);
  AsyncIssue cp = s.operation(Kind::kTmemCopy, kMma, "tcgen05.cp");
  cp.b_desc = descriptor(0x4000, 128, 0);
  cp.reads = {Stream::shared(0, 0x4000, 512)};
  cp.writes = {Stream::tensor(0, 128, 4, true)};
  s.send(cp);
  CHECK(s.rules() == (swizzled ? "descriptor-swizzle" : ""));
  if (swizzled)
    CHECK(s.findings.at(0).summary ==
          "the source is read with no swizzle, but the tensor map that wrote its bytes has 128-byte swizzle");
}

TEST_CASE("protocol: a stride that is not 8 rows of the box", "[protocol]") {
  const sim::TensorMap map = map_of(sim::Swizzle::k128B);
  Tiles s;
  s.tile(0x4000, map);
  s.tile(0x8000, map);
  AsyncIssue op = mma(s, 0x4000, 0x8000);
  op.a_desc = descriptor(0x4000, 2048, 2);
  s.send(op);
  REQUIRE(s.rules() == "descriptor-stride");
  CHECK(s.findings[0].summary ==
        "matrix A steps 2048 bytes from 8 rows to the next, but 8 rows of the box that wrote it take 1024");
}

TEST_CASE("protocol: a matrix of bf16 numbers read as f16", "[protocol]") {
  const uint32_t type = GENERATE(6u, 9u, 1u);  // FLOAT16, BFLOAT16, UINT16
  const sim::TensorMap map = map_of(sim::Swizzle::k128B, type);
  Tiles s;
  s.tile(0x4000, map);
  AsyncIssue op = mma(s, 0x4000, 0x4000);
  op.scaled = false;
  op.a_in_tmem = true;
  op.idesc = 8u << 24 | 16u << 17;  // f16, M = 128
  s.send(op);
  CHECK(s.rules() == (type == 9 ? "descriptor-number-format" : ""));
  if (type == 9)
    CHECK(s.findings.at(0).summary ==
          "matrix B is read as f16, but the tensor map that wrote its bytes holds bf16");
}

TEST_CASE("protocol: scale factors serve the MMAs of one k-block", "[protocol]") {
  Stream s;
  scales(s);
  s.send(mma(s, 0x4000, 0x8000));
  s.send(mma(s, 0x4000, 0xC000));  // the same A with another B
  CHECK(s.rules() == "");
  SECTION("written anew for the next") {
    scales(s);
    s.send(mma(s, 0x10000, 0x14000));
    CHECK(s.rules() == "");
  }
  SECTION("not written anew") {
    s.send(mma(s, 0x10000, 0x14000));
    REQUIRE(s.rules() == "tmem-scales-reused");
    CHECK(s.findings[0].summary ==
          "tcgen05.mma reads scale factors in TMEM column 128 of CTA 0 "
          "that served other A and B operands and were not written since");
  }
}

TEST_CASE("protocol: the collector gives A to the MMAs after the one that filled it", "[protocol]") {
  using Collector = AsyncIssue::Collector;
  const sim::TensorMap map = map_of(sim::Swizzle::k128B);
  Tiles s;
  s.tile(0x4000, map);
  scales(s);
  const auto issue = [&](Collector collector, uint64_t a = 0x4000) {
    AsyncIssue op = mma(s, a, 0x8000);
    op.collector = collector;
    s.send(op);
  };
  std::string holds;  // what is found
  SECTION("while they share it") {
    for (int i = 0; i < 2; ++i) {
      issue(Collector::kFill);
      issue(Collector::kUse);
      issue(Collector::kLastUse);
    }
    issue(Collector::kDiscard, 0xC000);
    issue(Collector::kFill, 0x4000);
    issue(Collector::kFill, 0xC000);
    issue(Collector::kLastUse, 0xC000);
  }
  SECTION("in either CTA of a pair") {
    AsyncIssue op = mma(s, 0x4000, 0x8000);
    op.cta_group = 2;
    op.reads.push_back(Stream::shared(1, 0x4000, 0x4000));
    op.writes.push_back(Stream::tensor(1, 0, 128, true));
    op.collector = Collector::kFill;
    s.send(op);
    op.thread.cta = 1;
    op.collector = Collector::kLastUse;
    s.send(op);
  }
  SECTION("not to the first of all") {
    issue(GENERATE(Collector::kUse, Collector::kLastUse));
    holds = "no MMA has filled";
  }
  SECTION("not once one has discarded it") {
    issue(Collector::kFill);
    issue(GENERATE(Collector::kDiscard, Collector::kLastUse));
    issue(GENERATE(Collector::kUse, Collector::kLastUse));
    holds = "the MMA before left empty";
  }
  SECTION("not in place of another A") {
    issue(Collector::kFill);
    issue(Collector::kUse);
    issue(GENERATE(Collector::kUse, Collector::kLastUse), 0x4020);
    holds = "holds another: 0x4000404000000400, not 0x4000404000000402";
  }
  SECTION("not once its bytes are others") {
    issue(Collector::kFill);
    s.tile(0x4000, map);
    issue(Collector::kLastUse);
    holds = "holds what these bytes were before they were written anew";
  }
  SECTION("not with another number of rows") {
    issue(Collector::kFill);
    AsyncIssue op = mma(s, 0x4000, 0x8000);
    op.idesc = 2u << 27 | 16u << 17;
    op.collector = Collector::kLastUse;
    s.send(op);
    holds = "holds it in another type or shape";
  }
  SECTION("not across CTAs") {
    issue(Collector::kFill);
    AsyncIssue op = mma(s, 0x4000, 0x8000);
    op.thread.cta = 1;
    for (Region& region : op.reads) region.cta = 1;
    for (Region& region : op.writes) region.cta = 1;
    op.collector = Collector::kLastUse;
    s.send(op);
    holds = "no MMA has filled";
  }
  if (holds.empty()) {
    CHECK(s.rules() == "");
  } else {
    REQUIRE(s.rules() == "mma-collector");
    CHECK(s.findings[0].summary == "tcgen05.mma may take matrix A from the collector, which " + holds);
    CHECK(s.findings[0].has_earlier == (holds != "no MMA has filled"));
  }
}

TEST_CASE("protocol: the first MMA of a tile starts from nothing", "[protocol]") {
  Stream s;
  for (int tile = 0; tile < 2; ++tile) {
    scales(s);
    s.send(mma(s, 0x4000, 0x8000, false));
    scales(s);
    s.send(mma(s, 0x10000, 0x14000, true));
    tmem_load(s);
  }
  CHECK(s.rules() == "");
  scales(s);
  s.send(mma(s, 0x4000, 0x8000, true));
  REQUIRE(s.rules() == "tmem-accumulate-after-read");
  CHECK(s.findings[0].summary ==
        "tcgen05.mma accumulates onto TMEM column 0 of CTA 0, whose result was already read out");
}

TEST_CASE("protocol: which bytes of copies were read", "[protocol]") {
  const uint32_t bytes = GENERATE(0u, 512u, 1024u);
  Tiles s;
  for (uint32_t i = 0; i < 2; ++i) {
    s.arrive(kFull, kLoader, 1024);
    s.land(kFull, s.send(s.load(kFull, kLoader, 0x800, 1024)), 1024);
    s.wait(kFull, kMma, i);
    if (bytes != 0) s.read(kMma, Stream::shared(0, 0x800, bytes));
  }
  s.cta_exit(0);
  s.finish();
  REQUIRE(s.rules() == (bytes == 0 ? "copy-never-read" : bytes == 512 ? "copy-partly-read" : ""));
  if (bytes == 0)
    CHECK(s.findings[0].summary ==
          "2 of 2 destinations of a copy were never read, first [0x800, 0xc00) of CTA 0");
  if (bytes == 512)
    CHECK(s.findings[0].summary ==
          "2 of 2 destinations of a copy were read in part only, first [0xa00, 0xc00) of CTA 0");
}

TEST_CASE("protocol: what a box holds beyond the tensor need not be read", "[protocol]") {
  sim::TensorMap map = map_of(sim::Swizzle::kNone);
  map.box = {128, 8, 1, 1, 1};
  map.dims = {64, 4, 1, 1, 1};
  map.strides = {1, 64, 0, 0, 0};
  map.element_strides = {1, 1, 1, 1, 1};
  const uint32_t rows = GENERATE(4u, 3u);  // read, of the 4 inside
  Tiles s;
  s.arrive(kFull, kLoader, 1024);
  AsyncIssue load = s.load(kFull, kLoader, 0x800, 1024);
  load.map = &map;
  s.land(kFull, s.send(load), 1024);
  s.wait(kFull, kMma, 0);
  for (uint32_t row = 0; row < rows; ++row) s.read(kMma, Stream::shared(0, 0x800 + 128 * row, 64));
  s.cta_exit(0);
  s.finish();
  REQUIRE(s.rules() == (rows == 4 ? "" : "copy-partly-read"));
  if (rows == 3)
    CHECK(s.findings[0].summary ==
          "1 of 1 destination of a copy were read in part only, first [0x980, 0x9c0) of CTA 0");
}

}  // namespace protocol_memory_test
