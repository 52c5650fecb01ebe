//===- DeviceKernel.cpp - What generators of device code build with -------===//

#include "passes/Cuda/DeviceKernel.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/Codegen/KernelEmitter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace descent {

MemRefType deviceBufferType(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  Type element = type.getElementType();
  if (element.isInteger(1))
    element = IntegerType::get(type.getContext(), 8);
  return MemRefType::get(type.getShape(), element);
}

static int64_t bytesOf(MemRefType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

DeviceKernel::DeviceKernel(exec::KernelOp kernel, ModuleOp target)
    : builder(kernel.getLoc(), kernel.getContext()), prefix(kernel.getSymName()),
      inputCount(kernel.getArgumentTypes().size()) {
  builder.setInsertionPointToEnd(target.getBody());
  const std::string &name = prefix;
  functions = gpu::GPUModuleOp::create(builder, name + ".gpu");
  device = exec::DeviceKernelOp::create(builder, name, inputCount, /*workspace=*/0);
  Block &body = device.getBody().emplaceBlock();
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    MemRefType buffer = deviceBufferType(type);
    buffers.push_back(body.addArgument(buffer, kernel.getLoc()));
    if (buffer.getNumElements() > INT32_MAX)
      functions->setAttr(index64AttrName, builder.getUnitAttr());
  }
  for (auto [result, input] : reusableOperands(kernel)) {
    mayOverlap.insert(input);
    mayOverlap.insert(inputCount + result);
  }
  builder.setInsertionPointToEnd(&body);
}

DeviceKernel DeviceKernel::part(StringRef name, ArrayRef<Value> inputs,
                                ArrayRef<Value> outputs) const {
  DeviceKernel part(*this);
  part.prefix += ("_" + name).str();
  part.buffers.assign(inputs.begin(), inputs.end());
  llvm::append_range(part.buffers, outputs);
  part.inputCount = static_cast<unsigned>(inputs.size());
  return part;
}

Value DeviceKernel::workspace(MemRefType type) {
  int64_t offset = static_cast<int64_t>(device.getWorkspace());
  device.setWorkspace(offset + llvm::alignTo(bytesOf(type), 256));
  if (type.getNumElements() > INT32_MAX)
    functions->setAttr(index64AttrName, builder.getUnitAttr());
  return exec::WorkspaceOp::create(builder, type, offset);
}

gpu::GPUFuncOp DeviceKernel::function(StringRef suffix, ValueRange buffers, DeviceSize block,
                                      int64_t blocksPerMultiprocessor) {
  OpBuilder inside = OpBuilder::atBlockEnd(functions.getBody());
  std::string name = prefix;
  if (!suffix.empty())
    name += "_" + suffix.str();
  auto function = gpu::GPUFuncOp::create(inside, builder.getLoc(), name,
                                         inside.getFunctionType(buffers.getTypes(), {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), inside.getUnitAttr());
  function.setKnownBlockSize(
      SmallVector<int32_t>{int32_t(block.x), int32_t(block.y), int32_t(block.z)});
  if (blocksPerMultiprocessor)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      inside.getI32IntegerAttr(static_cast<int32_t>(blocksPerMultiprocessor)));
  auto inputs = static_cast<unsigned>(device.getInputs());
  for (auto [index, buffer] : llvm::enumerate(buffers)) {
    auto argument = dyn_cast<BlockArgument>(buffer);
    if (argument && mayOverlap.contains(argument.getArgNumber()))
      continue;
    function.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(), inside.getUnitAttr());
    if (argument && argument.getArgNumber() < inputs)
      function.setArgAttr(index, LLVM::LLVMDialect::getReadonlyAttrName(), inside.getUnitAttr());
  }
  return function;
}

void DeviceKernel::launch(gpu::GPUFuncOp function, DeviceSize grid, ValueRange buffers,
                          int64_t shared) {
  ArrayRef<int32_t> block = *function.getKnownBlockSize();
  auto symbol = SymbolRefAttr::get(functions.getSymNameAttr(),
                                   {FlatSymbolRefAttr::get(function.getNameAttr())});
  exec::DeviceLaunchOp::create(builder, symbol, ArrayRef<int64_t>{grid.x, grid.y, grid.z},
                               SmallVector<int64_t>(block.begin(), block.end()), shared, buffers);
}

void DeviceKernel::fill(Value buffer, int8_t value) {
  exec::DeviceFillOp::create(builder, value, buffer);
}

LLVM::GlobalOp DeviceKernel::dynamicShared() {
  constexpr StringLiteral name = "dynamic_shared";
  if (auto known = functions.lookupSymbol<LLVM::GlobalOp>(name))
    return known;
  OpBuilder inside = OpBuilder::atBlockBegin(functions.getBody());
  auto type = LLVM::LLVMArrayType::get(inside.getI8Type(), 0);
  return LLVM::GlobalOp::create(inside, builder.getLoc(), type, /*isConstant=*/false,
                                LLVM::Linkage::External, name, /*value=*/Attribute(),
                                /*alignment=*/1024, /*addrSpace=*/3);
}

} // namespace descent
