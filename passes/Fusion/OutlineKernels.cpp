//===- OutlineKernels.cpp - Fusions become kernels and launches -----------===//
//
// Twelve equal blocks of a network have one kernel for each of their fusions, not twelve: compile
// time and instruction cache pay for distinct kernels only. Equal means: kind, types, attributes
// and ops, whatever their locations; that is decided by the text of a fusion without locations,
// which leaves nothing out and is the same in every run.
//
// Kernels are placed in front of the first function that launches one, in order of first use.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace descent {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

struct OutlineKernelsPass : descent::impl::OutlineKernelsBase<OutlineKernelsPass> {
  void runOnOperation() override;

private:
  llvm::StringMap<exec::KernelOp> kernels; // by text of the fusion

  void outline(exec::FusionOp fusion, SymbolTable &symbols, Operation *before);
};

/// Everything but locations and the names of values outside.
std::string textOf(exec::FusionOp fusion) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << fusion.getKind() << fusion->getDiscardableAttrDictionary();
  llvm::DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) {
    return numbers.try_emplace(value, numbers.size()).first->second;
  };
  for (BlockArgument argument : fusion.getBody().getArguments())
    os << ' ' << number(argument) << ':' << argument.getType();
  for (Operation &op : fusion.getBody().front()) {
    os << '\n' << op.getName() << op.getAttrDictionary();
    for (Value operand : op.getOperands())
      os << ' ' << number(operand);
    for (Value result : op.getResults())
      os << " >" << number(result) << ':' << result.getType();
  }
  return text;
}

/// The name of a kernel: kind, what it computes and its sizes. At most three words of what it
/// computes, the first and the last two.
std::string nameOf(exec::FusionOp fusion) {
  StringRef kind = fusion.getKind();
  Block &body = fusion.getBody().front();
  SmallVector<Operation *> ops;
  std::string sizes;
  llvm::SetVector<StringRef> words;
  for (Operation &op : body.without_terminator()) {
    ops.push_back(&op);
    if (auto contraction = dyn_cast<ContractionOp>(op)) {
      Contraction product = contraction.getContraction();
      SmallVector<int64_t> shape{product.m, product.n, product.k};
      if (product.batch != 1)
        shape.insert(shape.begin(), product.batch);
      sizes = shapeText(shape);
      continue;
    }
    if (isFree(&op))
      continue;
    StringRef word = op.getName().stripDialect();
    if (word != kind)
      words.insert(word);
  }
  SmallVector<StringRef> chosen(words.begin(), words.end());
  if (chosen.size() > 3)
    chosen.erase(chosen.begin() + 1, chosen.end() - 2);
  if (sizes.empty()) {
    if (kind == rowsKind || kind == columnsKind) {
      sizes = shapeText(kernelDomain(kind, ops));
    } else {
      // One op, or a product that is no matrix product: its operands tell its sizes.
      for (Type type : fusion.getInputs().take_front(2).getTypes())
        sizes += (sizes.empty() ? "" : "_") + shapeText(cast<RankedTensorType>(type).getShape());
      if (sizes.empty())
        sizes = shapeText(cast<RankedTensorType>(fusion.getOutputs().front().getType()).getShape());
    }
  }
  std::string name = kind.str();
  for (StringRef word : chosen)
    name += "_" + word.str();
  if (fusion->hasAttr(accumulateAttrName))
    name += "_accumulate";
  return name + "_" + sizes;
}

} // namespace

void OutlineKernelsPass::outline(exec::FusionOp fusion, SymbolTable &symbols, Operation *before) {
  OpBuilder builder(fusion);
  llvm::SetVector<StringRef> sources;
  SmallVector<std::string> names;
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (!op.hasTrait<OpTrait::ConstantLike>())
      names.push_back(nn::sourceName(&op));
  for (const std::string &name : names)
    sources.insert(name);
  ArrayAttr sourceList = builder.getStrArrayAttr(sources.getArrayRef());

  exec::KernelOp &kernel = kernels[textOf(fusion)];
  if (kernel) {
    ++kernelsShared;
  } else {
    OpBuilder module(before);
    auto type = builder.getFunctionType(fusion.getInputs().getTypes(), fusion->getResultTypes());
    kernel = exec::KernelOp::create(module, fusion.getLoc(), nameOf(fusion), type, fusion.getKind(),
                                    sourceList,
                                    /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
    for (NamedAttribute attr : fusion->getDiscardableAttrs())
      kernel->setDiscardableAttr(attr.getName(), attr.getValue());
    kernel.getBody().takeBody(fusion.getBody());
    kernel->remove();
    symbols.insert(kernel, Block::iterator(before)); // makes the name unique
    ++kernelsOutlined;
  }
  auto launch = exec::LaunchOp::create(builder, fusion.getLoc(), fusion->getResultTypes(),
                                       kernel.getSymName(), fusion.getInputs());
  launch->setAttr("sources", sourceList);
  fusion->replaceAllUsesWith(launch->getResults());
  fusion->erase();
  ++launchesMade;
}

void OutlineKernelsPass::runOnOperation() {
  kernels.clear();
  SymbolTable symbols(getOperation());
  Operation *before = nullptr;
  forEachProgram(getOperation(), [&](FunctionOpInterface function) {
    if (!before)
      before = function;
    for (auto fusion :
         llvm::make_early_inc_range(function.getFunctionBody().front().getOps<exec::FusionOp>()))
      outline(fusion, symbols, before);
  });
}
