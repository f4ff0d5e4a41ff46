// stream.h -- streams, events, captures and graphs. Work runs in the call that enqueues it, or is held with
// that of all streams (held.h), so a stream holds no queue. It matters only for what a capture must get
// right: the dependencies between recorded nodes, forks and joins through events, and the calls that are
// forbidden meanwhile.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "sim/shim/host_order.h"

namespace sim::shim {

struct Runtime;
using Work = std::function<void(Runtime&)>;

struct Task {
  cudaGraphNodeType type;
  const char* what;  // the call that asked for it
  Work work;
  bool programmatic = false;  // a kernel that may start before the one before it has completed
  int device = 0;             // of the stream that it was submitted to, or that recorded it
};

struct Node {
  Task task;
  std::vector<Node*> dependencies;
};

// Nodes stand in the order in which they were recorded, which respects every dependency.
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

struct GraphExec {
  struct Step {
    Task task;
    std::vector<size_t> dependencies;  // indices of earlier steps
    bool last = true;                  // nothing depends on it
  };
  std::vector<Step> steps;
  unsigned long long flags = 0;
  Frontier done;  // the last launch: launches of one graph do not overlap
};

struct Stream;

struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  cudaStreamCaptureMode mode;
  std::thread::id thread;  // that began it
  Stream* origin;
  unsigned long long id;
  bool invalidated = false;
};

struct Stream {
  int device = 0;
  unsigned flags = cudaStreamDefault;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<Capture> capture;  // null unless being captured
  std::vector<Node*> frontier;       // what the next recorded node depends on
  Frontier done;                     // what the next work comes after
  bool last_is_launch = false;       // nothing was enqueued after a kernel
  Frontier launched_after;           // what that kernel came after
};

struct Event {
  int device = 0;
  unsigned flags = cudaEventDefault;
  bool recorded = false;
  std::chrono::steady_clock::time_point when;
  std::weak_ptr<Capture> capture;  // of the recording stream, when it was being captured
  std::vector<Node*> frontier;
  Frontier done;  // what the recording stream had done
};

// New streams and events, and the built-in streams that a handle names, are those of the calling thread's
// current device.
class Streams {
 public:
  Stream& create(unsigned flags, int priority);
  void destroy(cudaStream_t stream);
  // Null and cudaStreamLegacy are the legacy default stream, cudaStreamPerThread another built-in one.
  Stream& find(cudaStream_t stream);
  Stream& legacy(int device) { return built_in(device).legacy; }
  bool is_legacy(const Stream& stream) { return &stream == &legacy(stream.device); }
  // Work of the legacy default stream and of such a stream of the same device never overlap.
  bool is_blocking(const Stream& stream) {
    return !is_legacy(stream) && (stream.flags & cudaStreamNonBlocking) == 0;
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [device, streams] : built_in_) visit(streams.legacy);
    for_each_capturable(visit);
  }
  // Ends the life of a device's streams and events.
  void destroy_all_of(int device);

  Event& create_event(unsigned flags);
  void destroy_event(cudaEvent_t event);
  Event& find_event(cudaEvent_t event);

  void begin_capture(Stream& stream, cudaStreamCaptureMode mode);
  Graph* end_capture(Stream& stream);  // the graph lives until destroy_graph()
  // Adds a node after the stream's frontier; the node becomes the frontier.
  Node& append(Stream& stream, Task task);
  // `done` is the frontier of the work that was enqueued before the record.
  void record_event(Stream& stream, Event& event, Frontier done);
  void wait_event(Stream& stream, Event& event);
  // The rules on calls while a capture is under way. Each throws Failure and invalidates the capture that the
  // call disturbs.
  void forbid_during_capture(const char* what);  // calls that may synchronise implicitly, such as cudaMalloc
  void forbid_implicit_dependency(Stream& stream);  // legacy-stream work beside a captured blocking stream
  void forbid_capturing(Stream& stream);            // synchronising the captured stream itself

  Graph& find_graph(cudaGraph_t graph);
  void destroy_graph(cudaGraph_t graph);
  GraphExec& instantiate(const Graph& graph, unsigned long long flags);
  GraphExec& find_exec(cudaGraphExec_t exec);
  void destroy_exec(cudaGraphExec_t exec);

 private:
  // Visits every stream that can be captured.
  template <class Visit>
  void for_each_capturable(Visit visit) {
    for (auto& [device, streams] : built_in_) visit(streams.per_thread);
    for (Stream* stream : streams_) visit(*stream);
  }

  struct BuiltIn {
    Stream legacy, per_thread;
  };
  BuiltIn& built_in(int device);

  std::map<int, BuiltIn> built_in_;  // by device, made when first asked for
  unsigned long long next_stream_id_ = 1, next_capture_id_ = 1;
  std::unordered_set<Stream*> streams_;
  std::unordered_set<Event*> events_;
  std::unordered_set<Graph*> graphs_;
  std::unordered_set<GraphExec*> execs_;
};

// Returns the thread's answer to potentially unsafe calls during captures:
// cudaThreadExchangeStreamCaptureMode.
cudaStreamCaptureMode& thread_capture_mode();

}  // namespace sim::shim
