//===- Program.h - Checks and look-ups of a compiled program --------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_PROGRAM_H
#define DESCENT_RUNTIME_CORE_PROGRAM_H

#include "descent/abi.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace descent {

/// Bytes of one element, 0 for a number that is no enum descent_dtype.
uint64_t elementBytes(int32_t dtype);
/// "f32", "i64", ...
const char *dtypeName(int32_t dtype);
/// "f32 [4, 3]".
std::string typeText(const descent_tensor &tensor);
std::string typeText(const descent_operand &operand);
uint64_t elementCount(const descent_operand &operand);
uint64_t byteCount(const descent_operand &operand);
/// Gradients are f32 whatever their parameter is.
uint64_t gradientBytes(const descent_parameter &parameter);

/// Throws Error unless `program` is one this runtime can run: its ABI version and struct size first
/// (nothing else is read when they differ), then every table: types, shapes, places in the arena,
/// unique names, functions with the outputs the trainer reads.
void checkProgram(const descent_program &program);
/// The part of it that programs of a device have instead of code for the host: images, commands,
/// events. Called by checkProgram, behind the checks of the tables that it reads.
void checkDevice(const descent_program &program);

/// Throws Error if this CPU lacks one of the comma separated LLVM feature names. See Cpu.cpp for
/// the names that are known; others are ignored.
void checkCpu(const descent_program &program);
/// The first known feature in the list that this CPU lacks, or empty.
std::string missingCpuFeature(std::string_view features);
/// The processor's own name for itself, or "this CPU".
std::string cpuName();

/// Rows of a batch: the leading dimension of the data inputs.
int64_t batchSize(const descent_program &program);

/// The function of that name, or null.
const descent_function *lookFunction(const descent_program &program, std::string_view name);
/// The function of that name; checkProgram has seen that it exists.
const descent_function &findFunction(const descent_program &program, std::string_view name);
/// The state of that name, or null.
const descent_tensor *findState(const descent_program &program, std::string_view name);
/// The output of that name, or null.
const descent_tensor *findOutput(const descent_function &function, std::string_view name);

/// The recipe's settings, with typed access that names the key when its value does not parse.
class Settings {
public:
  explicit Settings(const descent_program &program);

  std::optional<std::string> text(const std::string &key) const;
  std::string text(const std::string &key, const std::string &otherwise) const;
  int64_t integer(const std::string &key, int64_t otherwise) const;
  double real(const std::string &key, double otherwise) const;
  bool flag(const std::string &key, bool otherwise) const;
  const std::map<std::string, std::string> &all() const { return values; }

private:
  std::map<std::string, std::string> values;
};

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_PROGRAM_H
