//===- DriverStreams.cpp - Streams, events and copies of the emulated driver ----------------===//
//
// Copies are what CUDA says of pinned memory: asynchronous. From pageable memory, a copy to the
// device waits for the stream and takes the bytes before it returns; a copy from the device returns
// when it is done. The statistics count these, since each is a wait.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/emulator/DriverCalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace descent::emulator {

using namespace cuda;

template <typename Object>
static Object &objectOf(const std::vector<std::unique_ptr<Object>> &objects, const void *handle,
                        const char *what, const char *destroy) {
  for (const auto &object : objects)
    if (object.get() == handle) {
      if (!object->live)
        refuse(CUDA_ERROR_INVALID_HANDLE,
               fmt::format("{} {} was destroyed ({})", what, object->number, destroy));
      return *object;
    }
  refuse(CUDA_ERROR_INVALID_HANDLE, fmt::format("{} is no {}", handle, what));
}

StreamObject &streamOf(CUstream stream) {
  // Streams 1 and 2 are names of the default stream, per process and per thread.
  if (reinterpret_cast<uintptr_t>(stream) <= 2)
    refuse(CUDA_ERROR_NOT_SUPPORTED,
           "work on the default stream, which waits for all others; the emulator has none: pass a "
           "stream of cuStreamCreateWithPriority");
  return objectOf(state().streams, stream, "stream", "cuStreamDestroy");
}

EventObject &eventOf(CUevent event) {
  return objectOf(state().events, event, "event", "cuEventDestroy");
}

/// Whether [address, address + bytes) is pinned memory; refuses a range of which only a part is.
static bool isPinned(const char *call, const char *argument, const void *address, uint64_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(address);
  for (auto [start, memory] : state().pinned) {
    if (begin >= start + memory.bytes || start >= begin + bytes)
      continue;
    if (begin < start || begin + bytes > start + memory.bytes)
      refuse(CUDA_ERROR_INVALID_VALUE,
             fmt::format("{}: argument `{}` is {} bytes, of which some lie in {} bytes of pinned "
                         "memory and some outside",
                         call, argument, bytes, memory.bytes));
    return true;
  }
  return false;
}

static void requireHost(const char *call, const char *argument, const void *address) {
  if (!address || isDeviceAddress(reinterpret_cast<uintptr_t>(address)))
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("{}: argument `{}` is {}, {}; memory of the host is meant", call, argument,
                       address, address ? "an address of the device" : "the null pointer"));
}

static void requireDevice(StreamObject &stream, const char *call, const char *argument,
                          CUdeviceptr address, uint64_t bytes) {
  auto refuseArgument = [&](const std::string &why) {
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("{}: argument `{}` is 0x{:x}, {}", call, argument, address, why));
  };
  if (!isDeviceAddress(address))
    refuseArgument(address ? "a host pointer; memory of the device is meant (cuMemAlloc)"
                           : "the null pointer");
  DeviceMemory &memory = stream.device->engine.memory;
  const Region *region = memory.find(address);
  if (region && !region->live)
    refuseArgument(region->name + ", which was freed");
  if (!region || !region->holds(address, bytes))
    refuseArgument(fmt::format("and {} bytes from there are not inside one allocation: the first "
                               "is {}, the last {}",
                               bytes, memory.describe(address),
                               memory.describe(address + bytes - 1)));
}

namespace calls {

//===----------------------------------------------------------------------------------------===//
// Copies and fills
//===----------------------------------------------------------------------------------------===//

static void refusePageableCapture(StreamObject &stream, const char *call) {
  if (!stream.capture)
    return;
  stream.capture->invalid = true;
  refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         fmt::format("{} of pageable memory in a capture: the graph would read it at every launch; "
                     "use pinned memory (cuMemHostAlloc)",
                     call));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream handle) {
  StreamObject &stream = streamOf(handle);
  if (!bytes)
    return CUDA_SUCCESS;
  requireDevice(stream, "cuMemcpyHtoDAsync", "to", to, bytes);
  requireHost("cuMemcpyHtoDAsync", "from", from);
  auto task = std::make_shared<Task>();
  task->name = fmt::format("copy of {} bytes to the device", bytes);
  task->uses = {to};
  std::shared_ptr<std::vector<char>> staged;
  char *source = static_cast<char *>(const_cast<void *>(from));
  if (isPinned("cuMemcpyHtoDAsync", "from", from, bytes)) {
    task->host = {source, bytes, false};
  } else {
    refusePageableCapture(stream, "cuMemcpyHtoDAsync");
    ++state().pageableCopies;
    drain(stream);
    staged = std::make_shared<std::vector<char>>(source, source + bytes);
  }
  task->run = [to, source, bytes, staged](Execution &execution) {
    Region &region = execution.find(to, bytes, "a copy to the device", true);
    execution.touch(region, to - region.address, bytes, true);
    if (staged) {
      std::memcpy(region.host(to), staged->data(), bytes);
    } else {
      HostRange range{source, bytes, false};
      if (hostSum(range) != execution.operation.hostSum)
        throw DeviceFault{
            CUDA_ERROR_LAUNCH_FAILED,
            fmt::format("pinned memory at {} changed while a copy from it was pending: which bytes "
                        "the device gets is chance; write it only after an event behind the copy",
                        static_cast<void *>(source))};
      std::memcpy(region.host(to), source, bytes);
    }
    region.markWritten(to - region.address, bytes);
  };
  submit(stream, std::move(task));
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream handle) {
  StreamObject &stream = streamOf(handle);
  if (!bytes)
    return CUDA_SUCCESS;
  requireHost("cuMemcpyDtoHAsync", "to", to);
  requireDevice(stream, "cuMemcpyDtoHAsync", "from", from, bytes);
  auto task = std::make_shared<Task>();
  task->name = fmt::format("copy of {} bytes to the host", bytes);
  task->uses = {from};
  bool pinned = isPinned("cuMemcpyDtoHAsync", "to", to, bytes);
  if (pinned)
    task->host = {static_cast<char *>(to), bytes, true};
  else
    refusePageableCapture(stream, "cuMemcpyDtoHAsync");
  task->run = [to, from, bytes](Execution &execution) {
    Region &region = execution.find(from, bytes, "a copy from the device", false);
    execution.touch(region, from - region.address, bytes, false);
    std::memcpy(to, region.host(from), bytes);
    region.poison(from - region.address, bytes, static_cast<char *>(to));
  };
  OperationPtr operation = submit(stream, std::move(task));
  if (!pinned) {
    ++state().pageableCopies;
    waitFor(operation);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  StreamObject &stream = streamOf(handle);
  if (!bytes)
    return CUDA_SUCCESS;
  requireDevice(stream, "cuMemcpyDtoDAsync", "to", to, bytes);
  requireDevice(stream, "cuMemcpyDtoDAsync", "from", from, bytes);
  if (from < to + bytes && to < from + bytes)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuMemcpyDtoDAsync: `to` and `from` overlap in {} bytes",
                       bytes - (to > from ? to - from : from - to)));
  auto task = std::make_shared<Task>();
  task->name = fmt::format("copy of {} bytes on the device", bytes);
  task->uses = {to, from};
  task->run = [to, from, bytes](Execution &execution) {
    Region &source = execution.find(from, bytes, "a copy on the device", false);
    Region &target = execution.find(to, bytes, "a copy on the device", true);
    execution.touch(source, from - source.address, bytes, false);
    execution.touch(target, to - target.address, bytes, true);
    execution.device.engine.memory.copy(to, from, bytes);
  };
  submit(stream, std::move(task));
  return CUDA_SUCCESS;
}

static CUresult fill(const char *call, CUdeviceptr address, unsigned value, unsigned width,
                     size_t count, CUstream handle) {
  StreamObject &stream = streamOf(handle);
  if (!count)
    return CUDA_SUCCESS;
  uint64_t bytes = count * width;
  requireDevice(stream, call, "address", address, bytes);
  if (address % width)
    refuse(
        CUDA_ERROR_INVALID_VALUE,
        fmt::format("{}: argument `address` is 0x{:x}, no multiple of {}", call, address, width));
  auto task = std::make_shared<Task>();
  task->name = fmt::format("fill of {} bytes", bytes);
  task->uses = {address};
  task->run = [address, value, width, bytes](Execution &execution) {
    Region &region = execution.find(address, bytes, "a fill", true);
    execution.touch(region, address - region.address, bytes, true);
    char *to = region.host(address);
    if (width == 1)
      std::memset(to, static_cast<int>(value), bytes);
    else
      for (uint64_t i = 0; i < bytes; i += width)
        std::memcpy(to + i, &value, width);
    region.markWritten(address - region.address, bytes);
  };
  submit(stream, std::move(task));
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", address, value, 1, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", address, value, 4, count, stream);
}

//===----------------------------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------------------------===//

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  if (flags & ~CU_STREAM_NON_BLOCKING)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuStreamCreateWithPriority: flags {} are unknown", flags));
  State &s = state();
  auto object = std::make_unique<StreamObject>();
  object->number = static_cast<int>(s.streams.size()) + 1;
  object->device = &current();
  object->priority = std::clamp(priority, -5, 0);
  object->timeline = s.newTimeline(fmt::format("stream {}", object->number));
  *stream = reinterpret_cast<CUstream>(object.get());
  s.streams.push_back(std::move(object));
  return CUDA_SUCCESS;
}

/// Ends the capture that a call on its stream does not allow.
static void refuseCapturing(StreamObject &stream, const char *call) {
  if (!stream.capture)
    return;
  stream.capture->invalid = true;
  refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         fmt::format("{} of {}, which is being captured: the work is not running, it only becomes "
                     "a graph; wait after cuGraphLaunch",
                     call, state().timelineText(stream.timeline)));
}

CUresult cuStreamDestroy(CUstream handle) {
  StreamObject &stream = streamOf(handle);
  refuseCapturing(stream, "cuStreamDestroy");
  // As on hardware, what is on the stream still runs.
  stream.live = false;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  StreamObject &stream = streamOf(handle);
  refuseCapturing(stream, "cuStreamSynchronize");
  refuseInCapture("cuStreamSynchronize");
  drain(stream);
  return stream.device->error;
}

CUresult cuStreamQuery(CUstream handle) {
  StreamObject &stream = streamOf(handle);
  refuseCapturing(stream, "cuStreamQuery");
  refuseInCapture("cuStreamQuery");
  std::vector<OperationPtr> all = stream.waits;
  all.push_back(stream.last);
  for (const OperationPtr &operation : all)
    if (operation && !operation->done) {
      state().queue.poll(operation);
      if (!operation->done)
        return CUDA_ERROR_NOT_READY;
    }
  drain(stream);
  return stream.device->error;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned flags) {
  StreamObject &stream = streamOf(handle);
  EventObject &event = eventOf(eventHandle);
  State &s = state();
  std::shared_ptr<Capture> other = event.capture.lock();
  if (flags == CU_EVENT_WAIT_EXTERNAL && stream.capture) {
    auto task = std::make_shared<Task>();
    task->name = fmt::format("wait for event {}", event.number);
    task->waits = &event;
    submit(stream, std::move(task));
    return CUDA_SUCCESS;
  }
  if (event.captured && !other)
    refuse(CUDA_ERROR_CAPTURED_EVENT,
           fmt::format("cuStreamWaitEvent: event {} was last recorded in a capture that has ended; "
                       "it orders nothing outside of it",
                       event.number));
  if (stream.capture && !event.captured) {
    stream.capture->invalid = true;
    refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
           fmt::format("cuStreamWaitEvent: {} is being captured, and event {} was recorded outside "
                       "of the capture; wait for it before cuStreamBeginCapture, or with "
                       "CU_EVENT_WAIT_EXTERNAL",
                       s.timelineText(stream.timeline), event.number));
  }
  if (event.captured && stream.capture && stream.capture != other) {
    stream.capture->invalid = other->invalid = true;
    refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE,
           fmt::format("cuStreamWaitEvent: {} and event {} belong to two captures, which would "
                       "become one",
                       s.timelineText(stream.timeline), event.number));
  }
  if (event.captured) {
    if (!stream.capture) { // the stream joins
      stream.capture = other;
      stream.frontier.clear();
      auto &streams = other->streams;
      stream.lane = static_cast<uint32_t>(std::find(streams.begin(), streams.end(), &stream) -
                                          streams.begin());
      if (stream.lane == streams.size())
        streams.push_back(&stream);
    }
    for (uint32_t node : event.frontier)
      if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end())
        stream.frontier.push_back(node);
    return CUDA_SUCCESS;
  }
  if (event.recorded) {
    stream.clock.join(event.recorded->clock);
    if (!event.recorded->done)
      stream.waits.push_back(event.recorded);
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  StreamObject &stream = streamOf(handle);
  *status = !stream.capture           ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------------------------===//

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  auto object = std::make_unique<EventObject>();
  object->number = static_cast<int>(state().events.size()) + 1;
  object->device = &current();
  object->flags = flags;
  *event = reinterpret_cast<CUevent>(object.get());
  state().events.push_back(std::move(object));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle) {
  EventObject &event = eventOf(handle);
  event.live = false;
  event.recorded = nullptr;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream streamHandle) {
  return cuEventRecordWithFlags(handle, streamHandle, 0);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream streamHandle, unsigned flags) {
  EventObject &event = eventOf(handle);
  StreamObject &stream = streamOf(streamHandle);
  auto task = std::make_shared<Task>();
  task->name = fmt::format("record of event {}", event.number);
  if (!stream.capture) {
    event.recorded = submit(stream, std::move(task));
    event.captured = false;
    event.capture.reset();
    return CUDA_SUCCESS;
  }
  if (flags & CU_EVENT_RECORD_EXTERNAL) {
    task->records = &event;
    submit(stream, std::move(task));
    return CUDA_SUCCESS;
  }
  event.captured = true;
  event.capture = stream.capture;
  event.frontier = stream.frontier;
  event.recorded = nullptr;
  return CUDA_SUCCESS;
}

/// Refuses to let the host look at an event of a capture, and ends the capture.
static void refuseCaptured(EventObject &event, const char *call) {
  if (event.captured) {
    if (auto capture = event.capture.lock())
      capture->invalid = true;
    refuse(CUDA_ERROR_CAPTURED_EVENT,
           fmt::format("{}: event {} was last recorded in a capture and so marks a place in a "
                       "graph; record it with CU_EVENT_RECORD_EXTERNAL if the host needs it, or "
                       "record one behind cuGraphLaunch",
                       call, event.number));
  }
  refuseInCapture(call);
}

CUresult cuEventQuery(CUevent handle) {
  EventObject &event = eventOf(handle);
  refuseCaptured(event, "cuEventQuery");
  if (!event.recorded)
    return CUDA_SUCCESS;
  state().queue.poll(event.recorded);
  if (!event.recorded->done)
    return CUDA_ERROR_NOT_READY;
  waitFor(event.recorded);
  return event.device->error;
}

CUresult cuEventSynchronize(CUevent handle) {
  EventObject &event = eventOf(handle);
  refuseCaptured(event, "cuEventSynchronize");
  waitFor(event.recorded);
  return event.device->error;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent startHandle, CUevent endHandle) {
  EventObject &start = eventOf(startHandle), &end = eventOf(endHandle);
  for (EventObject *event : {&start, &end}) {
    refuseCaptured(*event, "cuEventElapsedTime");
    if (!event->recorded || (event->flags & CU_EVENT_DISABLE_TIMING))
      refuse(CUDA_ERROR_INVALID_HANDLE,
             fmt::format("cuEventElapsedTime: event {} {}", event->number,
                         event->recorded ? "was created with CU_EVENT_DISABLE_TIMING"
                                         : "was never recorded"));
    if (!event->recorded->done)
      return CUDA_ERROR_NOT_READY;
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(end.recorded->finished - start.recorded->finished)
          .count();
  return CUDA_SUCCESS;
}

} // namespace calls
} // namespace descent::emulator
