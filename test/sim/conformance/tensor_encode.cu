// tensor_encode.cu -- what cuTensorMapEncodeTiled answers: one valid description per element size,
// and descriptions that break one documented constraint each, with the values on both sides of each boundary.
// The record is the CUresult.
#include <cuda.h>

#include <csetjmp>
#include <csignal>

#include "test/sim/conformance/device.cuh"

namespace conformance {
namespace {

struct Arguments {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 3;
  uint64_t base = 0;  // offset from an address aligned to 1024
  cuuint64_t dims[5] = {128, 64, 8, 4, 2};
  cuuint64_t strides[4] = {256, 16384, 131072, 524288};
  cuuint32_t box[5] = {64, 16, 2, 1, 1};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  int interleave = 0, swizzle = 3, promotion = 0, fill = 0;
  bool null_base = false, null_dims = false, null_strides = false, null_box = false, null_steps = false;
  uint32_t map_offset = 0;
};

sigjmp_buf crashed;

class Encoder {
 public:
  explicit Encoder(Recorder& out) : out_(out), memory_(8 << 20) {}

  template <class Change>
  void operator()(const std::string& name, Change change) {
    Arguments a;
    change(a);
    alignas(128) uint8_t storage[256];
    auto* map = reinterpret_cast<CUtensorMap*>(storage + a.map_offset);
    void* base = a.null_base ? nullptr : memory_.data() + a.base;
    // A driver that follows a null pointer gives a record of its own, 0xDEAD.
    volatile uint32_t code = 0xDEAD;
    const auto previous = std::signal(SIGSEGV, [](int) { siglongjmp(crashed, 1); });
    if (sigsetjmp(crashed, 1) == 0)
      code = cuTensorMapEncodeTiled(
          map, a.type, a.rank, base, a.null_dims ? nullptr : a.dims, a.null_strides ? nullptr : a.strides,
          a.null_box ? nullptr : a.box, a.null_steps ? nullptr : a.steps,
          static_cast<CUtensorMapInterleave>(a.interleave), static_cast<CUtensorMapSwizzle>(a.swizzle),
          static_cast<CUtensorMapL2promotion>(a.promotion), static_cast<CUtensorMapFloatOOBfill>(a.fill));
    std::signal(SIGSEGV, previous);
    out_.exact("tensor_encode/" + name, std::vector<uint32_t>{code});
  }

 private:
  Recorder& out_;
  Buffer<uint8_t> memory_;
};

const Register encode_case("tensor_encode/all", [](Recorder& out) {
  Encoder encode(out);
  const auto number = [](uint64_t v) { return std::to_string(v); };
  encode("valid", [](Arguments&) {});
  for (int type = 0; type < 13; ++type) {
    static const uint32_t kBytes[13] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    encode("type" + number(type), [&](Arguments& a) {
      a.type = static_cast<CUtensorMapDataType>(type);
      a.box[0] = 128 / kBytes[type];
    });
    encode("type" + number(type) + ".nan", [&](Arguments& a) {
      a.type = static_cast<CUtensorMapDataType>(type);
      a.box[0] = 128 / kBytes[type];
      a.fill = 1;
    });
  }
  encode("type99", [](Arguments& a) { a.type = static_cast<CUtensorMapDataType>(99); });
  for (cuuint32_t rank : {0u, 1u, 2u, 3u, 4u, 5u, 6u})
    encode("rank" + number(rank), [&](Arguments& a) { a.rank = rank; });
  for (uint64_t base : {8u, 16u, 32u, 1u, 64u})
    encode("base+" + number(base), [&](Arguments& a) { a.base = base; });
  encode("base_null", [](Arguments& a) { a.null_base = true; });
  for (uint32_t offset : {64u, 32u, 16u, 1u})
    encode("map+" + number(offset), [&](Arguments& a) { a.map_offset = offset; });
  encode("dims_null", [](Arguments& a) { a.null_dims = true; });
  encode("strides_null", [](Arguments& a) { a.null_strides = true; });
  encode("strides_null.rank1", [](Arguments& a) { a.null_strides = true, a.rank = 1; });
  encode("box_null", [](Arguments& a) { a.null_box = true; });
  encode("steps_null", [](Arguments& a) { a.null_steps = true; });
  for (int i = 0; i < 3; ++i) {
    for (uint64_t dim : {uint64_t{0}, uint64_t{1}, uint64_t{3}, (uint64_t{1} << 32) - 1, uint64_t{1} << 32,
                         (uint64_t{1} << 32) + 1})
      encode("dim" + number(i) + "=" + number(dim), [&](Arguments& a) { a.dims[i] = dim; });
    for (uint32_t box : {0u, 1u, 2u, 7u, 8u, 9u, 32u, 65u, 72u, 128u, 255u, 256u, 257u})
      encode("box" + number(i) + "=" + number(box), [&](Arguments& a) { a.box[i] = box; });
    for (uint32_t box : {1u, 7u, 8u, 256u, 257u})
      encode("box" + number(i) + "=" + number(box) + ".unswizzled",
             [&](Arguments& a) { a.box[i] = box, a.swizzle = 0; });
    for (uint32_t step : {0u, 1u, 2u, 7u, 8u, 9u})
      encode("step" + number(i) + "=" + number(step), [&](Arguments& a) { a.steps[i] = step; });
  }
  for (int i = 0; i < 2; ++i)
    for (uint64_t stride :
         {uint64_t{0}, uint64_t{8}, uint64_t{16}, uint64_t{24}, uint64_t{240}, uint64_t{256}, uint64_t{264},
          uint64_t{272}, (uint64_t{1} << 40) - 16, uint64_t{1} << 40, (uint64_t{1} << 40) + 16})
      encode("stride" + number(i) + "=" + number(stride), [&](Arguments& a) { a.strides[i] = stride; });
  for (int swizzle = 0; swizzle < 5; ++swizzle)
    for (uint32_t inner : {8u, 16u, 24u, 32u, 40u, 64u, 72u, 128u})
      encode("swizzle" + number(swizzle) + ".inner" + number(inner * 2), [&](Arguments& a) {
        a.swizzle = swizzle <= 3 ? swizzle : 99;
        a.box[0] = inner;
      });
  for (int interleave = 0; interleave < 4; ++interleave)
    for (int swizzle = 0; swizzle < 4; ++swizzle)
      for (uint32_t rank : {2u, 3u, 4u})
        encode("interleave" + number(interleave) + ".swizzle" + number(swizzle) + ".rank" + number(rank),
               [&](Arguments& a) {
                 a.interleave = interleave;
                 a.swizzle = swizzle;
                 a.rank = rank;
                 a.box[0] = interleave == 1 ? 8 : 16;
               });
  for (uint64_t stride : {16u, 32u, 48u})
    encode("interleave2.stride" + number(stride), [&](Arguments& a) {
      a.interleave = 2, a.swizzle = 1, a.box[0] = 16;
      a.strides[0] = 256 + stride;
    });
  for (uint64_t base : {16u, 32u})
    encode("interleave2.base" + number(base), [&](Arguments& a) {
      a.interleave = 2, a.swizzle = 1, a.box[0] = 16;
      a.base = base;
    });
  for (int promotion : {0, 1, 2, 3, 4})
    encode("promotion" + number(promotion), [&](Arguments& a) { a.promotion = promotion; });
  for (int fill : {0, 1, 2}) encode("fill" + number(fill), [&](Arguments& a) { a.fill = fill; });
});

}  // namespace
}  // namespace conformance
