//===- ScalarMath.h - Short spellings for building nn arithmetic ----------===//

#ifndef DESCENT_DIALECTS_TRAIN_SCALARMATH_H
#define DESCENT_DIALECTS_TRAIN_SCALARMATH_H

#include "dialects/NN/NN.h"

namespace descent::train {

/// Builds f32 nn ops at one location. Operands broadcast, so a rank-0 tensor combines with any
/// shape.
class ScalarMath {
public:
  ScalarMath(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(double value) {
    auto type = mlir::RankedTensorType::get({}, builder.getF32Type());
    auto bits = mlir::DenseElementsAttr::get(type, static_cast<float>(value));
    return nn::ConstantOp::create(builder, loc, bits);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) { return nn::AddOp::create(builder, loc, a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return nn::SubOp::create(builder, loc, a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return nn::MulOp::create(builder, loc, a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return nn::DivOp::create(builder, loc, a, b); }
  mlir::Value min(mlir::Value a, mlir::Value b) {
    return nn::MinimumOp::create(builder, loc, a, b);
  }
  mlir::Value max(mlir::Value a, mlir::Value b) {
    return nn::MaximumOp::create(builder, loc, a, b);
  }
  mlir::Value tanh(mlir::Value x) { return nn::TanhOp::create(builder, loc, x); }
  mlir::Value cos(mlir::Value x) { return nn::CosOp::create(builder, loc, x); }
  mlir::Value abs(mlir::Value x) { return nn::AbsOp::create(builder, loc, x); }
  mlir::Value sqrt(mlir::Value x) { return nn::SqrtOp::create(builder, loc, x); }
  mlir::Value rsqrt(mlir::Value x) { return nn::RsqrtOp::create(builder, loc, x); }
  mlir::Value compare(nn::ComparePredicate predicate, mlir::Value a, mlir::Value b) {
    return nn::CompareOp::create(builder, loc, predicate, a, b);
  }
  mlir::Value where(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return nn::WhereOp::create(builder, loc, condition, a, b);
  }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace descent::train

#endif // DESCENT_DIALECTS_TRAIN_SCALARMATH_H
