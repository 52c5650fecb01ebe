//===- ExecDevice.cpp - Rules of the commands of a device -----------------===//

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace descent;
using namespace descent::exec;

static int64_t bytesOf(Type type) {
  auto memref = cast<MemRefType>(type);
  return memref.getNumElements() *
         static_cast<int64_t>(llvm::divideCeil(memref.getElementTypeBitWidth(), 8));
}

LogicalResult DeviceKernelOp::verifyRegions() {
  Block &body = getBody().front();
  if (getInputs() > body.getNumArguments())
    return emitOpError() << "has " << body.getNumArguments() << " operands, so " << getInputs()
                         << " of them cannot be inputs";
  for (BlockArgument argument : body.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
      return emitOpError() << "operand " << argument.getArgNumber() << " is " << argument.getType()
                           << "; it must be a memref of static shape and identity layout";
  }
  for (Operation &op : body) {
    if (!isa<WorkspaceOp, DeviceLaunchOp, DeviceFillOp, DeviceProductOp>(op))
      return op.emitOpError("cannot stand in exec.device_kernel; its commands are "
                            "exec.device_launch, exec.device_product and exec.device_fill");
    auto workspace = dyn_cast<WorkspaceOp>(op);
    if (workspace && static_cast<int64_t>(workspace.getOffset()) + bytesOf(workspace.getType()) >
                         static_cast<int64_t>(getWorkspace()))
      return workspace.emitOpError()
             << "ends behind the " << getWorkspace()
             << " bytes of workspace of exec.device_kernel @" << getSymName();
  }
  return success();
}

LogicalResult WorkspaceOp::verify() {
  if (getOffset() % 256)
    return emitOpError() << "starts at byte " << getOffset() << ", which is no multiple of 256";
  return success();
}

LogicalResult DeviceLaunchOp::verify() {
  int64_t threads = 1;
  for (auto [what, sizes] : {std::pair<StringRef, ArrayRef<int64_t>>{"grid", getGrid()},
                             std::pair<StringRef, ArrayRef<int64_t>>{"block", getBlock()}}) {
    if (sizes.size() != 3 || llvm::any_of(sizes, [](int64_t size) { return size < 1; }))
      return emitOpError() << what << " must be three sizes of at least 1";
    // CUDA C++ programming guide, technical specifications.
    if (what == "grid" && (sizes[0] > INT32_MAX || sizes[1] > 65535 || sizes[2] > 65535))
      return emitOpError("a grid is at most 2147483647 x 65535 x 65535 blocks");
  }
  for (int64_t size : getBlock())
    threads *= size;
  if (threads > 1024)
    return emitOpError() << "has " << threads << " threads a block; the limit is 1024";
  return success();
}

LogicalResult DeviceLaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(*this, getFunctionAttr());
  // After lower-device-modules the function is an llvm.func, whose types say nothing any more.
  if (!function) {
    if (symbols.lookupNearestSymbolFrom(*this, getFunctionAttr()))
      return success();
    return emitOpError() << "launches " << getFunction()
                         << ", but there is no such device function";
  }
  if (!function.isKernel())
    return emitOpError() << "launches " << getFunction() << ", which is no kernel";
  if (TypeRange(function.getArgumentTypes()) != getBuffers().getTypes())
    return emitOpError() << "gives (" << getBuffers().getTypes() << ") but " << getFunction()
                         << " takes (" << function.getArgumentTypes() << ")";
  if (std::optional<ArrayRef<int32_t>> block = function.getKnownBlockSize())
    if (!llvm::equal(*block, getBlock()))
      return emitOpError() << "launches blocks of another size than known_block_size of "
                           << getFunction();
  return success();
}

LogicalResult DeviceProductOp::verify() {
  struct Needs {
    bool known = true, bias = false, aux = false, biasGradient = false;
  };
  auto needs = llvm::StringSwitch<Needs>(getEpilogue())
                   .Cases({"none", "relu", "gelu"}, {})
                   .Cases({"bias", "relu_bias", "gelu_bias"}, {.bias = true})
                   .Cases({"relu_aux", "gelu_aux", "drelu", "dgelu"}, {.aux = true})
                   .Cases({"relu_aux_bias", "gelu_aux_bias"}, {.bias = true, .aux = true})
                   .Cases({"drelu_bgrad", "dgelu_bgrad"}, {.aux = true, .biasGradient = true})
                   .Cases({"bgrad_a", "bgrad_b"}, {.biasGradient = true})
                   .Default({.known = false});
  if (!needs.known)
    return emitOpError() << "has an unknown epilogue '" << getEpilogue() << "'";
  for (auto [what, needed, present] :
       {std::tuple<StringRef, bool, Value>{"bias", needs.bias, getBias()},
        std::tuple<StringRef, bool, Value>{"aux", needs.aux, getAux()},
        std::tuple<StringRef, bool, Value>{"bias_gradient", needs.biasGradient, getBiasGradient()}})
    if (needed != static_cast<bool>(present))
      return emitOpError() << "has epilogue '" << getEpilogue() << "', which "
                           << (needed ? "needs '" : "has no '") << what << "'";
  if (getCompute() != "f32" && getCompute() != "tf32")
    return emitOpError() << "computes in '" << getCompute() << "'; f32 and tf32 are possible";
  if (std::min({getM(), getN(), getK(), getBatch()}) < 1)
    return emitOpError("has an empty product");
  return success();
}
