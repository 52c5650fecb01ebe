//===- RunFolder.cpp - The folder of a run --------------------------------------------------===//
#include "runtime/trainer/RunFolder.h"
#include "runtime/core/Error.h"
#include "runtime/core/File.h"
#include "runtime/trainer/Checkpoint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace descent;
namespace fs = std::filesystem;

static bool isFolder(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

static bool exists(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

static bool hasContent(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

RunFolder::RunFolder(const std::string &path, Mode mode, const descent_program &program,
                     uint64_t seed)
    : folder(path), recordedSeed(seed) {
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  std::string marker = folder + "/run.json";
  if (mode == Mode::Resume) {
    if (!isFolder(folder))
      throw Error(fmt::format("nothing to resume: there is no folder {}", folder));
    // A checkpoint without the marker came from somewhere else, and is as good.
    if (!exists(marker) && listCheckpoints(checkpoints()).empty())
      throw Error(fmt::format(
          "nothing to resume: {} is no run (it has neither run.json nor a checkpoint)", folder));
    if (!exists(marker))
      create(program);
    lock();
    readMarker();
    return;
  }
  if (!exists(marker))
    create(program);
  lock();
  bool used = !listCheckpoints(checkpoints()).empty() || hasContent(metrics());
  if (used && mode == Mode::Fresh)
    throw Error(fmt::format("{} holds an earlier run; go on with it (--resume), replace it "
                            "(--overwrite), or give another --out folder",
                            folder));
  if (used) {
    removeCheckpoints(checkpoints());
    std::string path = metrics();
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      throwFileError("remove", path.c_str(), errno);
  }
  // The marker may be of a run that never took a step, with another seed.
  create(program);
}

RunFolder::~RunFolder() {
  if (lockFile >= 0)
    ::close(lockFile);
}

/// Half-made folders of processes that were killed while they made `folder`.
static void removeAbandoned(const std::string &folder) {
  fs::path path(folder), parent = path.parent_path();
  std::string prefix = path.filename().string() + ".";
  // Not fs::directory_iterator: it makes strings of every name, however many there are.
  DIR *entries = ::opendir(parent.empty() ? "." : parent.c_str());
  if (!entries)
    return; // making the folder will say why
  while (const dirent *entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(partialSuffix))
      continue;
    name.remove_suffix(std::string_view(partialSuffix).size());
    pid_t process = 0;
    const char *end = name.data() + name.size();
    auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, process);
    if (error != std::errc() || stop != end)
      continue;
    std::error_code ignored;
    if (::kill(process, 0) != 0 && errno == ESRCH)
      fs::remove_all(parent / entry->d_name, ignored);
  }
  ::closedir(entries);
}

void RunFolder::create(const descent_program &program) {
  nlohmann::ordered_json marker = {
      {"model", program.name},
      {"compiler", program.compiler},
      {"plan_hash", fmt::format("{:016x}", program.plan_hash)},
      {"seed", recordedSeed},
  };
  // Names may be any bytes; what is no text is replaced, since nothing depends on it.
  std::string text = marker.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  auto write = [&](const std::string &where) {
    OutputFile file;
    file.open((where + "/run.json").c_str());
    file.write(text.data(), text.size());
    file.publish();
  };
  if (isFolder(folder))
    return write(folder);
  if (exists(folder))
    throwFileError("use as the run's folder", folder.c_str(), ENOTDIR);

  fs::path parent = fs::path(folder).parent_path();
  std::error_code error;
  if (!parent.empty() && !fs::create_directories(parent, error) && error)
    throwFileError("make folder", parent.c_str(), error.value());
  removeAbandoned(folder);
  std::string building = fmt::format("{}.{}{}", folder, ::getpid(), partialSuffix);
  if (::mkdir(building.c_str(), 0777) != 0)
    throwFileError("make folder", folder.c_str(), errno);
  try {
    write(building);
    if (::rename(building.c_str(), folder.c_str()) != 0)
      throwFileError("make folder", folder.c_str(), errno);
  } catch (...) {
    ::unlink((building + "/run.json").c_str());
    ::rmdir(building.c_str());
    throw;
  }
}

void RunFolder::lock() {
  // The folder itself is locked: run.json is replaced, and a lock would stay with the old one.
  lockFile = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lockFile < 0)
    throwFileError("open folder", folder.c_str(), errno);
  // File systems without locks answer something else; the run goes on without one.
  if (::flock(lockFile, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(fmt::format(
        "another process is training in {}; wait for it, or give another --out folder", folder));
}

void RunFolder::readMarker() {
  std::string path = folder + "/run.json";
  std::ifstream file(path);
  nlohmann::json marker = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!marker.is_object() || !marker.contains("seed") || !marker["seed"].is_number_unsigned())
    throw Error(fmt::format("{} is damaged: it should be an object with the run's seed", path));
  recordedSeed = marker["seed"].get<uint64_t>();
}
