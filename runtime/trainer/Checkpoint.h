//===- Checkpoint.h - Saving and resuming a run ---------------------------------------------===//
//
// A checkpoint is one safetensors file with everything a run needs to go on bit for bit: parameters
// under their names, states under "state/NAME", and in the metadata the step (which is also the
// position in the data, since data order is a function of seed and step), the seed, what the data
// looked like, the plan's hash and a checksum of all of it.
//
// Files are called checkpoints/step-NNNNNNNN.safetensors. A file of that name is complete, because
// it gets the name last; its checksum finds what disks and people do to it later. The newest two
// are kept, so that one damaged file costs little.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_CHECKPOINT_H
#define DESCENT_RUNTIME_TRAINER_CHECKPOINT_H

#include "runtime/trainer/Safetensors.h"

#include "descent/abi.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace descent {

class Model;

inline constexpr char statePrefix[] = "state/";

/// What differs between the entries of a file and the tensors of a program.
class EntryDifferences {
public:
  /// The program has `tensor` and the file must have it, with this type (or any float type) and
  /// shape.
  void require(const SafetensorsReader &file, const std::string &name, const descent_tensor &tensor,
               bool anyFloat);
  /// The file has an entry; it is extra unless it was required before.
  void offer(const std::string &name, const SafetensorsEntry &entry);

  bool any() const { return blocking() || !extra.empty(); }
  bool blocking() const { return !missing.empty() || !reshaped.empty() || anyRetyped(); }
  bool anyRetyped() const { return !retyped.empty(); }
  /// "\n  missing: a f32 [3]\n  reshaped: ...", at most twenty of each kind.
  std::string text() const;

private:
  std::vector<std::string> required, missing, extra, reshaped, retyped;
};

/// Where a run stands, besides its parameters and states.
struct RunPosition {
  int64_t step = 0; ///< completed steps
  uint64_t seed = 0;
  int64_t samples = 0; ///< of the training data
  int64_t batch = 0;
  bool shuffle = true;
  std::string vocabulary; ///< of text data, else empty
};

class Checkpoints {
public:
  /// `folder` is RUN/checkpoints; `position` gives what stays the same during the run.
  Checkpoints(const Model &model, std::string folder, const RunPosition &position);

  /// Makes the folder, removes what an interrupted save left, and notes what is there. Throws Error
  /// if it cannot be written.
  void prepare();

  /// Saves the model after `step` steps. Allocates nothing. When it throws, all earlier files are
  /// still there.
  void save(int64_t step);

  uint64_t fileBytes() const { return writer.fileBytes(); }

private:
  void path(char (&out)[4096], int64_t step) const;

  std::string folder;
  SafetensorsWriter writer;
  int64_t kept[2] = {-1, -1}; // Steps of the good files, newest first; -1 for none.
};

/// The steps of the checkpoint files in a folder, newest first. Empty if there is no such folder.
std::vector<int64_t> listCheckpoints(const std::string &folder);
std::string checkpointPath(const std::string &folder, int64_t step);

/// Loads the newest good checkpoint of a folder into the model. Damaged ones are reported on
/// standard error, set aside as
/// "*.damaged", and the one before is taken. Nothing if the folder holds none; throws Error if it
/// holds only damaged ones or one of another model.
std::optional<RunPosition> loadNewestCheckpoint(Model &model, const std::string &folder);

/// Removes the checkpoints of a folder.
void removeCheckpoints(const std::string &folder);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_CHECKPOINT_H
