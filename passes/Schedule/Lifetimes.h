//===- Lifetimes.h - Which values share bytes, and for how long -----------===//
//
// The analysis behind order-operations, insert-copies and plan-memory. A *place* is a set of values
// that must or may lie in the same bytes: a view and what it views, an accumulation and what it
// adds onto, a packed gradient and its slab, a result written over an input that dies.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_SCHEDULE_LIFETIMES_H
#define DESCENT_PASSES_SCHEDULE_LIFETIMES_H

#include "dialects/Exec/Exec.h"
#include "dialects/Train/Train.h"

#include "llvm/ADT/EquivalenceClasses.h"

namespace descent::schedule {

/// Bytes of a static tensor as the ABI stores it (i1 takes one byte).
int64_t bytesOf(mlir::Type tensor);

/// Where a persistent value lies: a symbol, and for a member of a slab its first element there.
struct Persistent {
  mlir::StringAttr symbol; ///< a train.slab, train.state or train.parameter outside any slab, or an
                           ///< input ("input:<name>")
  int64_t bytes = 0;       ///< from its start
  bool operator==(const Persistent &other) const = default;
};

/// Maps parameters and states to the slab that holds them. Gradient slabs are asked for by
/// category.
class SlabMap {
public:
  explicit SlabMap(mlir::ModuleOp module);
  /// The place of a parameter, state or slab.
  Persistent place(mlir::StringAttr symbol) const;

private:
  llvm::DenseMap<mlir::StringAttr, Persistent> members;
};

/// One set of values in the same bytes.
struct Place {
  mlir::Value representative; ///< the first value of the place in program order
  std::optional<Persistent> persistent;
  int64_t bytes = 0;
  int64_t first = 0, last = 0; ///< launches, counted from 0; first is the defining one
  bool isInput = false;        ///< a function argument: written by the caller
};

/// The places of a function whose body is launches, views and train ops. Values are numbered by the
/// launches around them.
class Lifetimes {
public:
  Lifetimes(train::FuncOp function, const SlabMap &slabs);

  llvm::ArrayRef<exec::LaunchOp> getLaunches() const { return launches; }
  llvm::ArrayRef<Place> getPlaces() const { return places; }
  const Place &placeOf(mlir::Value value) const { return places[placeIndex.lookup(value)]; }
  unsigned indexOf(mlir::Value value) const { return placeIndex.lookup(value); }
  /// How many results were written over a dying input.
  int64_t getReused() const { return reused; }

private:
  /// What a launch's kernel says, looked up once: there are many launches of few kernels.
  struct KernelFacts {
    std::optional<unsigned> accumulated;
    llvm::SmallVector<std::pair<unsigned, unsigned>> reusable;
  };

  const KernelFacts &factsOf(exec::LaunchOp launch) const {
    return kernels.find(launch.getKernelAttr().getAttr())->second;
  }
  void readKernels();
  void numberValues();
  void uniteRequired();
  void uniteReusable();
  void collect(const SlabMap &slabs);

  /// The last launch that reads any value of the class of `value`; the number of launches if the
  /// function returns or writes it.
  int64_t lastUse(mlir::Value value) const;
  bool isFixed(mlir::Value value) const { return fixed.contains(classes.getLeaderValue(value)); }
  void unite(mlir::Value a, mlir::Value b);

  train::FuncOp function;
  llvm::DenseMap<mlir::StringAttr, KernelFacts> kernels;
  llvm::SmallVector<exec::LaunchOp> launches;
  llvm::DenseMap<mlir::Operation *, int64_t> launchNumber;
  llvm::EquivalenceClasses<mlir::Value>
      classes;                           // membership only; never iterated to decide anything
  llvm::DenseSet<mlir::Value> fixed;     // leaders of classes whose place is persistent
  llvm::SmallVector<mlir::Value> values; // in program order
  llvm::SmallVector<Place> places;
  llvm::DenseMap<mlir::Value, unsigned> placeIndex;
  int64_t reused = 0;
};

/// The kernel a launch runs.
exec::KernelOp kernelOf(exec::LaunchOp launch);

/// The operand a kernel's first result must be placed over (gradient accumulation in a matrix
/// product), if any.
std::optional<unsigned> accumulatedOperand(exec::KernelOp kernel);

/// Whether the op is an alias: same bytes, other shape.
bool isView(mlir::Operation &op);

} // namespace descent::schedule

#endif // DESCENT_PASSES_SCHEDULE_LIFETIMES_H
