//===- KernelRules.h - What may share a kernel ----------------------------===//
//
// One statement of the rules that form-kernels keeps while it merges and verify-kernels checks at
// the end of the phase, so that the two cannot drift apart. Nothing here knows an op by name:
// classes come from FusibleOp, axes from the attributes that every reduction has.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_FUSION_KERNELRULES_H
#define DESCENT_PASSES_FUSION_KERNELRULES_H

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include <optional>
#include <string>

namespace descent::fusion {

inline constexpr llvm::StringLiteral rowsKind = "rows";
inline constexpr llvm::StringLiteral columnsKind = "columns";
inline constexpr llvm::StringLiteral copyKind = "copy";

/// i64 on a fusion, and on the kernel made of it: the operand with this index dies here and the
/// result is to be placed over it.
inline constexpr llvm::StringLiteral accumulateAttrName = "accumulate";

/// Unit on a product's fusion and on its kernel: a library computes it, where it can.
inline constexpr llvm::StringLiteral libraryAttrName = "library";

/// The class of an op, nothing for an op that has no part in kernels.
std::optional<FusionClass> fusionClass(mlir::Operation *op);
bool isElementwise(mlir::Operation *op);
bool isReduction(mlir::Operation *op);
bool isView(mlir::Operation *op);

/// The reduced axes, ascending and not negative.
llvm::SmallVector<int64_t> reducedAxes(mlir::Operation *reduction);
/// Only the last axis is reduced: a rows kernel.
bool reducesLastAxis(mlir::Operation *op);
/// The first axes are reduced and at least one is left: a columns kernel.
bool reducesLeadingAxes(mlir::Operation *op);

/// A kernel's result that nothing but `reader` reads, views included: its place is free once that
/// has run.
bool diesHere(mlir::Value value, mlir::Operation *reader);

/// The shape of a tensor value.
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);
int64_t elementsOf(mlir::Value value);
int64_t bytesOf(mlir::Value value);
/// The shape an op iterates over: that of the operand for a reduction, else that of the result.
llvm::ArrayRef<int64_t> iterationShape(mlir::Operation *op);

/// An op that every kernel using it computes again, because its elements come from nothing that
/// needs reading: constants, indices, random numbers, and what is computed from such and from
/// values of a few elements alone (dropout masks, which are never stored).
bool isFree(mlir::Operation *op);

/// A cast of a float tensor to a wider float type. It reads half the bytes of its result or fewer
/// and is exact, so each kernel that wants the wide values makes them from the narrow ones.
bool isWidening(mlir::Operation *op);

/// Whether a product's epilogue can compute `op`: its arithmetic is known element by element, or it
/// repeats, or is one constant.
bool isEpilogueOp(mlir::Operation *op);
/// Whether an epilogue on results of `shape` can read `operand`: the whole, one row ([N]), one
/// element a row ([..., M, 1]), a scalar, or rows that repeat over outer or inner axes.
bool epilogueReads(llvm::ArrayRef<int64_t> operand, llvm::ArrayRef<int64_t> shape);

/// The kind of the kernel that can hold `op` alone; empty for ops that have no kernel (views, ops
/// of other dialects).
llvm::StringRef kernelKind(mlir::Operation *op);
/// Whether a generator exists for kernels of this kind.
bool isKnownKind(llvm::StringRef kind);

/// Why `ops`, in program order, cannot be one kernel of `kind`; nothing if they can. Values defined
/// outside `ops` are its inputs. With `library`, a product may have the sum of an operand beside it
/// (OperandSum).
std::optional<std::string>
kernelViolation(llvm::StringRef kind, llvm::ArrayRef<mlir::Operation *> ops, bool library = false);

/// The common domain of a valid rows kernel, or of a columns kernel (the shape its reductions
/// read).
llvm::SmallVector<int64_t> kernelDomain(llvm::StringRef kind,
                                        llvm::ArrayRef<mlir::Operation *> ops);

/// "768x512x128"
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Functions whose bodies are tensor programs: every function but models, their modules and
/// kernels.
void forEachProgram(mlir::ModuleOp module,
                    llvm::function_ref<void(mlir::FunctionOpInterface)> visit);

} // namespace descent::fusion

#endif // DESCENT_PASSES_FUSION_KERNELRULES_H
