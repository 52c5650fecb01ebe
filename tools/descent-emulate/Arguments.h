//===- Arguments.h - Values of a kernel's parameters, from text -----------===//
//
// The grammar is in the tool's --help (argumentHelp).
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_TOOLS_EMULATE_ARGUMENTS_H
#define DESCENT_TOOLS_EMULATE_ARGUMENTS_H

#include "runtime/emulator/Emulator.h"
#include "tools/descent-emulate/Elements.h"

namespace descent::emulate {

extern const char *const argumentHelp;

/// One --arg.
struct Argument {
  std::string text;                  ///< as given
  std::string label;                 ///< "2"; part 1 of an aggregate: "2.1"
  const ElementType *type = nullptr; ///< of a scalar or buffer
  bool isBuffer = false;
  std::vector<int64_t> shape;
  std::string initial; ///< of a buffer; empty: left uninitialised
  uint64_t address = 0;
  std::vector<char> value;     ///< the parameter's bytes
  std::vector<Argument> parts; ///< of an aggregate

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
};

class Arguments {
public:
  /// Parses the texts, allocates and fills buffers, and checks the values against the kernel's
  /// parameters. Throws Error.
  Arguments(emulator::Device &device, const descent_emulated_kernel &kernel,
            const std::vector<std::string> &texts);

  std::vector<std::vector<char>> values() const;

  /// The buffer that "2", "%x" or "x" names. Throws Error, with `option` in the message.
  const Argument &buffer(const std::string &name, const char *option) const;

  /// A buffer's bytes now, and which of its elements were never written.
  std::vector<char> read(const Argument &argument) const;
  bool written(const Argument &argument, int64_t element) const;

  /// "argument 2 (%x): f32[4x8]"
  std::string nameOf(const Argument &argument) const;

private:
  void parse(Argument &argument);
  void parseAggregate(Argument &argument);
  void parseBuffer(Argument &argument);
  const Argument &find(const std::string &name, const std::string &option) const;

  emulator::Device &device;
  const descent_emulated_kernel &kernel;
  std::vector<Argument> arguments;
};

/// The elements that an initial value (zeros, a number, a file ...) gives to a buffer.
std::vector<char> initialBytes(const Argument &argument, const std::string &initial);

} // namespace descent::emulate

#endif // DESCENT_TOOLS_EMULATE_ARGUMENTS_H
