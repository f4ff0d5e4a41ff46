// ideas.h -- one idea at a time: ways to compute the same problem that differ in one thing, so that a GPU can
// say what that thing is worth. README.md tells what each idea asks. All of this looks inside the library,
// and none of it is part of that.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/shapes.h"
#include "dualgemm.h"
#include "kernel/instance.h"

namespace bench {

struct Way {
  std::string what;
  std::vector<const dualgemm::Instance*> instances;  // of which the fastest counts
  bool modelled = true;                              // the cost model knows what makes it differ
  bool two_pass = false;  // an instance twice, for one product each, and then an activation kernel
};

struct Idea {
  std::string name;       // of --ablation; some have several tables
  std::string title;      // of the table
  std::vector<Way> ways;  // the baseline first
};

// Returns the ideas for compute capability 10.x, all of them with fp16.
const std::vector<Idea>& ideas();
// Returns those for a device. On 9.0 there are the tiles that fit the shape, beside what the library chooses.
std::vector<Idea> ideas_for(const Shape& shape, const dualgemm_device_t& device);

// Returns the instances of the library that compute one of two GEMMs, to fp16.
std::vector<const dualgemm::Instance*> ones_of_two_gemms(dualgemm::Arch arch);

// This is device memory for the products of a two-pass way, compact; other ways do not use it.
struct Intermediates {
  void *gates, *ups;  // [m, n] each
};

// Lets the current device run a kernel. Before the first launch, and never during a capture.
void load(const dualgemm::Instance& instance);

// Computes C the way that `way` says, with one of its instances. Of two GEMMs the second takes the A that the
// first has prepared, if it has, and its weights may be loaded while the first still runs. The arguments are
// those of dualgemm_launch_ex, with fp16 and for two-pass a compact C; throws std::runtime_error when they do
// not fit.
void launch(const Way& way, const dualgemm::Instance& instance, const dualgemm_args_t& args,
            const Intermediates& intermediates, cudaStream_t stream);

}  // namespace bench
