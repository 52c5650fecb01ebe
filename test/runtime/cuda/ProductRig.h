//===- ProductRig.h - Products on the emulated device -----------------------------------------===//
//
// A program of one kernel with one product, on a device that the emulator answers for, and the same
// product by loops over rows and columns, written from the description of exec.device_product and
// from nothing else.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_TEST_RUNTIME_CUDA_PRODUCTRIG_H
#define DESCENT_TEST_RUNTIME_CUDA_PRODUCTRIG_H

#include "runtime/core/Error.h"
#include "runtime/cuda/Products.h"
#include "runtime/emulator/Driver.h"
#include "runtime/emulator/Numbers.h"
#include "runtime/emulator/Products.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace descent::test {

using namespace descent::cuda;

inline int64_t bytesOf(int32_t dtype) {
  return dtype == DESCENT_F32 ? 4 : dtype == DESCENT_BF16 || dtype == DESCENT_F16 ? 2 : 1;
}

inline float load(const char *at, int32_t dtype) {
  uint16_t half;
  float value;
  switch (dtype) {
  case DESCENT_F32:
    std::memcpy(&value, at, 4);
    return value;
  case DESCENT_BF16:
  case DESCENT_F16:
    std::memcpy(&half, at, 2);
    return emulator::fromNarrow(half, dtype == DESCENT_F16);
  case DESCENT_F8E4M3:
    return emulator::fromE4M3(static_cast<uint8_t>(*at));
  default:
    return emulator::fromE5M2(static_cast<uint8_t>(*at));
  }
}

inline void store(char *at, double value, int32_t dtype) {
  if (dtype == DESCENT_F32) {
    auto single = static_cast<float>(value);
    std::memcpy(at, &single, 4);
  } else {
    uint16_t half = emulator::toNarrow(value, dtype == DESCENT_F16);
    std::memcpy(at, &half, 2);
  }
}

/// Half a unit in the last place of a value, relative to it.
inline double unitOf(int32_t dtype) {
  return dtype == DESCENT_BF16 ? 0x1p-8 : dtype == DESCENT_F16 ? 0x1p-11 : 0x1p-24;
}

inline double geluAt(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
/// By a difference: nothing of the formula that is tested.
inline double geluSlope(double x) { return (geluAt(x + 1e-5) - geluAt(x - 1e-5)) / 2e-5; }

/// Sets an environment variable while it lives.
class Variable {
public:
  Variable(const char *name, const char *value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }

private:
  const char *name;
};

/// An operand: where it lies behind the operand's start, and its bytes.
struct Buffer {
  int32_t dtype = DESCENT_F32;
  uint64_t offset = 0; ///< in bytes
  std::vector<char> data;
};

/// The operands of a product, each an operand of the kernel, in the order of descent_product.
enum Role { A, B, D, Bias, Aux, BiasGradient, ScaleA, ScaleB, Roles };

inline bool has(int epilogue, Role role) {
  switch (role) {
  case Bias:
    return epilogue == DESCENT_EPILOGUE_BIAS || epilogue == DESCENT_EPILOGUE_RELU_BIAS ||
           epilogue == DESCENT_EPILOGUE_GELU_BIAS || epilogue == DESCENT_EPILOGUE_RELU_AUX_BIAS ||
           epilogue == DESCENT_EPILOGUE_GELU_AUX_BIAS;
  case Aux:
    return epilogue >= DESCENT_EPILOGUE_RELU_AUX && epilogue <= DESCENT_EPILOGUE_DGELU_BGRAD;
  case BiasGradient:
    return epilogue == DESCENT_EPILOGUE_DRELU_BGRAD || epilogue == DESCENT_EPILOGUE_DGELU_BGRAD ||
           epilogue >= DESCENT_EPILOGUE_BGRAD_A;
  default:
    return role == A || role == B || role == D;
  }
}
inline bool isMask(int epilogue) {
  return epilogue == DESCENT_EPILOGUE_RELU_AUX || epilogue == DESCENT_EPILOGUE_RELU_AUX_BIAS ||
         epilogue == DESCENT_EPILOGUE_DRELU || epilogue == DESCENT_EPILOGUE_DRELU_BGRAD;
}
inline bool readsAux(int epilogue) {
  return epilogue >= DESCENT_EPILOGUE_DRELU && epilogue <= DESCENT_EPILOGUE_DGELU_BGRAD;
}

/// A product with random operands.
struct Case {
  descent_product product = {};
  Buffer buffers[Roles];

  Case(int64_t m, int64_t n, int64_t k, int32_t operands, int32_t result,
       int epilogue = DESCENT_EPILOGUE_NONE, bool transposeA = false, bool transposeB = false,
       int64_t batch = 1, int64_t gap = 0) {
    descent_product &p = product;
    p.m = m;
    p.n = n;
    p.k = k;
    p.batch = batch;
    p.transpose_a = transposeA;
    p.transpose_b = transposeB;
    p.epilogue = epilogue;
    p.lda = (transposeA ? m : k) + gap;
    p.ldb = (transposeB ? k : n) + gap;
    p.ldd = n + gap;
    p.stride_a = (transposeA ? k : m) * p.lda + (batch > 1 ? gap : 0);
    p.stride_b = (transposeB ? n : k) * p.ldb + (batch > 1 ? gap : 0);
    p.stride_d = m * p.ldd;
    int64_t unit = isMask(epilogue) ? 128 : 8;
    p.ld_aux = has(epilogue, Aux) ? (n + unit - 1) / unit * unit : 0;
    int64_t counts[Roles] = {batch * p.stride_a,
                             batch * p.stride_b,
                             batch * p.stride_d,
                             n,
                             batch * m * p.ld_aux,
                             epilogue == DESCENT_EPILOGUE_BGRAD_A ? m : n,
                             1,
                             1};
    std::mt19937 random(static_cast<uint32_t>(m * 7 + n * 5 + k * 3 + epilogue));
    descent_place *places[Roles] = {&p.a,       &p.b,      &p.d, &p.bias, &p.aux, &p.bias_gradient,
                                    &p.scale_a, &p.scale_b};
    for (int role = 0; role < Roles; ++role) {
      Buffer &buffer = buffers[role];
      descent_place &place = *places[role];
      buffer.dtype = role == A || role == B ? operands : role >= ScaleA ? DESCENT_F32 : result;
      if (!has(epilogue, static_cast<Role>(role))) {
        place = {DESCENT_NO_OPERAND, buffer.dtype, 0, 0};
        continue;
      }
      bool bits = role == Aux && isMask(epilogue);
      buffer.data.resize(bits ? counts[role] / 8 : counts[role] * bytesOf(buffer.dtype));
      if (bits)
        for (char &byte : buffer.data)
          byte = static_cast<char>(random());
      else
        fill(static_cast<Role>(role), random);
      place = {role, buffer.dtype, 0, buffer.data.size()};
    }
  }

  void fill(Role role, std::mt19937 &random) {
    Buffer &buffer = buffers[role];
    std::uniform_real_distribution<double> values(-1, 1);
    int64_t bytes = bytesOf(buffer.dtype);
    for (size_t i = 0; i * bytes < buffer.data.size(); ++i)
      if (bytes == 1) // both formats: |x| below 8, no NaN
        buffer.data[i] = static_cast<char>(random() & 0xcf);
      else
        store(&buffer.data[i * bytes], values(random), buffer.dtype);
  }

  void addScale(Role role, float value) {
    (role == ScaleA ? product.scale_a : product.scale_b) = {role, DESCENT_F32, 0, 4};
    buffers[role].data.resize(4);
    std::memcpy(buffers[role].data.data(), &value, 4);
  }

  double at(Role role, int64_t element) const {
    const Buffer &buffer = buffers[role];
    return load(&buffer.data[element * bytesOf(buffer.dtype)], buffer.dtype);
  }
  double a(int64_t b, int64_t i, int64_t l) const {
    const descent_product &p = product;
    return at(A, b * p.stride_a + (p.transpose_a ? l * p.lda + i : i * p.lda + l));
  }
  double b(int64_t b, int64_t l, int64_t j) const {
    const descent_product &p = product;
    return at(B, b * p.stride_b + (p.transpose_b ? j * p.ldb + l : l * p.ldb + j));
  }
  bool bit(int64_t b, int64_t i, int64_t j) const {
    int64_t number = (b * product.m + i) * product.ld_aux + j;
    return buffers[Aux].data[number / 8] >> number % 8 & 1;
  }
};

/// The device, its memory, and the product on it.
class Rig {
public:
  explicit Rig(Case &test, emulator::DriverSettings settings = quiet()) : test(test) {
    emulator::resetDriver(settings);
    check(driver->cuInit(0));
    check(driver->cuDevicePrimaryCtxRetain(&context, 0));
    check(driver->cuCtxSetCurrent(context));
    check(driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    command.kind = DESCENT_COMMAND_PRODUCT;
    command.product = &test.product;
    kernel.name = "gemm_test";
    kernel.commands = &command;
    kernel.command_count = 1;
    program.kernels = &kernel;
    program.kernel_count = 1;
    program.memory.device_workspace = UINT64_C(1) << 20;
  }

  static emulator::DriverSettings quiet() {
    emulator::DriverSettings settings;
    return settings;
  }

  Products &products() {
    if (!made)
      made = std::make_unique<Products>(drivers, "Emulated", 90, 132);
    return *made;
  }
  void choose(const std::string &file = {}, bool measure = true) {
    products().choose(program, {file, measure}, stream);
  }

  /// Puts the operands on the device and binds the product.
  void place() {
    for (int role = 0; role < Roles; ++role) {
      Buffer &buffer = test.buffers[role];
      if (buffer.data.empty())
        continue;
      check(driver->cuMemAlloc(&addresses[role], buffer.offset + buffer.data.size()));
      upload(static_cast<Role>(role));
    }
    check(driver->cuMemAlloc(&workspace, program.memory.device_workspace));
    bound = products().bind(test.product, addresses, workspace);
  }
  void upload(Role role) {
    Buffer &buffer = test.buffers[role];
    check(driver->cuMemcpyHtoDAsync(addresses[role] + buffer.offset, buffer.data.data(),
                                    buffer.data.size(), stream));
    check(driver->cuStreamSynchronize(stream));
  }
  std::vector<char> download(Role role) {
    Buffer &buffer = test.buffers[role];
    std::vector<char> data(buffer.data.size());
    check(driver->cuMemcpyDtoHAsync(data.data(), addresses[role] + buffer.offset, data.size(),
                                    stream));
    check(driver->cuStreamSynchronize(stream));
    return data;
  }
  void run() {
    products().enqueue(bound, stream);
    check(driver->cuStreamSynchronize(stream));
  }
  void all() {
    choose();
    ASSERT_TRUE(products().isAvailable(test.product)) << emulator::libraryMessage();
    place();
    run();
    compare();
  }

  void compare();

  void check(CUresult result) { cuda::check(drivers, result, "the test"); }

  Case &test;
  Drivers drivers = descent_emulated_drivers;
  const Driver *driver = descent_emulated_drivers.driver;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  descent_command command = {};
  descent_kernel kernel = {};
  descent_program program = {};
  CUdeviceptr addresses[Roles] = {}, workspace = 0;
  size_t bound = 0;
  std::unique_ptr<Products> made;
};

/// What came out against loops in double precision.
inline void Rig::compare() {
  const descent_product &p = test.product;
  std::vector<char> d = download(D), gradient, aux;
  if (has(p.epilogue, BiasGradient))
    gradient = download(BiasGradient);
  if (has(p.epilogue, Aux))
    aux = download(Aux);
  double scale = 1;
  for (Role role : {ScaleA, ScaleB})
    if (!test.buffers[role].data.empty())
      scale *= test.at(role, 0);
  int32_t type = test.buffers[D].dtype;
  std::vector<double> columns(p.n, 0), columnSizes(p.n, 0);
  auto near = [&](double got, double want, double slack, int32_t dtype, const std::string &what) {
    double tolerance = slack + 1.01 * unitOf(dtype) * std::fabs(want);
    EXPECT_TRUE(std::fabs(got - want) <= tolerance)
        << what << ": " << got << ", not " << want << " +- " << tolerance << "; " << describe(p);
    return std::fabs(got - want) <= tolerance;
  };
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          sum += test.a(b, i, l) * test.b(b, l, j) * scale;
          size += std::fabs(test.a(b, i, l) * test.b(b, l, j) * scale);
        }
        int64_t place = b * p.stride_d + i * p.ldd + j;
        if (p.accumulate)
          sum += test.at(D, place);
        if (has(p.epilogue, Bias))
          sum += test.at(Bias, j);
        double slack = (p.k + 4) * 0x1p-24 * (size + 1);
        int64_t auxPlace = (b * p.m + i) * p.ld_aux + j;
        std::string where = fmt::format("[{}, {}, {}]", b, i, j);
        double want = sum;
        switch (p.epilogue) {
        case DESCENT_EPILOGUE_RELU_AUX:
        case DESCENT_EPILOGUE_RELU_AUX_BIAS:
          if (std::fabs(sum) > slack)
            EXPECT_EQ(aux[auxPlace / 8] >> auxPlace % 8 & 1, sum > 0) << where << describe(p);
          [[fallthrough]];
        case DESCENT_EPILOGUE_RELU:
        case DESCENT_EPILOGUE_RELU_BIAS:
          want = std::max(sum, 0.0);
          break;
        case DESCENT_EPILOGUE_GELU_AUX:
        case DESCENT_EPILOGUE_GELU_AUX_BIAS:
          near(load(&aux[auxPlace * bytesOf(type)], type), sum, slack, type, "aux " + where);
          [[fallthrough]];
        case DESCENT_EPILOGUE_GELU:
        case DESCENT_EPILOGUE_GELU_BIAS:
          want = geluAt(sum);
          slack *= 1.2; // the steepest slope of gelu
          break;
        case DESCENT_EPILOGUE_DRELU:
        case DESCENT_EPILOGUE_DRELU_BGRAD:
          want = test.bit(b, i, j) ? sum : 0;
          break;
        case DESCENT_EPILOGUE_DGELU:
        case DESCENT_EPILOGUE_DGELU_BGRAD:
          want = sum * geluSlope(test.at(Aux, auxPlace));
          slack = 1.2 * slack + 1e-9;
          break;
        default:
          break;
        }
        columns[j] += want;
        columnSizes[j] += slack + std::fabs(want);
        if (!near(load(&d[place * bytesOf(type)], type), want, slack, type, "D" + where))
          return;
      }
  int32_t gradientType = test.buffers[BiasGradient].dtype;
  for (int64_t i = 0; i < p.m && p.epilogue == DESCENT_EPILOGUE_BGRAD_A; ++i) {
    double sum = 0, size = 0;
    for (int64_t l = 0; l < p.k; ++l) {
      sum += test.a(0, i, l);
      size += std::fabs(test.a(0, i, l));
    }
    near(load(&gradient[i * bytesOf(gradientType)], gradientType), sum, size * p.k * 0x1p-24,
         gradientType, fmt::format("bias gradient [{}]", i));
  }
  for (int64_t j = 0; j < p.n && !gradient.empty() && p.epilogue != DESCENT_EPILOGUE_BGRAD_A; ++j) {
    double sum = columns[j], size = columnSizes[j] * (p.m + p.k + 4);
    if (p.epilogue == DESCENT_EPILOGUE_BGRAD_B) {
      sum = size = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += test.b(0, l, j);
        size += std::fabs(test.b(0, l, j)) * p.k;
      }
    }
    near(load(&gradient[j * bytesOf(gradientType)], gradientType), sum, size * 0x1p-24,
         gradientType, fmt::format("bias gradient [{}]", j));
  }
}

} // namespace descent::test

#endif // DESCENT_TEST_RUNTIME_CUDA_PRODUCTRIG_H
