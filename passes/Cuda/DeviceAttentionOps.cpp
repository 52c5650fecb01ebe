//===- DeviceAttentionOps.cpp - Ops of a warp in short spellings ----------===//
//
// Spellings are those that reach one instruction each: exp2, log2 and the reciprocal as intrinsics,
// since the ops of math become calls of a device library, and the maximum as llvm.intr.maxnum,
// since arith.maxnumf does.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceAttentionOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Cuda/TensorCoreOps.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace descent {

WarpOps::WarpOps(gpu::GPUFuncOp function, FloatType narrow)
    : builder(function.getContext()), loc(function.getLoc()), narrow(narrow),
      entry(&function.getBody().front()) {
  builder.setInsertionPoint(entry->getTerminator());
  f32 = builder.getF32Type();
  i16 = builder.getI16Type();
  i32 = builder.getI32Type();
  i64 = builder.getI64Type();
  globalPointer = tensorcore::globalPointer(builder.getContext());
  sharedPointer = tensorcore::sharedPointer(builder.getContext());
}

Value WarpOps::integer(int64_t number, Type type) {
  Value &known = integers[{type.getAsOpaquePointer(), number}];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    known = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, number));
  }
  return known;
}

template <typename Op> Word WarpOps::binary(Word a, Word b) {
  return Op::create(builder, loc, value(a), value(b)).getResult();
}

Word WarpOps::add(Word a, Word b) {
  if (a.isKnown() && b.isKnown())
    return a.number + b.number;
  if (a.is(0))
    return b;
  return b.is(0) ? a : binary<arith::AddIOp>(a, b);
}

Word WarpOps::sub(Word a, Word b) {
  if (a.isKnown() && b.isKnown())
    return a.number - b.number;
  return b.is(0) ? a : binary<arith::SubIOp>(a, b);
}

Word WarpOps::mul(Word a, Word b) {
  if (a.isKnown() && b.isKnown())
    return a.number * b.number;
  if (a.isKnown())
    std::swap(a, b);
  if (b.is(0) || b.is(1))
    return b.is(0) ? b : a;
  if (b.isKnown() && llvm::isPowerOf2_64(b.number))
    return binary<arith::ShLIOp>(a, llvm::Log2_64(b.number));
  return binary<arith::MulIOp>(a, b);
}

Word WarpOps::div(Word a, int64_t b) {
  if (a.isKnown())
    return a.number / b;
  if (b == 1)
    return a;
  if (llvm::isPowerOf2_64(b))
    return binary<arith::ShRUIOp>(a, llvm::Log2_64(b));
  return binary<arith::DivUIOp>(a, b);
}

Word WarpOps::rem(Word a, int64_t b) {
  if (a.isKnown())
    return a.number % b;
  if (llvm::isPowerOf2_64(b))
    return bitAnd(a, b - 1);
  return binary<arith::RemUIOp>(a, b);
}

Word WarpOps::bitAnd(Word a, int64_t mask) {
  if (a.isKnown())
    return a.number & mask;
  return mask == 0 ? Word(0) : binary<arith::AndIOp>(a, mask);
}

Word WarpOps::bitXor(Word a, Word b) {
  if (a.isKnown() && b.isKnown())
    return a.number ^ b.number;
  if (a.is(0))
    return b;
  return b.is(0) ? a : binary<arith::XOrIOp>(a, b);
}

Word WarpOps::min(Word a, Word b) {
  if (a.isKnown() && b.isKnown())
    return std::min(a.number, b.number);
  return binary<arith::MinSIOp>(a, b);
}

Word WarpOps::choose(Value condition, Word a, Word b) {
  return arith::SelectOp::create(builder, loc, condition, value(a), value(b)).getResult();
}

Value WarpOps::compare(arith::CmpIPredicate predicate, Word a, Word b) {
  return arith::CmpIOp::create(builder, loc, predicate, value(a), value(b));
}

Value WarpOps::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}

Word WarpOps::widen(Word a) {
  return a.isKnown() ? a : Word(arith::ExtSIOp::create(builder, loc, i64, a.value).getResult());
}

Word WarpOps::addWide(Word a, Word b) {
  if (a.isKnown() && b.isKnown())
    return a.number + b.number;
  if (a.is(0))
    return b;
  if (b.is(0))
    return a;
  return arith::AddIOp::create(builder, loc, wideValue(a), wideValue(b)).getResult();
}

Word WarpOps::mulWide(Word a, int64_t b) {
  if (a.isKnown())
    return a.number * b;
  if (b == 0 || b == 1)
    return b == 0 ? Word(0) : a;
  return arith::MulIOp::create(builder, loc, a.value, wideValue(b)).getResult();
}

Word WarpOps::threadIndex() {
  Value index = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  return arith::IndexCastUIOp::create(builder, loc, i32, index).getResult();
}

Word WarpOps::blockIndex() {
  Value index = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  return arith::IndexCastUIOp::create(builder, loc, i32, index).getResult();
}

Value WarpOps::constant(double number) {
  float rounded = static_cast<float>(number);
  Value &known = floats[llvm::bit_cast<uint32_t>(rounded)];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    known = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(rounded));
  }
  return known;
}

Value WarpOps::addf(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
Value WarpOps::subf(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
Value WarpOps::mulf(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
Value WarpOps::negate(Value a) { return arith::NegFOp::create(builder, loc, a); }

Value WarpOps::fma(Value a, Value b, Value c) {
  return LLVM::FMAOp::create(builder, loc, f32, ValueRange{a, b, c});
}

Value WarpOps::larger(Value a, Value b) {
  return LLVM::MaxNumOp::create(builder, loc, f32, ValueRange{a, b});
}

Value WarpOps::intrinsic(StringRef name, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(builder, loc, f32, builder.getStringAttr(name), arguments)
      .getResult(0);
}

Value WarpOps::power2(Value a) { return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", a); }
Value WarpOps::log2(Value a) { return intrinsic("llvm.nvvm.lg2.approx.ftz.f", a); }
Value WarpOps::reciprocal(Value a) { return intrinsic("llvm.nvvm.rcp.approx.ftz.f", a); }

Value WarpOps::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}

Value WarpOps::acrossLanes(Value a, int lanes, Combine combine) {
  for (int distance = 1; distance < lanes; distance *= 2) {
    Value other =
        NVVM::ShflOp::create(builder, loc, f32, integer(-1, i32), a, integer(distance, i32),
                             integer(31, i32), NVVM::ShflKind::bfly, UnitAttr());
    a = combine(a, other);
  }
  return a;
}

Value WarpOps::pack(Value low, Value high) {
  auto pair = VectorType::get({2}, narrow);
  auto rounding = NVVM::FPRoundingModeAttr::get(builder.getContext(), NVVM::FPRoundingMode::RN);
  Value packed;
  if (narrow.isBF16())
    packed = NVVM::ConvertF32x2ToBF16x2Op::create(builder, loc, Type(pair), high, low, Value(),
                                                  rounding);
  else {
    Value both = LLVM::UndefOp::create(builder, loc, VectorType::get({2}, f32));
    both = LLVM::InsertElementOp::create(builder, loc, both, low, integer(0, i32));
    both = LLVM::InsertElementOp::create(builder, loc, both, high, integer(1, i32));
    packed = LLVM::FPTruncOp::create(builder, loc, pair, both);
  }
  return LLVM::BitcastOp::create(builder, loc, i32, packed);
}

std::pair<Value, Value> WarpOps::unpack(Value pair) {
  if (narrow.isBF16()) {
    Value low = value(shl(pair, 16)), high = value(bitAnd(pair, -65536));
    return {LLVM::BitcastOp::create(builder, loc, f32, low),
            LLVM::BitcastOp::create(builder, loc, f32, high)};
  }
  Value halves = LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, narrow), pair);
  Value wide = LLVM::FPExtOp::create(builder, loc, VectorType::get({2}, f32), halves);
  return {LLVM::ExtractElementOp::create(builder, loc, wide, integer(0, i32)),
          LLVM::ExtractElementOp::create(builder, loc, wide, integer(1, i32))};
}

Value WarpOps::narrowBits(Value wide) {
  return arith::TruncIOp::create(builder, loc, i16, pack(wide, constant(0)));
}

Value WarpOps::widenBits(Value bits) {
  return unpack(arith::ExtUIOp::create(builder, loc, i32, bits)).first;
}

Value WarpOps::at(Value pointer, Word bytes) {
  if (bytes.is(0))
    return pointer;
  LLVM::GEPArg offset = bytes.isKnown() ? LLVM::GEPArg(static_cast<int32_t>(bytes.number))
                                        : LLVM::GEPArg(bytes.value);
  return tensorcore::addressAt(builder, loc, pointer, offset);
}

Value WarpOps::atWide(Value pointer, Word bytes) {
  if (bytes.is(0))
    return pointer;
  return tensorcore::addressAt(builder, loc, pointer, wideValue(bytes));
}

Value WarpOps::load(Value pointer, Type type, int64_t alignment) {
  return LLVM::LoadOp::create(builder, loc, type, pointer, alignment);
}

void WarpOps::store(Value value, Value pointer, int64_t alignment) {
  LLVM::StoreOp::create(builder, loc, value, pointer, alignment);
}

Value WarpOps::element(Value aggregate, int64_t index) {
  if (isa<VectorType>(aggregate.getType()))
    return LLVM::ExtractElementOp::create(builder, loc, aggregate, integer(index, i32));
  return LLVM::ExtractValueOp::create(builder, loc, aggregate, index);
}

Values WarpOps::loadMatrices(Value shared, bool transposed) {
  return tensorcore::loadMatrices(builder, loc, shared, transposed);
}

Values WarpOps::multiply(ValueRange a, ValueRange b, ValueRange c) {
  return tensorcore::multiply(builder, loc, narrow, a, b, c);
}

void WarpOps::copyAsync(Value shared, Value global, int64_t bytes, Value read) {
  tensorcore::copyAsync(builder, loc, shared, global, bytes, read);
}

void WarpOps::commitCopies() { tensorcore::commitCopies(builder, loc); }
void WarpOps::awaitCopies() { tensorcore::awaitCopies(builder, loc, 0); }
void WarpOps::barrier() { NVVM::BarrierOp::create(builder, loc); }
void WarpOps::warpBarrier() { NVVM::SyncWarpOp::create(builder, loc, integer(-1, i32)); }

Values WarpOps::loop(Word from, Word to, int64_t step, ValueRange initial, LoopBody body) {
  if (from.isKnown() && to.isKnown() && from.number >= to.number)
    return Values(initial);
  auto op = scf::ForOp::create(builder, loc, value(from), value(to), value(step), initial);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = op.getBody();
  // Without carried values the op comes with its terminator.
  if (initial.empty())
    builder.setInsertionPoint(block->getTerminator());
  else
    builder.setInsertionPointToStart(block);
  Values next = body(op.getInductionVar(), op.getRegionIterArgs());
  if (!initial.empty())
    scf::YieldOp::create(builder, loc, next);
  return Values(op.getResults());
}

void WarpOps::when(Value condition, llvm::function_ref<void()> then) {
  if (!condition)
    return then();
  auto op = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  then();
}

Values WarpOps::whenElse(Value condition, ValueRange otherwise, llvm::function_ref<Values()> then) {
  auto op = scf::IfOp::create(builder, loc, otherwise.getTypes(), condition,
                              /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(builder, loc, then());
  builder.setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(builder, loc, otherwise);
  return Values(op.getResults());
}

} // namespace descent
