//===- OrderOperations.cpp - The order of launches ------------------------===//
//
// Two orders are tried and the one with the lower peak of transient memory stays; of equal ones the
// first, because program order keeps a value's consumer close to its producer, where caches still
// hold it.
//
//   1. program order, made legal;
//   2. greedy: of the launches whose operands are ready, the one that frees the most bytes net of
//   what it allocates, ties in program order.
//
// Legal means: operands first, and a launch whose result is written over a parameter or state comes
// after every launch that reads the old value. Reads, views and packs take no time; they follow
// their operands.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Schedule/Lifetimes.h"
#include "passes/Schedule/Placement.h"

#include "llvm/ADT/SetVector.h"

namespace descent {
#define GEN_PASS_DEF_ORDEROPERATIONS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::schedule;

namespace {

struct OrderOperations : descent::impl::OrderOperationsBase<OrderOperations> {
  void runOnOperation() override;

private:
  LogicalResult order(train::FuncOp function);
};

/// The ops of a block with everything that must come before each.
class DependencyGraph {
public:
  DependencyGraph(mlir::Block &body, const SlabMap &slabs);

  /// A topological order; `greedy` picks by memory, otherwise by program order. Empty if there is a
  /// cycle.
  SmallVector<Operation *> schedule(bool greedy) const;

private:
  int64_t netBytesFreed(Operation *op, const DenseMap<Value, unsigned> &usesLeft) const;

  SmallVector<Operation *> ops; // without the terminator
  DenseMap<Operation *, llvm::SetVector<Operation *>> before;
};

} // namespace

DependencyGraph::DependencyGraph(mlir::Block &body, const SlabMap &slabs) {
  DenseMap<StringAttr, SmallVector<Operation *>> readersOf;
  for (Operation &op : body.without_terminator()) {
    ops.push_back(&op);
    for (Value operand : op.getOperands())
      if (Operation *def = operand.getDefiningOp())
        before[&op].insert(def);
    auto read = dyn_cast<train::ReadOp>(op);
    if (!read)
      continue;
    SmallVector<Value> views{read.getValue()};
    while (!views.empty())
      for (Operation *user : views.pop_back_val().getUsers()) {
        readersOf[slabs.place(read.getSymbolAttr().getAttr()).symbol].push_back(user);
        if (isView(*user))
          views.push_back(user->getResult(0));
      }
  }
  for (Operation *op : ops) {
    auto write = dyn_cast<train::WriteOp>(op);
    if (!write)
      continue;
    Operation *producer = write.getValue().getDefiningOp();
    for (Operation *reader : readersOf.lookup(slabs.place(write.getSymbolAttr().getAttr()).symbol))
      if (reader != producer && reader != op && producer)
        before[producer].insert(reader);
  }
}

int64_t DependencyGraph::netBytesFreed(Operation *op,
                                       const DenseMap<Value, unsigned> &usesLeft) const {
  if (!isa<exec::LaunchOp>(op))
    return std::numeric_limits<int64_t>::max(); // takes no memory and no time
  int64_t net = 0;
  for (Value result : op->getResults())
    net -= bytesOf(result.getType());
  llvm::SmallDenseSet<Value> counted;
  for (Value operand : op->getOperands()) {
    auto isTransient = operand.getDefiningOp<exec::LaunchOp>();
    if (isTransient && counted.insert(operand).second &&
        usesLeft.lookup(operand) == llvm::count(op->getOperands(), operand))
      net += bytesOf(operand.getType());
  }
  return net;
}

SmallVector<Operation *> DependencyGraph::schedule(bool greedy) const {
  DenseMap<Operation *, unsigned> missing;
  DenseMap<Operation *, SmallVector<Operation *>> after;
  DenseMap<Value, unsigned> usesLeft;
  for (Operation *op : ops) {
    auto found = before.find(op);
    missing[op] = found == before.end() ? 0 : found->second.size();
    if (found != before.end())
      for (Operation *earlier : found->second)
        after[earlier].push_back(op);
    for (Value result : op->getResults())
      usesLeft[result] = static_cast<unsigned>(std::distance(result.use_begin(), result.use_end()));
  }
  SmallVector<Operation *> ready, order; // ready stays in program order
  for (Operation *op : ops)
    if (missing[op] == 0)
      ready.push_back(op);
  while (!ready.empty()) {
    auto next = ready.begin();
    if (greedy) {
      int64_t best = netBytesFreed(*next, usesLeft);
      for (auto candidate = std::next(ready.begin()); candidate != ready.end(); ++candidate)
        if (int64_t freed = netBytesFreed(*candidate, usesLeft); freed > best) {
          best = freed;
          next = candidate;
        }
    }
    Operation *op = *next;
    ready.erase(next);
    order.push_back(op);
    for (Value operand : op->getOperands())
      if (usesLeft.contains(operand))
        --usesLeft[operand];
    for (Operation *later : after.lookup(op))
      if (--missing[later] == 0)
        ready.insert(
            llvm::upper_bound(ready, later,
                              [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); }),
            later);
  }
  if (order.size() != ops.size())
    order.clear();
  return order;
}

LogicalResult OrderOperations::order(train::FuncOp function) {
  mlir::Block &body = function.getBody().front();
  SlabMap slabs(getOperation());
  DependencyGraph graph(body, slabs);
  SmallVector<Operation *> byProgram = graph.schedule(/*greedy=*/false);
  SmallVector<Operation *> byMemory = graph.schedule(/*greedy=*/true);
  if (byProgram.empty() && !body.without_terminator().empty())
    return function.emitError("no legal order: a launch reads the old value of a state that it "
                              "also needs the new value of");
  auto apply = [&](ArrayRef<Operation *> order) {
    for (Operation *op : order)
      op->moveBefore(body.getTerminator());
    return peakBytes(Lifetimes(function, slabs));
  };
  int64_t memoryPeak = apply(byMemory), programPeak = apply(byProgram);
  if (memoryPeak < programPeak) {
    apply(byMemory);
    bytesSaved += programPeak - memoryPeak;
    ++reordered;
  }
  return success();
}

void OrderOperations::runOnOperation() {
  for (auto function : getOperation().getOps<train::FuncOp>())
    if (failed(order(function)))
      return signalPassFailure();
}
