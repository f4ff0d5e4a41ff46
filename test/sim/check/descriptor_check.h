// descriptor_check.h -- matrix descriptors against the tensor maps that wrote the bytes they name. A
// descriptor and a map are made by different code on different sides of the launch; the tensor core trusts
// both.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "sim/check/protocol_image.h"

namespace sim::protocol {

class DescriptorCheck {
 public:
  DescriptorCheck(const FindingSink& sink, const SharedImage& image) : sink_(sink), image_(image) {}
  void start() { said_.clear(); }
  void issue(const AsyncIssue& issue);

 private:
  struct Operand {
    const char* name;
    uint64_t descriptor;
    uint32_t rows;  // per CTA
    bool mn_major;
    uint32_t type;  // code of the instruction descriptor
  };
  void check(const AsyncIssue& issue, const Operand& operand, uint64_t cta);
  void check_copy(const AsyncIssue& issue, const Operand& operand, const SharedImage::Copy& copy,
                  uint64_t cta, uint64_t address, uint32_t span);
  void report(const char* rule_id, const AsyncIssue& issue, const Operand& operand, std::string summary,
              const SharedImage::Copy& copy, uint64_t cta, uint64_t address);

  const FindingSink& sink_;
  const SharedImage& image_;
  std::set<std::tuple<const Inst*, const char*, const char*>> said_;  // instruction, rule, operand
};

}  // namespace sim::protocol
