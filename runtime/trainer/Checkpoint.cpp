//===- Checkpoint.cpp - Saving and resuming a run -------------------------------------------===//
//
// The order of a save: write under a temporary name, sync, rename, sync the folder, and only then
// remove the file before the last. At every moment at least one complete file has its final name.
// What prune removes are files that were good when written or loaded; a damaged file is never
// counted as one of the two that are kept.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/trainer/Checkpoint.h"
#include "runtime/core/Arena.h"
#include "runtime/core/Backend.h"
#include "runtime/core/Error.h"
#include "runtime/core/File.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Log.h"
#include "runtime/trainer/Model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace descent;
namespace fs = std::filesystem;

static constexpr char checkpointFormat[] = "descent checkpoint 1";
static constexpr char filePattern[] = "step-%08lld.safetensors";

//===----------------------------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------------------------===//

void EntryDifferences::require(const SafetensorsReader &file, const std::string &name,
                               const descent_tensor &tensor, bool anyFloat) {
  required.push_back(name);
  auto found = file.entries().find(name);
  if (found == file.entries().end()) {
    missing.push_back(fmt::format("{} {}", name, typeText(tensor)));
    return;
  }
  const SafetensorsEntry &entry = found->second;
  bool sameShape =
      std::equal(entry.shape.begin(), entry.shape.end(), tensor.shape, tensor.shape + tensor.rank);
  bool sameType = entry.dtype == safetensorsDtype(tensor.dtype) || (anyFloat && isFloat(entry));
  if (!sameShape || !sameType)
    (sameShape ? retyped : reshaped)
        .push_back(fmt::format("{}: the file has {}, the model {}", name, typeText(entry),
                               typeText(tensor)));
}

void EntryDifferences::offer(const std::string &name, const SafetensorsEntry &entry) {
  if (std::find(required.begin(), required.end(), name) == required.end())
    extra.push_back(fmt::format("{} {}", name, typeText(entry)));
}

std::string EntryDifferences::text() const {
  static constexpr size_t shown = 20;
  std::string result;
  auto list = [&](const char *what, const std::vector<std::string> &items) {
    for (size_t i = 0; i < std::min(items.size(), shown); ++i)
      result += fmt::format("\n  {}: {}", what, items[i]);
    if (items.size() > shown)
      result += fmt::format("\n  and {} more {}", items.size() - shown, what);
  };
  list("missing", missing);
  list("reshaped", reshaped);
  list("other type", retyped);
  list("extra", extra);
  return result;
}

//===----------------------------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------------------------===//

std::string descent::checkpointPath(const std::string &folder, int64_t step) {
  char name[64];
  std::snprintf(name, sizeof name, filePattern, static_cast<long long>(step));
  return folder + "/" + name;
}

std::vector<int64_t> descent::listCheckpoints(const std::string &folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || !name.ends_with(".safetensors"))
      continue;
    int64_t step = -1;
    const char *begin = name.data() + 5, *end = name.data() + name.size() - 12;
    auto [stop, code] = std::from_chars(begin, end, step);
    if (code == std::errc() && stop == end && step >= 0)
      steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void descent::removeCheckpoints(const std::string &folder) {
  for (int64_t step : listCheckpoints(folder)) {
    std::string path = checkpointPath(folder, step);
    if (::unlink(path.c_str()) != 0)
      throwFileError("remove", path.c_str(), errno);
  }
}

/// The state of a loss scale, which other precisions lack.
static bool isOfLossScale(const std::string &name) {
  for (const char *state :
       {DESCENT_LOSS_SCALE_STATE, DESCENT_CLEAN_STEPS_STATE, DESCENT_SKIPPED_STEPS_STATE})
    if (name == statePrefix + std::string(state))
      return true;
  return false;
}

/// Says what differs, and whether it is the model or only its precision: the same parameters, but
/// other types or another loss scale.
[[noreturn]] static void refuse(const Model &model, const SafetensorsReader &file,
                                const EntryDifferences &differences) {
  const descent_program &program = model.program;
  EntryDifferences weights;
  bool scaleHere = findState(program, DESCENT_SKIPPED_STEPS_STATE), scaleThere = false;
  for (uint64_t i = 0; i < program.parameter_count; ++i)
    weights.require(file, safetensorsName(program.parameters[i].tensor.name),
                    program.parameters[i].tensor, /*anyFloat=*/true);
  for (const auto &[name, entry] : file.entries()) {
    scaleThere |= isOfLossScale(name);
    if (!name.starts_with(statePrefix))
      weights.offer(name, entry);
  }
  if (!weights.any() && (differences.anyRetyped() || scaleHere != scaleThere))
    throw Error(fmt::format(
        "{0} is a checkpoint of model '{1}' in another precision:{2}\n"
        "Go on with a binary that was compiled as the run began, or start a new run in another "
        "--out folder with --init-from {0}, which converts the weights and starts the optimizer "
        "anew.",
        file.path(), program.name, differences.text()));
  throw Error(fmt::format(
      "{} is a checkpoint of another model (it says '{}', this is '{}'):{}\n"
      "Train in another --out folder, or start from its weights with --init-from if they fit.",
      file.path(), file.metadata("model", "?"), program.name, differences.text()));
}

/// Refuses a checkpoint whose entries are not those of the program, one for one.
static void compareEntries(const Model &model, const SafetensorsReader &file) {
  const descent_program &program = model.program;
  EntryDifferences differences;
  for (uint64_t i = 0; i < program.parameter_count; ++i)
    differences.require(file, safetensorsName(program.parameters[i].tensor.name),
                        program.parameters[i].tensor, /*anyFloat=*/false);
  for (uint64_t i = 0; i < program.state_count; ++i)
    differences.require(file, statePrefix + safetensorsName(program.states[i].tensor.name),
                        program.states[i].tensor, /*anyFloat=*/false);
  for (const auto &[name, entry] : file.entries())
    differences.offer(name, entry);
  if (differences.any())
    refuse(model, file, differences);
}

static int64_t metadataNumber(const SafetensorsReader &file, const char *key) {
  std::string text = file.metadata(key, "");
  uint64_t value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    throw Error(fmt::format("{}: its metadata '{}' is '{}' and should be a number", file.path(),
                            key, text));
  return static_cast<int64_t>(value);
}

static RunPosition load(Model &model, const SafetensorsReader &file) {
  const descent_program &program = model.program;
  auto copy = [&](const std::string &name, const descent_tensor &tensor) {
    const SafetensorsEntry &entry = file.entries().at(name);
    model.backend.produce(tensor.offset, tensor.bytes,
                          [&](uint8_t *data, uint64_t first, uint64_t bytes) {
                            file.read(entry, first, bytes, data);
                          });
  };
  for (uint64_t i = 0; i < program.parameter_count; ++i)
    copy(safetensorsName(program.parameters[i].tensor.name), program.parameters[i].tensor);
  for (uint64_t i = 0; i < program.state_count; ++i)
    copy(statePrefix + safetensorsName(program.states[i].tensor.name), program.states[i].tensor);
  if (file.metadata("plan_hash", "") != fmt::format("{:016x}", program.plan_hash))
    warn("{} was saved by another compilation of model '{}'; its entries fit and are used",
         file.path(), program.name);
  RunPosition position;
  position.step = metadataNumber(file, "step");
  position.seed = static_cast<uint64_t>(metadataNumber(file, "seed"));
  position.samples = metadataNumber(file, "samples");
  position.batch = metadataNumber(file, "batch");
  position.shuffle = file.metadata("shuffle", "true") == "true";
  position.vocabulary = fromHexadecimal(file.metadata("vocabulary", ""));
  return position;
}

std::optional<RunPosition> descent::loadNewestCheckpoint(Model &model, const std::string &folder) {
  std::vector<std::string> damaged;
  for (int64_t step : listCheckpoints(folder)) {
    std::string path = checkpointPath(folder, step);
    std::optional<SafetensorsReader> file;
    try {
      file.emplace(path);
      if (file->metadata("format", "") != checkpointFormat)
        throw Error(path + " is no checkpoint of this version");
      file->verifyChecksum();
    } catch (const Error &error) {
      warn("{}; trying the checkpoint before it", error.what());
      damaged.push_back(path);
      continue;
    }
    compareEntries(model, *file);
    RunPosition position = load(model, *file);
    // Out of the way, so that they are neither loaded nor counted again; kept, because they are the
    // user's.
    for (const std::string &bad : damaged)
      if (::rename(bad.c_str(), (bad + ".damaged").c_str()) == 0)
        note("{} is now called {}.damaged", bad, fs::path(bad).filename().string());
    return position;
  }
  if (!damaged.empty())
    throw Error(fmt::format(
        "none of the {} checkpoints in {} is whole; give another --out folder to start again",
        damaged.size(), folder));
  return std::nullopt;
}

//===----------------------------------------------------------------------------------------===//
// Saving
//===----------------------------------------------------------------------------------------===//

static SafetensorsWriter makeWriter(const Model &model, const RunPosition &position) {
  const descent_program &program = model.program;
  std::vector<SafetensorsTensor> tensors;
  auto add = [&](std::string name, const descent_tensor &tensor) {
    tensors.push_back(model.entry(std::move(name), tensor));
  };
  for (uint64_t i = 0; i < program.parameter_count; ++i)
    add(program.parameters[i].tensor.name, program.parameters[i].tensor);
  for (uint64_t i = 0; i < program.state_count; ++i)
    add(statePrefix + std::string(program.states[i].tensor.name), program.states[i].tensor);
  SafetensorsWriter::Metadata metadata = {{"format", checkpointFormat},
                                          {"model", safetensorsName(program.name)},
                                          {"plan_hash", fmt::format("{:016x}", program.plan_hash)},
                                          {"step", fmt::format("{:020}", 0)},
                                          {"seed", fmt::format("{}", position.seed)},
                                          {"samples", fmt::format("{}", position.samples)},
                                          {"batch", fmt::format("{}", position.batch)},
                                          {"shuffle", position.shuffle ? "true" : "false"}};
  if (!position.vocabulary.empty())
    metadata.emplace_back("vocabulary", hexadecimal(position.vocabulary));
  return SafetensorsWriter(std::move(tensors), metadata, /*checksum=*/true);
}

Checkpoints::Checkpoints(const Model &model, std::string folder, const RunPosition &position)
    : folder(std::move(folder)), writer(makeWriter(model, position)) {}

void Checkpoints::path(char (&out)[4096], int64_t step) const {
  size_t length = std::min(folder.size(), sizeof out - 64);
  std::memcpy(out, folder.data(), length);
  out[length] = '/';
  std::snprintf(out + length + 1, sizeof out - length - 1, filePattern,
                static_cast<long long>(step));
}

void Checkpoints::prepare() {
  if (folder.size() > sizeof(char[4096]) - 128)
    throwFileError("make folder", folder.c_str(), ENAMETOOLONG);
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    throwFileError("make folder", folder.c_str(), errno);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throwFileError("write to folder", folder.c_str(), errno);
  // Better now than at the first save. Some file systems know no sizes and say 0 blocks.
  struct statvfs space;
  if (::statvfs(folder.c_str(), &space) == 0 && space.f_blocks > 0 &&
      space.f_bavail * space.f_frsize < fileBytes())
    throwFileError(fmt::format("save a checkpoint of {} in", formatBytes(fileBytes()).text).c_str(),
                   folder.c_str(), ENOSPC);
  for (const fs::directory_entry &entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(partialSuffix))
      ::unlink(entry.path().c_str());
  }
  // A third file is what a crash between a save and its clean-up leaves; the newest has just been
  // found good.
  size_t count = 0;
  for (int64_t step : listCheckpoints(folder)) {
    if (count < 2)
      kept[count++] = step;
    else
      ::unlink(checkpointPath(folder, step).c_str());
  }
}

void Checkpoints::save(int64_t step) {
  char text[32], name[4096];
  std::snprintf(text, sizeof text, "%020lld", static_cast<long long>(step));
  writer.setMetadata("step", text);
  path(name, step);
  writer.write(name);
  if (step == kept[0])
    return;
  if (kept[1] >= 0 && kept[1] != step) {
    path(name, kept[1]);
    ::unlink(name); // Failing to remove an old file endangers nothing.
  }
  kept[1] = kept[0];
  kept[0] = step;
}
