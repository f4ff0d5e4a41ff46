// tuner.cpp -- see tuner.h.
#include "tuner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "bench/arguments.h"
#include "bench/timing.h"
#include "ranking.h"
#include "test/support/stream.h"

namespace bench {
namespace {

using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

// So often the bytes of L2 lie between two uses of a set. A replay takes so long that the steps of the
// events' clock, half a microsecond, do not matter.
constexpr double kTimesL2 = 4, kReplayUs = 500;
constexpr int kFewestSets = 2, kMostLaunches = 64;
// An instance that brings in all weights this often for a problem's rows is not worth its time.
constexpr int32_t kMostTilesOfRows = 16;

size_t workspace_of(dualgemm_args_t args, int32_t id) {
  args.instance_id = id;
  args.workspace = nullptr;
  args.workspace_size = 0;
  size_t bytes = 0;
  check(dualgemm_workspace_size(&args, &bytes), "dualgemm_workspace_size");
  return bytes;
}

// Returns the number that an element of C is.
double number_of(const uint8_t* at, dualgemm_dtype_t dtype) {
  if (dtype == DUALGEMM_DTYPE_FP32) {
    float out;
    std::memcpy(&out, at, sizeof out);
    return out;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  if (dtype == DUALGEMM_DTYPE_BF16) {
    const uint32_t wide = uint32_t{bits} << 16;
    float out;
    std::memcpy(&out, &wide, sizeof out);
    return out;
  }
  _Float16 out;
  std::memcpy(&out, &bits, sizeof out);
  return static_cast<double>(out);
}

}  // namespace

dualgemm_instance_info_t info_of_instance(int32_t id) {
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  check(dualgemm_instance_info(id, &info), "dualgemm_instance_info");
  return info;
}

// One shape with its operands.
class Tuner::Run {
 public:
  Run(const Tuner& tuner, const Shape& shape);

  // The instances that may run the shape. One whose C is not that of the usual one has a reason not to count.
  std::vector<Timed> candidates() const;
  int32_t usual() const { return usual_; }
  TimedGraph graph_of(int32_t id) const {
    return {[this, id](cudaStream_t on) {
              for (int i = 0; i < launches_; ++i) launch(id, i, on);
            },
            launches_, stream_.get()};
  }

 private:
  void launch(int32_t id, int set, cudaStream_t on) const {
    dualgemm_args_t args = sets_[static_cast<size_t>(set) % sets_.size()]->args();
    args.instance_id = id;
    check(dualgemm_launch_ex(&args, on), "dualgemm_launch_ex");
  }
  std::vector<int32_t> ids() const;
  std::vector<int64_t> compared_rows() const;
  std::vector<double> some_of_c(int32_t id) const;
  std::string difference(const std::vector<double>& expected, int32_t id) const;

  const Tuner& tuner_;
  Shape shape_;
  dualgemm_test::Stream stream_;
  int32_t usual_ = 0;
  std::unique_ptr<DeviceArray<uint8_t>> workspace_;
  std::vector<std::unique_ptr<TimedOperands>> sets_;
  int launches_ = 0;
};

Tuner::Run::Run(const Tuner& tuner, const Shape& shape) : tuner_(tuner), shape_(shape) {
  check_compact(shape);
  usual_ = tuner.chosen(shape);
  const dualgemm_args_t described = described_args(shape, tuner.epilogue_);
  size_t workspace = 0;
  for (const int32_t id : ids()) workspace = std::max(workspace, workspace_of(described, id));
  workspace_ = std::make_unique<DeviceArray<uint8_t>>(workspace);
  size_t free_bytes = 0, all_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  const double bytes = timed_bytes(shape, tuner.epilogue_);
  const double cold = std::ceil(kTimesL2 * static_cast<double>(tuner.l2_bytes_) / bytes);
  const double room = std::floor(0.8 * static_cast<double>(free_bytes) / bytes);
  const int most = tuner.effort_.launches > 0 ? tuner.effort_.launches : kMostLaunches;
  const int sets =
      static_cast<int>(std::clamp(cold, double{kFewestSets}, std::max<double>(kFewestSets, most)));
  if (room < kFewestSets)
    throw std::runtime_error("two sets of operands take " + std::to_string(static_cast<int64_t>(2 * bytes)) +
                             " bytes, more than there is");
  for (int i = 0; i < std::min(sets, static_cast<int>(std::min(room, 1e6))); ++i)
    sets_.push_back(std::make_unique<TimedOperands>(shape, tuner.epilogue_, tuner.numbers_, *workspace_));
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  launches_ = static_cast<int>(sets_.size());
  launch(usual_, 0, stream_.get());  // a stream capture must not be the first to load a kernel
  const TimedGraph once = graph_of(usual_);
  once.replay_us();
  const double us = once.replay_us();
  if (us > 0 && tuner.effort_.launches == 0)
    launches_ = std::clamp(static_cast<int>(kReplayUs / us), launches_, kMostLaunches);
}

std::vector<int32_t> Tuner::Run::ids() const {
  dualgemm_args_t args = described_args(shape_, tuner_.epilogue_);
  const bool general = info_of_instance(usual_).general != 0;
  const int32_t mean_rows =
      shape_.grouped() ? static_cast<int32_t>((shape_.rows() + shape_.problems() - 1) / shape_.problems())
                       : shape_.m;
  std::vector<int32_t> out;
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    args.instance_id = id;
    if (dualgemm_can_implement_on(&args, &tuner_.device_) != DUALGEMM_STATUS_SUCCESS) continue;
    const dualgemm_instance_info_t info = info_of_instance(id);
    if ((info.general != 0) == general && (id == usual_ || mean_rows <= kMostTilesOfRows * info.tile_m))
      out.push_back(id);
  }
  return out;
}

// Some rows of C that are in use: the first, one in the middle, the last; of groups with room of their own
// the first of some.
std::vector<int64_t> Tuner::Run::compared_rows() const {
  const int64_t rows = shape_.offsets() ? shape_.m : int64_t{shape_.problems()} * shape_.m;
  if (shape_.mode != DUALGEMM_GROUP_MASKED) return {0, rows / 2, rows - 1};
  std::vector<int64_t> out;
  for (int32_t i = 0; i < shape_.problems() && out.size() < 3; ++i)
    if (shape_.rows(i) > 0) out.push_back(int64_t{i} * shape_.m);
  return out;
}

std::vector<double> Tuner::Run::some_of_c(int32_t id) const {
  const dualgemm_args_t& args = sets_.front()->args();
  const auto dtype = static_cast<dualgemm_dtype_t>(args.c_dtype);
  const size_t element = static_cast<size_t>(tuner_.epilogue_.bits()) / 8;
  const size_t pitch = static_cast<size_t>(args.ldc) * element;
  auto* const c = static_cast<uint8_t*>(args.c);
  for (const int64_t row : compared_rows())
    check_cuda(cudaMemsetAsync(c + static_cast<size_t>(row) * pitch, 0xFF, pitch, stream_.get()),
               "cudaMemsetAsync");
  launch(id, 0, stream_.get());
  check_cuda(cudaStreamSynchronize(stream_.get()), "the kernel");
  std::vector<uint8_t> bytes(pitch);
  std::vector<double> out;
  for (const int64_t row : compared_rows()) {
    check_cuda(cudaMemcpy(bytes.data(), c + static_cast<size_t>(row) * pitch, pitch, cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    for (int32_t column = 0; column < shape_.n; ++column)
      out.push_back(number_of(&bytes[static_cast<size_t>(column) * element], dtype));
  }
  return out;
}

// Sums in another order differ by little of the largest; a result that is off by 1 % of it is another one.
// Only types that hold numbers of 16 bits and more are compared.
std::string Tuner::Run::difference(const std::vector<double>& expected, int32_t id) const {
  const std::vector<double> found = some_of_c(id);
  double largest = 0;
  for (const double x : expected) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < expected.size(); ++i)
    if (found[i] != expected[i] && !(std::fabs(found[i] - expected[i]) <= 0.01 * largest))
      return "C differs from that of " + std::string(info_of_instance(usual_).name) + ": " +
             std::to_string(found[i]) + " for " + std::to_string(expected[i]);
  return {};
}

std::vector<Timed> Tuner::Run::candidates() const {
  std::vector<Timed> out;
  const bool compared = tuner_.epilogue_.bits() >= 16;
  const std::vector<double> expected = compared ? some_of_c(usual_) : std::vector<double>{};
  for (const int32_t id : ids()) {
    tuner_.go_on_(info_of_instance(id).name);
    out.push_back({id});
    if (!compared) launch(id, 0, stream_.get());  // loads the kernel, as a comparison does
    else if (id != usual_) out.back().wrong = difference(expected, id);
  }
  return out;
}

Tuner::Tuner(const Epilogue& epilogue, dualgemm_dtype_t a_dtype, TuneEffort effort,
             std::function<void(const std::string&)> go_on)
    : epilogue_(epilogue), a_dtype_(a_dtype), effort_(effort), go_on_(std::move(go_on)), numbers_(a_dtype) {
  dualgemm_device_init(&device_);
  check(dualgemm_current_device(&device_), "dualgemm_current_device");
  int bytes = 0;
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device_.ordinal),
             "cudaDeviceGetAttribute");
  l2_bytes_ = static_cast<size_t>(bytes);
}
Tuner::~Tuner() = default;

int32_t Tuner::chosen(const Shape& shape) const {
  dualgemm_args_t args = described_args(shape, epilogue_);
  if (shape.offsets()) args.expected_rows = 0;
  int32_t id = 0;
  check(dualgemm_select_instance(&args, &device_, &id), "dualgemm_select_instance");
  return id;
}

bool Tuner::general(const Shape& shape) const { return info_of_instance(chosen(shape)).general != 0; }

TunedShape Tuner::tune(const Shape& shape) const {
  const Run run(*this, shape);
  TunedShape out;
  out.usual = run.usual();
  out.general = info_of_instance(out.usual).general != 0;
  out.instances = run.candidates();
  std::vector<Timed*> timed;
  size_t usual = 0;
  for (Timed& one : out.instances) {
    if (!one.wrong.empty()) continue;
    if (one.id == out.usual) usual = timed.size();
    timed.push_back(&one);
  }
  std::vector<TimedGraph> graphs;
  for (const Timed* one : timed) graphs.push_back(run.graph_of(one->id));
  for (const TimedGraph& graph : graphs) graph.replay_us();
  Ranking ranking = effort_.most_rounds > 0 ? Ranking(timed.size(), usual, effort_.most_rounds)
                                            : Ranking(timed.size(), usual);
  while (!ranking.firm()) {
    go_on_("round " + std::to_string(ranking.rounds() + 1) + ", " + std::to_string(ranking.left().size()) +
           " of " + std::to_string(timed.size()) + " instances");
    std::vector<double> us;
    for (const size_t i : ranking.left()) us.push_back(graphs[i].replay_us());
    ranking.add_round(us);
  }
  for (size_t i = 0; i < timed.size(); ++i) timed[i]->us = ranking.median_us(i);
  out.winner = timed[ranking.winner()]->id;
  out.winner_us = timed[ranking.winner()]->us;
  out.usual_us = timed[usual]->us;
  out.rounds = ranking.rounds();
  return out;
}

std::vector<Timed> Tuner::compare(const Shape& shape, const std::vector<int32_t>& always, int rounds) const {
  constexpr double kNear = 1.15;
  constexpr int kFirst = 3;
  const Run run(*this, shape);
  std::vector<Timed> all = run.candidates();
  std::erase_if(all, [](const Timed& one) { return !one.wrong.empty(); });
  std::vector<TimedGraph> graphs;
  for (const Timed& one : all) graphs.push_back(run.graph_of(one.id));
  const auto is_always = [&](size_t i) {
    return std::find(always.begin(), always.end(), all[i].id) != always.end();
  };
  std::vector<size_t> left(all.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  std::vector<std::vector<double>> us(all.size());
  for (const TimedGraph& graph : graphs) graph.replay_us();
  for (int round = 0; round < rounds; ++round) {
    go_on_("round " + std::to_string(round + 1) + " of " + std::to_string(rounds));
    for (const size_t i : left) us[i].push_back(graphs[i].replay_us());
    if (round + 1 != kFirst) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const size_t i : left) least = std::min(least, summarise(us[i]).median_us);
    std::erase_if(left,
                  [&](size_t i) { return !is_always(i) && summarise(us[i]).median_us > kNear * least; });
  }
  std::vector<Timed> out;
  for (const size_t i : left) out.push_back({all[i].id, summarise(us[i]).median_us});
  return out;
}

}  // namespace bench
