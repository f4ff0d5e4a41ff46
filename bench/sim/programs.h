// programs.h -- five kinds of programs, by what most of their instructions do, for the speed of the simulated
// GPU and of its judge (sim_speed.cpp). Each knows what it has to give.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bench {

class Program {
 public:
  virtual ~Program() = default;
  virtual std::string name() const = 0;
  virtual double multiply_adds() const { return 0; }  // of tensor cores, in one run
  virtual void run() = 0;                             // throws when the result is wrong
};

// `scale` multiplies the CTAs of each: 1 is as few as there can be.
std::vector<std::unique_ptr<Program>> programs(int scale);

}  // namespace bench
