//===- ReferenceTensor.h - Values of the double-precision interpreter -----===//
//
// A dense row-major tensor whose elements are doubles, whatever the element type of the program is.
// Integers up to 2^53 and booleans are exact in a double, which covers every index and count a
// model can hold.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_REFERENCETENSOR_H
#define DESCENT_DIALECTS_NN_REFERENCETENSOR_H

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace descent::reference {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values; // product of shape

  Tensor() = default;
  explicit Tensor(std::vector<int64_t> dims, double fill = 0.0)
      : shape(std::move(dims)), values(static_cast<size_t>(count(shape)), fill) {}

  static int64_t count(const std::vector<int64_t> &shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};

} // namespace descent::reference

#endif // DESCENT_DIALECTS_NN_REFERENCETENSOR_H
