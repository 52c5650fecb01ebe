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

#include "runtime/core/Backend.h"
#include "runtime/trainer/Nonfinite.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace descent {

class Inspector final : public LaunchObserver {
public:
  Inspector(Model &model, const Injection &injection);

  /// Starts a step. Takes note of what `find` has to put back, unless more than one step may be
  /// under way.
  void submit(int64_t number);
  /// The same, and waits for it.
  StepResult step(int64_t number);

  /// Where the step that `submit` started last got its first value that is not finite; nothing if
  /// a second run finds none.
  std::optional<Finding> find(const StepResult &result);
  /// The same for a step with others behind it, on the inputs that were filled in again. The run
  /// cannot go on: weights and counters are not those that they were.
  std::optional<Finding> findLate(const StepResult &result);

  void before(const descent_site &site, const uint64_t *offsets) override;
  void after(const descent_site &site, const uint64_t *offsets) override;

private:
  struct Range {
    Finding::Place place;
    std::string name;
    int32_t dtype;
    std::vector<int64_t> shape;
    uint64_t begin, end;
  };
  const Range *rangeOf(uint64_t offset) const;
  void addRange(Finding::Place place, std::string name, const descent_tensor &tensor,
                uint64_t offset, int32_t dtype);
  void scan(const descent_site &site, const descent_operand &operand, uint64_t offset,
            const char *output);
  const void *look(uint64_t offset, uint64_t bytes);
  void search(bool wholeStep);
  void copyCounters(std::vector<uint8_t> &to) const;
  void setCounters(const std::vector<uint8_t> &from);

  Model &model;
  const Injection injection;
  std::vector<const descent_tensor *> counters; // States that a step may change without committing.
  std::vector<uint8_t> countersBefore, countersAfter;
  std::vector<uint8_t> copied; // Of an operand that is not in memory of the host.
  std::vector<Range> ranges;   // Named tensors of the persistent part.
  // Of the function that is running.
  bool injecting = false, searching = false;
  int64_t launch = 0;
  std::optional<Finding> found;
};

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_INSPECT_H
