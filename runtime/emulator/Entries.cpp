//===- Entries.cpp - What retargeted code calls, by name --------------------------------------===//
//
// Beside the entries of descent/emulator.h: conversions that LLVM's code generator calls where the
// host has no instruction for them and libgcc no function (a narrow float is in the lower half of a
// vector register, as is a float), and the functions of CUDA's libdevice that MLIR names.
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Numbers.h"
#include "runtime/emulator/Output.h"

#include <cmath>

using namespace descent::emulator;

static Block &block() { return Block::current(); }

extern "C" {

void *descent_emulate_access(uint64_t address, uint64_t bytes, uint32_t flags, const Site *site) {
  return block().access(address, bytes, flags, site);
}
void descent_emulate_copy(uint64_t to, uint64_t from, uint64_t bytes, const Site *site) {
  block().copy(to, from, bytes, site);
}
void descent_emulate_fill(uint64_t to, uint32_t value, uint64_t bytes, const Site *site) {
  block().fill(to, static_cast<uint8_t>(value), bytes, site);
}
uint64_t descent_emulate_local_mark() { return block().localMark(); }
void descent_emulate_local_release(uint64_t mark) { block().localRelease(mark); }
uint64_t descent_emulate_local(uint64_t bytes, uint64_t alignment, const Site *site) {
  return block().local(bytes, alignment, site);
}
uint64_t descent_emulate_register(uint32_t which) { return block().reg(which); }
uint32_t descent_emulate_space(uint64_t address, uint32_t space) {
  uint64_t window = space == 3 ? DESCENT_EMULATED_SHARED : space == 5 ? DESCENT_EMULATED_LOCAL : 0;
  if (window)
    return address - window < DESCENT_EMULATED_WINDOW;
  Region *region = address >= DESCENT_EMULATED_GLOBAL && address < DESCENT_EMULATED_GLOBAL_END
                       ? block().find(address)
                       : nullptr;
  return region && region->readOnly == (space == 4);
}
void descent_emulate_barrier(uint64_t *slots, const Site *site) { block().barrier(slots, site); }
void descent_emulate_cp_async(uint64_t *slots, const Site *site) { block().issueCopy(slots, site); }
void descent_emulate_cp_async_commit(uint64_t *, const Site *) { block().commitCopies(); }
void descent_emulate_cp_async_wait(uint64_t *slots, const Site *) {
  block().finishCopies(slots[0], false);
}
void descent_emulate_cp_async_wait_all(uint64_t *, const Site *) { block().finishCopies(0, true); }
void descent_emulate_yield(uint64_t *, const Site *site) {
  block().running->site = site;
  block().yield();
}
void descent_emulate_exit(uint64_t *, const Site *) { block().exitThread(); }
void descent_emulate_trap(uint64_t *, const Site *site) { block().trap(site); }

// LLVM's code generator calls these by name where the host has no instruction. Not every libgcc has
// them, and a program that was linked finds no table of symbols.
#define CODEGEN(name) __asm__(name) __attribute__((weak))
float truncateToBrain(float value) CODEGEN("__truncsfbf2");
float truncateDoubleToBrain(double value) CODEGEN("__truncdfbf2");
float truncateToHalf(float value) CODEGEN("__truncsfhf2");
float truncateDoubleToHalf(double value) CODEGEN("__truncdfhf2");
float extendHalf(float bits) CODEGEN("__extendhfsf2");
#undef CODEGEN

static float narrowInRegister(double value, bool half) { return floatOf(toNarrow(value, half)); }
float truncateToBrain(float value) { return narrowInRegister(value, false); }
float truncateDoubleToBrain(double value) { return narrowInRegister(value, false); }
float truncateToHalf(float value) { return narrowInRegister(value, true); }
float truncateDoubleToHalf(double value) { return narrowInRegister(value, true); }
float extendHalf(float bits) { return fromNarrow(static_cast<uint16_t>(bitsOf(bits)), true); }

static int32_t nvvmReflect(const char *) { return 0; }
static float nvRsqrt(float x) { return static_cast<float>(1.0 / std::sqrt(double(x))); }
static double nvRsqrtDouble(double x) { return 1.0 / std::sqrt(x); }
static float nvDivide(float x, float y) { return x / y; }
static float nvSaturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

} // extern "C"

template <typename Function> static void *pointer(Function function) {
  return reinterpret_cast<void *>(function);
}
using Unary = float (*)(float);
using Binary = float (*)(float, float);
using UnaryDouble = double (*)(double);
using BinaryDouble = double (*)(double, double);

std::vector<Symbol> descent::emulator::symbols() {
  std::vector<Symbol> table;
#define ENTRY(name, result, parameters)                                                            \
  table.push_back({"descent_emulate_" #name, pointer(descent_emulate_##name)});
  DESCENT_EMULATOR_ENTRIES(ENTRY)
#undef ENTRY
  auto add = [&](const char *name, void *address) { table.push_back({name, address}); };
  add("__truncsfbf2", pointer(truncateToBrain));
  add("__truncdfbf2", pointer(truncateDoubleToBrain));
  add("__truncsfhf2", pointer(truncateToHalf));
  add("__truncdfhf2", pointer(truncateDoubleToHalf));
  add("__extendhfsf2", pointer(extendHalf));
#define LIBDEVICE(name, function)                                                                  \
  add("__nv_" name "f", pointer(static_cast<Unary>(function)));                                    \
  add("__nv_" name, pointer(static_cast<UnaryDouble>(function)));
#define LIBDEVICE2(name, function)                                                                 \
  add("__nv_" name "f", pointer(static_cast<Binary>(function)));                                   \
  add("__nv_" name, pointer(static_cast<BinaryDouble>(function)));
  LIBDEVICE("exp", std::exp)
  LIBDEVICE("exp2", std::exp2)
  LIBDEVICE("expm1", std::expm1)
  LIBDEVICE("log", std::log)
  LIBDEVICE("log2", std::log2)
  LIBDEVICE("log10", std::log10)
  LIBDEVICE("log1p", std::log1p)
  LIBDEVICE("sqrt", std::sqrt)
  LIBDEVICE("cbrt", std::cbrt)
  LIBDEVICE("sin", std::sin)
  LIBDEVICE("cos", std::cos)
  LIBDEVICE("tan", std::tan)
  LIBDEVICE("asin", std::asin)
  LIBDEVICE("acos", std::acos)
  LIBDEVICE("atan", std::atan)
  LIBDEVICE("sinh", std::sinh)
  LIBDEVICE("cosh", std::cosh)
  LIBDEVICE("tanh", std::tanh)
  LIBDEVICE("asinh", std::asinh)
  LIBDEVICE("acosh", std::acosh)
  LIBDEVICE("atanh", std::atanh)
  LIBDEVICE("erf", std::erf)
  LIBDEVICE("erfc", std::erfc)
  LIBDEVICE("fabs", std::fabs)
  LIBDEVICE("floor", std::floor)
  LIBDEVICE("ceil", std::ceil)
  LIBDEVICE("trunc", std::trunc)
  LIBDEVICE("round", std::round)
  LIBDEVICE("rint", std::nearbyint)
  LIBDEVICE2("pow", std::pow)
  LIBDEVICE2("atan2", std::atan2)
  LIBDEVICE2("fmod", std::fmod)
  LIBDEVICE2("fmin", std::fmin)
  LIBDEVICE2("fmax", std::fmax)
  LIBDEVICE2("copysign", std::copysign)
  LIBDEVICE2("hypot", std::hypot)
#undef LIBDEVICE
#undef LIBDEVICE2
  add("__nvvm_reflect", pointer(nvvmReflect));
  add("vprintf", pointer(printFormatted));
  add("__assertfail", pointer(failAssertion));
  add("__nv_rsqrtf", pointer(nvRsqrt));
  add("__nv_rsqrt", pointer(nvRsqrtDouble));
  add("__nv_fast_fdividef", pointer(nvDivide));
  add("__nv_saturatef", pointer(nvSaturate));
  for (auto [name, function] :
       std::initializer_list<std::pair<const char *, Unary>>{{"__nv_fast_expf", std::exp},
                                                             {"__nv_fast_logf", std::log},
                                                             {"__nv_fast_log2f", std::log2},
                                                             {"__nv_fast_sinf", std::sin},
                                                             {"__nv_fast_cosf", std::cos},
                                                             {"__nv_fast_tanhf", std::tanh}})
    add(name, pointer(function));
  add("__nv_fast_powf", pointer(static_cast<Binary>(std::pow)));
  add("__nv_fmaf", pointer(static_cast<float (*)(float, float, float)>(std::fma)));
  add("__nv_fma", pointer(static_cast<double (*)(double, double, double)>(std::fma)));
  return table;
}
