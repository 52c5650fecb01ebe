//===- Dataset.h - Samples for the training loop --------------------------===//
//
// A dataset is a numbered set of samples; a sample has one tensor for each program input with role
// DATA or TARGET. The training loop asks the sampler which samples make the next batch and copies
// them, row by row, straight into the arena.
//
// Files are mapped, not read: a corpus larger than memory trains, and several processes share its
// pages. Everything that can be wrong with a file is found by `open`, so that `read` neither fails
// nor allocates in the middle of a run.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_DATA_DATASET_H
#define DESCENT_RUNTIME_DATA_DATASET_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace descent::data {

/// One sample of one program input: the input's tensor without its leading (batch) dimension.
struct Field {
  std::string name;
  int32_t dtype; ///< enum descent_dtype
  std::vector<int64_t> sampleShape;
};

class Dataset {
public:
  virtual ~Dataset() = default;

  /// Number of samples, at least 1.
  virtual int64_t size() const = 0;

  /// Writes sample `index` of field `field` (its position in OpenRequest::fields), dense and
  /// row-major, to `out`. Thread safe, does not allocate, does not throw. 0 <= index < size().
  virtual void read(int64_t index, int field, void *out) const = 0;

  /// Text only: character i is the byte that token id i stands for. Empty for everything else.
  virtual std::string vocabulary() const { return {}; }

  /// Language data (text, tokens): predictions in one sample. 0 otherwise.
  virtual int64_t tokensPerSample() const { return 0; }
};

struct OpenRequest {
  std::string format; ///< text, tokens, npz, npy or idx
  std::string path;
  std::vector<Field> fields;  ///< program inputs with role DATA or TARGET
  std::vector<bool> isTarget; ///< one for each field

  /// Tokens in a sample of language data; 0 takes it from the fields' shape.
  int64_t sequence = 0;

  /// The last `validation` (0 <= validation < 1) of the file is the validation part, the rest is
  /// the training part. With validation == 0 the whole file is either: `path` then is the file
  /// given for it.
  double validation = 0.0;
  bool validationPart = false;

  /// The recipe, flattened as in descent_program::settings. Read here: data.inputs, data.targets,
  /// data.scale, data.token_type, data.vocabulary.
  std::map<std::string, std::string> settings;

  /// Text only: what vocabulary() of the training data said, so that a validation file or a resumed
  /// run gives the same byte the same id. Empty: settings decide.
  std::string vocabulary;
};

/// Opens and checks a data file. Throws descent::Error (runtime/core/Error.h) whose message names
/// the file, the byte offset or array, what was found, what was expected, and what would make it
/// right.
std::unique_ptr<Dataset> open(const OpenRequest &request);

/// Which samples make batch `step`. Steps count from 0 over the whole run: batch `step` belongs to
/// epoch step / batchesPerEpoch(). Every epoch visits each sample once; its order depends on (seed,
/// epoch) alone, so that a resumed run continues exactly, and never on the number of threads.
class Sampler {
public:
  /// Throws descent::Error unless samples and batch are positive.
  Sampler(int64_t samples, int64_t batch, uint64_t seed, bool shuffle);

  /// ceil(samples / batch): the last batch of an epoch may be short.
  int64_t batchesPerEpoch() const;

  /// Writes `batch` sample numbers to `indices` and returns how many of them are real rows of this
  /// batch (1 .. batch). The rest repeats the last real one, so that padding rows hold valid
  /// values; their weight must be 0. Does not allocate.
  int fill(int64_t step, int64_t *indices);

private:
  void shuffleEpoch(int64_t epoch);

  int64_t samples, batch;
  uint64_t seed;
  bool shuffle;
  int64_t currentEpoch = -1;
  std::vector<int64_t> order; // The permutation of currentEpoch; empty if not shuffled.
};

} // namespace descent::data

#endif // DESCENT_RUNTIME_DATA_DATASET_H
