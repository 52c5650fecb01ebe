//===- Output.cpp - printf and assert of device code ------------------------------------------===//
//
// clang turns a printf into a call of vprintf with the arguments in local memory: int and unsigned
// as 4 bytes, long, pointers and double as 8 (float is promoted).
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/emulator/Output.h"
#include "runtime/emulator/Block.h"

#include <fmt/format.h>

#include <cstdio>

namespace descent::emulator {

static const Site printSite{"call @vprintf", "vprintf", "", "", 0, 0, 0};
static const Site assertSite{"call @__assertfail", "__assertfail", "", "", 0, 0, 0};

/// A string of the device, up to its end or 4096 characters. Faults must find no string alive on
/// this stack, so it fills one of the caller's.
static void readString(uint64_t address, char (&into)[4096], const Site &site) {
  size_t length = 0;
  while (length + 1 < sizeof into) {
    into[length] = *Block::current().hostOf(address + length, 1, 1, false, &site);
    if (!into[length])
      return;
    ++length;
  }
  into[length] = 0;
}

template <typename T> static T take(uint64_t &arguments) {
  arguments = (arguments + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  T value;
  std::memcpy(&value, Block::current().hostOf(arguments, sizeof(T), sizeof(T), false, &printSite),
              sizeof(T));
  arguments += sizeof(T);
  return value;
}

int32_t printFormatted(uint64_t format, uint64_t arguments) {
  char text[4096], string[4096];
  readString(format, text, printSite);
  int32_t conversions = 0;
  for (const char *at = text; *at;) {
    if (*at != '%') {
      std::putchar(*at++);
      continue;
    }
    const char *start = at++;
    while (*at && std::strchr("-+ #0123456789.", *at))
      ++at;
    bool wide = false;
    for (; *at && std::strchr("hlzjt", *at); ++at)
      wide |= *at != 'h';
    char specifier[32] = {};
    if (!*at || at - start > 24)
      break;
    std::memcpy(specifier, start, at - start + 1);
    char kind = *at++;
    ++conversions;
    if (kind == '%')
      std::putchar('%');
    else if (kind == 's') {
      readString(take<uint64_t>(arguments), string, printSite);
      std::printf(specifier, string);
    } else if (std::strchr("aAeEfFgG", kind))
      std::printf(specifier, take<double>(arguments));
    else if (kind == 'p')
      std::printf("0x%llx", static_cast<unsigned long long>(take<uint64_t>(arguments)));
    else if (std::strchr("diouxXc", kind) && wide)
      std::printf(specifier, take<uint64_t>(arguments));
    else if (std::strchr("diouxXc", kind))
      std::printf(specifier, take<uint32_t>(arguments));
    else // unknown: as it stands, as on hardware
      std::fputs(specifier, stdout);
  }
  return conversions;
}

void failAssertion(uint64_t condition, uint64_t file, uint32_t line, uint64_t function, uint64_t) {
  char what[4096], where[4096], who[4096];
  readString(condition, what, assertSite);
  readString(file, where, assertSite);
  readString(function, who, assertSite);
  Block::current().fail(Check::Trap, &assertSite, fmt::format("assertion failed: {}", what),
                        fmt::format("  at {}:{}, in {}\n", where, line, who),
                        "the kernel says itself what must hold");
}

} // namespace descent::emulator
