//===- DriverGraphs.cpp - Capture and graphs of the emulated driver -------------------------===//
//
// A launch makes an operation of each node. Each stream of the capture is a branch, a timeline of
// its own, so that nodes that the capture did not order can run in any order, and are reported if
// they touch the same memory. The launch as a whole is one piece of the stream it is launched on.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/emulator/DriverCalls.h"

#include <fmt/format.h>

#include <algorithm>

namespace descent::emulator {

using namespace cuda;

namespace calls {

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  StreamObject &stream = streamOf(handle);
  if (stream.capture)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuStreamBeginCapture: {} is being captured already",
                       state().timelineText(stream.timeline)));
  auto capture = std::make_shared<Capture>();
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams = {&stream};
  stream.capture = capture;
  stream.lane = 0;
  stream.frontier.clear();
  auto &captures = state().captures;
  std::erase_if(captures, [](const auto &old) { return old.expired(); });
  captures.push_back(capture);
  return CUDA_SUCCESS;
}

/// Which nodes are in the set or before one that is.
static std::vector<bool> reached(const std::vector<GraphNode> &nodes,
                                 const std::vector<uint32_t> &from) {
  std::vector<bool> result(nodes.size());
  for (uint32_t node : from)
    result[node] = true;
  for (size_t i = nodes.size(); i-- > 0;)
    if (result[i])
      for (uint32_t before : nodes[i].before)
        result[before] = true;
  return result;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  State &s = state();
  StreamObject &stream = streamOf(handle);
  *graph = nullptr;
  std::shared_ptr<Capture> capture = stream.capture;
  if (!capture)
    refuse(CUDA_ERROR_INVALID_VALUE, fmt::format("cuStreamEndCapture: {} is not being captured",
                                                 s.timelineText(stream.timeline)));
  if (capture->origin != &stream)
    refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
           fmt::format("cuStreamEndCapture on {}; the capture began on {} and ends there",
                       s.timelineText(stream.timeline), s.timelineText(capture->origin->timeline)));
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
           "cuStreamEndCapture by another thread than the one that began the capture");
  std::vector<bool> joined = reached(capture->nodes, stream.frontier);
  std::string unjoined;
  for (StreamObject *other : capture->streams) {
    for (uint32_t node : other->frontier)
      if (!joined[node] && unjoined.empty())
        unjoined = fmt::format(
            "cuStreamEndCapture: {} joined the capture, but nothing of {} waits for its last work, "
            "{}; record an event there and let {} wait for it before the capture ends",
            s.timelineText(other->timeline), s.timelineText(stream.timeline),
            capture->nodes[node].task->name, s.timelineText(stream.timeline));
    other->capture = nullptr;
    other->frontier.clear();
  }
  if (capture->invalid)
    refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           "cuStreamEndCapture: an earlier error, which was reported, ended the capture");
  if (!unjoined.empty())
    refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, unjoined);
  auto object = std::make_unique<GraphObject>();
  object->number = static_cast<int>(s.graphs.size()) + 1;
  object->device = stream.device;
  object->nodes = std::move(capture->nodes);
  for (StreamObject *lane : capture->streams)
    object->lanes.push_back(s.timelineText(lane->timeline));
  *graph = reinterpret_cast<CUgraph>(object.get());
  s.graphs.push_back(std::move(object));
  return CUDA_SUCCESS;
}

template <typename Object>
static Object &graphOf(const std::vector<std::unique_ptr<Object>> &objects, const void *handle,
                       const char *call, const char *what) {
  for (const auto &object : objects)
    if (object.get() == handle && object->live)
      return *object;
  refuse(CUDA_ERROR_INVALID_HANDLE,
         fmt::format("{}: {} is no {}, or one that was destroyed", call, handle, what));
}

CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph handle, unsigned long long flags) {
  State &s = state();
  GraphObject &graph = graphOf(s.graphs, handle, "cuGraphInstantiate", "graph");
  if (flags & ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuGraphInstantiate: of flags {} the emulator knows only USE_NODE_PRIORITY",
                       flags));
  auto object = std::make_unique<GraphExecObject>();
  object->number = static_cast<int>(s.executables.size()) + 1;
  object->device = graph.device;
  object->nodes = graph.nodes;
  for (const std::string &lane : graph.lanes)
    object->timelines.push_back(
        s.newTimeline(fmt::format("graph {}, branch of {}", object->number, lane)));
  object->operations.resize(object->timelines.size());
  *executable = reinterpret_cast<CUgraphExec>(object.get());
  s.executables.push_back(std::move(object));
  return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
  streamOf(stream);
  graphOf(state().executables, handle, "cuGraphUpload", "executable graph");
  return CUDA_SUCCESS;
}

/// A copy's memory of the host must still be pinned when the graph runs.
static void checkHost(const GraphExecObject &graph, const Task &task) {
  if (!task.host.bytes)
    return;
  auto begin = reinterpret_cast<uintptr_t>(task.host.address);
  const auto &pinned = state().pinned;
  auto after = pinned.upper_bound(begin);
  if (after == pinned.begin() ||
      begin + task.host.bytes > std::prev(after)->first + std::prev(after)->second.bytes)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuGraphLaunch of graph {}: its {} is from or to pinned memory that was "
                       "given back; it must stay until the graph is destroyed",
                       graph.number, task.name));
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  State &s = state();
  GraphExecObject &graph = graphOf(s.executables, handle, "cuGraphLaunch", "executable graph");
  StreamObject &stream = streamOf(streamHandle);
  if (stream.capture) {
    stream.capture->invalid = true;
    refuse(CUDA_ERROR_NOT_SUPPORTED, "cuGraphLaunch in a capture: the emulator puts no graph into "
                                     "another one");
  }
  for (const GraphNode &node : graph.nodes)
    checkHost(graph, *node.task);
  // One launch of an executable runs at a time: the driver orders them.
  Clock start = stream.clock;
  start.join(s.host);
  start.join(graph.clock);
  std::vector<OperationPtr> base = std::move(stream.waits);
  stream.waits.clear();
  base.push_back(stream.last);
  base.push_back(graph.last);
  std::vector<OperationPtr> made;
  std::vector<bool> followed(graph.nodes.size());
  for (const GraphNode &node : graph.nodes) {
    auto operation = std::make_shared<Operation>();
    operation->task = node.task;
    uint16_t timeline = graph.timelines[node.lane];
    operation->stamp = {timeline, s.names.number(node.task->name), ++graph.operations[node.lane]};
    operation->clock = start;
    std::vector<OperationPtr> before;
    for (uint32_t other : node.before) {
      operation->clock.join(made[other]->clock);
      before.push_back(made[other]);
      followed[other] = true;
    }
    if (before.empty())
      before = base;
    if (EventObject *event = node.task->waits; event && event->recorded) {
      operation->clock.join(event->recorded->clock);
      before.push_back(event->recorded);
    }
    operation->clock.set(timeline, operation->stamp.number);
    if (EventObject *event = node.task->records) {
      event->recorded = operation;
      event->captured = false;
    }
    prepareHost(*operation);
    s.queue.add(operation, before);
    made.push_back(std::move(operation));
  }
  auto end = std::make_shared<Operation>();
  auto task = std::make_shared<Task>();
  task->name = fmt::format("end of graph {}", graph.number);
  task->device = stream.device;
  end->task = std::move(task);
  std::vector<OperationPtr> before = base;
  end->clock = start;
  for (size_t i = 0; i < made.size(); ++i)
    if (!followed[i]) {
      end->clock.join(made[i]->clock);
      before.push_back(made[i]);
    }
  end->stamp = {stream.timeline, s.names.number(end->task->name), ++stream.operations};
  end->clock.set(stream.timeline, stream.operations);
  stream.clock = graph.clock = end->clock;
  stream.last = graph.last = end;
  s.queue.add(end, before);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  GraphExecObject &graph =
      graphOf(state().executables, handle, "cuGraphExecDestroy", "executable graph");
  graph.live = false;
  graph.nodes.clear();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  GraphObject &graph = graphOf(state().graphs, handle, "cuGraphDestroy", "graph");
  graph.live = false;
  graph.nodes.clear();
  return CUDA_SUCCESS;
}

} // namespace calls
} // namespace descent::emulator
