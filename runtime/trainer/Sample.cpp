//===- Sample.cpp - Text from a trained model -----------------------------------------------===//
//
// The compiled evaluate function predicts the next token at every position of a window. A sample
// grows by one token an evaluation: the window holds the last tokens so far, the rest of it
// padding, which a causal model does not see from the position that is read. All sequences of the
// batch grow together, so more samples cost no more time.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Batches.h"
#include "runtime/trainer/Checkpoint.h"
#include "runtime/trainer/Log.h"
#include "runtime/trainer/Model.h"
#include "runtime/trainer/Options.h"
#include "runtime/trainer/Run.h"
#include "runtime/trainer/RunFolder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>

using namespace descent;

namespace {

class Sampler {
public:
  Sampler(const descent_program &program, const Settings &settings, const Options &options)
      : program(program), settings(settings), options(options),
        model(program, makeBackend(program, options)) {
    findLanguageModel();
  }

  int run() {
    model.initialize(0); // For states; the weights are overwritten.
    loadWeights();
    model.refresh();
    encodePrompt();
    std::vector<std::vector<int64_t>> texts(options.samples, prompt);
    bool stream = options.samples == 1;
    if (stream)
      print(prompt, promptShown);
    std::vector<float> scores(classes);
    for (int64_t token = 0; token < options.tokens; ++token) {
      prepareInputs();
      for (int64_t i = 0; i < options.samples; ++i)
        writeWindow(i, texts[i]);
      model.evaluate();
      for (int64_t i = 0; i < options.samples; ++i) {
        int64_t place = std::min<int64_t>(texts[i].size(), length) - 1;
        uint64_t row = static_cast<uint64_t>((i * length + place) * classes) * sizeof(float);
        model.backend.read(predictions->offset + row, scores.data(),
                           static_cast<uint64_t>(classes) * sizeof(float));
        texts[i].push_back(choose(scores, i, token));
        if (stream)
          print({texts[i].back()}, true);
      }
    }
    for (int64_t i = 0; !stream && i < options.samples; ++i) {
      fmt::print("--- sample {} ---\n", i + 1);
      if (!promptShown)
        texts[i].erase(texts[i].begin());
      print(texts[i], true);
      fmt::print("\n");
    }
    if (stream)
      fmt::print("\n");
    return ExitDone;
  }

private:
  void findLanguageModel() {
    const descent_tensor *output = findOutput(findFunction(program, "evaluate"), "predictions");
    for (uint64_t i = 0; i < program.input_count; ++i)
      if (program.inputs[i].role == DESCENT_INPUT_DATA && !tokens)
        tokens = &program.inputs[i];
      else if (program.inputs[i].role == DESCENT_INPUT_DATA)
        tokens = nullptr, output = nullptr;
    bool fits = tokens && output && output->dtype == DESCENT_F32 && output->rank == 3 &&
                tokens->tensor.rank == 2 && output->shape[0] == tokens->tensor.shape[0] &&
                output->shape[1] == tokens->tensor.shape[1] &&
                (tokens->tensor.dtype == DESCENT_I32 || tokens->tensor.dtype == DESCENT_I64);
    if (!fits)
      throw Error(fmt::format("model '{}' is no language model: sample needs one input of tokens "
                              "[batch, length] and predictions "
                              "[batch, length, vocabulary]",
                              program.name));
    length = output->shape[1];
    classes = output->shape[2];
    predictions = output;
  }

  void loadWeights() {
    std::string path = options.initFrom;
    if (path.empty()) {
      std::string folder = checkpointFolder(options.out);
      for (int64_t step : listCheckpoints(folder)) {
        try {
          path = checkpointPath(folder, step);
          SafetensorsReader(path).verifyChecksum();
          break;
        } catch (const Error &error) {
          warn("{}; trying the checkpoint before it", error.what());
          path.clear();
        }
      }
      if (path.empty())
        throw Error(fmt::format("no weights: {} holds no whole checkpoint; train first, or give "
                                "--init-from F.safetensors",
                                folder));
    }
    SafetensorsReader file(path);
    std::string extra;
    model.loadWeights(file, extra);
    if (!extra.empty())
      note("{}", extra);
    vocabulary = fromHexadecimal(file.metadata("vocabulary", ""));
    if (!vocabulary.empty())
      return;
    // Weights from elsewhere: the data tells which byte an id stands for.
    std::string dataPath = options.data.empty() ? settings.text("data.path", "") : options.data;
    if (!dataPath.empty() && dataFormat(settings, dataPath) == "text")
      vocabulary =
          openDataset(program, settings, {.format = "text", .path = dataPath})->vocabulary();
  }

  void encodePrompt() {
    if (!options.prompt.empty() && vocabulary.empty()) {
      encodeNumbers();
    } else {
      for (unsigned char byte : options.prompt) {
        size_t id = vocabulary.find(static_cast<char>(byte));
        if (id == std::string::npos || static_cast<int64_t>(id) >= classes)
          throw Error(fmt::format("the prompt has the byte 0x{:02x} ('{}'), which is not in the "
                                  "model's vocabulary of {} bytes",
                                  byte, byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '?',
                                  std::min<int64_t>(classes, vocabulary.size())));
        prompt.push_back(static_cast<int64_t>(id));
      }
    }
    promptShown = !prompt.empty();
    if (prompt.empty()) {
      // Something must come before the first token; a new line is how most texts start.
      size_t newLine = vocabulary.find('\n');
      prompt.push_back(newLine == std::string::npos ? 0 : static_cast<int64_t>(newLine));
    }
  }

  void encodeNumbers() {
    const char *next = options.prompt.data(), *end = next + options.prompt.size();
    while (next != end) {
      if (*next == ' ' || *next == ',') {
        ++next;
        continue;
      }
      int64_t id = 0;
      auto [stop, error] = std::from_chars(next, end, id);
      if (error != std::errc())
        throw Error(
            "the model knows tokens by number only; give --prompt as numbers, such as \"17 4 256\"",
            ExitUsage);
      if (id < 0 || id >= classes)
        throw Error(
            fmt::format("the prompt's token {} is outside the vocabulary of {}", id, classes));
      prompt.push_back(id);
      next = stop;
    }
  }

  /// Values for the inputs that sampling does not care about: they must only be valid.
  void prepareInputs() {
    model.backend.beginInputs();
    for (uint64_t i = 0; i < program.input_count; ++i) {
      const descent_input &input = program.inputs[i];
      uint8_t *data = model.backend.input(input.tensor);
      uint64_t count = input.tensor.bytes / elementBytes(input.tensor.dtype);
      int64_t valid = input.bounded ? input.low : 0;
      if (input.role == DESCENT_INPUT_ROW_WEIGHTS)
        std::fill_n(reinterpret_cast<float *>(data), count, 1.0f);
      else if (input.tensor.dtype == DESCENT_I32)
        std::fill_n(reinterpret_cast<int32_t *>(data), count, static_cast<int32_t>(valid));
      else if (input.tensor.dtype == DESCENT_I64)
        std::fill_n(reinterpret_cast<int64_t *>(data), count, valid);
      else
        std::memset(data, 0, input.tensor.bytes);
    }
  }

  void writeWindow(int64_t row, const std::vector<int64_t> &text) {
    int64_t count = std::min<int64_t>(text.size(), length);
    const int64_t *first = text.data() + text.size() - count;
    uint8_t *data = model.backend.input(tokens->tensor);
    for (int64_t i = 0; i < count; ++i)
      if (tokens->tensor.dtype == DESCENT_I64)
        reinterpret_cast<int64_t *>(data)[row * length + i] = first[i];
      else
        reinterpret_cast<int32_t *>(data)[row * length + i] = static_cast<int32_t>(first[i]);
  }

  /// Draws a token from softmax(scores / temperature) over the top-k. The draw is a function of
  /// (seed, sample, token).
  int64_t choose(std::vector<float> &scores, int64_t row, int64_t token) {
    // Ids past a text's vocabulary never occur in it and have no byte.
    int64_t usable = vocabulary.empty() ? classes : std::min<int64_t>(classes, vocabulary.size());
    int64_t best = std::max_element(scores.begin(), scores.begin() + usable) - scores.begin();
    if (!std::isfinite(scores[best]))
      throw Error("the model predicts values that are no numbers; its weights are damaged");
    if (options.temperature == 0)
      return best;
    float threshold = -INFINITY;
    if (options.topK > 0 && options.topK < usable) {
      std::vector<float> sorted(scores.begin(), scores.begin() + usable);
      std::nth_element(sorted.begin(), sorted.begin() + (options.topK - 1), sorted.end(),
                       std::greater<>());
      threshold = sorted[options.topK - 1];
    }
    float peak = scores[best];
    std::vector<double> cumulative(usable);
    double sum = 0;
    for (int64_t i = 0; i < usable; ++i) {
      if (scores[i] >= threshold)
        sum += std::exp((scores[i] - peak) / options.temperature);
      cumulative[i] = sum;
    }
    uint64_t position = static_cast<uint64_t>(token);
    PhiloxWords words = philox({static_cast<uint32_t>(position),
                                static_cast<uint32_t>(position >> 32), static_cast<uint32_t>(row),
                                0x73616d70 /* "samp": apart from all other uses of the seed */},
                               options.seed);
    double draw = unitInterval(words[0]) * sum;
    return std::upper_bound(cumulative.begin(), cumulative.end(), draw) - cumulative.begin();
  }

  void print(const std::vector<int64_t> &ids, bool shown) const {
    if (!shown)
      return;
    for (int64_t id : ids)
      if (vocabulary.empty())
        fmt::print("{} ", id);
      else
        std::fputc(vocabulary[static_cast<size_t>(id)], stdout);
    std::fflush(stdout);
  }

  const descent_program &program;
  const Settings &settings;
  const Options &options;
  Model model;
  const descent_input *tokens = nullptr;
  const descent_tensor *predictions = nullptr;
  int64_t length = 0, classes = 0;
  std::string vocabulary;
  std::vector<int64_t> prompt;
  bool promptShown = false;
};

} // namespace

int descent::sample(const descent_program &program, const Settings &settings,
                    const Options &options) {
  return Sampler(program, settings, options).run();
}
