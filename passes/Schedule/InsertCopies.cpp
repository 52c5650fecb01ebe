//===- InsertCopies.cpp - Copies where two places must hold one value -----===//
//
// plan-memory puts packed gradients into their slab, new values over old state, and accumulations
// onto their operand. Each of these needs a value that is a launch's own result and that nobody
// else pins. Where that does not hold, this pass inserts a copy: correct first, and rare, because
// the passes before it produce the right shape (one producer for each gradient, updates last).
//
// A value gets a copy when
//   1. it is packed or written but is not the result of a launch of its own (an argument, a read,
//   or packed and written more than once);
//   2. it is written over a state that another launch still reads afterwards, or that its own
//   launch may not overwrite;
//   3. a launch accumulates onto it and something reads it later, or it is an argument or a read.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/KernelEmitter.h"
#include "passes/Passes.h"
#include "passes/Schedule/Lifetimes.h"

#include "mlir/Support/DebugStringHelper.h"

namespace descent {
#define GEN_PASS_DEF_INSERTCOPIES
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::schedule;

namespace {

struct InsertCopies : descent::impl::InsertCopiesBase<InsertCopies> {
  void runOnOperation() override;

private:
  void visit(train::FuncOp function);
  Value copy(OpBuilder &builder, Location loc, Value value);
  exec::KernelOp copyKernel(RankedTensorType type);
};

} // namespace

static Value throughViews(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isView(*def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Collects every op that uses the value, directly or through views.
static void collectUsers(Value value, SmallVectorImpl<Operation *> &users) {
  for (Operation *user : value.getUsers()) {
    users.push_back(user);
    if (isView(*user))
      collectUsers(user->getResult(0), users);
  }
}

exec::KernelOp InsertCopies::copyKernel(RankedTensorType type) {
  std::string name = "copy";
  for (int64_t size : type.getShape())
    name += "_" + std::to_string(size);
  name += "_" + debugString(type.getElementType());
  if (auto existing = getOperation().lookupSymbol<exec::KernelOp>(name))
    return existing;
  Location loc = getOperation().getLoc();
  OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
  auto kernel =
      exec::KernelOp::create(builder, loc, name, builder.getFunctionType({type}, {type}), "copy",
                             builder.getStrArrayAttr({"copy"}), ArrayAttr(), ArrayAttr());
  Block *body = builder.createBlock(&kernel.getBody());
  Value input = body->addArgument(type, loc);
  Value same = nn::BroadcastOp::create(builder, loc, input, type.getShape());
  exec::YieldOp::create(builder, loc, same);
  return kernel;
}

Value InsertCopies::copy(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ++copies;
  return exec::LaunchOp::create(builder, loc, TypeRange{type}, copyKernel(type).getSymName(), value)
      .getOutputs()[0];
}

void InsertCopies::visit(train::FuncOp function) {
  SlabMap slabs(getOperation());
  DenseSet<Value> pinned;
  auto pin = [&](OpOperand &operand) {
    Value source = throughViews(operand.get());
    if (source.getDefiningOp<exec::LaunchOp>() && pinned.insert(source).second)
      return;
    OpBuilder builder(operand.getOwner());
    Value copied = copy(builder, operand.getOwner()->getLoc(), operand.get());
    operand.set(copied);
    pinned.insert(copied);
  };

  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto pack = dyn_cast<train::PackOp>(op)) {
      for (OpOperand &member : pack.getMembersMutable())
        pin(member);
    } else if (auto write = dyn_cast<train::WriteOp>(op)) {
      pin(write.getValueMutable());
      auto launch = throughViews(write.getValue()).getDefiningOp<exec::LaunchOp>();
      Persistent target = slabs.place(write.getSymbolAttr().getAttr());
      unsigned result = cast<OpResult>(throughViews(write.getValue())).getResultNumber();
      bool mayOverwrite = true;
      for (auto read : function.getBody().getOps<train::ReadOp>()) {
        if (slabs.place(read.getSymbolAttr().getAttr()).symbol != target.symbol)
          continue;
        SmallVector<Operation *> users;
        collectUsers(read.getValue(), users);
        for (Operation *user : users) {
          if (isView(*user))
            continue;
          if (user == launch) // its own kernel must be able to write in place
            for (auto [index, input] : llvm::enumerate(launch.getInputs()))
              mayOverwrite &= throughViews(input) != read.getValue() ||
                              llvm::is_contained(reusableOperands(kernelOf(launch)),
                                                 std::pair<unsigned, unsigned>(result, index));
          else
            mayOverwrite &= user->isBeforeInBlock(launch);
        }
      }
      if (!mayOverwrite) {
        OpBuilder builder(function.getReturn());
        write.getValueMutable().set(copy(builder, write.getLoc(), write.getValue()));
        write->moveBefore(function.getReturn());
      }
    } else if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
      std::optional<unsigned> index = accumulatedOperand(kernelOf(launch));
      if (!index)
        continue;
      OpOperand &operand = launch.getInputsMutable()[*index];
      SmallVector<Operation *> users;
      Value source = throughViews(operand.get());
      collectUsers(source, users);
      bool isOwn =
          source.getDefiningOp<exec::LaunchOp>() && llvm::all_of(users, [&](Operation *user) {
            return user == launch || isView(*user) || user->isBeforeInBlock(launch);
          });
      if (!isOwn) {
        OpBuilder builder(launch);
        operand.set(copy(builder, launch.getLoc(), operand.get()));
      }
    }
  }
}

void InsertCopies::runOnOperation() {
  for (auto function : llvm::to_vector(getOperation().getOps<train::FuncOp>()))
    visit(function);
}
