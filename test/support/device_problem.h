// device_problem.h -- a problem on the device: copied there, launched through the public interface, read back
// with every byte around the output checked. The CUDA runtime underneath is either the real one or the
// simulator's; nothing here can tell.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "support/device_set.h"
#include "support/problem.h"

namespace dualgemm_test {

// This is a set of one problem.
class DeviceProblem {
 public:
  DeviceProblem(const Problem& problem, const LaunchOptions& options);

  const dualgemm_args_t& args() const { return set_.args(); }
  void poison() { set_.poison(); }      // of C and its guards
  void upload(const Problem& problem);  // other data of the same shape, into the same buffers
  void launch(cudaStream_t stream) const { set_.launch(stream); }  // throws when the library refuses
  Output download() const { return set_.download().at(0); }        // throws when a byte outside C was written
  Output download_d(int side) const { return set_.download_d(side).at(0); }
  float amax() const { return set_.amax(); }

 private:
  DeviceSet set_;
};

// Uploads, launches on the default stream, and reads back.
Output run(const Problem& problem, const LaunchOptions& options = {});

// These are the instances of the library for the current device: ids and what they are. A general one stands
// here once for each type of C that it writes.
struct NamedInstance {
  int32_t id;
  dualgemm_instance_info_t info;
  dualgemm_dtype_t dtype;  // of C
  std::string name;  // with the type: "m64n128k256_general_nvfp4", where the library leaves that to a launch
};
std::vector<NamedInstance> instances_of_device(int32_t products = 2);
// For launches of one product, with an A in NVFP4 or of 16 bits.
std::vector<NamedInstance> one_product_instances();
std::vector<NamedInstance> fp8_instances(int32_t products);  // for an A in FP8 and weights in MXFP4
std::vector<NamedInstance> sixteen_bit_instances();          // of them, for an A of 16 bits
std::vector<NamedInstance> all_instances();  // of them, for an A in NVFP4, as are all that follow
// These compute a plain SwiGLU and nothing else.
std::vector<NamedInstance> plain_instances();
std::vector<NamedInstance> dense_instances();    // of them, for one problem or a batch
std::vector<NamedInstance> grouped_instances();  // of them, for groups
// These compute whatever a launch asks for.
std::vector<NamedInstance> general_instances(bool grouped);

// Returns one of them for each tile, with the types of C in turn.
std::vector<NamedInstance> general_instances_in_turn(bool grouped);
// Returns one of each tile, their types of C in turn.
std::vector<NamedInstance> in_turn(const std::vector<NamedInstance>& all);

// Returns the name of an instance's tile, which its siblings with other types of C share.
std::string tile_of(const NamedInstance& instance);
// Returns the tile of the general instance that does what plain ones with `tile` do: the same, or, where a
// tile of 128 columns on 9.0 has no room for the registers of a general one, half of it. A tile whose rows
// are neither a part of a block of 128 rows nor whole blocks has none: blocks are what the factors of an
// NVFP4 C come in.
std::optional<std::string> general_tile(const std::string& tile);
// Returns the general instance with this tile, for this type of C. Throws when there is none.
NamedInstance general_instance(const std::string& tile, dualgemm_dtype_t dtype);

// Returns launch options that force an instance and its type of C.
LaunchOptions use(const NamedInstance& instance);
// Does the same, and where the instance is general gives the problems everything that they may have beside
// their operands and asks for everything that can be written. Where it computes one product the problems have
// one, and an addend if C may have one.
SetOptions use_all_of(const NamedInstance& instance, ProblemSet& set);

}  // namespace dualgemm_test
