//===- HostBackend.cpp - A program in the memory and on the threads of the host -------------===//
#include "runtime/core/HostBackend.h"

#include <fmt/format.h>

#include <cstring>

using namespace descent;

HostBackend::HostBackend(const descent_program &program, int threads, bool profile)
    : memory(program.memory, threads), context(program, memory, threads, profile) {}

std::string HostBackend::place() const { return fmt::format("{} threads", context.threads); }

void HostBackend::read(uint64_t offset, void *to, uint64_t bytes) {
  std::memcpy(to, memory.data() + offset, bytes);
}

void HostBackend::write(uint64_t offset, const void *from, uint64_t bytes) {
  std::memcpy(memory.data() + offset, from, bytes);
}

void HostBackend::run(const descent_function &function) {
  context.observer = observer;
  runFunction(context, function);
}

void HostBackend::watch(std::vector<Watched> places) {
  values.clear();
  for (const Watched &place : places)
    values.push_back(memory.data() + place.offset);
}

void HostBackend::submit(const descent_function &function) {
  run(function);
  milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  submitted = true;
}

Backend::Report HostBackend::report() {
  submitted = false;
  return {values.data(), milliseconds};
}
