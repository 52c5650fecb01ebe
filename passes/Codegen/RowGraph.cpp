//===- RowGraph.cpp - What a kernel computes at one point of its domain ---===//
//
// Built backwards from the results: `place` finds where in a result the elements of a domain point
// belong, `demand` then asks each producer for the element its consumer needs. A value that two
// consumers need at different indices becomes two nodes. All indices are linear forms with constant
// coefficients, which is what makes addresses, vector loads and the in-place analysis decidable by
// comparing integers.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/RowGraph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace descent {

namespace {

SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Source of a reshape, null for other values.
Value reshapeSource(Value value) {
  if (auto op = value.getDefiningOp<tensor::ExpandShapeOp>())
    return op.getSrc();
  if (auto op = value.getDefiningOp<tensor::CollapseShapeOp>())
    return op.getSrc();
  if (auto op = value.getDefiningOp<tensor::ReshapeOp>())
    return op.getSource();
  return nullptr;
}

/// The constant that fills a whole tensor (or is a scalar operand of a generic), null for others.
TypedAttr splatOf(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return splatOf(fill.getInputs().front());
  TypedAttr attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return nullptr;
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute))
    return dense.isSplat() ? dense.getSplatValue<TypedAttr>() : TypedAttr();
  return attribute;
}

LinearForm linearOffset(const ElementIndex &index, ArrayRef<int64_t> shape, unsigned dimensions) {
  LinearForm offset(dimensions, 0);
  SmallVector<int64_t> strides = rowMajorStrides(shape);
  for (auto [form, stride] : llvm::zip_equal(index, strides))
    for (auto [sum, coefficient] : llvm::zip_equal(offset, form))
      sum += coefficient * stride;
  return offset;
}

/// Rough price of one payload op, in multiply-adds.
unsigned opCost(Operation *op) {
  if (isa<arith::ConstantOp, linalg::YieldOp, linalg::IndexOp>(op))
    return 0;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::RemSIOp, math::SqrtOp, math::RsqrtOp>(op))
    return 6;
  return isa<math::MathDialect>(op->getDialect()) &&
                 !isa<math::AbsFOp, math::FmaOp, math::CopySignOp>(op)
             ? 16
             : 1;
}

/// The op that folds a reduction's next contribution into its accumulator, or null.
Operation *findCombiner(linalg::GenericOp op, unsigned result) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  Operation *combiner = yield.getOperand(result).getDefiningOp();
  Value accumulator = op.getRegionOutputArgs()[result];
  if (!combiner || combiner->getNumOperands() != 2 || combiner->getNumResults() != 1 ||
      !accumulator.hasOneUse() || *accumulator.getUsers().begin() != combiner ||
      !combiner->getResult(0).hasOneUse())
    return nullptr;
  return isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::AddIOp,
             arith::MulIOp, arith::MaxSIOp, arith::MinSIOp, arith::AndIOp, arith::OrIOp>(combiner)
             ? combiner
             : nullptr;
}

std::vector<int64_t> flatten(const ElementIndex &index) {
  std::vector<int64_t> flat;
  for (const LinearForm &form : index)
    flat.insert(flat.end(), form.begin(), form.end());
  return flat;
}

} // namespace

LinearForm RowGraph::unit(unsigned dimension) const {
  LinearForm form = zero();
  form[dimension] = sizes[dimension] == 1 ? 0 : 1;
  return form;
}

RowNode *RowGraph::create(Key key) {
  storage.push_back(std::make_unique<RowNode>());
  RowNode *node = storage.back().get();
  node->id = storage.size() - 1;
  node->depends = zero();
  known[std::move(key)] = node;
  return node;
}

RowNode *RowGraph::splat(TypedAttr value, Key key) {
  RowNode *node = create(std::move(key));
  node->kind = RowNode::Kind::Splat;
  node->splat = value;
  node->type = value.getType();
  return node;
}

/// A scalar that a payload takes from outside: an element of an input at a fixed position (a random
/// op's key).
FailureOr<RowNode *> RowGraph::capture(Value value) {
  auto extract = value.getDefiningOp<tensor::ExtractOp>();
  auto argument = extract ? dyn_cast<BlockArgument>(extract.getTensor()) : BlockArgument();
  if (!argument)
    return function.emitError("a payload of a rows or columns kernel may take constants and "
                              "elements of inputs from outside, nothing else"),
           failure();
  int64_t offset = 0;
  for (auto [position, stride] :
       llvm::zip_equal(extract.getIndices(), rowMajorStrides(shapeOf(argument)))) {
    std::optional<int64_t> constant = getConstantIntValue(position);
    if (!constant)
      return extract.emitError("position must be constant"), failure();
    offset += *constant * stride;
  }
  Key key{argument.getAsOpaquePointer(), {-1, offset}};
  if (auto it = known.find(key); it != known.end())
    return it->second;
  RowNode *node = create(std::move(key));
  node->argument = argument.getArgNumber();
  node->type = value.getType();
  node->strides = zero();
  node->base = offset;
  return node;
}

FailureOr<ElementIndex> RowGraph::alignRight(ArrayRef<int64_t> shape) const {
  if (shape.size() > sizes.size())
    return failure();
  ElementIndex index;
  for (auto [axis, size] : llvm::enumerate(shape)) {
    unsigned dimension = sizes.size() - shape.size() + axis;
    if (size != 1 && size != sizes[dimension])
      return failure();
    index.push_back(size == 1 ? zero() : unit(dimension));
  }
  return index;
}

FailureOr<ElementIndex> RowGraph::reshapeIndex(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                                               const ElementIndex &index) const {
  LinearForm offset = linearOffset(index, from, sizes.size());
  SmallVector<int64_t> strides = rowMajorStrides(to);
  ElementIndex result(to.size(), zero());
  SmallVector<int64_t> largest(to.size(), 0);
  for (auto [dimension, coefficient] : llvm::enumerate(offset)) {
    if (coefficient == 0)
      continue;
    bool placed = false;
    for (auto [axis, stride] : llvm::enumerate(strides)) {
      if (to[axis] == 1 || coefficient % stride != 0)
        continue;
      int64_t step = coefficient / stride;
      if (largest[axis] + step * (sizes[dimension] - 1) >= to[axis])
        continue;
      largest[axis] += step * (sizes[dimension] - 1);
      result[axis][dimension] = step;
      placed = true;
      break;
    }
    if (!placed)
      return failure();
  }
  return result;
}

FailureOr<SmallVector<LinearForm, 4>> RowGraph::placeLoops(linalg::GenericOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<LinearForm, 4> loops(ranges.size(), zero());
  if (ArrayRef<int64_t>(ranges) == ArrayRef<int64_t>(sizes)) {
    for (unsigned i = 0; i < ranges.size(); ++i)
      loops[i] = unit(i);
    return loops;
  }
  SmallVector<bool> found(ranges.size());
  for (auto [i, range] : llvm::enumerate(ranges))
    found[i] = range == 1;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Value value = operand->get();
    if (isa<BlockArgument>(value) || !isa<RankedTensorType>(value.getType()) || splatOf(value))
      continue;
    auto index = place(value);
    if (failed(index))
      continue;
    for (auto [axis, expression] : llvm::enumerate(op.getMatchingIndexingMap(operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expression); loop && !found[loop.getPosition()]) {
        loops[loop.getPosition()] = (*index)[axis];
        found[loop.getPosition()] = true;
      }
  }
  if (llvm::all_of(found, [](bool f) { return f; }))
    return loops;
  return alignRight(ranges);
}

FailureOr<ElementIndex> RowGraph::place(Value value) {
  if (Value source = reshapeSource(value)) {
    auto index = place(source);
    if (failed(index))
      return failure();
    return reshapeIndex(shapeOf(source), shapeOf(value), *index);
  }
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return alignRight(shapeOf(value));
  auto loops = placeLoops(op);
  if (failed(loops))
    return failure();
  ElementIndex index;
  AffineMap map = op.getIndexingMapMatchingResult(cast<OpResult>(value));
  for (AffineExpr expression : map.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expression);
    index.push_back(loop ? (*loops)[loop.getPosition()] : zero());
  }
  return index;
}

FailureOr<RowNode *> RowGraph::demand(Value value, const ElementIndex &index) {
  Key key{value.getAsOpaquePointer(), flatten(index)};
  if (auto it = known.find(key); it != known.end())
    return it->second;
  if (TypedAttr constant = splatOf(value))
    return splat(constant, std::move(key));
  if (Value source = reshapeSource(value)) {
    auto inner = reshapeIndex(shapeOf(value), shapeOf(source), index);
    if (failed(inner))
      return value.getDefiningOp()->emitError()
                 << "reshape of " << source.getType() << " to " << value.getType()
                 << " splits an axis of the kernel's domain; keep it out of the kernel",
             failure();
    return demand(source, *inner);
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    RowNode *node = create(std::move(key));
    node->argument = argument.getArgNumber();
    node->type = getElementTypeOrSelf(value.getType());
    node->strides = linearOffset(index, shapeOf(value), sizes.size());
    node->depends = node->strides;
    return node;
  }
  if (value.getDefiningOp<linalg::GenericOp>())
    return demandGeneric(cast<OpResult>(value), index);
  return value.getDefiningOp()->emitError() << "'" << value.getDefiningOp()->getName()
                                            << "' has no place in a rows or columns kernel",
         failure();
}

FailureOr<RowNode *> RowGraph::demandGeneric(OpResult value, const ElementIndex &index) {
  auto op = cast<linalg::GenericOp>(value.getOwner());
  unsigned result = value.getResultNumber();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<LinearForm, 4> loops(ranges.size(), zero());
  SmallVector<bool> found(ranges.size());
  for (auto [axis, expression] :
       llvm::enumerate(op.getIndexingMapMatchingResult(value).getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expression)) {
      loops[loop.getPosition()] = index[axis];
      found[loop.getPosition()] = true;
    }
  SmallVector<unsigned, 2> reduced;
  for (auto [i, iterator] : llvm::enumerate(iterators)) {
    if (iterator == utils::IteratorType::reduction) {
      int64_t dimension = static_cast<int64_t>(sizes.size()) - ranges.size() + i;
      if (dimension < 0 || sizes[dimension] != ranges[i])
        return op.emitError("reduces over an axis that is not one of the kernel's domain"),
               failure();
      loops[i] = unit(dimension);
      reduced.push_back(dimension);
    } else if (!found[i] && ranges[i] != 1) {
      return op.emitError("result does not determine all parallel loops"), failure();
    }
  }
  auto node = std::make_unique<RowNode>();
  node->kind = reduced.empty() ? RowNode::Kind::Map : RowNode::Kind::Reduce;
  node->type = getElementTypeOrSelf(value.getType());
  node->op = op;
  node->resultNumber = result;
  node->reduced = reduced;
  node->depends = zero();
  if (!reduced.empty()) {
    hasReductions = true;
    node->combiner = findCombiner(op, result);
    if (!node->combiner)
      return op.emitError("reduction is not a sum, product, maximum or minimum of its elements"),
             failure();
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    node->cost += opCost(&inner);
    if (auto position = dyn_cast<linalg::IndexOp>(inner)) {
      usesIndices = true;
      for (auto [depends, coefficient] : llvm::zip_equal(node->depends, loops[position.getDim()]))
        depends |= coefficient;
    } else if (!isa<arith::ConstantOp>(inner) && !OpTrait::hasElementwiseMappableTraits(&inner)) {
      return inner.emitError("has no vector form, so it cannot stand in a kernel's payload"),
             failure();
    }
  }
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument inner = op.getMatchingBlockArgument(&operand);
    bool isResult =
        op.isDpsInit(&operand) && operand.getOperandNumber() - op.getNumDpsInputs() == result;
    if (inner.use_empty() || (op.isDpsInit(&operand) && !reduced.empty() && !isResult)) {
      node->operands.push_back(nullptr);
      continue;
    }
    ElementIndex inside;
    for (AffineExpr expression : op.getMatchingIndexingMap(&operand).getResults()) {
      if (auto loop = dyn_cast<AffineDimExpr>(expression)) {
        inside.push_back(loops[loop.getPosition()]);
      } else if (auto constant = dyn_cast<AffineConstantExpr>(expression);
                 constant && constant.getValue() == 0) {
        inside.push_back(zero());
      } else {
        return op.emitError("indexing maps of a kernel's ops are loop indices and zeros"),
               failure();
      }
    }
    auto producer = demand(operand.get(), inside);
    if (failed(producer))
      return failure();
    node->operands.push_back(*producer);
    node->level = std::max(node->level, (*producer)->level);
    if ((*producer)->kind == RowNode::Kind::Map)
      node->cost += (*producer)->cost;
    for (auto [depends, other] : llvm::zip_equal(node->depends, (*producer)->depends))
      depends |= other;
  }
  WalkResult captured = op.getBody()->walk([&](Operation *inner) {
    for (Value value : inner->getOperands()) {
      if (value.getParentBlock() == op.getBody() || matchPattern(value, m_Constant()) ||
          llvm::is_contained(node->captures, value))
        continue;
      auto producer = capture(value);
      if (failed(producer))
        return WalkResult::interrupt();
      node->captures.push_back(value);
      node->operands.push_back(*producer);
    }
    return WalkResult::advance();
  });
  if (captured.wasInterrupted())
    return failure();
  if (!reduced.empty()) {
    ++node->level;
    for (unsigned dimension : reduced)
      node->depends[dimension] = 0;
  }
  node->loops = std::move(loops);
  node->id = storage.size();
  storage.push_back(std::move(node));
  known[{value.getAsOpaquePointer(), flatten(index)}] = storage.back().get();
  return storage.back().get();
}

FailureOr<std::unique_ptr<RowGraph>> RowGraph::build(func::FuncOp function) {
  auto graph = std::make_unique<RowGraph>();
  graph->function = function;
  for (Type type : function.getArgumentTypes())
    graph->inputTypes.push_back(cast<RankedTensorType>(type));
  Operation *terminator = function.getBody().front().getTerminator();

  int64_t best = 0;
  auto consider = [&](ArrayRef<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    if (count > best || (count == best && shape.size() > graph->sizes.size())) {
      best = count;
      graph->sizes.assign(shape.begin(), shape.end());
    }
  };
  for (auto op : function.getOps<linalg::GenericOp>())
    consider(op.getStaticLoopRanges());
  for (Value value : terminator->getOperands()) {
    graph->resultTypes.push_back(cast<RankedTensorType>(value.getType()));
    if (!value.getDefiningOp<linalg::GenericOp>())
      consider(shapeOf(value));
  }
  if (best == 0)
    return function.emitError("kernel has an empty domain; every size must be positive"), failure();

  for (Value value : terminator->getOperands()) {
    auto index = graph->place(value);
    if (failed(index))
      return function.emitError() << "a result of type " << value.getType()
                                  << " has no place in the kernel's domain",
             failure();
    auto node = graph->demand(value, *index);
    if (failed(node))
      return failure();
    graph->results.push_back({*node, getElementTypeOrSelf(value.getType()),
                              linearOffset(*index, shapeOf(value), graph->sizes.size())});
  }
  return graph;
}

void RowGraph::mergeDimensions() {
  if (usesIndices)
    return;
  SmallVector<LinearForm *> forms;
  for (auto &node : storage) {
    forms.push_back(&node->depends);
    if (node->kind == RowNode::Kind::Load)
      forms.push_back(&node->strides);
  }
  for (RowResult &result : results)
    forms.push_back(&result.strides);
  auto drop = [&](unsigned dimension) {
    sizes.erase(sizes.begin() + dimension);
    for (LinearForm *form : forms)
      form->erase(form->begin() + dimension);
    for (auto &node : storage) {
      llvm::erase(node->reduced, dimension);
      for (unsigned &reduced : node->reduced)
        reduced -= reduced > dimension;
    }
  };
  // A reduction over one axis of size 1 is still a reduction: it keeps that axis.
  auto onlyReduced = [&](unsigned dimension) {
    return llvm::any_of(storage, [&](auto &node) {
      return node->reduced.size() == 1 && node->reduced[0] == dimension;
    });
  };
  for (unsigned i = sizes.size(); i-- > 0;)
    if (sizes[i] == 1 && !onlyReduced(i))
      drop(i);
  for (unsigned i = sizes.size(); i-- > 1;) {
    // `depends` only says whether, so it merges when both or neither vary; strides must describe
    // one run.
    bool runs = true;
    for (auto &node : storage) {
      if (node->kind == RowNode::Kind::Load)
        runs &= node->strides[i - 1] == node->strides[i] * sizes[i];
      runs &= (node->depends[i - 1] != 0) == (node->depends[i] != 0);
      runs &= llvm::is_contained(node->reduced, i - 1) == llvm::is_contained(node->reduced, i);
    }
    for (RowResult &result : results)
      runs &= result.strides[i - 1] == result.strides[i] * sizes[i];
    if (!runs)
      continue;
    sizes[i] *= sizes[i - 1];
    drop(i - 1);
  }
}

void RowGraph::appendUnitDimension() {
  sizes.push_back(1);
  for (auto &node : storage) {
    node->depends.push_back(0);
    if (node->kind == RowNode::Kind::Load)
      node->strides.push_back(0);
    for (LinearForm &loop : node->loops)
      loop.push_back(0);
  }
  for (RowResult &result : results)
    result.strides.push_back(0);
}

} // namespace descent
