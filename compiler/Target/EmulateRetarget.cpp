//===- EmulateRetarget.cpp - Device code becomes code of the host ---------===//
//
// Steps, in this order:
//   1. Places (descent_emulated_site) of all instructions that will be rewritten, while the text of
//      the IR is still that of the file.
//   2. Variables: shared ones get fixed addresses, others an address that the loader writes.
//   3. Instructions: accesses go through the engine, intrinsics become calls, local variables
//      memory of the engine. Pointers stay what they were, 64-bit numbers; only the operand of an
//      access is one of the host.
//   4. Kernels get entries that take their parameters as cuLaunchKernel does, and the table.
// Rejected, all at once and each with its place: intrinsics and inline assembly without emulation,
// variables without definition, addresses in initial values, aggregates passed by value between
// functions of the device.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Emulate.h"
#include "compiler/Target/EmulateIntrinsics.h"
#include "runtime/include/descent/emulator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/AsmParser/AsmParserContext.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include <map>

using namespace llvm;

namespace descent {
namespace {

constexpr unsigned sharedSpace = 3;

class Retarget {
public:
  Retarget(Module &module, StringRef file, const AsmParserContext *lines)
      : module(module), context(module.getContext()), layout(module.getDataLayout()),
        file(file.str()), lines(lines) {}

  Error run();

private:
  // 1. Places.
  void promoteLocals();
  void collectSites();
  Constant *site(const Instruction *instruction);
  std::string placeOf(const Instruction *instruction) const;
  void reject(const Instruction *instruction, const Twine &what);

  // 2. Variables.
  void placeVariables();
  void replaceVariable(GlobalVariable &variable, function_ref<Value *(IRBuilder<> &)> address);

  // 3. Instructions.
  void rewriteFunction(Function &function);
  void rewriteAccess(Instruction &instruction);
  void rewriteCall(CallInst &call);
  void rewriteIntrinsic(CallInst &call, const EmulatedIntrinsic &how);
  void rewriteLocals(Function &function);
  Value *throughSlots(CallInst &call, const EmulatedIntrinsic &how);
  Value *throughFunction(CallInst &call, const EmulatedIntrinsic &how);
  Value *hostPointer(IRBuilder<> &builder, Value *pointer, uint64_t bytes, uint64_t alignment,
                     unsigned flags, Constant *place);

  // 4. Kernels.
  struct Parameter {
    std::string name, type;
    uint64_t bytes;
    bool byValue;
  };
  struct Kernel {
    Function *function;
    std::string name;
    SmallVector<Parameter> parameters;
    SetVector<unsigned> shared;
    unsigned maxThreads = 0, exactThreads[3] = {0, 0, 0};
  };
  void collectKernels();
  void reachShared(Function *function, SmallPtrSetImpl<Function *> &seen,
                   SetVector<unsigned> &into);
  Function *entryOf(Kernel &kernel);
  void emitTable();

  // Constants.
  IntegerType *i32() { return Type::getInt32Ty(context); }
  IntegerType *i64() { return Type::getInt64Ty(context); }
  PointerType *pointer() { return PointerType::get(context, 0); }
  Constant *text(StringRef string);
  Constant *global(Constant *value, const Twine &name);
  Constant *array(ArrayRef<Constant *> values, const Twine &name);
  FunctionCallee entry(StringRef name, Type *result, ArrayRef<Type *> parameters) {
    return module.getOrInsertFunction(("descent_emulate_" + name).str(),
                                      FunctionType::get(result, parameters, false));
  }
  Value *toSlot(IRBuilder<> &builder, Value *value);
  Value *fromBits(IRBuilder<> &builder, Value *bits, Type *type);

  Module &module;
  LLVMContext &context;
  const DataLayout &layout;
  std::string file;
  const AsmParserContext *lines;

  DenseMap<const Instruction *, std::pair<std::string, std::string>> texts; ///< text, function
  DenseMap<const Instruction *, Constant *> sites;
  StringMap<Constant *> strings;
  struct Variable {
    std::string name;
    Constant *image, *address;
    uint64_t bytes, alignment;
    bool shared, constant;
  };
  std::vector<Variable> variables;
  DenseMap<Function *, SetVector<unsigned>> sharedUses;
  std::vector<Kernel> kernels;
  std::vector<std::string> errors;
};

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

bool isRewritten(const Instruction &instruction) {
  return isa<LoadInst, StoreInst, AtomicRMWInst, AtomicCmpXchgInst, CallInst, AllocaInst,
             UnreachableInst>(instruction);
}

/// Unoptimised code keeps every variable in memory; a register cannot be out of bounds.
void Retarget::promoteLocals() {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    std::vector<AllocaInst *> promotable;
    for (Instruction &instruction : instructions(function))
      if (auto *local = dyn_cast<AllocaInst>(&instruction))
        if (isAllocaPromotable(local))
          promotable.push_back(local);
    DominatorTree dominators(function);
    if (!promotable.empty())
      PromoteMemToReg(promotable, dominators);
  }
}

void Retarget::collectSites() {
  ModuleSlotTracker tracker(&module);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    tracker.incorporateFunction(function);
    for (Instruction &instruction : instructions(function)) {
      if (!isRewritten(instruction))
        continue;
      std::string printed;
      raw_string_ostream stream(printed);
      instruction.print(stream, tracker);
      StringRef text = StringRef(printed).trim();
      texts[&instruction] = {text.substr(0, text.find(", !")).str(), function.getName().str()};
    }
  }
}

Constant *Retarget::site(const Instruction *instruction) {
  Constant *&known = sites[instruction];
  if (known)
    return known;
  const auto &[printed, function] = texts[instruction];
  unsigned irLine = 0, line = 0, column = 0;
  std::string source;
  if (lines)
    if (auto range = lines->getInstructionLocation(instruction))
      irLine = range->Start.Line + 1;
  if (const DebugLoc &location = instruction->getDebugLoc()) {
    line = location.getLine();
    column = location.getCol();
    source = location->getFilename().str();
  }
  auto number = [&](unsigned value) { return ConstantInt::get(i32(), value); };
  known = global(ConstantStruct::getAnon({text(printed), text(function), text(file), text(source),
                                          number(irLine), number(line), number(column)}),
                 "site");
  return known;
}

std::string Retarget::placeOf(const Instruction *instruction) const {
  std::string place = file;
  if (lines)
    if (auto range = lines->getInstructionLocation(instruction))
      place += ":" + utostr(range->Start.Line + 1) + ":" + utostr(range->Start.Col + 1);
  if (const DebugLoc &location = instruction->getDebugLoc())
    place += " (" + location->getFilename().str() + ":" + utostr(location.getLine()) + ")";
  return place;
}

void Retarget::reject(const Instruction *instruction, const Twine &what) {
  errors.push_back(placeOf(instruction) + ": error: " + what.str() + "\n  in @" +
                   texts[instruction].second + ": " + texts[instruction].first);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Constant *Retarget::global(Constant *value, const Twine &name) {
  auto *result = new GlobalVariable(module, value->getType(), true, GlobalValue::PrivateLinkage,
                                    value, "descent." + name);
  result->setAlignment(Align(16));
  return result;
}

Constant *Retarget::text(StringRef string) {
  Constant *&known = strings[string];
  if (!known)
    known = global(ConstantDataArray::getString(context, string), "text");
  return known;
}

Constant *Retarget::array(ArrayRef<Constant *> values, const Twine &name) {
  if (values.empty())
    return ConstantPointerNull::get(pointer());
  return global(ConstantArray::get(ArrayType::get(values[0]->getType(), values.size()), values),
                name);
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

void Retarget::replaceVariable(GlobalVariable &variable,
                               function_ref<Value *(IRBuilder<> &)> address) {
  std::map<Function *, Value *> perFunction;
  for (Use &use : make_early_inc_range(variable.uses())) {
    auto *user = dyn_cast<Instruction>(use.getUser());
    if (!user) // a dead constant, or llvm.used
      continue;
    Value *&replacement = perFunction[user->getFunction()];
    if (!replacement) {
      IRBuilder<> builder(&*user->getFunction()->getEntryBlock().getFirstInsertionPt());
      replacement = builder.CreateIntToPtr(address(builder), variable.getType());
    }
    use.set(replacement);
  }
  variable.replaceAllUsesWith(PoisonValue::get(variable.getType()));
  variable.eraseFromParent();
}

/// Whether the bytes of a constant are known before any address is.
bool hasAddresses(const Constant *value) {
  if (isa<GlobalVariable, BlockAddress>(value))
    return true;
  return any_of(value->operands(),
                [](const Use &use) { return hasAddresses(cast<Constant>(use.get())); });
}

void Retarget::placeVariables() {
  for (StringRef list : {"llvm.used", "llvm.compiler.used"})
    if (GlobalVariable *used = module.getGlobalVariable(list))
      used->eraseFromParent();
  std::vector<GlobalVariable *> all;
  for (GlobalVariable &variable : module.globals())
    if (!variable.getName().starts_with("llvm.") && !variable.getName().starts_with("descent."))
      all.push_back(&variable);
  SmallVector<Constant *> constants(all.begin(), all.end());
  convertUsersOfConstantsToInstructions(constants);

  // Shared variables are 64 KiB apart, so that an access past the end of one does not fall into the
  // next; dynamic shared memory is one place whatever its names, and the last.
  uint64_t next = DESCENT_EMULATED_SHARED;
  std::optional<uint64_t> dynamic;
  auto isDynamic = [&](GlobalVariable *variable) {
    return variable->getAddressSpace() == sharedSpace &&
           layout.getTypeAllocSize(variable->getValueType()) == 0;
  };
  std::stable_partition(all.begin(), all.end(), [&](auto *v) { return !isDynamic(v); });
  uint64_t dynamicAlignment = 16;
  for (GlobalVariable *variable : all)
    if (isDynamic(variable))
      dynamicAlignment = std::max(dynamicAlignment, variable->getAlign().valueOrOne().value());
  for (GlobalVariable *variable : all) {
    uint64_t bytes = layout.getTypeAllocSize(variable->getValueType());
    uint64_t alignment =
        variable->getAlign().value_or(layout.getABITypeAlign(variable->getValueType())).value();
    Variable entry{variable->getName().str(),
                   ConstantPointerNull::get(pointer()),
                   nullptr,
                   bytes,
                   alignment,
                   variable->getAddressSpace() == sharedSpace,
                   variable->isConstant() || variable->getAddressSpace() == 4};
    unsigned index = variables.size();
    if (entry.shared) {
      if (bytes == 0)
        alignment = entry.alignment = dynamicAlignment;
      uint64_t address = bytes == 0 && dynamic ? *dynamic : alignTo(next, 65536) + alignment;
      if (bytes == 0)
        dynamic = address;
      next = address + bytes + 65536;
      for (User *user : variable->users())
        if (auto *instruction = dyn_cast<Instruction>(user))
          sharedUses[instruction->getFunction()].insert(index);
      Constant *number = ConstantInt::get(i64(), address);
      entry.address = global(number, "address");
      replaceVariable(*variable, [&](IRBuilder<> &) { return number; });
      variables.push_back(entry);
      continue;
    }
    if (variable->isDeclaration()) {
      errors.push_back(file + ": error: variable @" + entry.name +
                       " is only declared; link the module that defines it");
      continue;
    }
    Constant *initial = variable->getInitializer();
    if (hasAddresses(initial)) {
      errors.push_back(file + ": error: the initial value of @" + entry.name +
                       " holds addresses of variables, which are not known before it is loaded; "
                       "set them by a kernel");
      continue;
    }
    if (!isa<UndefValue>(initial))
      entry.image = global(initial, "image");
    auto *slot = new GlobalVariable(module, i64(), false, GlobalValue::PrivateLinkage,
                                    ConstantInt::get(i64(), 0), "descent.address");
    entry.address = slot;
    replaceVariable(*variable, [&](IRBuilder<> &b) { return b.CreateLoad(i64(), slot); });
    variables.push_back(entry);
  }
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Value *Retarget::toSlot(IRBuilder<> &builder, Value *value) {
  Type *type = value->getType();
  if (type->isPointerTy())
    return builder.CreatePtrToInt(value, i64());
  auto *bits = builder.getIntNTy(type->getPrimitiveSizeInBits());
  return builder.CreateZExt(builder.CreateBitCast(value, bits), i64());
}

Value *Retarget::fromBits(IRBuilder<> &builder, Value *bits, Type *type) {
  if (type->isPointerTy())
    return builder.CreateIntToPtr(bits, type);
  auto *narrow = builder.getIntNTy(type->getPrimitiveSizeInBits());
  return builder.CreateBitCast(builder.CreateTrunc(bits, narrow), type);
}

Value *Retarget::hostPointer(IRBuilder<> &builder, Value *devicePointer, uint64_t bytes,
                             uint64_t alignment, unsigned flags, Constant *place) {
  flags |= Log2_64(alignment) << 8 | devicePointer->getType()->getPointerAddressSpace() << 16;
  return builder.CreateCall(entry("access", pointer(), {i64(), i64(), i32(), pointer()}),
                            {builder.CreatePtrToInt(devicePointer, i64()), builder.getInt64(bytes),
                             builder.getInt32(flags), place});
}

void Retarget::rewriteAccess(Instruction &instruction) {
  unsigned operand = 0, flags = DESCENT_EMULATE_READ;
  Type *type = nullptr;
  Align alignment;
  // volatile is a relaxed access of PTX's memory model, which races with no other such access.
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    type = load->getType();
    alignment = load->getAlign();
    flags |= load->isAtomic() || load->isVolatile() ? DESCENT_EMULATE_ATOMIC : 0;
    if (load->isAtomic())
      load->setSyncScopeID(SyncScope::System);
    else // the engine checks the alignment, if it is asked to
      load->setAlignment(Align(1));
  } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    type = store->getValueOperand()->getType();
    alignment = store->getAlign();
    operand = store->getPointerOperandIndex();
    flags = DESCENT_EMULATE_WRITE |
            (store->isAtomic() || store->isVolatile() ? DESCENT_EMULATE_ATOMIC : 0);
    if (store->isAtomic())
      store->setSyncScopeID(SyncScope::System);
    else
      store->setAlignment(Align(1));
  } else if (auto *update = dyn_cast<AtomicRMWInst>(&instruction)) {
    type = update->getType();
    alignment = update->getAlign();
    flags |= DESCENT_EMULATE_WRITE | DESCENT_EMULATE_ATOMIC;
    update->setSyncScopeID(SyncScope::System);
  } else {
    auto &exchange = cast<AtomicCmpXchgInst>(instruction);
    type = exchange.getNewValOperand()->getType();
    alignment = exchange.getAlign();
    flags |= DESCENT_EMULATE_WRITE | DESCENT_EMULATE_ATOMIC;
    exchange.setSyncScopeID(SyncScope::System);
  }
  IRBuilder<> builder(&instruction);
  instruction.setOperand(operand, hostPointer(builder, instruction.getOperand(operand),
                                              layout.getTypeStoreSize(type).getFixedValue(),
                                              alignment.value(), flags, site(&instruction)));
}

Value *Retarget::throughSlots(CallInst &call, const EmulatedIntrinsic &how) {
  IRBuilder<> builder(&call);
  SmallVector<Value *> inputs;
  for (auto [isOperand, value] : how.inputs)
    inputs.push_back(isOperand ? toSlot(builder, call.getArgOperand(value))
                               : builder.getInt64(value));
  if (how.allOperands)
    for (Value *operand : call.args())
      inputs.push_back(toSlot(builder, operand));
  Type *result = call.getType();
  auto *aggregate = dyn_cast<StructType>(result);
  unsigned count =
      std::max<size_t>({inputs.size(), aggregate ? aggregate->getNumElements() : 1, 2});
  IRBuilder<> atEntry(&*call.getFunction()->getEntryBlock().getFirstInsertionPt());
  Value *slots = atEntry.CreateAlloca(ArrayType::get(i64(), count));
  auto slot = [&](unsigned index) {
    return builder.CreateConstInBoundsGEP1_64(i64(), slots, index);
  };
  for (auto [index, input] : enumerate(inputs))
    builder.CreateStore(input, slot(index));
  builder.CreateCall(entry(how.entry, builder.getVoidTy(), {pointer(), pointer()}),
                     {slots, site(&call)});
  auto output = [&](unsigned index, Type *type) {
    return fromBits(builder, builder.CreateLoad(i64(), slot(index)), type);
  };
  if (result->isVoidTy())
    return nullptr;
  if (!aggregate)
    return output(0, result);
  Value *all = PoisonValue::get(result);
  for (unsigned i = 0; i < aggregate->getNumElements(); ++i)
    all = builder.CreateInsertValue(all, output(i, aggregate->getElementType(i)), i);
  return all;
}

Value *Retarget::throughFunction(CallInst &call, const EmulatedIntrinsic &how) {
  IRBuilder<> builder(&call);
  Type *f32 = builder.getFloatTy(), *i16 = builder.getInt16Ty();
  Type *element = StringRef(how.entry) == "arithmetic"          ? f32
                  : StringRef(how.entry) == "arithmetic_double" ? builder.getDoubleTy()
                  : StringRef(how.entry) == "arithmetic_narrow" ? i16
                                                                : static_cast<Type *>(i32());
  SmallVector<Value *> inputs;
  SmallVector<Type *> types;
  Type *result = element;
  for (auto input : how.inputs) {
    inputs.push_back(builder.getInt32(input.value));
    types.push_back(i32());
  }
  for (Value *operand : call.args()) {
    Type *type = operand->getType();
    if (!type->isFloatTy() && !type->isDoubleTy())
      operand = builder.CreateBitCast(operand, builder.getIntNTy(type->getPrimitiveSizeInBits()));
    inputs.push_back(operand);
    types.push_back(operand->getType());
  }
  if (how.entry.starts_with("arithmetic"))
    while (inputs.size() < 4) {
      inputs.push_back(Constant::getNullValue(element));
      types.push_back(element);
    }
  if (how.entry == "narrow")
    result = i16;
  Value *value = builder.CreateCall(entry(how.entry, result, types), inputs);
  return builder.CreateBitCast(value, call.getType());
}

void Retarget::rewriteIntrinsic(CallInst &call, const EmulatedIntrinsic &how) {
  IRBuilder<> builder(&call);
  Value *result = nullptr;
  switch (how.kind) {
  case EmulatedIntrinsic::Nothing:
    break;
  case EmulatedIntrinsic::Value:
    result = ConstantInt::get(call.getType(), how.value);
    break;
  case EmulatedIntrinsic::Register:
    result = fromBits(
        builder,
        builder.CreateCall(entry("register", i64(), {i32()}), {builder.getInt32(how.value)}),
        call.getType());
    break;
  case EmulatedIntrinsic::Space:
    result = builder.CreateTrunc(
        builder.CreateCall(
            entry("space", i32(), {i64(), i32()}),
            {builder.CreatePtrToInt(call.getArgOperand(0), i64()), builder.getInt32(how.value)}),
        builder.getInt1Ty());
    break;
  case EmulatedIntrinsic::Slots:
    result = throughSlots(call, how);
    break;
  case EmulatedIntrinsic::Direct:
    result = throughFunction(call, how);
    break;
  }
  if (result)
    call.replaceAllUsesWith(result);
  call.eraseFromParent();
}

void Retarget::rewriteCall(CallInst &call) {
  if (call.isInlineAsm()) {
    reject(&call, "inline PTX has no emulation; use the llvm.nvvm intrinsic of the same meaning");
    return;
  }
  Function *callee = call.getCalledFunction();
  if (!callee || !callee->isIntrinsic()) {
    for (unsigned i = 0; i < call.arg_size(); ++i)
      if (call.isByValArgument(i))
        reject(&call, "an aggregate passed by value between functions of the device has no "
                      "emulation; inline the function (opt -O2), or pass a pointer");
    call.setCallingConv(CallingConv::C);
    call.setAttributes(AttributeList());
    return;
  }
  IRBuilder<> builder(&call);
  StringRef name = callee->getName();
  if (name.consume_front("llvm.nvvm.")) {
    if (name.starts_with("internal.addrspace.wrap")) {
      call.replaceAllUsesWith(builder.CreateAddrSpaceCast(call.getArgOperand(0), call.getType()));
      call.eraseFromParent();
    } else if (auto how = emulatedIntrinsic(name)) {
      rewriteIntrinsic(call, *how);
    } else {
      reject(&call, "the emulator does not know the intrinsic llvm.nvvm." + name);
    }
    return;
  }
  switch (call.getIntrinsicID()) {
  case Intrinsic::lifetime_start:
  case Intrinsic::lifetime_end:
  case Intrinsic::assume:
  case Intrinsic::experimental_noalias_scope_decl:
    call.eraseFromParent();
    return;
  case Intrinsic::trap:
  case Intrinsic::debugtrap:
    builder.CreateCall(entry("trap", builder.getVoidTy(), {pointer(), pointer()}),
                       {ConstantPointerNull::get(pointer()), site(&call)});
    call.eraseFromParent();
    return;
  case Intrinsic::memcpy:
  case Intrinsic::memcpy_inline:
  case Intrinsic::memmove:
    builder.CreateCall(entry("copy", builder.getVoidTy(), {i64(), i64(), i64(), pointer()}),
                       {toSlot(builder, call.getArgOperand(0)),
                        toSlot(builder, call.getArgOperand(1)),
                        toSlot(builder, call.getArgOperand(2)), site(&call)});
    call.eraseFromParent();
    return;
  case Intrinsic::memset:
  case Intrinsic::memset_inline:
    builder.CreateCall(entry("fill", builder.getVoidTy(), {i64(), i32(), i64(), pointer()}),
                       {toSlot(builder, call.getArgOperand(0)),
                        builder.CreateZExt(call.getArgOperand(1), i32()),
                        toSlot(builder, call.getArgOperand(2)), site(&call)});
    call.eraseFromParent();
    return;
  default:
    for (Value *operand : call.args())
      if (operand->getType()->isPtrOrPtrVectorTy()) {
        reject(&call, "the emulator does not know the memory intrinsic " + callee->getName());
        return;
      }
  }
}

/// Local variables live in memory of the engine, so that accesses past their end are found.
void Retarget::rewriteLocals(Function &function) {
  SmallVector<AllocaInst *> locals;
  SmallVector<ReturnInst *> returns;
  for (Instruction &instruction : instructions(function))
    if (auto *local = dyn_cast<AllocaInst>(&instruction))
      locals.push_back(local);
    else if (auto *leave = dyn_cast<ReturnInst>(&instruction))
      returns.push_back(leave);
  if (locals.empty())
    return;
  for (AllocaInst *local : locals) {
    IRBuilder<> builder(local);
    Value *bytes = builder.CreateMul(
        builder.getInt64(layout.getTypeAllocSize(local->getAllocatedType()).getFixedValue()),
        builder.CreateZExtOrTrunc(local->getArraySize(), i64()));
    Value *address =
        builder.CreateCall(entry("local", i64(), {i64(), i64(), pointer()}),
                           {bytes, builder.getInt64(local->getAlign().value()), site(local)});
    local->replaceAllUsesWith(builder.CreateIntToPtr(address, local->getType()));
    local->eraseFromParent();
  }
  IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  Value *mark = builder.CreateCall(entry("local_mark", i64(), {}), {});
  for (ReturnInst *leave : returns) {
    builder.SetInsertPoint(leave);
    builder.CreateCall(entry("local_release", builder.getVoidTy(), {i64()}), {mark});
  }
}

void Retarget::rewriteFunction(Function &function) {
  SmallVector<Instruction *> accesses, unreachable;
  SmallVector<CallInst *> calls;
  for (Instruction &instruction : instructions(function))
    if (isa<LoadInst, StoreInst, AtomicRMWInst, AtomicCmpXchgInst>(instruction)) {
      if (texts.contains(&instruction)) // not one that replaces a variable
        accesses.push_back(&instruction);
    } else if (auto *call = dyn_cast<CallInst>(&instruction)) {
      calls.push_back(call);
    } else if (isa<UnreachableInst>(instruction)) {
      unreachable.push_back(&instruction);
    } else if (auto *fence = dyn_cast<FenceInst>(&instruction)) {
      fence->setSyncScopeID(SyncScope::System);
    }
  for (CallInst *call : calls)
    if (isa<LifetimeIntrinsic>(call))
      rewriteCall(*call);
  erase_if(calls, [&](CallInst *call) { return !call->getParent(); });
  rewriteLocals(function);
  for (Instruction *access : accesses)
    rewriteAccess(*access);
  for (Instruction *end : unreachable) {
    IRBuilder<> builder(end);
    builder.CreateCall(entry("trap", builder.getVoidTy(), {pointer(), pointer()}),
                       {ConstantPointerNull::get(pointer()), site(end)});
  }
  for (CallInst *call : calls)
    rewriteCall(*call);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void Retarget::reachShared(Function *function, SmallPtrSetImpl<Function *> &seen,
                           SetVector<unsigned> &into) {
  if (!seen.insert(function).second)
    return;
  if (auto found = sharedUses.find(function); found != sharedUses.end())
    into.insert(found->second.begin(), found->second.end());
  for (Instruction &instruction : instructions(*function))
    for (Value *operand : instruction.operands())
      if (auto *callee = dyn_cast<Function>(operand); callee && !callee->isDeclaration())
        reachShared(callee, seen, into);
}

void Retarget::collectKernels() {
  for (Function &function : module) {
    if (function.isDeclaration() || function.getCallingConv() != CallingConv::PTX_Kernel)
      continue;
    Kernel kernel;
    kernel.function = &function;
    kernel.name = function.getName().str();
    for (Argument &argument : function.args()) {
      bool byValue = argument.hasByValAttr();
      std::string type;
      raw_string_ostream stream(type);
      argument.getType()->print(stream);
      Type *held = byValue ? argument.getParamByValType() : argument.getType();
      kernel.parameters.push_back(
          {argument.getName().str(), type, layout.getTypeAllocSize(held).getFixedValue(), byValue});
    }
    auto numbers = [&](StringRef attribute, unsigned(&into)[3]) {
      StringRef value = function.getFnAttribute(attribute).getValueAsString();
      for (unsigned i = 0; i < 3 && !value.empty(); ++i) {
        into[i] = 1;
        value.split(',').first.trim().getAsInteger(10, into[i]);
        value = value.split(',').second;
        if (value.empty())
          for (unsigned rest = i + 1; rest < 3; ++rest)
            into[rest] = 1;
      }
    };
    unsigned most[3] = {0, 0, 0};
    numbers("nvvm.maxntid", most);
    numbers("nvvm.reqntid", kernel.exactThreads);
    kernel.maxThreads = most[0] * most[1] * most[2];
    kernels.push_back(std::move(kernel));
  }
}

/// void NAME.entry(void *const *parameters).
Function *Retarget::entryOf(Kernel &kernel) {
  auto *result = Function::Create(FunctionType::get(Type::getVoidTy(context), {pointer()}, false),
                                  GlobalValue::PrivateLinkage, kernel.name + ".entry", module);
  IRBuilder<> builder(BasicBlock::Create(context, "", result));
  SmallVector<Value *> values;
  for (auto [index, argument] : enumerate(kernel.function->args()))
    values.push_back(builder.CreateLoad(
        argument.getType(),
        builder.CreateLoad(pointer(),
                           builder.CreateConstGEP1_32(pointer(), result->getArg(0), index))));
  builder.CreateCall(kernel.function, values);
  builder.CreateRetVoid();
  return result;
}

void Retarget::emitTable() {
  auto number = [&](unsigned value) { return ConstantInt::get(i32(), value); };
  auto wide = [&](uint64_t value) { return ConstantInt::get(i64(), value); };
  SmallVector<Constant *> kernelTable, variableTable;
  for (Kernel &kernel : kernels) {
    SmallVector<Constant *> parameters, shared;
    for (const Parameter &parameter : kernel.parameters)
      parameters.push_back(
          ConstantStruct::getAnon({text(parameter.name), text(parameter.type),
                                   wide(parameter.bytes), number(parameter.byValue)}));
    for (unsigned index : kernel.shared)
      shared.push_back(number(index));
    kernelTable.push_back(ConstantStruct::getAnon(
        {text(kernel.name), entryOf(kernel), array(parameters, "parameters"),
         array(shared, "shared"), number(parameters.size()), number(shared.size()),
         number(kernel.maxThreads), number(kernel.exactThreads[0]), number(kernel.exactThreads[1]),
         number(kernel.exactThreads[2])}));
  }
  for (const Variable &variable : variables)
    variableTable.push_back(ConstantStruct::getAnon(
        {text(variable.name), variable.image, wide(variable.bytes), wide(variable.alignment),
         variable.address, number(variable.shared), number(variable.constant)}));
  Constant *table = ConstantStruct::getAnon(
      {number(DESCENT_EMULATOR_VERSION), number(kernelTable.size()), number(variableTable.size()),
       array(kernelTable, "kernels"), array(variableTable, "variables")});
  new GlobalVariable(module, table->getType(), true, GlobalValue::ExternalLinkage, table,
                     DESCENT_EMULATED_MODULE_SYMBOL);
}

Error Retarget::run() {
  promoteLocals();
  collectSites();
  collectKernels();
  placeVariables();
  for (Kernel &kernel : kernels) {
    SmallPtrSet<Function *, 8> seen;
    reachShared(kernel.function, seen, kernel.shared);
  }
  SmallVector<Function *> functions;
  for (Function &function : module)
    if (!function.isDeclaration())
      functions.push_back(&function);
  for (Function *function : functions)
    rewriteFunction(*function);
  if (!errors.empty())
    return createStringError(join(errors, "\n"));
  for (Function &function : module) {
    if (function.isIntrinsic())
      continue;
    function.setCallingConv(CallingConv::C);
    function.setAttributes(AttributeList());
    function.setComdat(nullptr);
    if (!function.isDeclaration())
      function.setLinkage(GlobalValue::InternalLinkage);
  }
  emitTable();
  StripDebugInfo(module);
  return Error::success();
}

} // namespace

Error retargetToHost(Module &module, StringRef file, const AsmParserContext *lines) {
  return Retarget(module, file, lines).run();
}

} // namespace descent
