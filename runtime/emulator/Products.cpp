//===- Products.cpp - cuBLASLt of the emulated device ---------------------------------------===//
//
// A library that is there and computes nothing: every call says CUBLAS_STATUS_NOT_SUPPORTED.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/emulator/Driver.h"

namespace descent::emulator {
namespace {

template <typename Function> struct Absent;
template <typename Result, typename... Parameters> struct Absent<Result (*)(Parameters...)> {
  static Result call(Parameters...) {
    if constexpr (std::is_same_v<Result, cuda::cublasStatus_t>)
      return cuda::CUBLAS_STATUS_NOT_SUPPORTED;
    else if constexpr (std::is_same_v<Result, const char *>)
      return "matrix products are not emulated";
    else
      return 0;
  }
};

} // namespace
} // namespace descent::emulator

#define DESCENT_ENTRY(field, symbol, result, parameters)                                           \
  descent::emulator::Absent<decltype(descent::cuda::Library::field)>::call,
extern "C" const descent::cuda::Library descent_emulated_library = {
    DESCENT_CUBLASLT(DESCENT_ENTRY)};
