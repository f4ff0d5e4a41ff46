// judge.h -- what a tuning file is worth: for each shape the instance that the model chooses and the one that
// the file makes the library choose, both against the fastest, timed anew in one process.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/shapes.h"
#include "store.h"
#include "tuner.h"

namespace bench {

struct Judged {
  Shape shape;
  bool tuned = false;  // the file has an entry of just these rows
  std::string error = {};
  std::string by_model = {}, by_file = {}, fastest = {};
  double by_model_us = 0, by_file_us = 0, fastest_us = 0;
  std::vector<Timed> instances = {};

  double model_over() const { return by_model_us / fastest_us - 1; }
  double file_over() const { return by_file_us / fastest_us - 1; }
};

// Judges one shape; `path` is that of the file, `store` has its entries. After it no file is in force.
Judged judge(const Tuner& tuner, const Store& store, const std::string& path, const Shape& shape,
             const Epilogue& epilogue, int rounds);

// The table's head, a row, and what the means and the worst come to, of shapes in the file and of others.
std::string judge_heading();
std::string judge_row(const Judged& judged);
std::string judge_summary(const std::vector<Judged>& all);

nlohmann::json judge_json(const std::vector<Judged>& all);

}  // namespace bench
