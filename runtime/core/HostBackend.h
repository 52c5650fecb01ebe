//===- HostBackend.h - A program in the memory and on the threads of the host ---------------===//
#ifndef DESCENT_RUNTIME_CORE_HOSTBACKEND_H
#define DESCENT_RUNTIME_CORE_HOSTBACKEND_H

#include "runtime/core/Arena.h"
#include "runtime/core/Backend.h"
#include "runtime/core/Context.h"

#include <chrono>

namespace descent {

class HostBackend final : public Backend {
public:
  HostBackend(const descent_program &program, int threads, bool profile);

  std::string place() const override;
  uint8_t *arena() const override { return memory.data(); }
  void read(uint64_t offset, void *to, uint64_t bytes) override;
  void write(uint64_t offset, const void *from, uint64_t bytes) override;
  void beginInputs() override { begin = Clock::now(); }
  uint8_t *input(const descent_tensor &tensor) override { return memory.data() + tensor.offset; }
  void run(const descent_function &function) override;
  void watch(std::vector<Watched> places) override;
  void submit(const descent_function &function) override;
  int64_t pending() const override { return submitted ? 1 : 0; }
  bool arrived() override { return submitted; }
  Report report() override;
  std::span<const KernelTime> times() const override { return context.times; }

private:
  using Clock = std::chrono::steady_clock;

  Arena memory;
  descent_context context;
  std::vector<const uint8_t *> values;
  Clock::time_point begin = Clock::now();
  double milliseconds = 0;
  bool submitted = false;
};

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_HOSTBACKEND_H
