//===- Metrics.cpp - DIR/metrics.jsonl ------------------------------------------------------===//
#include "runtime/trainer/Metrics.h"
#include "runtime/core/File.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace descent;

namespace {
/// Appends to a fixed buffer.
class Line {
public:
  Line(char *out, size_t size) : begin(out), next(out), end(out + size) {}

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
    next = fmt::format_to_n(next, end - next, text, std::forward<Arguments>(arguments)...).out;
  }
  template <typename Number> void number(const char *key, Number value) {
    if (std::isfinite(value))
      add(",\"{}\":{}", key, value);
    else
      add(",\"{}\":null", key);
  }
  size_t size() const { return next - begin; }

private:
  char *begin, *next, *end;
};
} // namespace

size_t descent::formatMetrics(const StepMetrics &metrics, char *out, size_t size) {
  Line line(out, size);
  line.add("{{\"step\":{}", metrics.step);
  line.number("loss", metrics.loss);
  line.number("lr", metrics.learningRate);
  line.number("grad_norm", metrics.gradientNorm);
  line.add(",\"step_ms\":{:.3f}", metrics.stepMilliseconds);
  line.add(",\"{}\":{:.1f}", metrics.itemsAreTokens ? "tokens_per_second" : "samples_per_second",
           metrics.itemsPerSecond);
  if (metrics.lossScale)
    line.number("loss_scale", *metrics.lossScale);
  if (metrics.skipped || metrics.lossScale)
    line.add(",\"skipped\":{}", metrics.skipped);
  if (metrics.validation) {
    line.number("validation_loss", metrics.validation->loss);
    if (metrics.validation->accuracy)
      line.number("validation_accuracy", *metrics.validation->accuracy);
  }
  line.add("}}\n");
  return line.size();
}

/// Where the lines of steps up to `step` end. Read from the end, since what is cut off is usually
/// little or nothing.
static off_t endOfStep(int fd, off_t size, int64_t step, const char *path) {
  char buffer[1 << 12];
  off_t end = size; // Everything from here on is cut off.
  while (end > 0) {
    // The last line that ends at or before `end`; a line is far shorter than the buffer.
    off_t start = std::max<off_t>(0, end - static_cast<off_t>(sizeof buffer - 1));
    ssize_t got = pread(fd, buffer, static_cast<size_t>(end - start), start);
    if (got < 0)
      throwFileError("read", path, errno);
    buffer[got] = 0;
    ssize_t lineEnd = got;
    bool whole = lineEnd > 0 && buffer[lineEnd - 1] == '\n';
    ssize_t begin = whole ? lineEnd - 1 : lineEnd;
    while (begin > 0 && buffer[begin - 1] != '\n')
      --begin;
    long long number = 0;
    if (whole && std::sscanf(buffer + begin, "{\"step\":%lld,", &number) == 1 && number <= step)
      return end;
    end = start + begin;
  }
  return 0;
}

MetricsFile::MetricsFile(const std::string &path, int64_t step) : path(path) {
  fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0)
    throwFileError("write", path.c_str(), errno);
  try {
    struct stat status;
    if (fstat(fd, &status) != 0)
      throwFileError("read", path.c_str(), errno);
    off_t end = endOfStep(fd, status.st_size, step, path.c_str());
    if (end != status.st_size && ftruncate(fd, end) != 0)
      throwFileError("shorten", path.c_str(), errno);
  } catch (...) {
    ::close(fd);
    throw;
  }
}

MetricsFile::~MetricsFile() { ::close(fd); }

void MetricsFile::write(const StepMetrics &metrics) {
  char line[1024];
  size_t size = formatMetrics(metrics, line, sizeof line);
  ssize_t written = ::write(fd, line, size);
  if (written == static_cast<ssize_t>(size))
    return;
  int code = written < 0 ? errno : ENOSPC;
  // Half a line would be all that a full disk took.
  if (written > 0)
    if (off_t end = lseek(fd, 0, SEEK_END); end >= written && ftruncate(fd, end - written) != 0)
      code = errno;
  throwFileError("write", path.c_str(), code);
}

void MetricsFile::sync() {
  if (fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS)
    throwFileError("sync", path.c_str(), errno);
}
