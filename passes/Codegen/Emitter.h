//===- Emitter.h - Short spellings for hand-emitted loop nests ------------===//
//
// Tiles, packing and attention are emitted directly, because there the exact order of loads and the
// registers that stay live decide the speed. This wraps a builder and a location so that such code
// reads like the arithmetic it emits. Buffers are *flat*: one-dimensional memrefs of one nominal
// size per element type, whatever the tensor, so that a helper function is compiled once and serves
// all shapes; offsets and strides are index values, in elements.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_EMITTER_H
#define DESCENT_PASSES_CODEGEN_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <concepts>

namespace descent {

/// The type of flat buffers: no buffer is this large, and nothing checks the size.
mlir::MemRefType flatType(mlir::Type element);

/// An index that is known now or a value. Arithmetic on known indices emits nothing.
class Index {
public:
  template <std::integral Integer> Index(Integer number) : number(static_cast<int64_t>(number)) {}
  Index(mlir::Value value) : value(value) {}
  bool is(int64_t wanted) const { return !value && number == wanted; }
  bool isKnown() const { return !value; }

  int64_t number = 0;
  mlir::Value value;
};

class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  // Index arithmetic. Values are offsets into buffers, so they never wrap.
  mlir::Value value(Index a);
  Index add(Index a, Index b);
  Index sub(Index a, Index b);
  Index mul(Index a, Index b);
  Index min(Index a, Index b);
  Index max(Index a, Index b);
  Index select(mlir::Value condition, Index a, Index b);
  /// Of non-negative numbers.
  Index div(Index a, Index b);
  Index rem(Index a, Index b);
  Index roundDown(Index a, int64_t multiple);
  Index roundUp(Index a, int64_t multiple);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, Index a, Index b);
  mlir::Value less(Index a, Index b) { return compare(mlir::arith::CmpIPredicate::slt, a, b); }
  mlir::Value equal(Index a, Index b) { return compare(mlir::arith::CmpIPredicate::eq, a, b); }
  mlir::Value boolean(bool value);

  // Control flow.
  void loop(Index from, Index to, Index step, llvm::function_ref<void(Index)> body);
  llvm::SmallVector<mlir::Value>
  loop(Index from, Index to, Index step, mlir::ValueRange initial,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(Index, mlir::ValueRange)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = nullptr);

  // Memory. `buffer` is flat.
  mlir::Value load(mlir::Value buffer, Index offset);
  void store(mlir::Value scalar, mlir::Value buffer, Index offset);
  mlir::Value loadVector(mlir::Value buffer, Index offset, int64_t lanes);
  void storeVector(mlir::Value vector, mlir::Value buffer, Index offset);
  /// Lanes outside `mask` are zero and do not touch memory.
  mlir::Value loadMasked(mlir::Value buffer, Index offset, mlir::Value mask);
  void storeMasked(mlir::Value vector, mlir::Value buffer, Index offset, mlir::Value mask);
  /// Lanes 0 .. count-1; all if `count` exceeds the lanes, none if it is not positive.
  mlir::Value prefixMask(Index count, int64_t lanes);

  // Vectors.
  mlir::Value splat(mlir::Value scalar, int64_t lanes);
  mlir::Value constantVector(double value, int64_t lanes);
  mlir::Value constant(double value);

  /// A kernel's memref of any static shape as a flat buffer.
  mlir::Value flatten(mlir::Value memref);
  /// A flat buffer of `element` at a byte offset of the scratch argument.
  mlir::Value carve(mlir::Value scratch, Index byteOffset, mlir::Type element);

  void call(mlir::func::FuncOp function, mlir::ValueRange operands);
};

/// A private function that returns nothing, created once per module: `body` fills it when it is
/// new. `where` gives its location.
mlir::func::FuncOp getOrCreateHelper(mlir::ModuleOp module, llvm::StringRef name,
                                     mlir::TypeRange arguments,
                                     llvm::function_ref<void(Emitter &, mlir::ValueRange)> body);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_EMITTER_H
