// tensor.h -- tensors of PyTorch by its stable C interface. It reads and makes tensors, and has the rules
// that the operators check before the library sees an address. A broken rule is a std::runtime_error, which
// becomes a RuntimeError of Python.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "host/include/dualgemm.h"

namespace dualgemm::torch_ops {

// Throws std::runtime_error with the text that printf would make.
[[noreturn, gnu::format(printf, 1, 2)]] void refuse(const char* format, ...);

// Throws the library's sentence if a call of its C interface has failed.
void check(dualgemm_status_t status);

// Throws if a call of PyTorch's C interface has failed; PyTorch has logged the reason.
void check_torch(AOTITorchError error, const char* call);

// Types by PyTorch's own numbers, which its C interface reports: those of torch::headeronly::ScalarType.
enum Type : int32_t {
  kUint8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kFp16 = 5,
  kFp32 = 6,
  kBf16 = 15,
  kE4m3 = 24,
  kE8m0 = 44,  // 2^(byte - 127)
  kE2m1 = 45,  // two elements in a byte
};

// Returns "torch.bfloat16", or "type 99" for a number that is not known here.
std::string type_name(int32_t type);

enum class Place { kCpu, kCuda, kMeta };

// What a tensor says of itself. Whoever called the operator holds the tensor.
struct Tensor {
  const char* name = "";
  bool given = false;
  bool recorded = false;  // an output that requires a gradient, where PyTorch records what is computed
  int64_t dims = 0;
  const int64_t* sizes = nullptr;  // both arrays belong to the tensor
  const int64_t* strides = nullptr;
  int32_t type = 0, device_type = 0, device_index = 0;
  void* data = nullptr;

  explicit operator bool() const { return given; }
  int64_t size(int64_t i) const { return sizes[i < 0 ? i + dims : i]; }
  int64_t stride(int64_t i) const { return strides[i < 0 ? i + dims : i]; }
  int64_t count() const;
  int64_t bytes() const;
  // Returns the problems of a matrix, which has 2 dimensions, or 3 with problems in front.
  int64_t problems() const { return in_front().value_or(1); }
  // Returns the size of the dimension of problems, if a matrix has that dimension.
  std::optional<int64_t> in_front() const {
    return dims == 3 ? std::optional<int64_t>(sizes[0]) : std::nullopt;
  }
};

// Returns where a tensor lies. Refuses other devices than CPU, CUDA and meta.
Place place_of(const Tensor& tensor);

int64_t element_bytes(int32_t type);

// A tensor that belongs to this side of the C interface.
struct Deleter {
  void operator()(AtenTensorOpaque* handle) const { aoti_torch_delete_tensor_object(handle); }
};
using Handle = std::unique_ptr<AtenTensorOpaque, Deleter>;

// Reads what a tensor says of itself. Without a handle the result is a tensor that is not given.
Tensor describe(const char* name, const Handle& handle);

// Makes a tensor on the device of `beside`, in memory of PyTorch's allocator.
Handle allocate(const Tensor& beside, int32_t type, int64_t dims, const int64_t* sizes,
                const int64_t* strides);

// ---- rules ----

// Returns the value. Refuses a negative one, and one that an int32_t does not hold.
int32_t extent(const char* name, int64_t value);

// Refuses a tensor that lies on another device than the first argument, and an output that requires a
// gradient: nothing could compute it.
void check_beside(const Tensor& tensor, const Tensor& first);

void check_type(const Tensor& tensor, std::initializer_list<int32_t> types);

// These are the extents of a matrix, or of one matrix for each problem, and the distances from row to row
// (pitch) and from problem to problem (stride), in the library's elements. A distance is 0 if there is only
// one row, or one problem.
struct Rows {
  int64_t problems = 1, rows = 0, columns = 0, pitch = 0, stride = 0;
};
// Checks that rows follow each other, and that rows and problems are multiples of `multiple` bytes apart.
// Each element of the tensor holds `per` of the library's elements.
Rows check_matrix(const Tensor& tensor, std::initializer_list<int32_t> types, int64_t per = 1,
                  int64_t multiple = 16);

// Checks that a tensor holds `count` elements of a type, as such or as bytes, without gaps and in the order
// of their indices.
void check_array(const Tensor& tensor, int32_t type, int64_t count);

// Checks an optional vector of fp32 with one number for all problems, or one for each problem. Returns the
// distance from the number of one problem to that of the next: 0 or 1.
int64_t check_numbers(const Tensor& tensor, int64_t problems);

// Checks that a tensor has room for the factors of each problem, `blocks` blocks of 128 rows of NVFP4 or
// MXFP4. Returns the bytes from the factors of one problem to those of the next. 0 stands for the library's
// default, without gaps.
int64_t check_factors(const Tensor& tensor, int64_t problems, int64_t blocks, int64_t k,
                      int32_t format = DUALGEMM_DTYPE_NVFP4);

// Writes zeros to a tensor without gaps, on the current stream of its device. It does nothing on meta.
void clear(const Tensor& tensor);

// Returns how many blocks of 128 rows the factors of so many rows take at most. With OFFSETS each group
// begins a new block; without OFFSETS `groups_of_offsets` is 0.
int64_t blocks_of(int64_t rows, int64_t groups_of_offsets);
// Returns the bytes of the factors of so many blocks with `k` elements in a row, of NVFP4 or MXFP4.
int64_t factor_bytes(int64_t blocks, int64_t k, int32_t format = DUALGEMM_DTYPE_NVFP4);

// ---- where it runs ----

// While an object of this class lives, the device of a tensor on a GPU is the current one. stream() is the
// current stream of that device.
class OnDevice {
 public:
  explicit OnDevice(const Tensor& tensor);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();
  dualgemm_stream_t stream() const { return stream_; }

 private:
  DeviceGuardHandle guard_ = nullptr;
  dualgemm_stream_t stream_ = nullptr;
};

}  // namespace dualgemm::torch_ops
