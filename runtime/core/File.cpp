//===- File.cpp - Files that are whole or absent --------------------------------------------===//
#include "runtime/core/File.h"
#include "runtime/core/Arena.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace descent;

/// Writes the folder of `path` to `folder`.
static void folderOf(const char *path, char (&folder)[PATH_MAX]) {
  const char *slash = std::strrchr(path, '/');
  size_t length = !slash ? 0 : slash == path ? 1 : static_cast<size_t>(slash - path);
  std::memcpy(folder, path, length);
  folder[length] = 0;
  if (!length)
    std::strcpy(folder, ".");
}

void descent::throwFileError(const char *what, const char *path, int code) {
  std::string message = fmt::format("cannot {} {}: {}", what, path, std::strerror(code));
  char folder[PATH_MAX];
  struct statvfs space;
  if (code == ENOSPC && std::strlen(path) < sizeof folder) {
    folderOf(path, folder);
    if (statvfs(folder, &space) == 0)
      message +=
          fmt::format(" ({} free on the file system of {}); make room or choose another folder",
                      formatBytes(space.f_bavail * space.f_frsize).text, folder);
  } else if (code == EACCES || code == EROFS || code == EPERM) {
    message += "; choose a folder you may write to";
  }
  throw Error(message);
}

void descent::writeAll(int fd, const void *data, size_t size, const char *path) {
  const char *next = static_cast<const char *>(data);
  // A single write moves at most 2^31 bytes.
  while (size) {
    ssize_t written = ::write(fd, next, std::min<size_t>(size, 1u << 30));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      throwFileError("write", path, errno);
    next += written;
    size -= static_cast<size_t>(written);
  }
}

void descent::syncFolder(const char *path) {
  int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    throwFileError("open folder", path, errno);
  int code = fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some file systems cannot sync a folder and say EINVAL; there is nothing to be done about it
  // then.
  if (code && code != EINVAL)
    throwFileError("sync folder", path, code);
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (fd < 0)
    return;
  ::close(fd);
  fd = -1;
  if (!inPlace)
    ::unlink(temporary);
}

void OutputFile::open(const char *path) {
  discard();
  struct stat status;
  bool exists = ::stat(path, &status) == 0;
  inPlace = exists && !S_ISREG(status.st_mode);
  if (inPlace && S_ISDIR(status.st_mode))
    throwFileError("write", path, EISDIR);
  if (std::strlen(path) + sizeof partialSuffix > sizeof target)
    throwFileError("write", path, ENAMETOOLONG);
  // A link keeps pointing where it does: its target is what is replaced.
  if (!exists || inPlace || !::realpath(path, target))
    std::strcpy(target, path);
  if (std::strlen(target) + sizeof partialSuffix > sizeof temporary)
    throwFileError("write", path, ENAMETOOLONG);
  std::strcpy(temporary, target);
  if (!inPlace)
    std::strcat(temporary, partialSuffix);
  fd = ::open(temporary, O_WRONLY | O_CLOEXEC | (inPlace ? 0 : O_CREAT | O_TRUNC), 0666);
  if (fd < 0)
    throwFileError("write", temporary, errno);
}

void OutputFile::write(const void *data, size_t size) { writeAll(fd, data, size, temporary); }

void OutputFile::publish() {
  if (inPlace) {
    ::close(fd);
    fd = -1;
    return;
  }
  if (fsync(fd) != 0)
    throwFileError("sync", temporary, errno);
  // Network file systems and quotas may report a failed write only here.
  int closed = ::close(fd);
  int code = errno;
  fd = -1;
  if (closed != 0 || ::rename(temporary, target) != 0) {
    code = closed != 0 ? code : errno;
    ::unlink(temporary);
    throwFileError("complete", target, code);
  }
  char folder[PATH_MAX];
  folderOf(target, folder);
  syncFolder(folder);
}
