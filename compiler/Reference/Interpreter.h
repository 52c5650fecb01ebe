//===- Interpreter.h - Programs on tensors, in double precision -----------===//
//
// In one of two arithmetics. Exact: no type rounds, casts between floats are the identity; the
// truth a program approximates. Rounded: each op's results are rounded to their element types,
// once, and what is inside an op (the sum of a product, the statistics of a norm) is in double; the
// program as its types say, up to the order of sums.
//
// Runs any straight-line block of ops that implement ReferenceOp: func.func, nn.model after
// bind-batch, the regions of exec.fusion and exec.kernel. Ops with another meaning (state, regions)
// are added by name: a handler sees the interpreter and may run nested blocks, which see the values
// of the blocks around them.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_REFERENCE_INTERPRETER_H
#define DESCENT_COMPILER_REFERENCE_INTERPRETER_H

#include "dialects/NN/ReferenceTensor.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <map>
#include <string>

namespace descent::reference {

enum class Arithmetic { Exact, Rounded };

class Interpreter {
public:
  /// Values of nn.parameter ops and of whatever handlers read, by name.
  using Parameters = std::map<std::string, Tensor, std::less<>>;
  /// Appends one tensor per result of the op. Fails after emitting an error.
  using Handler = std::function<mlir::LogicalResult(
      Interpreter &, mlir::Operation *, llvm::ArrayRef<Tensor>, llvm::SmallVectorImpl<Tensor> &)>;

  /// Sees every op that was run, with its results, after its nested ops.
  using Observer = std::function<void(mlir::Operation &, llvm::ArrayRef<Tensor> results)>;

  /// Knows ReferenceOp, nn.parameter, exec.fusion, exec.launch and func.call.
  explicit Interpreter(Arithmetic arithmetic = Arithmetic::Exact);

  /// Replaces what is known about ops of this name.
  void handle(llvm::StringRef opName, Handler handler) { handlers[opName] = std::move(handler); }

  /// Runs the body of a function-like op (any op whose first region is one block with a terminator)
  /// in a frame of its own. Appends the operands of the terminator to `outputs`. Fails after
  /// emitting an error: a missing parameter, an input of another shape, an op without a reference.
  mlir::LogicalResult interpret(mlir::Operation *function, llvm::ArrayRef<Tensor> inputs,
                                llvm::SmallVectorImpl<Tensor> &outputs);
  mlir::LogicalResult interpret(mlir::Region &region, llvm::ArrayRef<Tensor> inputs,
                                llvm::SmallVectorImpl<Tensor> &outputs);

  /// Runs a block inside the current frame: for handlers of ops with regions. A block without a
  /// terminator appends nothing.
  mlir::LogicalResult interpretBlock(mlir::Block &block, llvm::ArrayRef<Tensor> inputs,
                                     llvm::SmallVectorImpl<Tensor> &outputs);
  /// The value an op of the current frame computed.
  const Tensor &lookup(mlir::Value value) const { return frame->at(value); }

  Parameters parameters;
  Observer observer;

private:
  using Frame = llvm::DenseMap<mlir::Value, Tensor>;
  mlir::LogicalResult interpretOp(mlir::Operation &op, llvm::SmallVectorImpl<Tensor> &results);

  Arithmetic arithmetic;
  llvm::StringMap<Handler> handlers;
  Frame *frame = nullptr;
};

} // namespace descent::reference

#endif // DESCENT_COMPILER_REFERENCE_INTERPRETER_H
