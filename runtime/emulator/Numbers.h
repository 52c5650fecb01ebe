//===- Numbers.h - Formats and rounding of the device ---------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_NUMBERS_H
#define DESCENT_RUNTIME_EMULATOR_NUMBERS_H

#include <cstdint>
#include <cstring>

namespace descent::emulator {

inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Rounds to bf16 or f16, to nearest even or towards zero; NaN becomes 0x7fff as in PTX.
uint16_t toNarrow(double value, bool half, bool towardsZero = false);
float fromNarrow(uint16_t bits, bool half);

/// Eight-bit floats of the OCP.
float fromE4M3(uint8_t bits);
float fromE5M2(uint8_t bits);

/// Element `index` of a register that holds a fragment of mma; `type` is a DESCENT_MMA_ one.
double mmaElement(int type, uint32_t bits, int index);

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_NUMBERS_H
