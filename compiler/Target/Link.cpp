//===- Link.cpp - From objects to a training program ----------------------===//
//
// Linking goes through the C++ compiler driver of the machine, which knows where its C++ and OpenMP
// libraries are. Objects are written to a private folder and the result is renamed into place, so
// that a failed or interrupted link never leaves half a program.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Link.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace descent {

static Error refuse(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static Expected<std::string> findDriver() {
  if (auto chosen = sys::Process::GetEnv("CXX"))
    if (auto found = sys::findProgramByName(*chosen))
      return *found;
  for (StringRef name : {"c++", "g++", "clang++"})
    if (auto found = sys::findProgramByName(name))
      return *found;
  return refuse("no C++ compiler to link with; install g++, or set CXX to one (or stop before "
                "linking with --emit=obj)");
}

/// Folder with libdescent_runtime.a and descent_runtime.link.
static Expected<std::string> findRuntime() {
  std::string program = sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&findRuntime));
  StringRef prefix = sys::path::parent_path(sys::path::parent_path(program));
  for (StringRef folder : {"lib/descent", "lib"}) {
    SmallString<256> path(prefix);
    sys::path::append(path, folder);
    if (sys::fs::exists(path + "/libdescent_runtime.a"))
      return std::string(path);
  }
  return refuse("the runtime library libdescent_runtime.a is not beside this compiler (looked in " +
                prefix + "/lib/descent and " + prefix +
                "/lib); build it with tools/build or install again");
}

/// Runs a program; its output is part of the error if it fails.
static Error execute(ArrayRef<std::string> command, StringRef log) {
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::string message;
  std::optional<StringRef> redirects[] = {std::nullopt, log, log};
  int status = sys::ExecuteAndWait(command[0], arguments, std::nullopt, redirects, 0, 0, &message);
  if (status == 0)
    return Error::success();
  auto output = MemoryBuffer::getFile(log);
  return refuse(join(command, " ") + " failed" + (message.empty() ? "" : ": " + message) + "\n" +
                (output ? (*output)->getBuffer() : StringRef()));
}

/// Writes the objects into a fresh folder beside nothing else and calls `link` with their paths, a
/// log path and the path of the result, which is then renamed to `output`.
static Error
linkThrough(ArrayRef<ObjectBytes> objects, StringRef output,
            function_ref<Error(ArrayRef<std::string>, StringRef log, StringRef result)> link) {
  SmallString<256> folder;
  if (auto code = sys::fs::createUniqueDirectory("descent-link", folder))
    return refuse("cannot create a temporary folder: " + code.message());
  auto cleanUp = make_scope_exit([&] { sys::fs::remove_directories(folder); });
  std::vector<std::string> paths;
  for (const ObjectBytes &object : objects) {
    paths.push_back((folder + "/" + Twine(paths.size()) + ".o").str());
    std::error_code code;
    raw_fd_ostream stream(paths.back(), code);
    stream.write(object.data(), object.size());
    stream.close();
    if (code || stream.has_error()) {
      stream.clear_error();
      return refuse("cannot write " + paths.back() + ": " +
                    (code ? code : stream.error()).message());
    }
  }
  // In the output's folder, so that the rename stays on one file system.
  std::string partial = (output + ".partial-" + Twine(sys::Process::getProcessId())).str();
  auto removePartial = make_scope_exit([&] { sys::fs::remove(partial); });
  if (Error error = link(paths, (folder + "/log").str(), partial))
    return error;
  if (auto code = sys::fs::rename(partial, output))
    return refuse("cannot write " + output + ": " + code.message());
  removePartial.release();
  return Error::success();
}

Error linkObject(ArrayRef<ObjectBytes> objects, StringRef output) {
  auto linker = sys::findProgramByName("ld");
  if (!linker)
    return refuse("no linker `ld` to combine objects with; install binutils");
  return linkThrough(objects, output,
                     [&](ArrayRef<std::string> paths, StringRef log, StringRef result) {
                       std::vector<std::string> command{*linker, "-r", "-o", result.str()};
                       llvm::append_range(command, paths);
                       return execute(command, log);
                     });
}

/// Appends a library of the runtime and what its .link file says it needs.
static Error appendLibrary(std::vector<std::string> &command, StringRef folder, StringRef name) {
  std::string flagsPath = (folder + "/" + name + ".link").str();
  auto flags = MemoryBuffer::getFile(flagsPath);
  if (!flags)
    return refuse("cannot read " + flagsPath + ": " + flags.getError().message());
  command.push_back((folder + "/lib" + name + ".a").str());
  SmallVector<StringRef> words;
  (*flags)->getBuffer().split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    if (!word.trim().empty())
      command.push_back(word.trim().str());
  return Error::success();
}

Error linkExecutable(ArrayRef<ObjectBytes> objects, StringRef output, bool emulator) {
  auto driver = findDriver();
  if (!driver)
    return driver.takeError();
  auto runtime = findRuntime();
  if (!runtime)
    return runtime.takeError();
  std::vector<std::string> libraries;
  if (emulator)
    if (Error error = appendLibrary(libraries, *runtime, "descent_emulator"))
      return error;
  if (Error error = appendLibrary(libraries, *runtime, "descent_runtime"))
    return error;
  return linkThrough(objects, output,
                     [&](ArrayRef<std::string> paths, StringRef log, StringRef result) {
                       std::vector<std::string> command{*driver, "-o", result.str()};
                       llvm::append_range(command, paths);
                       llvm::append_range(command, libraries);
                       return execute(command, log);
                     });
}

} // namespace descent
