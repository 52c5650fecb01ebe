//===- FormKernels.cpp - Groups ops into kernels --------------------------===//
//
// Every op that computes ends in exactly one exec.fusion. Which ops share one is decided by what
// sharing saves: memory traffic.
//
// First each reader of a widened tensor gets a widening of its own (and views move in front of it),
// so that the narrow tensor is what lies in memory; those that end in one kernel are merged again
// when its code is generated.
//
// Steps, on the graph of one function's ops (FusionGraph):
//   1. Candidates: a use of a value by another op (merging saves writing and reading it) and two
//   uses of one value (merging saves reading it
//      once). The candidates are taken from the most bytes saved to the fewest, and a merge happens
//      if the union is still a legal kernel (KernelRules), stays within the limits, and closes no
//      cycle. Biggest first matters where merges exclude each other: of cross entropy, its gradient
//      and the count of its targets, the first two read the logits and must meet; the count, which
//      the gradient waits for, then cannot join them.
//   2. Attention reads its queries, keys and values through the split that made them, and its
//   gradient writes through the concat that
//      follows: those copies move into its kernel.
//   3. A value that a kernel can compute again from what it reads anyway, with a few cheap
//   operations, is not stored for it: the normalised
//      rows that a norm's gradient and the gradient of its gain need.
//   4. Columns kernels that share an input only now, since they compute their operands themselves,
//   merge.
//   5. The block is rewritten in an order that respects dependences. Free ops (constants, indices,
//   dropout masks) are cloned into every
//      kernel that uses them; ops without a use left are dropped.
//
// Views stay where they are, as aliases. Ops of other dialects stay too, and those with side
// effects keep their order.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/FusionGraph.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Passes.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace descent {
#define GEN_PASS_DEF_FORMKERNELS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

struct FormKernelsPass : descent::impl::FormKernelsBase<FormKernelsPass> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    bool failed = false;
    forEachProgram(getOperation(), [&](FunctionOpInterface function) {
      if (!failed && mlir::failed(formKernels(function.getFunctionBody().front())))
        failed = true;
    });
    if (failed)
      signalPassFailure();
  }

private:
  struct Candidate {
    int64_t saved;
    unsigned first, second; // positions, for a total order
    Operation *a, *b;
  };

  LogicalResult checkOps(Block &block);
  LogicalResult formKernels(Block &block);
  void duplicateWidenings(Block &block);
  void mergeByTraffic(Block &block, FusionGraph &graph);
  bool tryMerge(FusionGraph &graph, unsigned a, unsigned b);
  void pullCopies(Block &block, FusionGraph &graph);
  void recomputeCheapValues(Block &block, FusionGraph &graph);
  void mergeColumns(FusionGraph &graph);
  void rewrite(Block &block, FusionGraph &graph);
};

bool isRowsOrColumns(StringRef kind) { return kind == rowsKind || kind == columnsKind; }

/// Members of a node with its clones, in program order.
SmallVector<Operation *> allOps(const FusionGraph &graph, const FusionNode &node) {
  SmallVector<Operation *> ops(node.ops);
  llvm::append_range(ops, node.clones);
  llvm::sort(ops,
             [&](Operation *x, Operation *y) { return graph.positionOf(x) < graph.positionOf(y); });
  return ops;
}

/// Visits what a kernel of these ops reads: operands from outside, those of free ops in place of
/// the free ops' results.
void forEachInput(ArrayRef<Operation *> ops, llvm::function_ref<void(Value)> visit) {
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  std::function<void(Value)> input = [&](Value value) {
    Operation *def = value.getDefiningOp();
    if (def && members.contains(def))
      return;
    if (def && isFree(def) && def->getBlock() == ops.front()->getBlock())
      llvm::for_each(def->getOperands(), input);
    else
      visit(value);
  };
  for (Operation *op : ops)
    llvm::for_each(op->getOperands(), input);
}

/// A few additions and multiplications an element, no function and at most one division. The op's
/// own arithmetic tells.
bool isCheap(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  if (!elementwise || !isElementwise(op))
    return false;
  // Whatever its arithmetic, it saves reading most of its result's bytes.
  if (isWidening(op))
    return true;
  constexpr unsigned most = 4;
  Block scratch;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(scratch.addArgument(getElementTypeOrSelf(operand.getType()), op->getLoc()));
  OpBuilder builder(op->getContext()); // the block has no parent to take the context from
  builder.setInsertionPointToEnd(&scratch);
  elementwise.emitElement(builder, op->getLoc(), operands);
  unsigned cost = 0;
  for (Operation &emitted : scratch) {
    if (isa<math::MathDialect>(emitted.getDialect()))
      cost += most + 1;
    else if (!emitted.hasTrait<OpTrait::ConstantLike>())
      cost += isa<arith::DivFOp>(emitted) ? most : 1;
  }
  return cost <= most;
}

/// Whether a union may read and write that much at once. Tensors of a few elements are free: an
/// update over many scalars is one kernel.
bool withinLimits(ArrayRef<Operation *> ops, unsigned maxOps, unsigned maxStreams) {
  if (ops.size() > maxOps)
    return false;
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  llvm::SmallPtrSet<Value, 16> streams;
  forEachInput(ops, [&](Value value) {
    if (elementsOf(value) > 1)
      streams.insert(value);
  });
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (elementsOf(result) > 1 &&
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !members.contains(user); }))
        streams.insert(result);
  return streams.size() <= maxStreams;
}

} // namespace

LogicalResult FormKernelsPass::checkOps(Block &block) {
  for (Operation &op : block) {
    for (Type type : llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()))
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          fusionClass(&op) && (!tensor || !tensor.hasStaticShape()))
        return op.emitOpError("has a type without static shape, ")
               << type << "; bind-batch makes every shape static";
    if (StringRef kind = kernelKind(&op); !kind.empty())
      if (std::optional<std::string> reason = kernelViolation(kind, {&op}))
        return op.emitOpError("fits no kernel: ")
               << *reason << "; decompose-ops and split-reductions bring ops into a form that does";
  }
  return success();
}

LogicalResult FormKernelsPass::formKernels(Block &block) {
  if (failed(checkOps(block)))
    return failure();
  duplicateWidenings(block);
  FusionGraph graph(block);
  mergeByTraffic(block, graph);
  pullCopies(block, graph);
  recomputeCheapValues(block, graph);
  mergeColumns(graph);
  rewrite(block, graph);
  return success();
}

void FormKernelsPass::duplicateWidenings(Block &block) {
  SmallVector<Operation *> work;
  for (Operation &op : block)
    if (isWidening(&op) && !isFree(&op))
      work.push_back(&op);
  while (!work.empty()) {
    Operation *widening = work.pop_back_val();
    SmallVector<Operation *> users;
    for (Operation *user : widening->getResult(0).getUsers())
      if (user->getBlock() == &block && !llvm::is_contained(users, user))
        users.push_back(user);
    // The list of uses has no meaningful order.
    llvm::sort(users, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *user : users) {
      OpBuilder builder(user);
      if (isView(user) && user->getNumOperands() == 1) {
        IRMapping mapping;
        mapping.map(user->getOperand(0), widening->getOperand(0));
        Operation *view = builder.clone(*user, mapping);
        auto wide = cast<RankedTensorType>(user->getResult(0).getType());
        view->getResult(0).setType(
            wide.clone(getElementTypeOrSelf(widening->getOperand(0).getType())));
        mapping.map(widening->getOperand(0), view->getResult(0));
        Operation *copy = builder.clone(*widening, mapping);
        copy->getResult(0).setType(wide);
        user->replaceAllUsesWith(copy);
        user->erase();
        work.push_back(copy);
        continue;
      }
      // Others need the wide tensor in memory, and all can read the same one.
      if (!isRowsOrColumns(kernelKind(user)) || widening->hasOneUse())
        continue;
      Operation *copy = builder.clone(*widening);
      user->replaceUsesOfWith(widening->getResult(0), copy->getResult(0));
      ++valuesRecomputed;
    }
    if (widening->use_empty())
      widening->erase();
  }
}

bool FormKernelsPass::tryMerge(FusionGraph &graph, unsigned a, unsigned b) {
  StringRef kind = graph[a].kind;
  if (kind != graph[b].kind || !isRowsOrColumns(kind))
    return false;
  // A free op is a node only where something needs its result in memory; every kernel computes its
  // own copy.
  if (isFree(graph[a].ops.front()) || isFree(graph[b].ops.front()))
    return false;
  SmallVector<Operation *> ops(graph[a].ops);
  llvm::append_range(ops, graph[b].ops);
  llvm::sort(ops,
             [&](Operation *x, Operation *y) { return graph.positionOf(x) < graph.positionOf(y); });
  if (kernelViolation(kind, ops)) {
    ++declinedByDomain;
    return false;
  }
  if (!withinLimits(ops, maxOps, maxStreams)) {
    ++declinedBySize;
    return false;
  }
  if (graph.mergeClosesCycle(a, b)) {
    ++declinedByCycle;
    return false;
  }
  graph.merge(a, b);
  ++merges;
  return true;
}

void FormKernelsPass::mergeByTraffic(Block &block, FusionGraph &graph) {
  SmallVector<Candidate> candidates;
  auto consider = [&](Value value) {
    Operation *def = value.getDefiningOp();
    if (def && isFree(def))
      return;
    SmallVector<Operation *> users;
    for (Operation *user : value.getUsers())
      if (user->getBlock() == &block && isRowsOrColumns(kernelKind(user)) && graph.nodeOf(user))
        users.push_back(user);
    llvm::sort(users, [&](Operation *x, Operation *y) {
      return graph.positionOf(x) < graph.positionOf(y);
    });
    users.erase(llvm::unique(users), users.end());
    int64_t bytes = bytesOf(value);
    if (def && kernelKind(def) == rowsKind)
      for (Operation *user : users)
        candidates.push_back({2 * bytes, graph.positionOf(def), graph.positionOf(user), def, user});
    // Two kernels that merely read one small tensor gain nothing from each other.
    llvm::erase_if(users, [&](Operation *user) {
      int64_t iterations = 1;
      for (int64_t size : iterationShape(user))
        iterations *= size;
      return elementsOf(value) * 2 < iterations;
    });
    for (size_t i = 1; i < users.size(); ++i)
      candidates.push_back({bytes, graph.positionOf(users[i - 1]), graph.positionOf(users[i]),
                            users[i - 1], users[i]});
  };
  for (BlockArgument argument : block.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      consider(argument);
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && type.hasStaticShape())
        consider(result);
  llvm::sort(candidates, [](const Candidate &x, const Candidate &y) {
    return std::tuple(-x.saved, x.first, x.second) < std::tuple(-y.saved, y.first, y.second);
  });

  // A merge can make another legal (the domain of a scalar chain grows when it meets its
  // reduction), hence until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Candidate &candidate : candidates) {
      unsigned a = *graph.nodeOf(candidate.a), b = *graph.nodeOf(candidate.b);
      if (a != b && tryMerge(graph, a, b))
        changed = true;
    }
  }
}

void FormKernelsPass::pullCopies(Block &block, FusionGraph &graph) {
  // A split is a copy of one tensor into equal parts along the last axis, a concat the reverse.
  auto partsOf = [](Value whole, ValueRange parts) {
    return llvm::all_of(parts, [&](Value part) {
      ArrayRef<int64_t> p = shapeOf(part), w = shapeOf(whole);
      return part.getType() == parts.front().getType() && p.size() == w.size() &&
             p.drop_back() == w.drop_back() &&
             p.back() * static_cast<int64_t>(parts.size()) == w.back();
    });
  };
  for (unsigned node = 0; node < graph.size(); ++node) {
    if (graph[node].merged || !StringRef(graph[node].kind).starts_with("attention"))
      continue;
    Operation *op = graph[node].ops.front();
    SmallVector<Value> operands(op->getOperands());
    for (size_t i = 0; i + 3 <= operands.size(); ++i) {
      Operation *split = operands[i].getDefiningOp();
      if (split && fusionClass(split) == FusionClass::Copy && split->getNumOperands() == 1 &&
          split->getNumResults() == 3 &&
          ValueRange(split->getResults()) == ValueRange(operands).slice(i, 3) &&
          partsOf(split->getOperand(0), split->getResults())) {
        graph[node].clones.push_back(split);
        ++copiesPulled;
        break;
      }
    }
    if (op->getNumResults() != 3 || op->getResult(0).use_empty())
      continue;
    Operation *concat = *op->getResult(0).user_begin();
    if (fusionClass(concat) == FusionClass::Copy && concat->getNumResults() == 1 &&
        ValueRange(concat->getOperands()) == ValueRange(op->getResults()) &&
        partsOf(concat->getResult(0), op->getResults()) &&
        llvm::all_of(op->getUsers(), [&](Operation *user) { return user == concat; })) {
      graph.merge(node, *graph.nodeOf(concat));
      ++copiesPulled;
    }
  }
}

/// For each kernel and each full-size value it reads that another rows kernel computes: can a few
/// cheap operations compute it again from values that are in memory in any case, or small?
void FormKernelsPass::recomputeCheapValues(Block &block, FusionGraph &graph) {
  constexpr size_t maxCone = 4;
  // Nodes that read a value, not counting the one that computes it.
  auto readers = [&](Value value) {
    llvm::SmallSetVector<unsigned, 4> nodes;
    std::optional<unsigned> home =
        value.getDefiningOp() ? graph.nodeOf(value.getDefiningOp()) : std::nullopt;
    for (Operation *user : value.getUsers()) {
      Operation *top = block.findAncestorOpInBlock(*user);
      std::optional<unsigned> node = top ? graph.nodeOf(top) : std::nullopt;
      if (!node)
        nodes.insert(graph.size()); // the terminator
      else if (node != home)
        nodes.insert(*node);
    }
    return nodes;
  };
  // In memory in any case. Values are visited in program order, so what precedes is decided. A
  // product that only rows kernels read does not count: fold-epilogues will compute its consumers
  // in its place.
  llvm::SmallPtrSet<Value, 16> recomputed;
  std::function<bool(Value)> isStored = [&](Value value) -> bool {
    Operation *def = value.getDefiningOp();
    if (!def)
      return true;
    if (isView(def))
      return isStored(def->getOperand(0));
    if (kernelKind(def) == rowsKind)
      return !recomputed.contains(value) && !readers(value).empty();
    if (fusionClass(def) == FusionClass::Contraction)
      return llvm::any_of(readers(value), [&](unsigned node) {
        return node == graph.size() || !isRowsOrColumns(graph[node].kind);
      });
    return true;
  };
  // Only rows and columns kernels can do without a value in memory.
  auto mustBeStored = [&](Value value) {
    return llvm::any_of(readers(value), [&](unsigned node) {
      return node == graph.size() || !isRowsOrColumns(graph[node].kind);
    });
  };
  for (Operation &op : block) {
    std::optional<unsigned> home = graph.nodeOf(&op);
    if (!home || graph[*home].kind != rowsKind || !isCheap(&op) || isFree(&op) ||
        mustBeStored(op.getResult(0)))
      continue;
    Value value = op.getResult(0);
    auto nodes = readers(value);
    if (nodes.empty())
      continue;
    // The cone of operations from stored or small values to this one.
    llvm::SmallSetVector<Operation *, 4> cone;
    cone.insert(&op);
    llvm::SmallPtrSet<Value, 4> fullLeaves;
    bool fits = true;
    for (size_t i = 0; i < cone.size() && fits; ++i)
      for (Value operand : cone[i]->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (def && isFree(def))
          continue;
        bool small = elementsOf(operand) * 8 <= elementsOf(value);
        if (small)
          continue;
        if (isStored(operand)) {
          fullLeaves.insert(operand);
          continue;
        }
        cone.insert(def);
        fits = isCheap(def) && cone.size() <= maxCone;
      }
    if (!fits)
      continue;
    // Each reader must be able to take the cone. Saved are one write and one read by each.
    size_t added = 0;
    SmallVector<Operation *> coneOps(cone.begin(), cone.end());
    fits = llvm::all_of(nodes,
                        [&](unsigned node) {
                          SmallVector<Operation *> ops = allOps(graph, graph[node]);
                          llvm::SmallPtrSet<Value, 8> inputs;
                          forEachInput(ops, [&](Value input) { inputs.insert(input); });
                          added += llvm::count_if(fullLeaves, [&](Value leaf) {
                            Operation *def = leaf.getDefiningOp();
                            return !inputs.contains(leaf) && !(def && llvm::is_contained(ops, def));
                          });
                          for (Operation *member : coneOps)
                            if (!llvm::is_contained(ops, member))
                              ops.push_back(member);
                          llvm::sort(ops, [&](Operation *x, Operation *y) {
                            return graph.positionOf(x) < graph.positionOf(y);
                          });
                          return !kernelViolation(graph[node].kind, ops) &&
                                 withinLimits(ops, maxOps, maxStreams);
                        }) &&
           added <= nodes.size() + 1;
    if (!fits) {
      ++recomputesDeclined;
      continue;
    }
    for (unsigned node : nodes)
      for (Operation *member : coneOps)
        if (!llvm::is_contained(graph[node].ops, member) &&
            !llvm::is_contained(graph[node].clones, member))
          graph[node].clones.push_back(member);
    recomputed.insert(value);
    ++valuesRecomputed;
  }
}

/// Columns kernels that read the same tensors only now that they compute their operands themselves.
void FormKernelsPass::mergeColumns(FusionGraph &graph) {
  for (unsigned a = 0; a < graph.size(); ++a)
    for (unsigned b = a + 1; b < graph.size(); ++b) {
      if (graph[a].merged || graph[b].merged || graph[a].kind != columnsKind ||
          graph[b].kind != columnsKind)
        continue;
      SmallVector<Operation *> ops = allOps(graph, graph[a]), others = allOps(graph, graph[b]);
      llvm::SmallPtrSet<Value, 8> inputs;
      forEachInput(ops, [&](Value input) { inputs.insert(input); });
      bool shares = false;
      forEachInput(others, [&](Value input) {
        shares |= inputs.contains(input) && shapeOf(input) == iterationShape(graph[b].ops.back());
      });
      for (Operation *op : others)
        if (!llvm::is_contained(ops, op))
          ops.push_back(op);
      llvm::sort(ops, [&](Operation *x, Operation *y) {
        return graph.positionOf(x) < graph.positionOf(y);
      });
      if (!shares || kernelViolation(columnsKind, ops) || !withinLimits(ops, maxOps, maxStreams) ||
          graph.mergeClosesCycle(a, b))
        continue;
      graph.merge(a, b);
      ++merges;
    }
}

void FormKernelsPass::rewrite(Block &block, FusionGraph &graph) {
  SmallVector<unsigned> order = graph.order();
  Operation *terminator = block.mightHaveTerminator() ? block.getTerminator() : nullptr;
  SmallVector<Operation *> original;
  for (Operation &op : block)
    original.push_back(&op);

  // From the last node to the first: what is needed, and which ops of each node compute something
  // needed.
  llvm::DenseSet<Value> needed;
  auto needOperands = [&](Operation *op) {
    op->walk(
        [&](Operation *nested) { needed.insert(nested->operand_begin(), nested->operand_end()); });
  };
  if (terminator)
    needOperands(terminator);
  SmallVector<SmallVector<Operation *>, 0> bodies(graph.size());
  for (unsigned node : llvm::reverse(order)) {
    if (graph[node].kind.empty()) {
      Operation *op = graph[node].ops.front();
      bool live = !isMemoryEffectFree(op) ||
                  llvm::any_of(op->getResults(), [&](Value v) { return needed.contains(v); });
      if (live) {
        bodies[node].push_back(op);
        needOperands(op);
      }
      continue;
    }
    SmallVector<Operation *> ops = allOps(graph, graph[node]);
    bool clonesFree = isRowsOrColumns(graph[node].kind);
    // A node's own ops are live if another node needs a result, or a live op of this one does;
    // clones only for the latter.
    llvm::DenseSet<Value> local;
    llvm::SetVector<Operation *> body;
    std::function<void(Operation *)> take = [&](Operation *op) {
      if (!body.insert(op))
        return;
      for (Value operand : op->getOperands()) {
        local.insert(operand);
        if (Operation *def = operand.getDefiningOp();
            clonesFree && def && def->getBlock() == &block && isFree(def))
          take(def);
      }
    };
    for (Operation *op : llvm::reverse(ops)) {
      bool own = llvm::is_contained(graph[node].ops, op);
      if (llvm::any_of(op->getResults(),
                       [&](Value v) { return local.contains(v) || (own && needed.contains(v)); }))
        take(op);
    }
    bodies[node] = llvm::to_vector(body);
    llvm::sort(bodies[node], [&](Operation *x, Operation *y) {
      return graph.positionOf(x) < graph.positionOf(y);
    });
    for (Operation *op : bodies[node])
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); !def || !body.contains(def))
          needed.insert(operand);
  }

  OpBuilder builder = terminator ? OpBuilder(terminator) : OpBuilder::atBlockEnd(&block);
  IRMapping placed;
  auto place = [&](Operation *op) {
    op->walk([&](Operation *nested) {
      for (OpOperand &operand : nested->getOpOperands())
        operand.set(placed.lookupOrDefault(operand.get()));
    });
  };
  llvm::SmallPtrSet<Operation *, 32> kept;
  for (unsigned node : order) {
    ArrayRef<Operation *> ops = bodies[node];
    if (ops.empty())
      continue;
    if (graph[node].kind.empty()) {
      Operation *op = ops.front();
      place(op);
      if (terminator)
        op->moveBefore(terminator);
      else
        op->moveBefore(&block, block.end());
      kept.insert(op);
      continue;
    }
    llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
    SmallVector<Value> inputs, outputs;
    SmallVector<Location> locations;
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp();
            (!def || !members.contains(def)) && !llvm::is_contained(inputs, operand))
          inputs.push_back(operand);
      if (!llvm::is_contained(graph[node].ops, op))
        continue;
      locations.push_back(op->getLoc());
      for (Value result : op->getResults())
        if (needed.contains(result))
          outputs.push_back(result);
    }
    SmallVector<Value> operands =
        llvm::map_to_vector(inputs, [&](Value v) { return placed.lookupOrDefault(v); });
    auto fusion =
        exec::FusionOp::create(builder, builder.getFusedLoc(locations),
                               TypeRange(ValueRange(outputs)), graph[node].kind, operands);
    Block *body = builder.createBlock(&fusion.getBody());
    IRMapping inside;
    for (auto [value, operand] : llvm::zip_equal(inputs, operands))
      inside.map(value, body->addArgument(operand.getType(), operand.getLoc()));
    for (Operation *op : ops) {
      Operation *copy = builder.clone(*op, inside);
      // A product of a tensor with itself: generators know operands by their position among the
      // inputs, so each has its own.
      if (fusionClass(op) != FusionClass::Contraction)
        continue;
      for (unsigned i = 1; i < op->getNumOperands(); ++i)
        if (llvm::is_contained(op->getOperands().take_front(i), op->getOperand(i))) {
          fusion->insertOperands(fusion->getNumOperands(),
                                 placed.lookupOrDefault(op->getOperand(i)));
          copy->setOperand(i, body->addArgument(op->getOperand(i).getType(), op->getLoc()));
        }
    }
    exec::YieldOp::create(builder, fusion.getLoc(),
                          llvm::map_to_vector(outputs, [&](Value v) { return inside.lookup(v); }));
    builder.setInsertionPointAfter(fusion);
    for (auto [value, result] : llvm::zip_equal(outputs, fusion.getOutputs()))
      placed.map(value, result);
    ++kernelsFormed;
  }
  if (terminator) {
    place(terminator);
    kept.insert(terminator);
  }
  for (Operation *op : llvm::reverse(original))
    if (!kept.contains(op)) {
      op->dropAllUses();
      op->erase();
    }
}
