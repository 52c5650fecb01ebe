//===- RunFolder.h - The folder of a run ----------------------------------------------------===//
//
//   RUN/run.json        what is trained, and with which seed: this file makes a folder a run
//   RUN/metrics.jsonl   one object a step
//   RUN/checkpoints/    see Checkpoint.h
//
// A new folder appears under its name with run.json inside, in one step: a process that is killed
// at any moment leaves either no folder or one that can be resumed.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_RUNFOLDER_H
#define DESCENT_RUNTIME_TRAINER_RUNFOLDER_H

#include "descent/abi.h"

#include <cstdint>
#include <optional>
#include <string>

namespace descent {

class RunFolder {
public:
  enum class Mode {
    Fresh,     ///< a new run; an earlier one in the folder is refused
    Overwrite, ///< a new run; an earlier one in the folder is removed
    Resume     ///< an earlier run, which must be there
  };

  /// Opens the folder and locks it until this object dies. `seed` is recorded for new runs. Throws
  /// Error.
  RunFolder(const std::string &path, Mode mode, const descent_program &program, uint64_t seed);
  ~RunFolder();
  RunFolder(const RunFolder &) = delete;
  RunFolder &operator=(const RunFolder &) = delete;

  const std::string &path() const { return folder; }
  std::string metrics() const { return folder + "/metrics.jsonl"; }
  std::string checkpoints() const { return folder + "/checkpoints"; }

  /// The seed that the run was started with.
  uint64_t seed() const { return recordedSeed; }

private:
  void create(const descent_program &program);
  void lock();
  void readMarker();

  std::string folder;
  uint64_t recordedSeed;
  int lockFile = -1;
};

/// The folder of the checkpoints of a run, for readers that do not train.
inline std::string checkpointFolder(const std::string &run) { return run + "/checkpoints"; }

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_RUNFOLDER_H
