//===- ProductChoices.cpp - Which algorithm each product takes --------------------------------===//
//
// A line for each choice: the key, the algorithm's 64 bytes in hexadecimal, the measured time, and
// a checksum of these three, with tabs between them. The bytes of an algorithm mean something to
// the library alone, and wrong ones may mean anything: hence the checksum.
//
//===------------------------------------------------------------------------------------------===//

#include "runtime/cuda/ProductChoices.h"

#include "runtime/core/Error.h"
#include "runtime/core/File.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace descent;
using namespace descent::cuda;

static constexpr char firstLine[] = "descent products 1";

std::string cuda::defaultProductsFile() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  // The rule of XDG: a path that is not absolute is ignored.
  if (cache && cache[0] == '/')
    return std::string(cache) + "/descent/products";
  if (home && *home)
    return std::string(home) + "/.cache/descent/products";
  return {};
}

static uint64_t checksum(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

static std::string lineOf(const std::string &key, const ProductChoice &choice) {
  std::string line = key + '\t';
  for (uint64_t word : choice.algorithm.data)
    line += fmt::format("{:016x}", word);
  line += fmt::format("\t{:.2f}", choice.microseconds);
  return line + fmt::format("\t{:016x}", checksum(line));
}

static std::optional<std::pair<std::string, ProductChoice>> parseLine(const std::string &line) {
  size_t last = line.rfind('\t');
  if (last == std::string::npos || last == 0)
    return std::nullopt;
  size_t time = line.rfind('\t', last - 1);
  if (time == std::string::npos || time == 0)
    return std::nullopt;
  size_t bytes = line.rfind('\t', time - 1);
  if (bytes == std::string::npos || time - bytes - 1 != 2 * sizeof(cublasLtMatmulAlgo_t))
    return std::nullopt;
  if (line.substr(last + 1) != fmt::format("{:016x}", checksum(line.substr(0, last))))
    return std::nullopt;
  ProductChoice choice;
  for (size_t word = 0; word < std::size(choice.algorithm.data); ++word) {
    char *end;
    std::string digits = line.substr(bytes + 1 + word * 16, 16);
    choice.algorithm.data[word] = std::strtoull(digits.c_str(), &end, 16);
    if (*end)
      return std::nullopt;
  }
  choice.microseconds = std::strtof(line.c_str() + time + 1, nullptr);
  return std::pair(line.substr(0, bytes), choice);
}

ProductChoices cuda::readChoices(const std::string &path, std::vector<std::string> &notes) {
  std::ifstream file(path);
  if (!file) {
    if (std::error_code code; std::filesystem::exists(path, code))
      notes.push_back(fmt::format("{} cannot be read; products are chosen anew", path));
    return {};
  }
  ProductChoices choices;
  std::string line;
  if (!std::getline(file, line) || line != firstLine) {
    notes.push_back(fmt::format("{} is no file of product choices (its first line is not '{}'); "
                                "products are chosen anew",
                                path, firstLine));
    return {};
  }
  for (int number = 2; std::getline(file, line); ++number) {
    auto choice = parseLine(line);
    if (!choice) {
      notes.push_back(
          fmt::format("{} is broken in line {}; products are chosen anew", path, number));
      return {};
    }
    choices.insert(*choice);
  }
  return choices;
}

void cuda::mergeChoices(const std::string &path, ProductChoices &choices,
                        std::vector<std::string> &notes) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty())
    std::filesystem::create_directories(folder, ignored); // opening the file says what failed
  // The lock is a file of its own: the other is replaced as a whole.
  std::string lockPath = path + ".lock";
  int lock = ::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock >= 0)
    while (flock(lock, LOCK_EX) != 0 && errno == EINTR)
      ;
  std::vector<std::string> known; // said when the file was read first
  ProductChoices all = readChoices(path, known);
  for (auto &[key, choice] : choices) {
    auto [entry, added] = all.insert({key, choice});
    choice = entry->second;
  }
  try {
    OutputFile file;
    file.open(path.c_str());
    std::string text = std::string(firstLine) + '\n';
    for (const auto &[key, choice] : all)
      text += lineOf(key, choice) + '\n';
    file.write(text.data(), text.size());
    file.publish();
  } catch (const Error &error) {
    notes.push_back(fmt::format("{}; the choice of algorithms for matrix products is not kept, and "
                                "the next run may round differently (--products FILE names another "
                                "file)",
                                error.what()));
  }
  if (lock >= 0)
    ::close(lock);
}
