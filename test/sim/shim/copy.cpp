// copy.cpp -- a device pointer is a host pointer, so moving bytes is memmove; the work is knowing which side
// is device memory, that it is wholly inside one allocation, and which of its bytes count as written
// afterwards.
#include "sim/shim/copy.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace sim::shim {
namespace {

using Allocation = GlobalMemory::Allocation;

// What the host sees of device bytes nobody wrote: anything but the zeros a forgotten store would hope for.
constexpr int kUnwrittenByte = 0xCB;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

Allocation* device_range(Runtime& runtime, const void* pointer, size_t n, bool must_be_device,
                         const char* side) {
  Allocation* whole = runtime.memory.find(address_of(pointer), n);
  if (whole || (!must_be_device && !runtime.memory.find(address_of(pointer), 1))) return whole;
  char text[160];
  std::snprintf(text, sizeof text, "the %s [0x%" PRIx64 ", +%zu) is not inside one device allocation", side,
                address_of(pointer), n);
  fail(cudaErrorInvalidValue, text);
}

// Calls visit(offset, length) for each run of source bytes that nobody wrote.
template <class Visit>
void for_each_hole(const Allocation& source, uint64_t address, size_t n, Visit visit) {
  const uint8_t* const valid = source.valid.data() + (address - source.base);
  const uint8_t* const valid_end = valid + n;
  for (const uint8_t* at = valid; at != valid_end;) {
    const uint8_t* hole = std::find(at, valid_end, uint8_t{0});
    at = std::find_if(hole, valid_end, [](uint8_t written) { return written != 0; });
    if (at != hole) visit(static_cast<size_t>(hole - valid), static_cast<size_t>(at - hole));
  }
}

bool to_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}
bool from_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

}  // namespace

void copy_bytes(Runtime& runtime, void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    fail(cudaErrorInvalidMemcpyDirection, "unknown copy direction");
  if (n == 0) return;
  require(to && from, "a null pointer in a copy");
  Allocation* target = device_range(runtime, to, n, to_device(kind), "destination");
  Allocation* source = device_range(runtime, from, n, from_device(kind), "source");
  const uint64_t target_address = address_of(to), source_address = address_of(from);
  require(!target || !source || target_address + n <= source_address || source_address + n <= target_address,
          "source and destination of a device copy overlap");
  std::memmove(to, from, n);
  if (target) runtime.memory.mark_written(target_address, n);
  if (!source) return;
  for_each_hole(*source, source_address, n, [&](size_t offset, size_t length) {
    if (target) runtime.memory.poison(target_address + offset, length);
    else std::memset(static_cast<uint8_t*>(to) + offset, kUnwrittenByte, length);
  });
}

void copy_rows(Runtime& runtime, void* to, size_t to_pitch, const void* from, const Rows& rows,
               cudaMemcpyKind kind) {
  if (rows.width > to_pitch || rows.width > rows.pitch)
    fail(cudaErrorInvalidPitchValue, "a row is wider than the pitch");
  for (size_t row = 0; row < rows.height; ++row)
    copy_bytes(runtime, static_cast<uint8_t*>(to) + row * to_pitch,
               static_cast<const uint8_t*>(from) + row * rows.pitch, rows.width, kind);
}

void fill_rows(Runtime& runtime, void* to, int value, const Rows& rows) {
  if (rows.height > 1 && rows.width > rows.pitch)
    fail(cudaErrorInvalidPitchValue, "a row is wider than the pitch");
  for (size_t row = 0; row < rows.height && rows.width > 0; ++row) {
    uint8_t* begin = static_cast<uint8_t*>(to) + row * rows.pitch;
    device_range(runtime, begin, rows.width, true, "destination");
    std::memset(begin, value, rows.width);
    runtime.memory.mark_written(address_of(begin), rows.width);
  }
}

}  // namespace sim::shim
