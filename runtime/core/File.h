//===- File.h - Files that are whole or absent ----------------------------------------------===//
//
// A weight file or a checkpoint is written under a temporary name, synced, and renamed to its own:
// whoever opens it sees all of it or the file that was there before, also after a crash of the
// machine. Nothing here allocates except for error messages, because checkpoints are written in the
// middle of training.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_FILE_H
#define DESCENT_RUNTIME_CORE_FILE_H

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

namespace descent {

/// Throws Error: "cannot WHAT PATH: strerror(code)", with the free space where a full disk is the
/// reason.
[[noreturn]] void throwFileError(const char *what, const char *path, int code);

/// Writes all of data[0, size) to `fd`; throws Error naming `path`.
void writeAll(int fd, const void *data, size_t size, const char *path);

class OutputFile {
public:
  OutputFile() = default;
  ~OutputFile(); ///< Removes what was not published.
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Starts a file that will be called `path`. What is no regular file (a pipe, /dev/null) is
  /// written in place.
  void open(const char *path);
  void write(const void *data, size_t size);
  /// Syncs, renames, and syncs the folder. The file is complete if this returns.
  void publish();

private:
  void discard();

  int fd = -1;
  bool inPlace = false;
  char target[PATH_MAX], temporary[PATH_MAX];
};

/// Makes the entries of a folder durable.
void syncFolder(const char *path);

/// The suffix of files under way; whoever finds one may remove it.
inline constexpr char partialSuffix[] = ".partial";

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_FILE_H
