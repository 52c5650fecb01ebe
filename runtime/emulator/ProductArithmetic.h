//===- ProductArithmetic.h - What a product of the library computes ---------------------------===//
//
// The matrix product of cuBLASLt on the CPU, in its own terms: matrices are column-major, a leading
// dimension is the distance between columns, a bias belongs to the rows of D. Sums and everything
// behind them are in f32, and what is stored is rounded once, to nearest even. oneDNN multiplies;
// the rest is written out here.
//
//===------------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_PRODUCTARITHMETIC_H
#define DESCENT_RUNTIME_EMULATOR_PRODUCTARITHMETIC_H

#include <cstdint>
#include <functional>

namespace descent::emulator {

/// Element types, with the numbers of cudaDataType_t.
enum class ElementType : int32_t { F32 = 0, F16 = 2, BF16 = 14, E4M3 = 28, E5M2 = 29 };
/// Bytes of an element; 0 for a type that products do not know.
int64_t elementBytes(ElementType type);

/// A batch of column-major matrices in device memory. Column j of matrix b starts at element
/// b * stride + j * ld.
struct ProductMatrix {
  ElementType type = ElementType::F32;
  uint64_t address = 0;
  int64_t rows = 0, columns = 0, ld = 0, stride = 0;
};

/// What happens to a sum before it is stored, besides the bias.
enum class Activation { None, Relu, Gelu, ReluGradient, GeluGradient };
/// Which sums a product makes beside D: of what it stores over the columns, of op(A) over its
/// columns, of op(B) over its rows.
enum class BiasGradient { None, OfD, OfA, OfB };

/// D = activation(alpha op(A) op(B) + beta C + bias), for each matrix of the batch. Addresses are
/// those of the device; 0 where there is none.
struct ProductTask {
  ProductMatrix a, b, c, d;
  int64_t batch = 1;
  bool transposeA = false, transposeB = false;
  bool tf32 = false; ///< operands are rounded to ten bits first
  int splits = 1;    ///< the sum is made of this many parts along k, added in order
  float alpha = 1, beta = 0;
  uint64_t scaleA = 0, scaleB = 0; ///< f32 scalars, factors of the product

  uint64_t bias = 0; ///< one element for each row of D
  ElementType biasType = ElementType::F32;
  int64_t biasStride = 0;
  BiasGradient biasGradient = BiasGradient::None; ///< written to `bias`, which is then no input

  Activation activation = Activation::None;
  uint64_t aux = 0; ///< what the activation is applied to: values, or a bit for each with Relu
  bool storeAux = false;
  ElementType auxType = ElementType::F32;
  int64_t auxLd = 0, auxStride = 0; ///< in elements; bits with Relu
};

/// How the arithmetic reaches the device's memory: the caller checks each access. `what` says which
/// operand it is, for messages.
struct ProductMemory {
  std::function<void(void *to, uint64_t address, uint64_t bytes, const char *what)> read;
  std::function<void(uint64_t address, const void *from, uint64_t bytes, const char *what)> write;
};

void computeProduct(const ProductTask &task, const ProductMemory &memory);

/// Calls visit(address, bytes, written, what) for a range around all of each operand.
void forEachOperand(const ProductTask &task,
                    const std::function<void(uint64_t address, uint64_t bytes, bool written,
                                             const char *what)> &visit);

/// The tanh form of GELU and its derivative.
double geluOf(double x);
double geluGradientOf(double x);

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_PRODUCTARITHMETIC_H
