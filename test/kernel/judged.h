// judged.h -- launches of a test on the simulated GPU under a schedule of its choice: with every checker
// watching, or with the schedule alone. On a GPU of its own (make test-gpu) nobody watches, and it schedules
// as it likes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace dualgemm_test {

// Everything launched while it lives is judged. What comes after it finds a device without a fault.
class Judged {
 public:
  explicit Judged(const std::string& mode = "default", uint64_t seed = 0);
  ~Judged();
  Judged(const Judged&) = delete;
  Judged& operator=(const Judged&) = delete;

  // Returns every finding so far that is not mere advice, as text; empty: clean.
  std::string findings() const;
  // Like findings(), but also says what stands in the way of a certificate that every mbarrier behaves the
  // same in every schedule.
  std::string findings_and_certificate() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Everything launched while it lives runs under this schedule, unwatched.
class Scheduled {
 public:
  Scheduled(const std::string& mode, uint64_t seed);
  ~Scheduled();
  Scheduled(const Scheduled&) = delete;
  Scheduled& operator=(const Scheduled&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dualgemm_test
