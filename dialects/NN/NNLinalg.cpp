//===- NNLinalg.cpp - Reductions, shape ops and generators in linalg ------===//
//
// Bodies hold arith and math ops, linalg.index and captured scalars only, and shapes are static:
// that is what the vectoriser of row kernels takes. Narrow floats are summed and compared in f32
// and rounded once.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

#include <limits>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

using Values = FailureOr<SmallVector<Value>>;
using utils::IteratorType;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static Value emptyTensor(OpBuilder &builder, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
}

/// A tensor of one value.
static Value filled(OpBuilder &builder, Location loc, RankedTensorType type, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  return linalg::FillOp::create(builder, loc, scalar, emptyTensor(builder, loc, type)).getResult(0);
}

/// A parallel linalg.generic over the whole result.
static Value generate(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange inputs,
                      ArrayRef<AffineMap> inputMaps,
                      llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, inputs, emptyTensor(builder, loc, type), maps, iterators,
             [&](OpBuilder &nested, Location bodyLoc, ValueRange arguments) {
               linalg::YieldOp::create(nested, bodyLoc, body(nested, bodyLoc, arguments));
             })
      .getResult(0);
}

/// The same elements in another shape, by collapsing and expanding.
static Value reshapeTensor(OpBuilder &builder, Location loc, Value x, RankedTensorType type) {
  auto from = tensorType(x);
  if (from == type)
    return x;
  if (auto groups = getReassociationIndicesForReshape(from, type)) {
    if (from.getRank() > type.getRank())
      return tensor::CollapseShapeOp::create(builder, loc, type, x, *groups);
    return tensor::ExpandShapeOp::create(builder, loc, type, x, *groups);
  }
  // Through one axis.
  auto flat = RankedTensorType::get({type.getNumElements()}, type.getElementType());
  return reshapeTensor(builder, loc, reshapeTensor(builder, loc, x, flat), type);
}

//===----------------------------------------------------------------------===//
// Generators
//===----------------------------------------------------------------------===//

Values ConstantOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  return SmallVector<Value>{
      arith::ConstantOp::create(builder, getLoc(), cast<TypedAttr>(getValue()))};
}

Values IotaOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY());
  auto axis = normaliseAxis(static_cast<int64_t>(getAxis()), type.getRank());
  Type element = type.getElementType();
  Value y = generate(
      builder, getLoc(), type, {}, {}, [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Value index = linalg::IndexOp::create(b, loc, axis);
        if (element.isInteger(1)) {
          Value one = arith::ConstantIndexOp::create(b, loc, 1);
          return arith::IndexCastOp::create(b, loc, element,
                                            arith::AndIOp::create(b, loc, index, one));
        }
        if (!isa<FloatType>(element))
          return arith::IndexCastOp::create(b, loc, element, index);
        Value integer = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
        Value wide = arith::SIToFPOp::create(b, loc, b.getF32Type(), integer);
        return element.isF32() ? wide : Value(arith::TruncFOp::create(b, loc, element, wide));
      });
  return SmallVector<Value>{y};
}

namespace {
/// Philox 4x32-10 on i32 scalars: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC11. The vectoriser turns it into vector arithmetic; the 32 x 32 -> 64 bit product is spelled
/// with i64 because that is one vpmuludq.
struct Philox {
  OpBuilder &b;
  Location loc;

  Value integer(uint32_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  std::pair<Value, Value> product(Value x, uint32_t factor) {
    Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), x);
    Value constant = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(factor));
    Value full = arith::MulIOp::create(b, loc, wide, constant);
    Value shift = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(32));
    Value high = arith::TruncIOp::create(b, loc, b.getI32Type(),
                                         arith::ShRUIOp::create(b, loc, full, shift));
    return {high, arith::TruncIOp::create(b, loc, b.getI32Type(), full)};
  }
  Value xor3(Value x, Value y, Value z) {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, x, y), z);
  }
  /// Word 0 of the block.
  Value word(std::array<Value, 4> c, Value k0, Value k1) {
    for (int round = 0; round < 10; ++round) {
      auto [high0, low0] = product(c[0], 0xD2511F53);
      auto [high1, low1] = product(c[2], 0xCD9E8D57);
      c = {xor3(high1, c[1], k0), low1, xor3(high0, c[3], k1), low0};
      k0 = arith::AddIOp::create(b, loc, k0, integer(0x9E3779B9));
      k1 = arith::AddIOp::create(b, loc, k1, integer(0xBB67AE85));
    }
    return c[0];
  }
};
} // namespace

Values RandomOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY());
  SmallVector<Value> rng;
  for (int64_t i = 0; i < 4; ++i) {
    Value index = arith::ConstantIndexOp::create(builder, getLoc(), i);
    rng.push_back(tensor::ExtractOp::create(builder, getLoc(), operands[0], index));
  }
  Value y = generate(
      builder, getLoc(), type, {}, {}, [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Philox philox{b, loc};
        // The row-major element number; the counter's word takes its low 32 bits.
        Value element = philox.integer(0);
        for (int64_t axis = 0; axis < type.getRank(); ++axis) {
          Value index = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                                   linalg::IndexOp::create(b, loc, axis));
          Value size = philox.integer(static_cast<uint32_t>(type.getDimSize(axis)));
          element =
              arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, element, size), index);
        }
        Value id = philox.integer(static_cast<uint32_t>(getId()));
        Value word = philox.word({element, id, rng[2], rng[3]}, rng[0], rng[1]);
        // 24 bits are what f32 holds exactly.
        Value top = arith::ShRUIOp::create(b, loc, word, philox.integer(8));
        Value real = arith::SIToFPOp::create(b, loc, b.getF32Type(), top);
        Value unit = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0x1p-24f));
        real = arith::MulFOp::create(b, loc, real, unit);
        Type to = type.getElementType();
        return to.isF32() ? real : Value(arith::TruncFOp::create(b, loc, to, real));
      });
  return SmallVector<Value>{y};
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

Values ReshapeOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  return SmallVector<Value>{reshapeTensor(builder, getLoc(), operands[0], tensorType(getY()))};
}

static Value copyThrough(OpBuilder &builder, Location loc, Value x, RankedTensorType type,
                         AffineMap map) {
  return generate(builder, loc, type, x, map,
                  [](OpBuilder &, Location, ValueRange arguments) { return arguments[0]; });
}

Values TransposeOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY());
  // Axis p of x is read by the loop over the axis of y that it became.
  SmallVector<AffineExpr> exprs(type.getRank());
  for (auto [position, axis] : llvm::enumerate(getPermutation()))
    exprs[axis] = builder.getAffineDimExpr(position);
  auto map = AffineMap::get(type.getRank(), 0, exprs, builder.getContext());
  return SmallVector<Value>{copyThrough(builder, getLoc(), operands[0], type, map)};
}

Values BroadcastOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY()), from = tensorType(operands[0]);
  SmallVector<AffineExpr> exprs;
  for (int64_t axis = 0; axis < from.getRank(); ++axis) {
    int64_t position = type.getRank() - from.getRank() + axis;
    bool pinned = from.getDimSize(axis) == 1 && type.getDimSize(position) != 1;
    exprs.push_back(pinned ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(position));
  }
  auto map = AffineMap::get(type.getRank(), 0, exprs, builder.getContext());
  return SmallVector<Value>{copyThrough(builder, getLoc(), operands[0], type, map)};
}

static SmallVector<OpFoldResult> indices(OpBuilder &builder, ArrayRef<int64_t> values) {
  return getAsIndexOpFoldResult(builder.getContext(), values);
}

Values SliceOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY());
  Value y = tensor::ExtractSliceOp::create(
      builder, getLoc(), type, operands[0], indices(builder, getStarts()),
      indices(builder, type.getShape()), indices(builder, getStrides()));
  return SmallVector<Value>{y};
}

Values PadOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY());
  SmallVector<int64_t> strides;
  for (int64_t interior : getInterior())
    strides.push_back(interior + 1);
  Value zeros =
      filled(builder, getLoc(), type, cast<TypedAttr>(builder.getZeroAttr(type.getElementType())));
  Value y = tensor::InsertSliceOp::create(
      builder, getLoc(), operands[0], zeros, indices(builder, getLow()),
      indices(builder, tensorType(operands[0]).getShape()), indices(builder, strides));
  return SmallVector<Value>{y};
}

Values ConcatOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  auto type = tensorType(getY());
  auto axis = normaliseAxis(static_cast<int64_t>(getAxis()), type.getRank());
  Value y = emptyTensor(builder, getLoc(), type);
  SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
  for (Value input : operands) {
    ArrayRef<int64_t> sizes = tensorType(input).getShape();
    y = tensor::InsertSliceOp::create(builder, getLoc(), input, y, indices(builder, offsets),
                                      indices(builder, sizes), indices(builder, strides));
    offsets[axis] += sizes[axis];
  }
  return SmallVector<Value>{y};
}

Values SplitOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  int64_t rank = tensorType(operands[0]).getRank();
  auto axis = normaliseAxis(static_cast<int64_t>(getAxis()), rank);
  SmallVector<int64_t> offsets(rank, 0), strides(rank, 1);
  SmallVector<Value> parts;
  for (Value part : getParts()) {
    auto type = tensorType(part);
    parts.push_back(tensor::ExtractSliceOp::create(
        builder, getLoc(), type, operands[0], indices(builder, offsets),
        indices(builder, type.getShape()), indices(builder, strides)));
    offsets[axis] += type.getDimSize(axis);
  }
  return parts;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Reduces over `axes` with `combine` from `initial`, then scales, rounds to the result's type and
/// gives reduced axes their size 1 back.
template <typename CombineOp>
static Values lowerReduction(Operation *op, OpBuilder &builder, Value x, ArrayRef<int64_t> axesAttr,
                             double initial, double scale) {
  Location loc = op->getLoc();
  auto from = tensorType(x), to = tensorType(op->getResult(0));
  if (!from.hasStaticShape())
    return op->emitOpError() << "needs a static shape to become code, not " << from;
  SmallVector<int64_t> axes = normaliseAxes(axesAttr, from.getRank()), outer;
  SmallVector<IteratorType> iterators(from.getRank(), IteratorType::parallel);
  SmallVector<AffineExpr> exprs;
  for (int64_t axis = 0; axis < from.getRank(); ++axis) {
    if (llvm::is_contained(axes, axis)) {
      iterators[axis] = IteratorType::reduction;
      continue;
    }
    exprs.push_back(builder.getAffineDimExpr(axis));
    outer.push_back(from.getDimSize(axis));
  }
  auto flags = arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::contract);
  Type f32 = builder.getF32Type();
  auto wide = RankedTensorType::get(outer, f32);
  Value start = filled(builder, loc, wide, builder.getF32FloatAttr(static_cast<float>(initial)));
  AffineMap maps[] = {builder.getMultiDimIdentityMap(from.getRank()),
                      AffineMap::get(from.getRank(), 0, exprs, builder.getContext())};
  Value y = linalg::GenericOp::create(
                builder, loc, TypeRange{wide}, ValueRange{x}, ValueRange{start}, maps, iterators,
                [&](OpBuilder &b, Location bodyLoc, ValueRange arguments) {
                  Value element = arguments[0];
                  if (element.getType() != f32)
                    element = arith::ExtFOp::create(b, bodyLoc, f32, element);
                  Value next = CombineOp::create(b, bodyLoc, element, arguments[1], flags);
                  linalg::YieldOp::create(b, bodyLoc, next);
                })
                .getResult(0);
  Type element = to.getElementType();
  if (scale != 1.0 || element != f32)
    y = generate(builder, loc, RankedTensorType::get(outer, element), y,
                 builder.getMultiDimIdentityMap(static_cast<unsigned>(outer.size())),
                 [&](OpBuilder &b, Location bodyLoc, ValueRange arguments) -> Value {
                   Value result = arguments[0];
                   if (scale != 1.0) {
                     Value factor = arith::ConstantOp::create(
                         b, bodyLoc, b.getF32FloatAttr(static_cast<float>(scale)));
                     result = arith::MulFOp::create(b, bodyLoc, result, factor, flags);
                   }
                   return element == f32
                              ? result
                              : Value(arith::TruncFOp::create(b, bodyLoc, element, result));
                 });
  return SmallVector<Value>{reshapeTensor(builder, loc, y, to)};
}

Values ReduceSumOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  return lowerReduction<arith::AddFOp>(*this, builder, operands[0], getAxes(), 0.0, 1.0);
}

Values ReduceMeanOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  double share = static_cast<double>(tensorType(getY()).getNumElements()) /
                 static_cast<double>(tensorType(getX()).getNumElements());
  return lowerReduction<arith::AddFOp>(*this, builder, operands[0], getAxes(), 0.0, share);
}

Values ReduceMaxOp::lowerToLinalg(OpBuilder &builder, ValueRange operands) {
  // maximumf keeps a NaN; its neutral element is -infinity.
  return lowerReduction<arith::MaximumFOp>(*this, builder, operands[0], getAxes(),
                                           -std::numeric_limits<double>::infinity(), 1.0);
}
