//===- EmitDevice.cpp - Tables of what a device does ----------------------===//

#include "compiler/Target/EmitDevice.h"

#include "dialects/Exec/Exec.h"
#include "runtime/include/descent/abi.h"
#include "runtime/include/descent/emulator.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace descent {

DeviceMemory deviceMemoryOf(ModuleOp plan, ModuleOp kernels, const CudaTarget &cuda) {
  DeviceMemory memory;
  bool usesLibrary = false;
  for (auto kernel : kernels.getOps<exec::DeviceKernelOp>()) {
    memory.workspace = std::max(memory.workspace, static_cast<int64_t>(kernel.getWorkspace()));
    kernel.walk([&](exec::DeviceProductOp) { usesLibrary = true; });
  }
  if (usesLibrary)
    memory.workspace = std::max(memory.workspace, cuda.libraryWorkspace());

  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (auto storage : plan.getOps<exec::StorageOp>()) {
    if (storage.getCategory() != "inputs")
      continue;
    auto offset = static_cast<int64_t>(storage.getOffset());
    first = std::min(first, offset);
    last = std::max(last, offset + bytesOf(storage.getTensorType()));
  }
  if (last > first)
    memory.staging = DESCENT_INPUT_SLOTS * static_cast<int64_t>(llvm::alignTo(last - first, 256));
  return memory;
}

static llvm::Constant *place(Tables &tables, Value buffer) {
  if (!buffer)
    return tables.structure(
        {tables.i32(DESCENT_NO_OPERAND), tables.i32(0), tables.i64(0), tables.i64(0)});
  int32_t operand = DESCENT_WORKSPACE;
  int64_t offset = 0;
  if (auto argument = dyn_cast<BlockArgument>(buffer))
    operand = static_cast<int32_t>(argument.getArgNumber());
  else
    offset = static_cast<int64_t>(buffer.getDefiningOp<exec::WorkspaceOp>().getOffset());
  auto type = cast<MemRefType>(buffer.getType());
  return tables.structure({tables.i32(operand), tables.i32(dtypeOf(type.getElementType())),
                           tables.i64(offset), tables.i64(bytesOf(type))});
}

static int32_t epilogueOf(StringRef name) {
  return llvm::StringSwitch<int32_t>(name)
      .Case("none", DESCENT_EPILOGUE_NONE)
      .Case("bias", DESCENT_EPILOGUE_BIAS)
      .Case("relu", DESCENT_EPILOGUE_RELU)
      .Case("relu_bias", DESCENT_EPILOGUE_RELU_BIAS)
      .Case("gelu", DESCENT_EPILOGUE_GELU)
      .Case("gelu_bias", DESCENT_EPILOGUE_GELU_BIAS)
      .Case("relu_aux", DESCENT_EPILOGUE_RELU_AUX)
      .Case("relu_aux_bias", DESCENT_EPILOGUE_RELU_AUX_BIAS)
      .Case("gelu_aux", DESCENT_EPILOGUE_GELU_AUX)
      .Case("gelu_aux_bias", DESCENT_EPILOGUE_GELU_AUX_BIAS)
      .Case("drelu", DESCENT_EPILOGUE_DRELU)
      .Case("drelu_bgrad", DESCENT_EPILOGUE_DRELU_BGRAD)
      .Case("dgelu", DESCENT_EPILOGUE_DGELU)
      .Case("dgelu_bgrad", DESCENT_EPILOGUE_DGELU_BGRAD)
      .Case("bgrad_a", DESCENT_EPILOGUE_BGRAD_A)
      .Case("bgrad_b", DESCENT_EPILOGUE_BGRAD_B);
}

static llvm::Constant *productRow(Tables &t, exec::DeviceProductOp product) {
  auto size = [&](uint64_t value) { return t.i64(static_cast<int64_t>(value)); };
  SmallVector<llvm::Constant *> fields{
      size(product.getM()),
      size(product.getN()),
      size(product.getK()),
      size(product.getBatch()),
      size(product.getLda()),
      size(product.getLdb()),
      size(product.getLdd()),
      size(product.getAuxLd()),
      size(product.getStrideA()),
      size(product.getStrideB()),
      size(product.getStrideD()),
      t.i32(product.getTransposeA()),
      t.i32(product.getTransposeB()),
      t.i32(product.getAccumulate()),
      t.i32(product.getCompute() == "tf32" ? DESCENT_COMPUTE_TF32 : DESCENT_COMPUTE_F32),
      t.i32(epilogueOf(product.getEpilogue())),
      t.i32(0)};
  for (Value buffer :
       {product.getA(), product.getB(), product.getD(), product.getBias(), product.getAux(),
        product.getBiasGradient(), product.getScaleA(), product.getScaleB()})
    fields.push_back(place(t, buffer));
  SmallVector<llvm::Constant *> otherwise;
  if (!product.getOtherwise().empty())
    otherwise = commandRows(t, product.getOtherwise().front());
  t.appendTable(fields, otherwise, sizeof(descent_command));
  return t.structure(fields);
}

SmallVector<llvm::Constant *> commandRows(Tables &t, Block &commands) {
  struct Command {
    int32_t kind;
    uint64_t shared = 0;
    StringRef function;
    ArrayRef<int64_t> grid, block;
    SmallVector<Value> operands;
    exec::DeviceProductOp product;
    int32_t value = 0;
  };
  SmallVector<llvm::Constant *> rows;
  for (Operation &op : commands) {
    if (isa<exec::WorkspaceOp>(op))
      continue;
    Command command =
        llvm::TypeSwitch<Operation *, Command>(&op)
            .Case([](exec::DeviceLaunchOp launch) {
              return Command{.kind = DESCENT_COMMAND_LAUNCH,
                             .shared = launch.getShared(),
                             .function = launch.getFunction().getLeafReference().getValue(),
                             .grid = launch.getGrid(),
                             .block = launch.getBlock(),
                             .operands = llvm::to_vector(launch.getBuffers())};
            })
            .Case([](exec::DeviceFillOp fill) {
              return Command{.kind = DESCENT_COMMAND_FILL,
                             .operands = {fill.getBuffer()},
                             .value = static_cast<uint8_t>(fill.getValue())};
            })
            .Case([](exec::DeviceProductOp product) {
              return Command{.kind = DESCENT_COMMAND_PRODUCT, .product = product};
            });
    auto sizes = [&](ArrayRef<int64_t> values) {
      SmallVector<llvm::Constant *> three(3, t.i32(0));
      for (auto [index, value] : llvm::enumerate(values))
        three[index] = t.i32(value);
      return t.inlineArray(three);
    };
    SmallVector<llvm::Constant *> operands;
    for (Value operand : command.operands)
      operands.push_back(place(t, operand));
    llvm::Constant *function = command.function.empty() ? t.null() : t.text(command.function);
    SmallVector<llvm::Constant *> fields{t.i32(command.kind),
                                         t.i32(static_cast<int64_t>(command.shared)), function,
                                         sizes(command.grid), sizes(command.block)};
    t.appendTable(fields, operands, sizeof(descent_place));
    SmallVector<llvm::Constant *> product;
    SmallVector<llvm::Constant *> count;
    if (command.product)
      product.push_back(productRow(t, command.product));
    t.appendTable(count, product, sizeof(descent_product));
    fields.push_back(count[0]);
    fields.push_back(t.i32(command.value));
    fields.push_back(t.i32(0));
    rows.push_back(t.structure(fields));
  }
  return rows;
}

llvm::Constant *deviceRow(Tables &t, const DeviceImages &device) {
  SmallVector<llvm::Constant *> images;
  auto add = [&](int32_t kind, StringRef data) {
    if (!data.empty())
      images.push_back(t.structure({t.i32(kind), t.i32(device.cuda.capability), t.bytes(data),
                                    t.i64(static_cast<int64_t>(data.size()))}));
  };
  add(DESCENT_IMAGE_CUBIN, device.cubin);
  if (!device.ptx.empty())
    add(DESCENT_IMAGE_PTX, device.ptx + std::string(1, '\0'));
  bool emulated = device.cuda.emulated;
  SmallVector<llvm::Constant *> fields{t.text(device.cuda.name()), t.i32(device.cuda.capability),
                                       t.i32(0)};
  t.appendTable(fields, images, sizeof(descent_image));
  fields.push_back(emulated ? t.external(DESCENT_EMULATED_MODULE_SYMBOL) : t.null());
  fields.push_back(emulated ? t.external(DESCENT_EMULATED_DRIVERS_SYMBOL) : t.null());
  SmallVector<llvm::Constant *> row;
  t.appendTable(row, {t.structure(fields)}, sizeof(descent_device));
  return row[0];
}

} // namespace descent
