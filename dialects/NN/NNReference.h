//===- NNReference.h - Helpers of the double-precision reference ----------===//

#ifndef DESCENT_DIALECTS_NN_NNREFERENCE_H
#define DESCENT_DIALECTS_NN_NNREFERENCE_H

#include "dialects/NN/NN.h"

namespace descent::nn {

/// The elements of a literal as doubles.
reference::Tensor toReference(mlir::ElementsAttr value);
/// The static shape of a value.
std::vector<int64_t> referenceShape(mlir::Value value);
/// What an integer type keeps of a result: the low bits, as two's complement (booleans: 0 or 1).
/// Floats keep everything.
double wrapToType(double value, mlir::Type element);

/// Walks the positions of a shape in row-major order: for (Positions p(shape); !p.done(); p.next())
/// ... p[axis].
class Positions {
public:
  explicit Positions(std::vector<int64_t> dims)
      : shape(std::move(dims)), position(shape.size(), 0), left(reference::Tensor::count(shape)) {}
  bool done() const { return left == 0; }
  void next() {
    --left;
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++position[axis] < shape[axis])
        return;
      position[axis] = 0;
    }
  }
  int64_t operator[](size_t axis) const { return position[axis]; }
  const std::vector<int64_t> &get() const { return position; }

private:
  std::vector<int64_t> shape, position;
  int64_t left;
};

/// Row-major offset of a position in a tensor, after NumPy broadcasting of the tensor to the
/// position's rank.
int64_t broadcastOffset(const reference::Tensor &tensor, const std::vector<int64_t> &position);
/// Row-major offset of a position with exactly the tensor's rank.
int64_t offsetOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &position);

} // namespace descent::nn

#endif // DESCENT_DIALECTS_NN_NNREFERENCE_H
