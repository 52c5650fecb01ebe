//===- Inspect.h - A step whose launches are looked into ------------------------------------===//
//
// To find where the first value that is not finite comes from, a step is run again with every
// output scanned behind its launch. Nothing of a run changes by that: a step that did not commit
// wrote only the loss scale with its counters, which are put back, and one that did commit is
// followed by its forward pass alone.
//
// The same observer puts an inf into a gradient when asked to.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_INSPECT_H
#define DESCENT_RUNTIME_TRAINER_INSPECT_H

#include "runtime/core/Context.h"
#include "runtime/trainer/Nonfinite.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace descent {

class Inspector final : public LaunchObserver {
public:
  Inspector(Model &model, const Injection &injection);

  /// Runs a step. Takes note of what `find` has to put back.
  StepResult step(int64_t number);

  /// Where the step that `step` ran last got its first value that is not finite; nothing if a
  /// second run finds none.
  std::optional<Finding> find(const StepResult &result);

  void before(const descent_site &site, void *const *buffers) override;
  void after(const descent_site &site, void *const *buffers) override;

private:
  struct Range {
    Finding::Place place;
    std::string name;
    int32_t dtype;
    std::vector<int64_t> shape;
    const uint8_t *begin, *end;
  };
  const Range *rangeOf(const uint8_t *address) const;
  void addRange(Finding::Place place, std::string name, const descent_tensor &tensor,
                uint64_t offset, int32_t dtype);
  void scan(const descent_site &site, const descent_operand &operand, const void *data,
            const char *output);
  void copyCounters(std::vector<uint8_t> &to) const;
  void setCounters(const std::vector<uint8_t> &from);

  Model &model;
  const Injection injection;
  std::vector<const descent_tensor *> counters; // States that a step may change without committing.
  std::vector<uint8_t> countersBefore, countersAfter;
  std::vector<Range> ranges; // Named tensors of the persistent part.
  // Of the function that is running.
  bool injecting = false, searching = false;
  int64_t launch = 0;
  std::optional<Finding> found;
};

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_INSPECT_H
