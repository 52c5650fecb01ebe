//===- Batches.h - From samples to the inputs of a step -------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_BATCHES_H
#define DESCENT_RUNTIME_TRAINER_BATCHES_H

#include "runtime/core/Program.h"
#include "runtime/data/Dataset.h"

#include "descent/abi.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace descent {

class Model;

/// Where the data of a run comes from: the command line where it says something, else the recipe.
struct DataSource {
  std::string format;
  std::string path;
  double validation = 0; ///< the fraction of the file that is set aside
  bool validationPart = false;
  std::string vocabulary; ///< of the training data, where it is known already
};

/// The settings' format, or the one that the file's name tells.
std::string dataFormat(const Settings &settings, const std::string &path);

std::unique_ptr<data::Dataset> openDataset(const descent_program &program, const Settings &settings,
                                           const DataSource &source);

/// Writes batches of a dataset into the program's inputs.
class Batches {
public:
  Batches(Model &model, const data::Dataset &dataset, const std::string &path, uint64_t seed,
          bool shuffle);

  int64_t samples() const { return dataset.size(); }
  int64_t perEpoch() const { return sampler.batchesPerEpoch(); }

  /// Fills all inputs of the next call with batch `index` and returns the number of its real rows;
  /// padding rows of a short batch have weight 0. Throws Error for a value outside its input's
  /// bounds. Allocates nothing.
  int fill(int64_t index);

private:
  struct Column {
    const descent_input *input;
    uint64_t rowBytes;
    uint8_t *data = nullptr; // Of the batch that is being filled.
  };
  void checkBounds(const Column &column, int rows) const;

  Model &model;
  const data::Dataset &dataset;
  std::string path;
  data::Sampler sampler;
  std::vector<Column> columns;
  std::vector<int64_t> indices;
  const descent_tensor *rowWeights = nullptr;
};

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_BATCHES_H
