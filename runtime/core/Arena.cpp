//===- Arena.cpp - The one allocation of a run ----------------------------------------------===//
//
// Linux promises more memory than it has and kills the process when pages run out. A run that
// cannot fit should say so before it starts, so what is asked is compared with what the system
// calls available, not only with the result of mmap.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Arena.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include <sys/mman.h>

using namespace descent;

static constexpr uint64_t cacheLine = 64;
static constexpr uint64_t hugePage = 2u << 20;

static uint64_t roundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The number a one-line file of the system holds, or UINT64_MAX ("max", or no such file).
static uint64_t readNumber(const char *path) {
  FILE *file = std::fopen(path, "re");
  if (!file)
    return UINT64_MAX;
  unsigned long long value = 0;
  bool found = std::fscanf(file, "%llu", &value) == 1;
  std::fclose(file);
  return found ? value : UINT64_MAX;
}

uint64_t descent::availableMemory() {
  uint64_t available = UINT64_MAX;
  if (FILE *file = std::fopen("/proc/meminfo", "re")) {
    char line[256];
    unsigned long long kib = 0;
    while (std::fgets(line, sizeof line, file))
      if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
        available = kib * 1024;
    std::fclose(file);
  }
  uint64_t limit = readNumber("/sys/fs/cgroup/memory.max");
  uint64_t used = readNumber("/sys/fs/cgroup/memory.current");
  if (limit != UINT64_MAX && used != UINT64_MAX)
    available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

SizeText descent::formatBytes(uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  SizeText result;
  std::snprintf(result.text, sizeof result.text, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return result;
}

[[noreturn]] static void refuse(const descent_memory &memory, int threads, uint64_t total,
                                uint64_t available, const std::string &reason) {
  std::string message = fmt::format(
      "not enough memory: training needs {} ({} for the plan, {} scratch for {} threads), {}.\n"
      "The plan: parameters {}, gradients {}, optimizer state {}, activations {}, workspace {}.\n",
      formatBytes(total).text, formatBytes(memory.arena).text,
      formatBytes(total - memory.arena).text, threads, reason, formatBytes(memory.parameters).text,
      formatBytes(memory.gradients).text, formatBytes(memory.optimizer).text,
      formatBytes(memory.activations).text, formatBytes(memory.workspace).text);
  // The lever is named for what is biggest: a smaller batch frees activations, not parameters.
  if (memory.activations + memory.workspace >= memory.parameters)
    message +=
        "A smaller batch.size (or data.sequence) in the recipe lowers activations and workspace";
  else
    message += "A smaller model lowers parameters, gradients and optimizer state; optimizer.kind = "
               "\"sgd\" "
               "has the least state";
  if (memory.thread_scratch)
    message +=
        fmt::format("; fewer --threads save {} each", formatBytes(memory.thread_scratch).text);
  throw Error(message + ".");
}

Arena::Arena(const descent_memory &memory, int threads) {
  scratchStart = roundUp(memory.arena, cacheLine);
  scratchStride = roundUp(memory.thread_scratch, cacheLine);
  total = scratchStart + scratchStride * static_cast<uint64_t>(threads);
  uint64_t available = availableMemory();
  if (total > available)
    refuse(memory, threads, total, available,
           fmt::format("{} are available", formatBytes(available).text));

  // Huge pages save most TLB misses of the matrix products; the block starts at such a page so that
  // the first is one too.
  bool huge = total >= 2 * hugePage;
  mappingBytes = roundUp(std::max<uint64_t>(total, 1), 4096) + (huge ? hugePage : 0);
  mapping = mmap(nullptr, mappingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    mapping = nullptr;
    refuse(memory, threads, total, available,
           fmt::format("and the system refused it ({}; see also ulimit -v)", std::strerror(errno)));
  }
  base = static_cast<uint8_t *>(mapping);
  if (huge) {
    base = reinterpret_cast<uint8_t *>(roundUp(reinterpret_cast<uintptr_t>(mapping), hugePage));
    madvise(base, total / hugePage * hugePage, MADV_HUGEPAGE);
  }
}

Arena::~Arena() {
  if (mapping)
    munmap(mapping, mappingBytes);
}
