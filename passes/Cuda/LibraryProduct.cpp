//===- LibraryProduct.cpp - Matrix products by cuBLASLt -------------------===//
//
// A kernel of kind "gemm" whose epilogue has one of the library's forms (LibraryForm.h) becomes one
// exec.device_product, with what must be brought into shape before it:
//
//   - a bias of another type than the library adds to this result is cast into the workspace;
//   - operands of eight bits have to lie along k before capability 10.0 ("TN"), so that one that
//   does not is transposed into the workspace. The bytes moved are few beside the product: for
//   10^4 rows of 10^3 elements, a tenth of its time.
//
// The mask of a relu is no operand here: the library packs it in bits whose order is its own, while
// tensors of i1 have a byte an element, and the sign of the result, which is kept in any case, says
// the same.
//
// What every cuBLASLt has is a product with or without a bias, of one type, whose rows begin at
// multiples of 16 bytes. For anything else `otherwise` holds a generated product.
//
// The sum of an operand beside a product (OperandSum) is the library's epilogue bgrad_a or bgrad_b.
// Not every version has that for every pair of types, so `otherwise` holds the two apart: the plain
// product, itself by the library, and the commands of a kernel of columns.
//
// Numerics: rounds to the result's type once, behind the whole epilogue. The ops of the kernel may
// round in between: a bf16 pre-activation is rounded before gelu is applied to it, and a derivative
// before it multiplies, where the library goes on with the f32 value; what it stores for the
// backward pass is the rounded pre-activation. A bias is rounded to the type of a narrow result
// before it is added. Sums are f32 in another order than that of generated code.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/LibraryProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Cuda/DeviceContraction.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Fusion/LibraryForm.h"

using namespace mlir;
using namespace descent;
using fusion::LibraryForm;

namespace {

using Activation = LibraryForm::Activation;

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// A kernel with the sum of an operand, as two: the product, and the sum, whose only input is the
/// operand.
struct Apart {
  OwningOpRef<exec::KernelOp> product, sum;

  Apart(exec::KernelOp kernel, const LibraryForm &form);
};

class Emission {
public:
  Emission(exec::KernelOp kernel, LibraryForm form, DeviceKernel &device, const CudaTarget &cuda)
      : kernel(kernel), form(form), device(device), cuda(cuda),
        shape(this->form.product.getContraction()) {}

  /// Appends the commands, without room for what the library works in.
  LogicalResult emit();

private:
  Value operandOf(Value value);
  Value outputOf(Value value);
  Value castBias();
  Value transposed(Value matrix, StringRef name, int64_t rows, int64_t columns);
  bool isCertain() const;
  LogicalResult emitOtherwise();

  exec::KernelOp kernel;
  LibraryForm form;
  DeviceKernel &device;
  const CudaTarget &cuda;
  Contraction shape;
};

Apart::Apart(exec::KernelOp kernel, const LibraryForm &form) {
  fusion::OperandSum beside = *form.operandSum;
  OpBuilder builder(kernel.getContext());
  nn::MatmulOp matmul = form.product;
  Value operand = matmul->getOperand(beside.operand);
  Type result = beside.sum.getResult().getType();
  sum = exec::KernelOp::create(builder, kernel.getLoc(), kernel.getSymName(),
                               builder.getFunctionType(operand.getType(), result),
                               fusion::columnsKind, kernel.getSourcesAttr(),
                               /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &body = sum->getBody().emplaceBlock();
  IRMapping mapping;
  mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  builder.setInsertionPointToEnd(&body);
  if (beside.cast)
    builder.clone(*beside.cast.getOperation(), mapping);
  Operation *copy = builder.clone(*beside.sum.getOperation(), mapping);
  exec::YieldOp::create(builder, kernel.getLoc(), copy->getResults());

  product = kernel.clone();
  product->setFunctionType(
      builder.getFunctionType(kernel.getArgumentTypes(), form.value.getType()));
  Block &rest = product->getBody().front();
  fusion::OperandSum copied = *fusion::matchLibraryForm(rest)->operandSum;
  rest.getTerminator()->eraseOperand(1);
  copied.sum->erase();
  if (copied.cast)
    copied.cast->erase();
}

bool isEight(LibraryForm form) {
  return elementOf(form.product.getA()).getIntOrFloatBitWidth() == 8;
}

int64_t blocksOf(int64_t count, int64_t each) { return (count + each - 1) / each; }

/// The type in which the library takes a bias.
Type biasTypeOf(const LibraryForm &form) {
  Type result = elementOf(form.value);
  // Beside operands of eight bits an f32 result has a bias of bf16.
  return isEight(form) && result.isF32() ? BFloat16Type::get(result.getContext()) : result;
}

bool storesPreactivation(exec::KernelOp kernel, const LibraryForm &form) {
  return form.preactivation &&
         llvm::is_contained(kernel.getBody().front().getTerminator()->getOperands(),
                            form.preactivation);
}

} // namespace

/// The buffer of an argument of the kernel.
Value Emission::operandOf(Value value) {
  return device.operand(cast<BlockArgument>(value).getArgNumber());
}

/// The buffer of a result of the kernel.
Value Emission::outputOf(Value value) {
  auto results = kernel.getBody().front().getTerminator()->getOperands();
  return device.output(static_cast<unsigned>(llvm::find(results, value) - results.begin()));
}

Value Emission::castBias() {
  Value bias = operandOf(form.bias);
  auto from = cast<MemRefType>(bias.getType());
  Type type = biasTypeOf(form);
  if (from.getElementType() == type)
    return bias;
  int64_t count = from.getNumElements(), threads = std::min<int64_t>(256, llvm::alignTo(count, 32));
  Value cast = device.workspace(MemRefType::get({count}, type));
  gpu::GPUFuncOp function = device.function("bias", {bias, cast}, {threads});
  ImplicitLocOpBuilder b(kernel.getLoc(), OpBuilder::atBlockEnd(&function.getBody().front()));
  DeviceLanes lanes(b);
  Value index = arith::AddIOp::create(
      b, arith::MulIOp::create(b, lanes.block(), lanes.index(threads)), lanes.thread());
  auto guard = scf::IfOp::create(b, lanes.less(index, count));
  gpu::ReturnOp::create(b);
  b.setInsertionPointToStart(guard.thenBlock());
  // All axes but the last have one element.
  SmallVector<Value> indices(from.getRank() - 1, lanes.index(0));
  indices.push_back(index);
  Value value = memref::LoadOp::create(b, function.getArgument(0), indices);
  if (!value.getType().isF32())
    value = arith::ExtFOp::create(b, b.getF32Type(), value);
  if (!type.isF32())
    value = arith::TruncFOp::create(b, type, value);
  memref::StoreOp::create(b, value, function.getArgument(1), ValueRange{index});
  device.launch(function, {blocksOf(count, threads)}, {bias, cast});
  return cast;
}

/// The transpose of `matrix`, which has `rows` x `columns` elements of one byte, in the workspace.
Value Emission::transposed(Value matrix, StringRef name, int64_t rows, int64_t columns) {
  constexpr int64_t tile = 32, step = 8; // a block moves 32 x 32 bytes with 32 x 8 threads
  auto from = cast<MemRefType>(matrix.getType());
  Type type = from.getElementType();
  Value result = device.workspace(MemRefType::get({columns * rows}, type));
  gpu::GPUFuncOp function = device.function(name, {matrix, result}, {tile, step});
  ImplicitLocOpBuilder b(kernel.getLoc(), OpBuilder::atBlockEnd(&function.getBody().front()));
  DeviceLanes lanes(b);
  // A column of the tile falls into other banks than its neighbours.
  constexpr int64_t pitch = tile + 4;
  Value shared = lanes.shared(function, tile * pitch, type);
  SmallVector<ReassociationIndices> all(1);
  for (int64_t axis = 0; axis < from.getRank(); ++axis)
    all.front().push_back(axis);
  Value flat = from.getRank() == 1
                   ? Value(function.getArgument(0))
                   : memref::CollapseShapeOp::create(b, function.getArgument(0), all).getResult();
  Value x = gpu::ThreadIdOp::create(b, gpu::Dimension::x),
        y = gpu::ThreadIdOp::create(b, gpu::Dimension::y);
  Value left = arith::MulIOp::create(b, gpu::BlockIdOp::create(b, gpu::Dimension::x),
                                     lanes.index(tile)),
        top = arith::MulIOp::create(b, gpu::BlockIdOp::create(b, gpu::Dimension::y),
                                    lanes.index(tile));
  auto add = [&](Value p, Value q) -> Value { return arith::AddIOp::create(b, p, q); };
  auto at = [&](Value row, int64_t width, Value column) {
    return add(arith::MulIOp::create(b, row, lanes.index(width)), column);
  };
  auto guarded = [&](Value row, int64_t rowLimit, Value column, int64_t columnLimit,
                     llvm::function_ref<void()> body) {
    Value inside = lanes.both(lanes.less(row, rowLimit), lanes.less(column, columnLimit));
    auto guard = scf::IfOp::create(b, inside);
    OpBuilder::InsertionGuard saved(b);
    b.setInsertionPointToStart(guard.thenBlock());
    body();
  };
  for (int64_t part = 0; part < tile; part += step) {
    Value line = add(y, lanes.index(part)), row = add(top, line), column = add(left, x);
    guarded(row, rows, column, columns, [&] {
      Value byte = memref::LoadOp::create(b, flat, ValueRange{at(row, columns, column)});
      memref::StoreOp::create(b, byte, shared, ValueRange{at(line, pitch, x)});
    });
  }
  lanes.barrier();
  for (int64_t part = 0; part < tile; part += step) {
    Value line = add(y, lanes.index(part)), row = add(left, line), column = add(top, x);
    guarded(row, columns, column, rows, [&] {
      Value byte = memref::LoadOp::create(b, shared, ValueRange{at(x, pitch, line)});
      memref::StoreOp::create(b, byte, function.getArgument(1), ValueRange{at(row, rows, column)});
    });
  }
  gpu::ReturnOp::create(b);
  device.launch(function, {blocksOf(columns, tile), blocksOf(rows, tile)}, {matrix, result});
  return result;
}

/// Whether every version of the library has an algorithm: one type and no more than a bias, rows
/// at multiples of 16 bytes.
bool Emission::isCertain() const {
  return !form.operandSum && !isEight(form) && form.activation == Activation::None &&
         shape.m % 8 == 0 && shape.n % 8 == 0 && shape.k % 8 == 0;
}

/// The commands of generated code, or of a library that adds up no operand.
LogicalResult Emission::emitOtherwise() {
  if (!form.operandSum)
    return appendDeviceContraction(kernel, device, cuda);
  Apart apart(kernel, form);
  SmallVector<Value> inputs(device.operands().take_front(kernel.getArgumentTypes().size()));
  DeviceKernel product = device.part("product", inputs, outputOf(form.value));
  LibraryForm plain = *fusion::matchLibraryForm(apart.product->getBody().front());
  if (failed(Emission(*apart.product, plain, product, cuda).emit()))
    return failure();
  nn::MatmulOp matmul = form.product;
  DeviceKernel sum = device.part("columns", operandOf(matmul->getOperand(form.operandSum->operand)),
                                 outputOf(form.operandSum->sum->getResult(0)));
  return appendDeviceColumns(*apart.sum, sum);
}

LogicalResult Emission::emit() {
  nn::MatmulOp product = form.product;
  ImplicitLocOpBuilder &b = device.commands();
  Value a = operandOf(product.getA()), other = operandOf(product.getB());
  bool transposeA = shape.transposeA, transposeB = shape.transposeB;
  if (isEight(form) && cuda.capability < 100) {
    if (transposeA)
      a = transposed(a, "a", shape.k, shape.m);
    if (!transposeB)
      other = transposed(other, "b", shape.k, shape.n);
    transposeA = false;
    transposeB = true;
  }
  Value bias = form.bias ? castBias() : Value();
  bool stores = storesPreactivation(kernel, form);
  Value aux = stores ? outputOf(form.preactivation) : form.saved ? operandOf(form.saved) : Value();
  std::string epilogue;
  switch (form.activation) {
  case Activation::None:
    epilogue = form.operandSum ? form.operandSum->operand == 0 ? "bgrad_a" : "bgrad_b"
               : bias          ? "bias"
                               : "none";
    break;
  case Activation::Relu:
    epilogue = bias ? "relu_bias" : "relu";
    break;
  case Activation::Gelu:
    epilogue = std::string(stores ? "gelu_aux" : "gelu") + (bias ? "_bias" : "");
    break;
  case Activation::GeluGradient:
    epilogue = "dgelu";
    break;
  }
  auto compute = kernel->getAttrOfType<StringAttr>(fusion::computeAttrName);
  bool tf32 = compute && compute.getValue() == "tf32" && elementOf(product.getA()).isF32();
  int64_t m = shape.m, n = shape.n, k = shape.k;
  bool batched = shape.batch > 1;
  Value sum = form.operandSum ? outputOf(form.operandSum->sum->getResult(0)) : Value();
  auto command = exec::DeviceProductOp::create(
      b, m, n, k, transposeA ? m : k, transposeB ? k : n, n, transposeA, transposeB,
      /*accumulate=*/static_cast<bool>(form.accumulated), epilogue, tf32 ? "tf32" : "f32",
      shape.batch, batched ? m * k : 0, batched ? k * n : 0, batched ? m * n : 0, aux ? n : 0, a,
      other, outputOf(form.value), bias, aux, /*bias_gradient=*/sum,
      form.scale ? operandOf(form.scale) : Value(), /*scale_b=*/Value());
  if (!isCertain()) {
    Block &otherwise = command.getOtherwise().emplaceBlock();
    OpBuilder::InsertionGuard saved(b);
    b.setInsertionPointToEnd(&otherwise);
    if (failed(emitOtherwise()))
      return failure();
    // Parts of the workspace belong to the kernel.
    for (auto part : llvm::make_early_inc_range(otherwise.getOps<exec::WorkspaceOp>()))
      part->moveBefore(command);
  }
  return success();
}

static std::string refusalOf(exec::KernelOp kernel, LibraryForm form, const CudaTarget &cuda) {
  nn::MatmulOp product = form.product;
  if (product->hasAttr(fusion::tileAttrName))
    return "asks for a tile of generated code";
  Type a = elementOf(product.getA()), b = elementOf(product.getB()), d = elementOf(form.value);
  Contraction shape = product.getContraction();
  if (form.accumulated) {
    auto operand = kernel->getAttrOfType<IntegerAttr>(fusion::accumulateAttrName);
    if (!operand || operand.getInt() != cast<BlockArgument>(form.accumulated).getArgNumber())
      return "adds a tensor that does not lie where the result goes";
  }
  if (isEight(form)) {
    if (!cuda.emulated && cuda.capability < 89)
      return "has operands of eight bits, which " + cuda.chip + " does not multiply";
    if (isa<Float8E5M2Type>(a) && isa<Float8E5M2Type>(b))
      return "has two operands of f8E5M2";
    if (shape.batch > 1 || shape.m % 16 || shape.n % 16 || shape.k % 16)
      return "has operands of eight bits and sizes that are no multiples of 16";
    if (form.accumulated)
      return "adds to a product of eight bits";
    return "";
  }
  if (a != b || !(a.isF32() || a.isBF16() || a.isF16()) || !(d == a || d.isF32()))
    return "has types that the library does not combine";
  return "";
}

std::string descent::libraryRefusal(exec::KernelOp kernel, const CudaTarget &cuda) {
  auto form = fusion::matchLibraryForm(kernel.getBody().front());
  return form ? refusalOf(kernel, *form, cuda) : "has an epilogue that the library does not have";
}

FailureOr<exec::DeviceKernelOp> descent::emitDeviceGemm(exec::KernelOp kernel, ModuleOp target,
                                                        const CudaTarget &cuda) {
  auto form = fusion::matchLibraryForm(kernel.getBody().front());
  if (!form || !refusalOf(kernel, *form, cuda).empty())
    return emitDeviceContraction(kernel, target, cuda);
  DeviceKernel device(kernel, target);
  if (failed(Emission(kernel, *form, device, cuda).emit()))
    return failure();
  // What the library works in lies behind what it reads there.
  auto workspace = static_cast<int64_t>(device.op().getWorkspace());
  device.op().setWorkspace(llvm::alignTo(workspace, 256) + cuda.libraryWorkspace());
  return device.op();
}
