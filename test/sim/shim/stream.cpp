// stream.cpp -- the bookkeeping of captures. A node may be recorded by any stream of a capture; a forked
// stream must come back to the origin before the capture ends, which is a reachability question over node
// dependencies.
#include "sim/shim/stream.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/shim/held.h"
#include "sim/shim/state.h"

namespace sim::shim {

template <class T, class Handle>
static T& find_in(const std::unordered_set<T*>& set, Handle handle, const char* what) {
  T* object = reinterpret_cast<T*>(handle);
  if (!set.contains(object))
    fail(cudaErrorInvalidResourceHandle, std::string("the handle is no live ") + what);
  return *object;
}

template <class T, class Handle>
static void destroy_in(std::unordered_set<T*>& set, Handle handle, const char* what) {
  T* object = &find_in(set, handle, what);
  set.erase(object);
  delete object;
}

static void merge(std::vector<Node*>& into, const std::vector<Node*>& from) {
  for (Node* node : from)
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
}

// Returns everything that the frontier waits for, itself included.
static std::unordered_set<const Node*> ancestors(const std::vector<Node*>& frontier) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open(frontier.begin(), frontier.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (seen.insert(node).second)
      open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  return seen;
}

static void leave_capture(Stream& stream) {
  stream.capture.reset();
  stream.frontier.clear();
}

cudaStreamCaptureMode& thread_capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

Stream& Streams::create(unsigned flags, int priority) {
  require((flags & ~unsigned{cudaStreamNonBlocking}) == 0, "unknown stream flags");
  auto* stream = new Stream;
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_stream_id_++;
  streams_.insert(stream);
  return *stream;
}

Streams::BuiltIn& Streams::built_in(int device) {
  const auto [entry, fresh] = built_in_.try_emplace(device);
  if (fresh)
    for (Stream* stream : {&entry->second.legacy, &entry->second.per_thread}) {
      stream->device = device;
      stream->id = next_stream_id_++;
    }
  return entry->second;
}

void Streams::destroy(cudaStream_t handle) {
  Stream& stream = find_in(streams_, handle, "stream");
  if (stream.capture) stream.capture->invalidated = true;
  destroy_in(streams_, handle, "stream");
}

Stream& Streams::find(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return legacy(current_device());
  if (stream == cudaStreamPerThread) return built_in(current_device()).per_thread;
  return find_in(streams_, stream, "stream");
}

void Streams::destroy_all_of(int device) {
  const auto destroy = [&](auto* object) {
    if (object->device != device) return false;
    delete object;
    return true;
  };
  std::erase_if(streams_, destroy);
  std::erase_if(events_, destroy);
  built_in_.erase(device);
}

Event& Streams::create_event(unsigned flags) {
  require((flags & ~unsigned{cudaEventBlockingSync | cudaEventDisableTiming}) == 0,
          "unknown event flags (interprocess events are not supported)");
  auto* event = new Event;
  event->device = current_device();
  event->flags = flags;
  events_.insert(event);
  return *event;
}

void Streams::destroy_event(cudaEvent_t event) { destroy_in(events_, event, "event"); }
Event& Streams::find_event(cudaEvent_t event) { return find_in(events_, event, "event"); }

void Streams::begin_capture(Stream& stream, cudaStreamCaptureMode mode) {
  if (is_legacy(stream))
    fail(cudaErrorStreamCaptureUnsupported, "the legacy default stream cannot be captured");
  if (stream.capture) fail(cudaErrorIllegalState, "the stream is already being captured");
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->id = next_capture_id_++;
  stream.capture = std::move(capture);
  stream.frontier.clear();
}

Graph* Streams::end_capture(Stream& stream) {
  if (!stream.capture) fail(cudaErrorIllegalState, "the stream is not being captured");
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin != &stream)
    fail(cudaErrorStreamCaptureUnmatched, "the capture began on another stream");
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    fail(cudaErrorStreamCaptureWrongThread, "the capture began on another thread");

  const auto joined = ancestors(stream.frontier);
  bool unjoined = false;
  const auto leave = [&](Stream& member) {
    if (member.capture != capture) return;
    for (const Node* node : member.frontier) unjoined |= !joined.contains(node);
    leave_capture(member);
  };
  for_each_capturable(leave);
  if (capture->invalidated)
    fail(cudaErrorStreamCaptureInvalidated, "an earlier call made this capture invalid");
  if (unjoined)
    fail(cudaErrorStreamCaptureUnjoined, "a forked stream holds work the origin stream does not wait for");
  Graph* graph = capture->graph.release();
  graphs_.insert(graph);
  return graph;
}

Node& Streams::append(Stream& stream, Task task) {
  if (stream.capture->invalidated)
    fail(cudaErrorStreamCaptureInvalidated, "an earlier call made this capture invalid");
  auto& nodes = stream.capture->graph->nodes;
  nodes.push_back(std::make_unique<Node>(Node{std::move(task), stream.frontier}));
  stream.frontier = {nodes.back().get()};
  return *nodes.back();
}

void Streams::record_event(Stream& stream, Event& event, Frontier done) {
  if (stream.device != event.device)
    fail(cudaErrorInvalidResourceHandle, "the event belongs to device " + std::to_string(event.device) +
                                             ", the stream to device " + std::to_string(stream.device));
  event.recorded = true;
  event.when = std::chrono::steady_clock::now();
  event.capture = stream.capture;
  event.frontier = stream.frontier;
  event.done = std::move(done);
}

void Streams::wait_event(Stream& stream, Event& event) {
  const std::shared_ptr<Capture> capture = event.capture.lock();
  // Work outside captures runs, or is held, when it is submitted, so only its order has to be remembered.
  if (!capture || !capture->graph) {
    if (stream.capture && event.recorded) {
      stream.capture->invalidated = true;
      fail(cudaErrorStreamCaptureIsolation, "a captured stream may not wait for work outside its capture");
    }
    merge(stream.done, event.done);
    stream.last_is_launch = false;
    return;
  }
  if (stream.capture && stream.capture != capture) {
    stream.capture->invalidated = capture->invalidated = true;
    fail(cudaErrorStreamCaptureMerge, "the wait would join two captures");
  }
  if (is_legacy(stream)) {
    capture->invalidated = true;
    fail(cudaErrorStreamCaptureImplicit, "the legacy default stream cannot join a capture");
  }
  stream.capture = capture;
  merge(stream.frontier, event.frontier);
}

void Streams::forbid_during_capture(const char* what) {
  if (thread_capture_mode() == cudaStreamCaptureModeRelaxed) return;
  const bool global = thread_capture_mode() == cudaStreamCaptureModeGlobal;
  for_each_capturable([&](Stream& stream) {
    if (!stream.capture || stream.capture->mode == cudaStreamCaptureModeRelaxed) return;
    const bool ours = stream.capture->thread == std::this_thread::get_id();
    if (!ours && !(global && stream.capture->mode == cudaStreamCaptureModeGlobal)) return;
    stream.capture->invalidated = true;
    fail(cudaErrorStreamCaptureUnsupported,
         std::string(what) + " is not permitted while a stream is captured");
  });
}

void Streams::forbid_implicit_dependency(Stream& stream) {
  if (!is_legacy(stream)) return;
  for_each_capturable([&](Stream& other) {
    if (!other.capture || other.device != stream.device || (other.flags & cudaStreamNonBlocking)) return;
    other.capture->invalidated = true;
    fail(cudaErrorStreamCaptureImplicit,
         "work on the legacy default stream would depend on a blocking stream that is being captured");
  });
}

void Streams::forbid_capturing(Stream& stream) {
  if (!stream.capture) return;
  stream.capture->invalidated = true;
  fail(cudaErrorStreamCaptureUnsupported, "the stream is being captured and cannot be waited for or queried");
}

Graph& Streams::find_graph(cudaGraph_t graph) { return find_in(graphs_, graph, "graph"); }
void Streams::destroy_graph(cudaGraph_t graph) { destroy_in(graphs_, graph, "graph"); }

GraphExec& Streams::instantiate(const Graph& graph, unsigned long long flags) {
  auto* exec = new GraphExec;
  exec->flags = flags;
  std::map<const Node*, size_t> index;
  for (const auto& node : graph.nodes) {
    GraphExec::Step step{node->task, {}};
    for (const Node* dependency : node->dependencies) {
      step.dependencies.push_back(index.at(dependency));
      exec->steps[index.at(dependency)].last = false;
    }
    index[node.get()] = exec->steps.size();
    exec->steps.push_back(std::move(step));
  }
  execs_.insert(exec);
  return *exec;
}

GraphExec& Streams::find_exec(cudaGraphExec_t exec) { return find_in(execs_, exec, "executable graph"); }
void Streams::destroy_exec(cudaGraphExec_t exec) { destroy_in(execs_, exec, "executable graph"); }

Frontier perform(Runtime& runtime, const Task& task, Frontier after) {
  if (task.type != cudaGraphNodeTypeKernel) run_held(runtime);
  WorkInProgress work{task.what, std::move(after), task.programmatic, task.device};
  WorkInProgress* const outer = runtime.order.current;  // a host function may call back
  runtime.order.current = &work;
  try {
    task.work(runtime);
  } catch (...) {
    runtime.order.current = outer;
    throw;
  }
  runtime.order.current = outer;
  if (work.id == 0) return work.after;
  // Work that does not wait for its predecessors may be complete before they are.
  Frontier done{work.id};
  if (task.programmatic) merge(done, work.after);
  return done;
}

Frontier submit(Runtime& runtime, cudaStream_t handle, Task task) {
  Stream& stream = runtime.streams.find(handle);
  task.device = stream.device;
  if (stream.capture) {
    runtime.streams.append(stream, std::move(task));
    return {};
  }
  runtime.streams.forbid_implicit_dependency(stream);
  const Frontier before = runtime.order.before(runtime, stream);
  // A launch overlaps only launches right before it in its stream. Everything else that it comes after, those
  // launches come after as well.
  const auto known = [&](uint64_t id) {
    return contains(stream.done, id) || contains(stream.launched_after, id);
  };
  task.programmatic =
      task.programmatic && stream.last_is_launch && std::all_of(before.begin(), before.end(), known);
  stream.done = perform(runtime, task, task.programmatic ? stream.done : before);
  stream.last_is_launch = task.type == cudaGraphNodeTypeKernel;
  stream.launched_after = before;
  return stream.done;
}

Frontier submit_between(Runtime& runtime, int one, int other, Task task) {
  Stream& stream = runtime.streams.legacy(current_device());
  runtime.streams.forbid_implicit_dependency(stream);
  task.device = stream.device;
  Frontier before = runtime.order.before(runtime, stream);
  for (const int device : {one, other}) merge(before, runtime.order.everything(runtime, device));
  stream.done = perform(runtime, task, std::move(before));
  stream.last_is_launch = false;
  for (const int device : {one, other}) runtime.order.hold_back(device, stream.done);
  return stream.done;
}

}  // namespace sim::shim
