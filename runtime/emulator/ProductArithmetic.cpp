//===- ProductArithmetic.cpp - What a product of the library computes -------------------------===//
//
// Operands are widened to f32, which is exact for every type, and multiplied by oneDNN's product of
// f32 matrices: its products of narrow types want processors that not every machine has, and would
// say the same, since a product of two narrow floats is exact in f32.
//
// oneDNN may cut the sum along k between its threads, so that the rounding would follow their
// number. It gets one: equal runs have equal bits on every machine of one kind.
//
//===------------------------------------------------------------------------------------------===//

#include "runtime/emulator/ProductArithmetic.h"

#include "runtime/core/Error.h"
#include "runtime/emulator/Numbers.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace descent::emulator {

int64_t elementBytes(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return 4;
  case ElementType::F16:
  case ElementType::BF16:
    return 2;
  case ElementType::E4M3:
  case ElementType::E5M2:
    return 1;
  }
  return 0;
}

static float widen(const char *from, ElementType type) {
  uint16_t half;
  switch (type) {
  case ElementType::F32: {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  case ElementType::F16:
  case ElementType::BF16:
    std::memcpy(&half, from, sizeof half);
    return fromNarrow(half, type == ElementType::F16);
  case ElementType::E4M3:
    return fromE4M3(static_cast<uint8_t>(*from));
  case ElementType::E5M2:
    return fromE5M2(static_cast<uint8_t>(*from));
  }
  return 0;
}

static void narrow(char *to, float value, ElementType type) {
  if (type == ElementType::F32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  uint16_t half = toNarrow(value, type == ElementType::F16);
  std::memcpy(to, &half, sizeof half);
}

/// To the ten bits that the tensor cores take of an f32: to nearest, ties away from zero, as
/// cvt.rna.tf32.f32 rounds.
static float roundTf32(float value) {
  if (!std::isfinite(value))
    return value;
  return floatOf((bitsOf(value) + 0x1000) & ~UINT32_C(0x1fff));
}

static constexpr double geluCubic = 0.044715, geluScale = 0.79788456080286535588; // sqrt(2 / pi)

double geluOf(double x) {
  return 0.5 * x * (1 + std::tanh(geluScale * (x + geluCubic * x * x * x)));
}

double geluGradientOf(double x) {
  double t = std::tanh(geluScale * (x + geluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * geluScale * (1 + 3 * geluCubic * x * x);
}

namespace {

/// One thread for oneDNN while this lives.
class OneThread {
public:
  OneThread() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before); }

private:
  int before;
};

/// Values of one matrix, column after column without gaps.
std::vector<float> load(const ProductMatrix &matrix, int64_t index, const ProductMemory &memory,
                        const char *what) {
  int64_t bytes = elementBytes(matrix.type);
  std::vector<float> values(matrix.rows * matrix.columns);
  std::vector<char> column(matrix.rows * bytes);
  for (int64_t j = 0; j < matrix.columns; ++j) {
    memory.read(column.data(), matrix.address + (index * matrix.stride + j * matrix.ld) * bytes,
                column.size(), what);
    for (int64_t i = 0; i < matrix.rows; ++i)
      values[j * matrix.rows + i] = widen(&column[i * bytes], matrix.type);
  }
  return values;
}

void store(uint64_t address, const float *values, int64_t count, ElementType type,
           const ProductMemory &memory, const char *what) {
  int64_t bytes = elementBytes(type);
  std::vector<char> stored(count * bytes);
  for (int64_t i = 0; i < count; ++i)
    narrow(&stored[i * bytes], values[i], type);
  memory.write(address, stored.data(), stored.size(), what);
}

float loadScalar(uint64_t address, const ProductMemory &memory, const char *what) {
  float value = 1;
  if (address)
    memory.read(&value, address, sizeof value, what);
  return value;
}

/// One matrix of the batch.
class One {
public:
  One(const ProductTask &task, int64_t index, const ProductMemory &memory)
      : task(task), index(index), memory(memory), m(task.d.rows), n(task.d.columns),
        k(task.transposeA ? task.a.rows : task.a.columns) {}

  void run() {
    a = load(task.a, index, memory, "A");
    b = load(task.b, index, memory, "B");
    if (task.tf32) {
      std::ranges::transform(a, a.begin(), roundTf32);
      std::ranges::transform(b, b.begin(), roundTf32);
    }
    multiply();
    scale();
    if (task.bias && task.biasGradient == BiasGradient::None)
      addBias();
    activate();
    writeBiasGradient();
    int64_t bytes = elementBytes(task.d.type);
    for (int64_t j = 0; j < n; ++j)
      store(task.d.address + (index * task.d.stride + j * task.d.ld) * bytes, &sum[j * m], m,
            task.d.type, memory, "D");
  }

private:
  /// A column-major product is a row-major one of the transposed matrices in the other order.
  void multiply() {
    OneThread one;
    sum.assign(m * n, 0);
    int64_t parts = std::max<int64_t>(1, std::min<int64_t>(task.splits, k));
    for (int64_t part = 0; part < parts; ++part) {
      int64_t from = k * part / parts, to = k * (part + 1) / parts;
      const float *left = b.data() + (task.transposeB ? from * task.b.rows : from);
      const float *right = a.data() + (task.transposeA ? from : from * task.a.rows);
      dnnl_status_t status =
          dnnl_sgemm(task.transposeB ? 'T' : 'N', task.transposeA ? 'T' : 'N', n, m, to - from, 1,
                     left, task.b.rows, right, task.a.rows, 1, sum.data(), m);
      if (status != dnnl_success)
        throw Error(fmt::format("emulator: oneDNN refuses a product of {} x {} x {}: status {}", m,
                                n, k, static_cast<int>(status)));
    }
  }

  void scale() {
    float factor = task.alpha * loadScalar(task.scaleA, memory, "the scale of A") *
                   loadScalar(task.scaleB, memory, "the scale of B");
    for (float &value : sum)
      value *= factor;
    // With beta zero C is not read: it may hold anything, NaN too.
    if (task.beta == 0)
      return;
    std::vector<float> c = load(task.c, index, memory, "C");
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += task.beta * c[i];
  }

  void addBias() {
    int64_t bytes = elementBytes(task.biasType);
    std::vector<char> bias(m * bytes);
    memory.read(bias.data(), task.bias + index * task.biasStride * bytes, bias.size(), "the bias");
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i)
        sum[j * m + i] += widen(&bias[i * bytes], task.biasType);
  }

  void activate() {
    switch (task.activation) {
    case Activation::None:
      return;
    case Activation::Relu:
      if (task.storeAux)
        storeBits();
      for (float &value : sum)
        value = value > 0 || std::isnan(value) ? value : 0.0f;
      return;
    case Activation::Gelu:
      if (task.storeAux)
        for (int64_t j = 0; j < n; ++j)
          store(auxColumn(j), &sum[j * m], m, task.auxType, memory, "the auxiliary output");
      for (float &value : sum)
        value = static_cast<float>(geluOf(value));
      return;
    case Activation::ReluGradient:
      for (int64_t j = 0; j < n; ++j) {
        std::vector<uint8_t> bits((m + 7) / 8);
        memory.read(bits.data(), bitColumn(j), bits.size(), "the auxiliary input");
        for (int64_t i = 0; i < m; ++i)
          if (!(bits[i / 8] >> i % 8 & 1))
            sum[j * m + i] = 0;
      }
      return;
    case Activation::GeluGradient: {
      ProductMatrix saved{task.auxType, task.aux, m, n, task.auxLd, task.auxStride};
      std::vector<float> x = load(saved, index, memory, "the auxiliary input");
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] *= static_cast<float>(geluGradientOf(x[i]));
      return;
    }
    }
  }

  uint64_t auxColumn(int64_t j) const {
    return task.aux + (index * task.auxStride + j * task.auxLd) * elementBytes(task.auxType);
  }
  uint64_t bitColumn(int64_t j) const {
    return task.aux + (index * task.auxStride + j * task.auxLd) / 8;
  }
  void storeBits() {
    for (int64_t j = 0; j < n; ++j) {
      std::vector<uint8_t> bits((m + 7) / 8);
      for (int64_t i = 0; i < m; ++i)
        if (sum[j * m + i] > 0)
          bits[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      memory.write(bitColumn(j), bits.data(), bits.size(), "the auxiliary output");
    }
  }

  void writeBiasGradient() {
    std::vector<float> gradient;
    switch (task.biasGradient) {
    case BiasGradient::None:
      return;
    case BiasGradient::OfD:
      gradient.assign(m, 0);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i)
          gradient[i] += sum[j * m + i];
      break;
    case BiasGradient::OfA: // op(A) is m x k
      gradient.assign(m, 0);
      for (int64_t l = 0; l < k; ++l)
        for (int64_t i = 0; i < m; ++i)
          gradient[i] += a[task.transposeA ? i * task.a.rows + l : l * task.a.rows + i];
      break;
    case BiasGradient::OfB: // op(B) is k x n
      gradient.assign(n, 0);
      for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < n; ++j)
          gradient[j] += b[task.transposeB ? l * task.b.rows + j : j * task.b.rows + l];
      break;
    }
    store(task.bias + index * task.biasStride * elementBytes(task.biasType), gradient.data(),
          static_cast<int64_t>(gradient.size()), task.biasType, memory, "the bias gradient");
  }

  const ProductTask &task;
  int64_t index;
  const ProductMemory &memory;
  int64_t m, n, k;
  std::vector<float> a, b, sum;
};

} // namespace

void computeProduct(const ProductTask &task, const ProductMemory &memory) {
  for (int64_t index = 0; index < task.batch; ++index)
    One(task, index, memory).run();
}

void forEachOperand(const ProductTask &task,
                    const std::function<void(uint64_t, uint64_t, bool, const char *)> &visit) {
  auto matrix = [&](const ProductMatrix &matrix, bool written, const char *what) {
    int64_t last = (task.batch - 1) * matrix.stride + (matrix.columns - 1) * matrix.ld;
    visit(matrix.address, (last + matrix.rows) * elementBytes(matrix.type), written, what);
  };
  matrix(task.a, false, "A");
  matrix(task.b, false, "B");
  if (task.beta != 0)
    matrix(task.c, false, "C");
  matrix(task.d, true, "D");
  if (task.scaleA)
    visit(task.scaleA, sizeof(float), false, "the scale of A");
  if (task.scaleB)
    visit(task.scaleB, sizeof(float), false, "the scale of B");
  if (task.bias) {
    bool gradient = task.biasGradient != BiasGradient::None;
    int64_t count = task.biasGradient == BiasGradient::OfB ? task.d.columns : task.d.rows;
    visit(task.bias, ((task.batch - 1) * task.biasStride + count) * elementBytes(task.biasType),
          gradient, gradient ? "the bias gradient" : "the bias");
  }
  if (task.aux) {
    bool bits = task.activation == Activation::Relu || task.activation == Activation::ReluGradient;
    int64_t last = (task.batch - 1) * task.auxStride + (task.d.columns - 1) * task.auxLd;
    visit(task.aux,
          bits ? last / 8 + (task.d.rows + 7) / 8
               : (last + task.d.rows) * elementBytes(task.auxType),
          task.storeAux, task.storeAux ? "the auxiliary output" : "the auxiliary input");
  }
}

} // namespace descent::emulator
