// descriptor_test.cpp -- the descriptors against constants worked out by hand from tables 40 and 44 of PTX
// ISA 9.0. The expected values are written as literals: a formula here could repeat a mistake of the header.
#include "ptx/descriptor.h"

#include "support/catch.hpp"

namespace descriptor_test {

namespace ptx = dualgemm::ptx;

TEST_CASE("instruction descriptor: worked values of kind::mxf4nvf4 with ue4m3 scales", "[descriptor]") {
  const struct {
    int m, n;
    uint32_t expected;
  } cases[] = {
      {128, 8, 0x08020480},   {128, 64, 0x08100480},  {128, 128, 0x08200480},
      {128, 192, 0x08300480}, {128, 256, 0x08400480}, {256, 64, 0x10100480},
      {256, 128, 0x10200480}, {256, 192, 0x10300480}, {256, 256, 0x10400480},
  };
  for (const auto& c : cases) {
    INFO("m " << c.m << " n " << c.n);
    CHECK(ptx::mxf4nvf4_instruction_descriptor(c.m, c.n) == c.expected);
  }
}

TEST_CASE("operand descriptor: 128-byte swizzle, eight rows every 1024 bytes", "[descriptor]") {
  CHECK(ptx::operand_descriptor(0x8400) == 0x4000404000000840);
  CHECK(ptx::operand_descriptor(0) == 0x4000404000000000);
  static_assert(ptx::operand_descriptor(0x400) == 0x4000404000000040, "usable in a constant expression");
}

// PTX ISA 9.0, 9.7.15.5.1.2.2: the swizzle of wgmma has two bits, 1 is 128 bytes.
TEST_CASE("wgmma descriptor: 128-byte swizzle, eight rows every 1024 bytes", "[descriptor]") {
  CHECK(ptx::wgmma_descriptor(0x8400) == 0x4000004000010840);
  CHECK(ptx::wgmma_descriptor(0x2008400) == ptx::wgmma_descriptor(0x8400));
  CHECK(ptx::advance(ptx::wgmma_descriptor(0x8400), 32) == 0x4000004000010842);
}

TEST_CASE("scale descriptor: no swizzle, eight rows every 128 bytes", "[descriptor]") {
  CHECK(ptx::scale_descriptor(0x1E800) == 0x0000400800001E80);
}

TEST_CASE("a descriptor names an offset in the CTA's own shared memory, whatever the cluster rank",
          "[descriptor]") {
  for (uint32_t rank = 0; rank < 16; ++rank) {
    INFO("rank " << rank);
    CHECK(ptx::operand_descriptor((rank << 24) | 0x8400) == ptx::operand_descriptor(0x8400));
    CHECK(ptx::scale_descriptor((rank << 24) | 0x8400) == ptx::scale_descriptor(0x8400));
  }
}

TEST_CASE("advance moves the start address and nothing else", "[descriptor]") {
  const uint64_t first = ptx::operand_descriptor(0x8400);
  CHECK(ptx::advance(first, 32) == 0x4000404000000842);
  CHECK(ptx::advance(first, 64) == 0x4000404000000844);
  CHECK(ptx::advance(first, 96) == 0x4000404000000846);
  CHECK(ptx::advance(ptx::scale_descriptor(0x400), 512) == 0x0000400800000060);
  // Nothing reaches bit 14, up to the last 16 bytes that a CTA can own (227 KiB and the reserved first KiB).
  CHECK(ptx::advance(ptx::operand_descriptor(0x400), 232448 - 16) < 0x4000404000004000);
}

TEST_CASE("bit_field keeps to its bits", "[descriptor]") {
  CHECK(ptx::bit_field(~uint64_t{0}, 0, 13) == 0x3FFF);
  CHECK(ptx::bit_field(~uint64_t{0}, 61, 63) == 0xE000000000000000);
  CHECK(ptx::bit_field(0, 17, 22) == 0);
}

}  // namespace descriptor_test
