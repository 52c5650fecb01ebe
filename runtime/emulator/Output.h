//===- Output.h - printf and assert of device code ------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_OUTPUT_H
#define DESCENT_RUNTIME_EMULATOR_OUTPUT_H

#include <cstdint>

namespace descent::emulator {

/// vprintf: `format` and `arguments` are addresses of the device; arguments follow each other, each
/// at a multiple of its size. Prints to standard output at once. The number of conversions.
int32_t printFormatted(uint64_t format, uint64_t arguments);

/// __assertfail: what a failed assert calls.
void failAssertion(uint64_t condition, uint64_t file, uint32_t line, uint64_t function,
                   uint64_t charBytes);

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_OUTPUT_H
