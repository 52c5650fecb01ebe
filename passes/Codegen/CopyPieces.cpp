//===- CopyPieces.cpp - Moves of elements as strided loop nests -----------===//
//
// Walks from each result to the inputs. On the way a *nest* carries its loops, where each iteration
// writes, and the index it reads in the value at hand: per axis a constant and a coefficient per
// loop. Views rewrite the index. Where an op takes its elements from several places (concat, pad),
// a loop is cut into arithmetic progressions, one nest each, so pieces never overlap. A reshape may
// need a loop cut in two before its index fits the new axes.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/CopyPieces.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;

namespace descent {

namespace {

struct AxisIndex {
  int64_t base = 0;
  SmallVector<int64_t, 6> coefficients; // one per loop
};

struct Nest {
  CopyPiece piece; // `from` unused until the end
  SmallVector<AxisIndex, 6> index;

  /// Restricts loop `loop` to start, start + step, ... (count iterations).
  Nest restricted(unsigned loop, int64_t start, int64_t step, int64_t count) const {
    Nest nest = *this;
    nest.piece.toBase += piece.to[loop] * start;
    nest.piece.to[loop] *= step;
    nest.piece.sizes[loop] = count;
    for (AxisIndex &axis : nest.index) {
      axis.base += axis.coefficients[loop] * start;
      axis.coefficients[loop] *= step;
    }
    return nest;
  }
  /// Cuts loop `loop` of n iterations into n / inner and inner.
  void cut(unsigned loop, int64_t inner) {
    piece.sizes[loop] /= inner;
    piece.sizes.push_back(inner);
    piece.to.push_back(piece.to[loop]);
    piece.to[loop] *= inner;
    for (AxisIndex &axis : index) {
      axis.coefficients.push_back(axis.coefficients[loop]);
      axis.coefficients[loop] *= inner;
    }
  }
  /// The one loop that moves along an axis: -1 if none does, -2 if several do.
  int loopOf(unsigned axis) const {
    int found = -1;
    for (auto [loop, coefficient] : llvm::enumerate(index[axis].coefficients))
      if (coefficient != 0 && piece.sizes[loop] > 1)
        found = found == -1 ? static_cast<int>(loop) : -2;
    return found;
  }
};

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

SmallVector<int64_t> strides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    result[i] = result[i + 1] * shape[i + 1];
  return result;
}

class Tracer {
public:
  std::vector<CopyPiece> pieces;
  LogicalResult trace(Value value, Nest nest);

private:
  LogicalResult reshape(Operation *op, Value source, ArrayRef<int64_t> shape, Nest nest);
  LogicalResult segments(Operation *op, unsigned axis, const Nest &nest,
                         ArrayRef<std::tuple<int64_t, int64_t, Value>> parts);
  void fill(Nest nest, TypedAttr value) {
    if (nest.piece.count() == 0)
      return;
    nest.piece.fill = value;
    pieces.push_back(nest.piece);
    pieces.back().from.assign(nest.piece.sizes.size(), 0);
  }
};

/// parts: (first position, length along the axis, value), side by side from 0 on.
LogicalResult Tracer::segments(Operation *op, unsigned axis, const Nest &nest,
                               ArrayRef<std::tuple<int64_t, int64_t, Value>> parts) {
  int loop = nest.loopOf(axis);
  if (loop == -2)
    return op->emitOpError(
        "joins elements along an axis that later ops merge with another; copy in two kernels");
  int64_t base = nest.index[axis].base,
          coefficient = loop < 0 ? 1 : nest.index[axis].coefficients[loop];
  int64_t size = loop < 0 ? 1 : nest.piece.sizes[loop];
  for (auto [first, length, value] : parts) {
    // The iterations whose position lies in the part.
    auto reach = [&](int64_t limit) {
      return std::clamp<int64_t>(llvm::divideCeilSigned(limit - base, coefficient), 0, size);
    };
    int64_t begin = reach(first), end = reach(first + length);
    if (begin == end)
      continue;
    Nest part = loop < 0 ? nest : nest.restricted(loop, begin, 1, end - begin);
    part.index[axis].base -= first;
    if (failed(trace(value, std::move(part))))
      return failure();
  }
  return success();
}

LogicalResult Tracer::reshape(Operation *op, Value source, ArrayRef<int64_t> shape, Nest nest) {
  ArrayRef<int64_t> target = shapeOf(source);
  SmallVector<int64_t> oldStrides = strides(shape), newStrides = strides(target);
  while (true) {
    AxisIndex offset;
    offset.coefficients.assign(nest.piece.sizes.size(), 0);
    for (auto [axis, stride] : llvm::zip_equal(nest.index, oldStrides)) {
      offset.base += axis.base * stride;
      for (auto [sum, c] : llvm::zip_equal(offset.coefficients, axis.coefficients))
        sum += c * stride;
    }
    SmallVector<AxisIndex, 6> index(target.size());
    SmallVector<int64_t> largest(target.size());
    int64_t rest = offset.base;
    for (auto [axis, stride] : llvm::enumerate(newStrides)) {
      index[axis].coefficients.assign(nest.piece.sizes.size(), 0);
      index[axis].base = largest[axis] = rest / stride;
      rest %= stride;
    }
    bool again = false;
    for (auto [loop, coefficient] : llvm::enumerate(offset.coefficients)) {
      int64_t size = nest.piece.sizes[loop];
      if (size == 1 || coefficient == 0)
        continue;
      // The outermost axis whose stride divides the loop's.
      unsigned axis = 0;
      while (target[axis] == 1 || coefficient % newStrides[axis] != 0)
        if (++axis == target.size())
          break;
      if (axis == target.size())
        return op->emitOpError(
            "reads its source across axes in a way that is no strided copy; copy in two kernels");
      int64_t step = coefficient / newStrides[axis];
      if (largest[axis] + step * (size - 1) < target[axis]) {
        largest[axis] += step * (size - 1);
        index[axis].coefficients[loop] = step;
        continue;
      }
      // The loop runs on into the next outer axis: cut it where the axis is full.
      int64_t inner = target[axis] / step;
      if (inner <= 1 || inner >= size || target[axis] % step || size % inner)
        return op->emitOpError(
            "reads its source across axes in a way that is no strided copy; copy in two kernels");
      nest.cut(loop, inner);
      again = true;
      break;
    }
    if (again)
      continue;
    nest.index = std::move(index);
    return trace(source, std::move(nest));
  }
}

LogicalResult Tracer::trace(Value value, Nest nest) {
  if (nest.piece.count() == 0)
    return success();
  DenseElementsAttr constant;
  matchPattern(value, m_Constant(&constant));
  if (constant && constant.isSplat()) {
    fill(nest, constant.getSplatValue<TypedAttr>());
    return success();
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument || constant) {
    CopyPiece piece = nest.piece;
    piece.input = argument ? static_cast<int>(argument.getArgNumber()) : -1;
    piece.table = constant;
    piece.from.assign(piece.sizes.size(), 0);
    piece.fromBase = 0;
    for (auto [axis, stride] : llvm::zip_equal(nest.index, strides(shapeOf(value)))) {
      piece.fromBase += axis.base * stride;
      for (auto [sum, c] : llvm::zip_equal(piece.from, axis.coefficients))
        sum += c * stride;
    }
    pieces.push_back(std::move(piece));
    return success();
  }
  Operation *op = value.getDefiningOp();
  if (auto view = dyn_cast<nn::ReshapeOp>(op))
    return reshape(op, view.getX(), shapeOf(value), std::move(nest));
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    SmallVector<AxisIndex, 6> index(nest.index.size());
    for (auto [position, axis] : llvm::enumerate(transpose.getPermutation()))
      index[axis] = nest.index[position];
    nest.index = std::move(index);
    return trace(transpose.getX(), std::move(nest));
  }
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = shapeOf(broadcast.getX());
    nest.index.erase(nest.index.begin(), nest.index.begin() + (nest.index.size() - shape.size()));
    for (auto [axis, size] : llvm::zip_equal(nest.index, shape))
      if (size == 1) {
        axis.base = 0;
        llvm::fill(axis.coefficients, 0);
      }
    return trace(broadcast.getX(), std::move(nest));
  }
  if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    for (auto [axis, start, stride] :
         llvm::zip_equal(nest.index, slice.getStarts(), slice.getStrides())) {
      axis.base = axis.base * stride + start;
      for (int64_t &c : axis.coefficients)
        c *= stride;
    }
    return trace(slice.getX(), std::move(nest));
  }
  auto normal = [&](int64_t axis) {
    return axis < 0 ? axis + static_cast<int64_t>(nest.index.size()) : axis;
  };
  if (auto split = dyn_cast<nn::SplitOp>(op)) {
    int64_t axis = normal(static_cast<int64_t>(split.getAxis()));
    nest.index[axis].base += cast<OpResult>(value).getResultNumber() * shapeOf(value)[axis];
    return trace(split.getX(), std::move(nest));
  }
  if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    int64_t axis = normal(static_cast<int64_t>(concat.getAxis())), at = 0;
    SmallVector<std::tuple<int64_t, int64_t, Value>> parts;
    for (Value input : concat.getInputs()) {
      int64_t length = shapeOf(input)[axis];
      if (length)
        parts.push_back({at, length, input});
      at += length;
    }
    return segments(op, axis, nest, parts);
  }
  if (auto pad = dyn_cast<nn::PadOp>(op)) {
    // One axis after the other; the axes already handled hold the source's index.
    OpBuilder builder(op->getContext());
    TypedAttr zero = builder.getZeroAttr(nest.piece.element);
    std::vector<Nest> nests = {std::move(nest)};
    for (unsigned axis = 0; axis < shapeOf(value).size(); ++axis) {
      int64_t low = pad.getLow()[axis], step = pad.getInterior()[axis] + 1,
              length = shapeOf(pad.getX())[axis];
      std::vector<Nest> next;
      for (Nest &part : nests) {
        int loop = part.loopOf(axis);
        if (loop == -2)
          return op->emitOpError(
              "pads an axis that later ops merge with another; copy in two kernels");
        auto at = [&](int64_t iteration) {
          return part.index[axis].base +
                 (loop < 0 ? 0 : part.index[axis].coefficients[loop] * iteration);
        };
        auto inside = [&](int64_t position) {
          return position >= low && position < low + step * (length - 1) + 1 &&
                 (position - low) % step == 0;
        };
        auto enter = [&](Nest chosen) {
          chosen.index[axis].base = (chosen.index[axis].base - low) / step;
          for (auto [other, c] : llvm::enumerate(chosen.index[axis].coefficients))
            c = static_cast<int>(other) == loop ? c / step : 0;
          next.push_back(std::move(chosen));
        };
        if (loop < 0) {
          if (inside(at(0)))
            enter(part);
          else
            fill(part, zero);
          continue;
        }
        int64_t size = part.piece.sizes[loop], coefficient = part.index[axis].coefficients[loop];
        int64_t period = step / std::gcd(step, coefficient);
        // Every residue of the period is one progression: before the source, inside it, behind it.
        for (int64_t residue = 0; residue < std::min(period, size); ++residue) {
          int64_t count = llvm::divideCeil(size - residue, period), begin = 0;
          while (begin < count && !inside(at(residue + begin * period)))
            ++begin;
          int64_t end = begin;
          while (end < count && inside(at(residue + end * period)))
            ++end;
          if (begin)
            fill(part.restricted(loop, residue, period, begin), zero);
          if (end > begin) {
            Nest chosen = part.restricted(loop, residue + begin * period, period, end - begin);
            enter(std::move(chosen));
          }
          if (end < count)
            fill(part.restricted(loop, residue + end * period, period, count - end), zero);
        }
      }
      nests = std::move(next);
    }
    for (Nest &part : nests)
      if (failed(trace(pad.getX(), std::move(part))))
        return failure();
    return success();
  }
  return op->emitOpError("moves no elements, so it cannot stand in a copy kernel");
}

} // namespace

int64_t CopyPiece::count() const {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

void CopyPiece::normalise() {
  SmallVector<unsigned> order;
  for (unsigned i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1)
      order.push_back(i);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return to[a] > to[b]; });
  CopyPiece result = *this;
  result.sizes.clear(), result.to.clear(), result.from.clear();
  for (unsigned i : order) {
    if (!result.sizes.empty() && result.to.back() == to[i] * sizes[i] &&
        result.from.back() == from[i] * sizes[i]) {
      result.sizes.back() *= sizes[i];
      result.to.back() = to[i], result.from.back() = from[i];
    } else {
      result.sizes.push_back(sizes[i]), result.to.push_back(to[i]), result.from.push_back(from[i]);
    }
  }
  *this = std::move(result);
}

std::pair<CopyPiece, std::optional<CopyPiece>> CopyPiece::split(unsigned loop,
                                                                int64_t block) const {
  int64_t blocks = sizes[loop] / block, rest = sizes[loop] % block;
  CopyPiece main = *this;
  main.sizes[loop] = block;
  main.sizes.insert(main.sizes.begin(), blocks);
  main.to.insert(main.to.begin(), to[loop] * block);
  main.from.insert(main.from.begin(), from[loop] * block);
  if (!rest)
    return {main, std::nullopt};
  CopyPiece other = *this;
  other.sizes[loop] = rest;
  other.toBase += blocks * block * to[loop];
  other.fromBase += blocks * block * from[loop];
  return {main, other};
}

FailureOr<std::vector<CopyPiece>> copyPieces(exec::KernelOp kernel) {
  Tracer tracer;
  for (auto [i, value] : llvm::enumerate(kernel.getBody().front().getTerminator()->getOperands())) {
    Nest nest;
    nest.piece.result = i;
    nest.piece.element = cast<RankedTensorType>(value.getType()).getElementType();
    ArrayRef<int64_t> shape = shapeOf(value);
    nest.piece.sizes.assign(shape.begin(), shape.end());
    SmallVector<int64_t> runs = strides(shape);
    nest.piece.to.assign(runs.begin(), runs.end());
    for (unsigned axis = 0; axis < shape.size(); ++axis) {
      AxisIndex index;
      index.coefficients.assign(shape.size(), 0);
      index.coefficients[axis] = 1;
      nest.index.push_back(index);
    }
    if (failed(tracer.trace(value, std::move(nest))))
      return failure();
  }
  for (CopyPiece &piece : tracer.pieces)
    piece.normalise();
  return std::move(tracer.pieces);
}

} // namespace descent
