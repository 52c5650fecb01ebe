//===- Progress.cpp - What a run shows while it trains --------------------------------------===//
#include "runtime/trainer/Progress.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include <unistd.h>

using namespace descent;

DurationText descent::formatDuration(double seconds) {
  DurationText result;
  long long whole = std::llround(seconds);
  if (whole < 60)
    std::snprintf(result.text, sizeof result.text, "%lld s", whole);
  else if (whole < 3600)
    std::snprintf(result.text, sizeof result.text, "%lld min %02lld s", whole / 60, whole % 60);
  else
    std::snprintf(result.text, sizeof result.text, "%lld h %02lld min", whole / 3600,
                  whole / 60 % 60);
  return result;
}

Progress::Progress(int64_t firstStep, int64_t totalSteps, int64_t logEvery)
    : totalSteps(totalSteps), logEvery(logEvery), terminal(isatty(STDOUT_FILENO)),
      last(Clock::now()), lastDrawn(last - std::chrono::seconds(1)) {}

/// Progress is no reason to fail: a closed pipe or a full disk behind standard output ends nothing.
static void print(const char *text, size_t size) {
  while (size) {
    ssize_t written = ::write(STDOUT_FILENO, text, size);
    if (written <= 0)
      return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

void Progress::show(const StepMetrics &metrics) {
  auto now = Clock::now();
  double seconds = std::chrono::duration<double>(now - last).count();
  last = now;
  // The first step touches all memory for the first time and says little about the rest.
  constexpr double keep = 0.95;
  if (shown++ > 0) {
    secondsPerStep = keep * secondsPerStep + (1 - keep) * seconds;
    weight = keep * weight + (1 - keep);
  }

  if (logEvery == 0)
    return;
  bool line = shown == 1 || metrics.step == totalSteps || metrics.validation ||
              metrics.step % logEvery == 0;
  bool moving = terminal && now - lastDrawn > std::chrono::milliseconds(100);
  if (!line && !moving)
    return;
  lastDrawn = now;

  char text[512];
  char *next = text, *end = text + sizeof text;
  auto add = [&](const auto &format, const auto &...arguments) {
    next = fmt::format_to_n(next, end - next, fmt::runtime(format), arguments...).out;
  };
  if (lineOpen)
    add("\r\033[K");
  add("step {}/{}  loss {:.4f}  lr {:.2e}  grad norm {:.3f}", metrics.step, totalSteps,
      metrics.loss, metrics.learningRate, metrics.gradientNorm);
  if (metrics.lossScale)
    add("  scale {:g}", *metrics.lossScale);
  add("  {:.1f} ms", metrics.stepMilliseconds);
  add("  {:.0f} {}/s", metrics.itemsPerSecond, metrics.itemsAreTokens ? "tokens" : "samples");
  if (metrics.validation) {
    add("  validation loss {:.4f}", metrics.validation->loss);
    if (metrics.validation->accuracy)
      add(" accuracy {:.2f} %", 100 * *metrics.validation->accuracy);
  }
  if (weight > 0 && metrics.step < totalSteps)
    add("  {} to go", formatDuration(secondsPerStep / weight * (totalSteps - metrics.step)).text);
  if (line)
    add("\n");
  lineOpen = !line;
  print(text, next - text);
}

void Progress::endLine() {
  if (lineOpen)
    print("\n", 1);
  lineOpen = false;
}
