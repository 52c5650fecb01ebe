//===- DriverState.cpp - What the emulated driver remembers ---------------------------------===//

#include "runtime/emulator/DriverState.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace descent::emulator {

using namespace cuda;

//===----------------------------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------------------------===//

static const char *variable(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

[[noreturn]] static void refuseSetting(const char *name, std::string_view value,
                                       const char *allowed) {
  throw Error(fmt::format("{}={}: it is {}", name, value, allowed), ExitUsage);
}

/// A whole number, with K, M or G behind it where `scaled`.
static uint64_t number(const char *name, std::string_view value, bool scaled, const char *allowed) {
  std::string_view digits = value;
  uint64_t scale = 1, result = 0;
  size_t unit = scaled && !digits.empty() ? std::string_view("KMG").find(digits.back())
                                          : std::string_view::npos;
  if (unit != std::string_view::npos) {
    scale = UINT64_C(1) << 10 * (unit + 1);
    digits.remove_suffix(1);
  }
  auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
  if (error != std::errc() || stop != digits.data() + digits.size() || digits.empty())
    refuseSetting(name, value, allowed);
  return result * scale;
}

static DriverSettings settingsFromEnvironment() {
  DriverSettings settings;
  if (const char *value = variable("DESCENT_EMULATOR_ORDER")) {
    std::string_view order = value;
    const char *allowed = "eager, late, shuffled or shuffled:SEED";
    if (order == "eager")
      settings.order = DriverSettings::Eager;
    else if (order == "late")
      settings.order = DriverSettings::Late;
    else if (order.starts_with("shuffled")) {
      settings.order = DriverSettings::Shuffled;
      if (order.size() > 8) {
        if (order[8] != ':')
          refuseSetting("DESCENT_EMULATOR_ORDER", value, allowed);
        settings.seed = number("DESCENT_EMULATOR_ORDER", order.substr(9), false, allowed);
      }
    } else
      refuseSetting("DESCENT_EMULATOR_ORDER", value, allowed);
  }
  if (const char *value = variable("DESCENT_EMULATOR_DEVICES")) {
    settings.devices =
        static_cast<int>(number("DESCENT_EMULATOR_DEVICES", value, false, "a number from 0 to 16"));
    if (settings.devices > 16)
      refuseSetting("DESCENT_EMULATOR_DEVICES", value, "a number from 0 to 16");
  }
  if (const char *value = variable("DESCENT_EMULATOR_MEMORY"))
    settings.memory =
        number("DESCENT_EMULATOR_MEMORY", value, true, "a number of bytes: 268435456, 256M or 4G");
  if (const char *value = variable("DESCENT_EMULATOR_CAPABILITY")) {
    settings.capability = static_cast<int>(number("DESCENT_EMULATOR_CAPABILITY", value, false,
                                                  "a compute capability: 80, 86, 89, 90 or 100"));
  }
  if (const char *value = variable("DESCENT_EMULATOR_LEAKS"))
    settings.leaks = std::string_view(value) != "0";
  if (const char *value = variable("DESCENT_EMULATOR_STATISTICS"))
    settings.statistics = value;
  if (const char *value = variable("DESCENT_EMULATOR_DISABLE")) {
    std::string_view rest = value;
    while (!rest.empty()) {
      std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      bool known = name == "ordering";
      if (known)
        settings.ordering = false;
      std::string all = "ordering";
      for (uint32_t i = 0; i < checkCount; ++i) {
        if (!isOptional(Check(i)))
          continue;
        all += fmt::format(", {}", checkName(Check(i)));
        if (name == checkName(Check(i))) {
          settings.checks.disabled |= 1u << i;
          known = true;
        }
      }
      if (!known)
        refuseSetting("DESCENT_EMULATOR_DISABLE", value,
                      ("a list, with commas, of " + all).c_str());
    }
  }
  return settings;
}

//===----------------------------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------------------------===//

static State *theState = nullptr;
static std::mutex creation;

/// What the host never waited for runs now: a fault in it counts.
static bool finishAtExit(State &s) {
  bool failedBefore = false, failed = false;
  for (const auto &device : s.devices)
    failedBefore |= device->error != CUDA_SUCCESS;
  s.queue.finishAll();
  for (const auto &device : s.devices)
    failed |= device->error != CUDA_SUCCESS;
  return failedBefore || !failed;
}

static void atExit() {
  if (!theState)
    return;
  State &s = *theState;
  bool fine = finishAtExit(s);
  if (!s.settings.statistics.empty())
    writeStatistics(s.settings.statistics);
  std::string leaks = s.settings.leaks ? s.leaks() : "";
  if (!leaks.empty())
    std::fprintf(stderr, "emulator: at exit the program had not given back\n%s", leaks.c_str());
  if (fine && leaks.empty())
    return;
  std::fflush(nullptr);
  std::_Exit(ExitFailed);
}

State &state() {
  std::lock_guard<std::mutex> guard(creation);
  if (!theState) {
    theState = new State(settingsFromEnvironment());
    std::atexit(atExit);
  }
  return *theState;
}

void resetDriver(const DriverSettings &settings) {
  std::lock_guard<std::mutex> guard(creation);
  if (theState)
    theState->queue.forget();
  delete theState;
  theState = new State(settings);
  forgetContext();
  descent_emulator_reset_calls();
}

std::string lastMessage() { return state().message; }

EmulatedDevice::EmulatedDevice(int ordinal) : ordinal(ordinal), engine(uint32_t(ordinal)) {
  engine.memory.trackAccesses = true;
}

State::State(const DriverSettings &settings) : settings(settings) {
  for (int i = 0; i < settings.devices; ++i) {
    devices.push_back(std::make_unique<EmulatedDevice>(i));
    Options &options = devices.back()->engine.options;
    options = settings.checks;
    if (settings.order == DriverSettings::Shuffled)
      options.order = {Order::Shuffled, settings.seed};
    else if (settings.order == DriverSettings::Late)
      options.order = {Order::Reverse, 0};
  }
  queue.order = settings.order;
  queue.random = settings.seed * UINT64_C(0x9e3779b97f4a7c15) + 0x2545f4914f6cdd1d;
}

void State::report(const std::string &text) {
  message = text;
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
}

uint16_t State::newTimeline(std::string name) {
  if (timelines.size() > UINT16_MAX)
    throw Error("the emulator tells 65535 streams and branches of graphs apart, and no more were "
                "expected of one program");
  timelines.push_back(std::move(name));
  return static_cast<uint16_t>(timelines.size() - 1);
}

std::string State::leaks() const {
  std::string text;
  for (const auto &device : devices) {
    uint64_t shown = 0;
    for (auto [address, bytes] : device->allocated)
      if (shown++ < 10)
        text += fmt::format("  device memory (cuMemFree): {} of {} bytes on device {}\n",
                            device->engine.memory.find(address)->name, bytes, device->ordinal);
    if (shown > 10)
      text += fmt::format("  and {} more allocations\n", shown - 10);
    if (device->retained)
      text += fmt::format("  the primary context of device {} (cuDevicePrimaryCtxRelease), {} "
                          "times\n",
                          device->ordinal, device->retained);
  }
  for (auto [address, memory] : pinned)
    text += fmt::format("  {} bytes of {} host memory ({})\n", memory.bytes,
                        memory.registered ? "registered" : "pinned",
                        memory.registered ? "cuMemHostUnregister" : "cuMemFreeHost");
  auto count = [&](const char *what, const char *call, const auto &objects) {
    uint64_t live = 0;
    for (const auto &object : objects)
      live += object->live;
    if (live)
      text += fmt::format("  {} {}{} ({})\n", live, what, live == 1 ? "" : "s", call);
  };
  count("stream", "cuStreamDestroy", streams);
  count("event", "cuEventDestroy", events);
  count("module", "cuModuleUnload", modules);
  count("graph", "cuGraphDestroy", graphs);
  count("executable graph", "cuGraphExecDestroy", executables);
  return text;
}

void refuse(CUresult result, std::string message) {
  throw Refusal{result, std::move(message), false};
}

EmulatedDevice &deviceOf(CUdevice device) {
  State &s = state();
  if (device < 0 || static_cast<size_t>(device) >= s.devices.size())
    refuse(CUDA_ERROR_INVALID_DEVICE,
           fmt::format("there is no device {}; this machine has {}", device, s.devices.size()));
  return *s.devices[device];
}

//===----------------------------------------------------------------------------------------===//
// Enqueuing
//===----------------------------------------------------------------------------------------===//

/// Whether the capture's rules bind the calling thread.
static bool binds(const Capture &capture) {
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
         (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
          capture.thread == std::this_thread::get_id());
}

void refuseInCapture(const char *call) {
  for (const auto &weak : state().captures)
    if (auto capture = weak.lock(); capture && binds(*capture)) {
      capture->invalid = true;
      refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             fmt::format("{} while {} is being captured, which ends the capture: it may wait for "
                         "work that is not running; do it before cuStreamBeginCapture{}",
                         call, state().timelineText(capture->origin->timeline),
                         capture->thread != std::this_thread::get_id()
                             ? ", or capture with CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, which binds "
                               "only the capturing thread"
                             : ""));
    }
}

uint64_t hostSum(const HostRange &range) {
  uint64_t sum = UINT64_C(14695981039346656037), word = 0;
  uint64_t i = 0;
  for (; i + 8 <= range.bytes; i += 8) {
    std::memcpy(&word, range.address + i, 8);
    sum = (sum ^ word) * UINT64_C(1099511628211);
    sum ^= sum >> 29;
  }
  for (; i < range.bytes; ++i)
    sum = (sum ^ static_cast<unsigned char>(range.address[i])) * UINT64_C(1099511628211);
  return sum;
}

void prepareHost(Operation &operation) {
  const HostRange &host = operation.task->host;
  if (!host.bytes)
    return;
  // What a copy will write holds nothing until the host has waited for it.
  if (!host.written)
    operation.hostSum = hostSum(host);
  else if (state().settings.order != DriverSettings::Eager)
    std::memset(host.address, 0xff, host.bytes);
}

OperationPtr submit(StreamObject &stream, std::shared_ptr<Task> task) {
  State &s = state();
  task->device = stream.device;
  if (stream.capture) {
    Capture &capture = *stream.capture;
    if (capture.invalid)
      refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
             fmt::format("{} on {}, whose capture an earlier error ended", task->name,
                         s.timelineText(stream.timeline)));
    capture.nodes.push_back({std::move(task), stream.frontier, stream.lane});
    stream.frontier = {static_cast<uint32_t>(capture.nodes.size() - 1)};
    return nullptr;
  }
  auto operation = std::make_shared<Operation>();
  operation->stamp = {stream.timeline, s.names.number(task->name), ++stream.operations};
  operation->task = std::move(task);
  stream.clock.join(s.host);
  stream.clock.set(stream.timeline, stream.operations);
  operation->clock = stream.clock;
  std::vector<OperationPtr> before = std::move(stream.waits);
  before.push_back(stream.last);
  stream.waits.clear();
  stream.last = operation;
  prepareHost(*operation);
  s.queue.add(operation, before);
  return operation;
}

void waitFor(const OperationPtr &operation) {
  if (!operation)
    return;
  state().queue.finish(operation);
  state().host.join(operation->clock);
}

void drain(StreamObject &stream) {
  for (const OperationPtr &operation : stream.waits)
    waitFor(operation);
  waitFor(stream.last);
}

CUresult enqueue(CUstream handle, std::string name, std::vector<CUdeviceptr> uses,
                 std::function<void(Work &)> run) {
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  try {
    StreamObject &stream = streamOf(handle);
    if (stream.device->error != CUDA_SUCCESS)
      return stream.device->error;
    auto task = std::make_shared<Task>();
    task->name = std::move(name);
    task->uses = std::move(uses);
    task->run = [run = std::move(run)](Execution &execution) {
      Work work(execution);
      run(work);
    };
    submit(stream, std::move(task));
    return state().settings.order == DriverSettings::Eager ? stream.device->error : CUDA_SUCCESS;
  } catch (const Refusal &refusal) {
    state().report(refusal.message);
    return refusal.result;
  }
}

} // namespace descent::emulator
