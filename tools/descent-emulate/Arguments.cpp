//===- Arguments.cpp - Values of a kernel's parameters, from text ---------===//

#include "tools/descent-emulate/Arguments.h"
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"

#include <fmt/format.h>

#include <charconv>

namespace descent::emulate {

const char *const argumentHelp =
    "Values of --arg, one for each parameter of the kernel, in order:\n"
    "  TYPE:NUMBER            a scalar: i32:5  i64:-1  f32:1.5  bf16:0.25  i1:1\n"
    "  TYPE[SHAPE]            a buffer of the device, not initialised: f32[1024]  bf16[16x64]\n"
    "  TYPE[SHAPE]=INITIAL    the same with values: zeros, ones, iota (0, 1, 2, ...), random or\n"
    "                         random:SEED (normal; integers 0 to 255, of one byte 0 or 1),\n"
    "                         a number, or FILE.npy\n"
    "  TYPE[SHAPE]=freed      a buffer that was freed again\n"
    "  same:ARG  same:ARG+BYTES   the address of another buffer, or BYTES behind it\n"
    "  ptr:ADDRESS            any number as an address: ptr:0 is the null pointer\n"
    "  struct:VALUE,VALUE...  a struct that the kernel takes by value, of values as above\n"
    "  bytes:HEX              the same as its bytes in memory\n"
    "ARG is a parameter's position from 0, or its name in the IR; ARG.N is part N of a struct.\n"
    "Types: f32, f64, bf16, f16, i1, i8, u8, i16, i32, u32, i64.\n";

[[noreturn]] static void refuse(const std::string &text, const std::string &reason) {
  throw Error(fmt::format("--arg {}: {}", text, reason), ExitUsage);
}

static bool parseNumber(const std::string &text, double &into) {
  const char *end = text.c_str() + text.size();
  char *stop = nullptr;
  into = std::strtod(text.c_str(), &stop);
  return !text.empty() && stop == end;
}

/// A whole number in base 10 or, behind 0x, 16.
static bool parseInteger(std::string_view text, uint64_t &into) {
  bool negative = text.starts_with('-');
  text.remove_prefix(negative);
  int base = text.starts_with("0x") ? 16 : 10;
  text.remove_prefix(base == 16 ? 2 : 0);
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  if (negative)
    into = -into;
  return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

std::vector<char> initialBytes(const Argument &argument, const std::string &initial) {
  const ElementType &type = *argument.type;
  int64_t count = argument.elements();
  std::vector<char> bytes(count * type.bytes);
  auto fill = [&](auto &&value) {
    for (int64_t i = 0; i < count; ++i)
      type.store(value(i), bytes.data() + i * type.bytes);
    return bytes;
  };
  double number;
  if (initial == "zeros")
    return bytes;
  if (initial == "ones")
    return fill([](int64_t) { return 1.0; });
  if (initial == "iota")
    return fill([](int64_t i) { return static_cast<double>(i); });
  if (initial == "random" || initial.starts_with("random:")) {
    uint64_t seed = 0;
    if (initial != "random" && !parseInteger(std::string_view(initial).substr(7), seed))
      refuse(argument.text, "the seed of random:SEED is a whole number");
    if (!type.isFloat)
      return fill([&](int64_t i) {
        return philox({static_cast<uint32_t>(i), 0, 0, 0}, seed)[0] % (type.bytes > 1 ? 256 : 2);
      });
    std::vector<float> values(count);
    fillNormal(values.data(), count, seed, "buffer", 0.0, 1.0);
    return fill([&](int64_t i) { return values[i]; });
  }
  if (parseNumber(initial, number))
    return fill([&](int64_t) { return number; });
  if (!initial.ends_with(".npy"))
    refuse(argument.text, fmt::format("'{}' is no initial value; it is zeros, ones, iota, random, "
                                      "random:SEED, a number, or the name of an .npy file",
                                      initial));
  std::vector<char> file = readNpy(initial, type);
  if (file.size() != bytes.size())
    refuse(argument.text, fmt::format("'{}' holds {} elements, the buffer {}", initial,
                                      file.size() / type.bytes, count));
  return file;
}

void Arguments::parseBuffer(Argument &argument) {
  const std::string &text = argument.text;
  size_t bracket = text.find('[');
  argument.type = findType(text.substr(0, bracket));
  if (!argument.type)
    refuse(text,
           fmt::format("'{}' is no type; types are {}", text.substr(0, bracket), typeNames()));
  size_t close = text.find(']', bracket);
  if (close == std::string::npos)
    refuse(text, "the shape has no ']'; a buffer is f32[4x8] or f32[32]=zeros");
  std::string shape = text.substr(bracket + 1, close - bracket - 1);
  for (size_t at = 0; at <= shape.size();) {
    size_t next = std::min(shape.find('x', at), shape.size());
    uint64_t extent;
    if (!parseInteger(shape.substr(at, next - at), extent) || extent > (UINT64_C(1) << 40))
      refuse(text,
             fmt::format("'{}' is no shape; it is numbers with x between them: [4x8]", shape));
    argument.shape.push_back(static_cast<int64_t>(extent));
    at = next + 1;
  }
  std::string rest = text.substr(close + 1);
  if (!rest.empty() && (rest[0] != '=' || rest.size() == 1))
    refuse(text, "behind the shape stands = and an initial value, or nothing");
  argument.initial = rest.empty() ? "" : rest.substr(1);
  argument.isBuffer = true;
  uint64_t bytes = argument.elements() * argument.type->bytes;
  argument.address = device.memory.allocate(bytes, nameOf(argument));
  if (argument.initial == "freed")
    device.memory.release(argument.address);
  else if (!argument.initial.empty()) {
    std::vector<char> values = initialBytes(argument, argument.initial);
    device.memory.copyIn(argument.address, values.data(), values.size());
  }
  argument.value.resize(8);
  std::memcpy(argument.value.data(), &argument.address, 8);
}

/// Members at multiples of their sizes, as C and LLVM lay a struct out.
void Arguments::parseAggregate(Argument &argument) {
  const std::string &text = argument.text;
  size_t most = 1;
  for (size_t at = std::strlen("struct:"); at <= text.size();) {
    size_t next = std::min(text.find(',', at), text.size());
    Argument part;
    part.text = text.substr(at, next - at);
    part.label = fmt::format("{}.{}", argument.label, argument.parts.size());
    if (part.text.starts_with("struct:") || part.text.starts_with("bytes:"))
      refuse(text, "a struct in a struct is written as its members");
    parse(part);
    size_t size = part.value.size();
    argument.value.resize((argument.value.size() + size - 1) / size * size);
    argument.value.insert(argument.value.end(), part.value.begin(), part.value.end());
    most = std::max(most, size);
    argument.parts.push_back(std::move(part));
    at = next + 1;
  }
  argument.value.resize((argument.value.size() + most - 1) / most * most);
}

void Arguments::parse(Argument &argument) {
  const std::string &text = argument.text;
  size_t bracket = text.find('['), colon = text.find(':');
  auto setPointer = [&](uint64_t address) {
    argument.value.resize(8);
    std::memcpy(argument.value.data(), &address, 8);
  };
  if (text.starts_with("struct:")) {
    parseAggregate(argument);
    return;
  }
  if (bracket != std::string::npos && bracket < colon) {
    parseBuffer(argument);
    return;
  }
  if (colon == std::string::npos)
    refuse(text, "is neither a scalar (i32:5) nor a buffer (f32[32]=zeros); see --help");
  std::string kind = text.substr(0, colon), rest = text.substr(colon + 1);
  uint64_t integer;
  if (kind == "ptr") {
    if (!parseInteger(rest, integer))
      refuse(text, fmt::format("'{}' is no address", rest));
    setPointer(integer);
  } else if (kind == "same") {
    size_t plus = rest.find('+');
    uint64_t offset = 0;
    if (plus != std::string::npos && !parseInteger(rest.substr(plus + 1), offset))
      refuse(text, fmt::format("'{}' is no number of bytes", rest.substr(plus + 1)));
    const Argument &other = find(rest.substr(0, plus), "--arg " + text);
    if (!other.isBuffer || !other.address)
      refuse(text, "names no buffer among the arguments before it");
    setPointer(other.address + offset);
  } else if (kind == "bytes") {
    if (rest.size() % 2)
      refuse(text, "two digits make a byte; the number of digits is odd");
    for (size_t at = 0; at < rest.size(); at += 2) {
      if (!parseInteger("0x" + rest.substr(at, 2), integer))
        refuse(text, fmt::format("'{}' is no byte in base 16", rest.substr(at, 2)));
      argument.value.push_back(static_cast<char>(integer));
    }
  } else if ((argument.type = findType(kind))) {
    double number;
    argument.value.resize(argument.type->bytes);
    if (!argument.type->isFloat && parseInteger(rest, integer)) {
      uint64_t bits = 8 * argument.type->bytes;
      auto extended = static_cast<int64_t>(integer);
      if (bits < 64 && (extended >= (INT64_C(1) << bits) || extended < -(INT64_C(1) << (bits - 1))))
        refuse(text, fmt::format("{} does not fit {} bits", rest, bits));
      std::memcpy(argument.value.data(), &integer, argument.type->bytes);
    } else if (argument.type->isFloat && parseNumber(rest, number)) {
      argument.type->store(number, argument.value.data());
    } else {
      refuse(text, fmt::format("'{}' is no {}", rest,
                               argument.type->isFloat ? "number" : "whole number"));
    }
  } else {
    refuse(text, fmt::format("'{}' is no type; types are {}; a pointer is ptr:, same: or a buffer",
                             kind, typeNames()));
  }
}

/// What the parameter may be given, in words; empty if the argument fits.
static std::string mismatch(const descent_emulated_parameter &parameter, const Argument &argument) {
  std::string type = parameter.type;
  bool pointer = type.starts_with("ptr");
  bool gives =
      argument.isBuffer || argument.text.starts_with("same:") || argument.text.starts_with("ptr:");
  if (parameter.by_value)
    return argument.text.starts_with("bytes:") || !argument.parts.empty()
               ? ""
               : fmt::format(
                     "a struct of {} bytes by value; give struct:VALUE,VALUE... or bytes:HEX",
                     parameter.bytes);
  if (!argument.parts.empty())
    return fmt::format("{}, not a struct by value", type);
  if (pointer)
    return gives ? "" : "a pointer; give a buffer (f32[32]=zeros), same:ARG or ptr:0";
  if (argument.isBuffer)
    return fmt::format("{}, not a pointer; give a scalar", type);
  if (gives)
    return type == "i64" ? "" : fmt::format("{}, not a pointer; give a scalar", type);
  std::string wanted = type == "float"    ? "f32"
                       : type == "double" ? "f64"
                       : type == "half"   ? "f16"
                       : type == "bfloat" ? "bf16"
                                          : type;
  std::string name = argument.type ? argument.type->name : "bytes";
  if (name[0] == 'u')
    name[0] = 'i';
  if (name == wanted || name == "bytes")
    return "";
  return fmt::format("{}; give {}:NUMBER", type, wanted);
}

Arguments::Arguments(emulator::Device &device, const descent_emulated_kernel &kernel,
                     const std::vector<std::string> &texts)
    : device(device), kernel(kernel) {
  if (texts.size() != kernel.parameter_count) {
    std::string list;
    for (uint32_t i = 0; i < kernel.parameter_count; ++i)
      list += fmt::format("\n  {}: {}{}{}", i, kernel.parameters[i].type,
                          *kernel.parameters[i].name ? " %" : "", kernel.parameters[i].name);
    throw Error(fmt::format("kernel '{}' has {} parameter{}, {} --arg given; they are:{}",
                            kernel.name, kernel.parameter_count,
                            kernel.parameter_count == 1 ? "" : "s", texts.size(), list),
                ExitUsage);
  }
  arguments.resize(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    arguments[i].text = texts[i];
    arguments[i].label = fmt::format("{}", i);
    parse(arguments[i]);
    if (std::string wrong = mismatch(kernel.parameters[i], arguments[i]); !wrong.empty())
      throw Error(fmt::format("--arg {}: parameter {} of kernel '{}' is {}", texts[i], i,
                              kernel.name, wrong),
                  ExitUsage);
  }
}

std::string Arguments::nameOf(const Argument &argument) const {
  const char *name = kernel.parameters[std::stoul(argument.label)].name;
  return fmt::format("argument {}{}: {}", argument.label, *name ? fmt::format(" (%{})", name) : "",
                     argument.text.substr(0, argument.text.find(']') + 1));
}

std::vector<std::vector<char>> Arguments::values() const {
  std::vector<std::vector<char>> result;
  for (const Argument &argument : arguments)
    result.push_back(argument.value);
  return result;
}

const Argument &Arguments::find(const std::string &name, const std::string &option) const {
  std::string bare = name.starts_with('%') ? name.substr(1) : name;
  for (size_t i = 0; i < arguments.size() && !bare.empty(); ++i) {
    if (bare == arguments[i].label || bare == kernel.parameters[i].name)
      return arguments[i];
    for (const Argument &part : arguments[i].parts)
      if (bare == part.label)
        return part;
  }
  throw Error(fmt::format("{}: '{}' names no argument; kernel '{}' has {}, counted from 0", option,
                          name, kernel.name, arguments.size()),
              ExitUsage);
}

const Argument &Arguments::buffer(const std::string &name, const char *option) const {
  const Argument &found = find(name, option);
  if (!found.isBuffer || found.initial == "freed")
    throw Error(fmt::format("{} {}: this argument is no buffer ({})", option, name, found.text),
                ExitUsage);
  return found;
}

std::vector<char> Arguments::read(const Argument &argument) const {
  std::vector<char> bytes(argument.elements() * argument.type->bytes);
  device.memory.copyOut(bytes.data(), argument.address, bytes.size());
  return bytes;
}

bool Arguments::written(const Argument &argument, int64_t element) const {
  uint64_t bytes = argument.type->bytes;
  return device.memory.find(argument.address)->firstUnwritten(element * bytes, bytes) < 0;
}

} // namespace descent::emulate
