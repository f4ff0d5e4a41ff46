// runtime_stream.cpp -- streams, events, captures and graphs of the runtime API. Work is complete when the
// call that submitted it returns, or runs in the call that waits (held.h), so there is nothing to wait for;
// only the rules of captures are left to check.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "sim/shim/device.h"
#include "sim/shim/state.h"

using namespace sim::shim;

// Priorities outside the range are clamped, as documented.
static void create_stream(Runtime& runtime, cudaStream_t* stream, unsigned flags, int priority) {
  require(stream, "no place for the stream");
  *stream = reinterpret_cast<cudaStream_t>(
      &runtime.streams.create(flags, std::clamp(priority, sim::shim::kGreatestStreamPriority, 0)));
}

static void require_uncaptured(const Event& event) {
  const auto capture = event.capture.lock();
  if (!capture) return;
  capture->invalidated = true;
  fail(cudaErrorCapturedEvent, "the event was last recorded in a captured stream");
}

// The host learns that the work of the stream is complete, as it does by a query that says so.
static void wait_for(Runtime& runtime, const char* what, cudaStream_t stream) {
  Stream& target = runtime.streams.find(stream);
  runtime.streams.forbid_capturing(target);
  runtime.order.host_waits(runtime, what, runtime.order.before(runtime, target));
}

static void wait_for(Runtime& runtime, const char* what, cudaEvent_t event) {
  const Event& target = runtime.streams.find_event(event);
  require_uncaptured(target);
  runtime.order.host_waits(runtime, what, target.done);
}

static void instantiate(Runtime& runtime, cudaGraphExec_t* exec, cudaGraph_t graph,
                        unsigned long long flags) {
  require(exec, "no place for the executable graph");
  require((flags & ~static_cast<unsigned long long>(cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                                    cudaGraphInstantiateFlagUseNodePriority |
                                                    cudaGraphInstantiateFlagUpload)) == 0,
          "unknown or unsupported graph instantiation flags");
  *exec = reinterpret_cast<cudaGraphExec_t>(
      &runtime.streams.instantiate(runtime.streams.find_graph(graph), flags));
}

// Every step comes after the steps it depends on, and the first steps come after the work of the stream and
// the previous launch of the graph.
static void launch_graph(Runtime& runtime, GraphExec& graph, cudaStream_t handle) {
  Stream& stream = runtime.streams.find(handle);
  runtime.streams.forbid_implicit_dependency(stream);
  Frontier before = runtime.order.before(runtime, stream);
  sim::shim::merge(before, graph.done);
  std::vector<Frontier> done;
  Frontier end = graph.steps.empty() ? before : Frontier{};
  for (const GraphExec::Step& step : graph.steps) {
    Frontier after = step.dependencies.empty() ? before : Frontier{};
    Task task = step.task;
    task.programmatic = task.programmatic && !step.dependencies.empty();
    for (const size_t dependency : step.dependencies) {
      sim::shim::merge(after, done[dependency]);
      task.programmatic = task.programmatic && graph.steps[dependency].task.type == cudaGraphNodeTypeKernel;
    }
    done.push_back(perform(runtime, task, std::move(after)));
    if (step.last) sim::shim::merge(end, done.back());
  }
  stream.done = graph.done = end;
  stream.last_is_launch = false;
}

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return call("cudaStreamCreate",
              [&](Runtime& runtime) { create_stream(runtime, stream, cudaStreamDefault, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags",
              [&](Runtime& runtime) { create_stream(runtime, stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority",
              [&](Runtime& runtime) { create_stream(runtime, stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&](Runtime& runtime) {
    runtime.order.orphan(runtime.streams.find(stream));
    runtime.streams.destroy(stream);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call("cudaStreamGetFlags", [&](Runtime& runtime) {
    require(flags, "no place for the flags");
    *flags = runtime.streams.find(stream).flags;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call("cudaStreamGetPriority", [&](Runtime& runtime) {
    require(priority, "no place for the priority");
    *priority = runtime.streams.find(stream).priority;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call("cudaStreamGetId", [&](Runtime& runtime) {
    require(id, "no place for the id");
    *id = runtime.streams.find(stream).id;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call("cudaStreamGetDevice", [&](Runtime& runtime) {
    require(device, "no place for the device");
    *device = runtime.streams.find(stream).device;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize",
              [&](Runtime& runtime) { wait_for(runtime, "cudaStreamSynchronize", stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [&](Runtime& runtime) { wait_for(runtime, "cudaStreamQuery", stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call("cudaStreamWaitEvent", [&](Runtime& runtime) {
    require(flags == cudaEventWaitDefault, "external event waits are not simulated");
    runtime.streams.wait_event(runtime.streams.find(stream), runtime.streams.find_event(event));
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", [&](Runtime& runtime) {
    require(function, "no host function");
    submit(runtime, stream, {cudaGraphNodeTypeHost, "cudaLaunchHostFunc", [=](Runtime& r) {
                               r.order.announce(r, sim::HostWork::Kind::kHost, {});
                               function(data);
                             }});
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  return call("cudaStreamAddCallback", [&](Runtime& runtime) {
    require(callback && flags == 0, "no callback, or flags other than 0");
    runtime.streams.forbid_capturing(runtime.streams.find(stream));
    submit(runtime, stream, {cudaGraphNodeTypeHost, "cudaStreamAddCallback", [=](Runtime& r) {
                               r.order.announce(r, sim::HostWork::Kind::kHost, {});
                               callback(stream, cudaSuccess, data);
                             }});
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](Runtime& runtime) {
    require(event, "no place for the event");
    *event = reinterpret_cast<cudaEvent_t>(&runtime.streams.create_event(flags));
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&](Runtime& runtime) { runtime.streams.destroy_event(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&](Runtime& runtime) {
    Stream& target = runtime.streams.find(stream);
    if (!target.capture) runtime.streams.forbid_implicit_dependency(target);
    runtime.streams.record_event(target, runtime.streams.find_event(event),
                                 runtime.order.before(runtime, target));
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  return call("cudaEventRecordWithFlags",
              [](Runtime&) { fail(cudaErrorNotSupported, "external event records are not simulated"); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize",
              [&](Runtime& runtime) { wait_for(runtime, "cudaEventSynchronize", event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&](Runtime& runtime) { wait_for(runtime, "cudaEventQuery", event); });
}

// Returns the host time that the simulation took between the two records. It says nothing about a device.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&](Runtime& runtime) {
    require(milliseconds, "no place for the time");
    const Event& first = runtime.streams.find_event(begin);
    const Event& last = runtime.streams.find_event(end);
    require_uncaptured(first);
    require_uncaptured(last);
    if (first.device != last.device)
      fail(cudaErrorInvalidResourceHandle, "the events belong to different devices");
    if (!first.recorded || !last.recorded || ((first.flags | last.flags) & cudaEventDisableTiming))
      fail(cudaErrorInvalidResourceHandle, "an event was not recorded or carries no time");
    *milliseconds = std::chrono::duration<float, std::milli>(last.when - first.when).count();
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Runtime& runtime) {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed,
            "unknown capture mode");
    runtime.streams.begin_capture(runtime.streams.find(stream), mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&](Runtime& runtime) {
    require(graph, "no place for the graph");
    *graph = nullptr;
    *graph = reinterpret_cast<cudaGraph_t>(runtime.streams.end_capture(runtime.streams.find(stream)));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](Runtime& runtime) {
    require(status, "no place for the status");
    const Stream& asked = runtime.streams.find(stream);
    *status = !asked.capture               ? cudaStreamCaptureStatusNone
              : asked.capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
  });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* count) {
#else  // which has this form by another name
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                        size_t* count) {
#endif
  const cudaError_t error = cudaStreamIsCapturing(stream, status);
  if (error != cudaSuccess || *status != cudaStreamCaptureStatusActive) return error;
  return call("cudaStreamGetCaptureInfo", [&](Runtime& runtime) {
    Stream& asked = runtime.streams.find(stream);
    if (id) *id = asked.capture->id;
    if (graph) *graph = reinterpret_cast<cudaGraph_t>(asked.capture->graph.get());
    if (dependencies) *dependencies = reinterpret_cast<const cudaGraphNode_t*>(asked.frontier.data());
    if (edges) *edges = nullptr;
    if (count) *count = asked.frontier.size();
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&](Runtime&) {
    require(mode && *mode >= cudaStreamCaptureModeGlobal && *mode <= cudaStreamCaptureModeRelaxed,
            "unknown capture mode");
    std::swap(*mode, sim::shim::thread_capture_mode());
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call("cudaGraphGetNodes", [&](Runtime& runtime) {
    require(count, "no place for the count");
    const Graph& asked = runtime.streams.find_graph(graph);
    const size_t capacity = nodes ? *count : 0;
    for (size_t i = 0; i < std::min(capacity, asked.nodes.size()); ++i)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(asked.nodes[i].get());
    // Entries past the last node are null, as documented.
    for (size_t i = asked.nodes.size(); i < capacity; ++i) nodes[i] = nullptr;
    *count = nodes ? std::min(capacity, asked.nodes.size()) : asked.nodes.size();
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call("cudaGraphNodeGetType", [&](Runtime&) {
    require(node && type, "no node, or no place for its type");
    *type = reinterpret_cast<const sim::shim::Node*>(node)->task.type;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return call("cudaGraphInstantiate", [&](Runtime& runtime) { instantiate(runtime, exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return call("cudaGraphExecGetFlags", [&](Runtime& runtime) {
    require(flags, "no place for the flags");
    *flags = runtime.streams.find_exec(exec).flags;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphUpload", [&](Runtime& runtime) {
    runtime.streams.find_exec(exec);
    runtime.streams.forbid_capturing(runtime.streams.find(stream));
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&](Runtime& runtime) {
    GraphExec& graph = runtime.streams.find_exec(exec);
    if (runtime.streams.find(stream).capture)
      fail(cudaErrorStreamCaptureUnsupported, "graph launches inside captures are not simulated");
    launch_graph(runtime, graph, stream);
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&](Runtime& runtime) { runtime.streams.destroy_graph(graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call("cudaGraphExecDestroy", [&](Runtime& runtime) { runtime.streams.destroy_exec(exec); });
}

}  // extern "C"

SIM_PER_THREAD_STREAM(cudaStreamGetFlags);
SIM_PER_THREAD_STREAM(cudaStreamGetPriority);
SIM_PER_THREAD_STREAM(cudaStreamGetId);
SIM_PER_THREAD_STREAM(cudaStreamGetDevice);
SIM_PER_THREAD_STREAM(cudaStreamSynchronize);
SIM_PER_THREAD_STREAM(cudaStreamQuery);
SIM_PER_THREAD_STREAM(cudaStreamWaitEvent);
SIM_PER_THREAD_STREAM(cudaLaunchHostFunc);
SIM_PER_THREAD_STREAM(cudaStreamAddCallback);
SIM_PER_THREAD_STREAM(cudaEventRecord);
SIM_PER_THREAD_STREAM(cudaEventRecordWithFlags);
SIM_PER_THREAD_STREAM(cudaStreamBeginCapture);
SIM_PER_THREAD_STREAM(cudaStreamEndCapture);
SIM_PER_THREAD_STREAM(cudaStreamIsCapturing);
#if CUDART_VERSION >= 13000
SIM_PER_THREAD_STREAM(cudaStreamGetCaptureInfo);
#else
SIM_PER_THREAD_STREAM(cudaStreamGetCaptureInfo_v3);
#endif
SIM_PER_THREAD_STREAM(cudaGraphUpload);
SIM_PER_THREAD_STREAM(cudaGraphLaunch);
