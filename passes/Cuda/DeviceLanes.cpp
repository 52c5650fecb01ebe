//===- DeviceLanes.cpp - Code of one thread of a device -------------------===//

#include "passes/Cuda/DeviceLanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace descent {

Type deviceElement(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

int64_t deviceBytes(Type element) { return deviceElement(element).getIntOrFloatBitWidth() / 8; }

int64_t commonWidth(int64_t most, ArrayRef<int64_t> multiples) {
  for (int64_t number : multiples)
    while (number % most)
      most /= 2;
  return most;
}

Value DeviceLanes::thread() { return gpu::ThreadIdOp::create(b, gpu::Dimension::x); }
Value DeviceLanes::block() { return gpu::BlockIdOp::create(b, gpu::Dimension::x); }
void DeviceLanes::barrier() { gpu::BarrierOp::create(b); }

Value DeviceLanes::shared(gpu::GPUFuncOp function, int64_t count, Type element) {
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({count}, deviceElement(element), MemRefLayoutAttrInterface(), space);
  BlockArgument buffer = function.addWorkgroupAttribution(type, b.getLoc());
  unsigned number = function.getNumWorkgroupAttributions() - 1;
  function.setWorkgroupAttributionAttr(number, StringRef("llvm.align"), b.getI64IntegerAttr(128));
  return buffer;
}

Value DeviceLanes::div(Value a, int64_t divisor) {
  return divisor == 1 ? a : arith::DivUIOp::create(b, a, index(divisor)).getResult();
}

Value DeviceLanes::rem(Value a, int64_t divisor) {
  return divisor == 1 ? index(0) : arith::RemUIOp::create(b, a, index(divisor)).getResult();
}

Value DeviceLanes::less(Value a, Value limit) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, a, limit);
}

Value DeviceLanes::equal(Value a, Value other) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, other);
}

Value DeviceLanes::both(Value a, Value other) {
  if (!a || !other)
    return a ? a : other;
  return arith::AndIOp::create(b, a, other);
}

SmallVector<Value> DeviceLanes::indices(Value linear, ArrayRef<int64_t> sizes) {
  SmallVector<Value> result(sizes.size());
  unsigned outermost = 0;
  while (outermost + 1 < sizes.size() && sizes[outermost] == 1)
    ++outermost;
  for (unsigned k = sizes.size(); k-- > 0;) {
    result[k] = k < outermost ? index(0) : k == outermost ? linear : rem(linear, sizes[k]);
    if (k > outermost)
      linear = div(linear, sizes[k]);
  }
  return result;
}

SmallVector<Value> DeviceLanes::select(Value condition, function_ref<SmallVector<Value>()> then,
                                       function_ref<SmallVector<Value>()> otherwise) {
  if (!condition)
    return then();
  // The branches say what they yield, so they are built before the op that holds them.
  Region thenRegion, elseRegion;
  SmallVector<Type> types;
  auto fill = [&](Region &region, function_ref<SmallVector<Value>()> body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&region.emplaceBlock());
    SmallVector<Value> values = body();
    scf::YieldOp::create(b, values);
    types = llvm::to_vector(ValueRange(values).getTypes());
  };
  fill(thenRegion, then);
  fill(elseRegion, otherwise);
  auto branch = scf::IfOp::create(b, types, condition, /*withElseRegion=*/true);
  branch.getThenRegion().takeBody(thenRegion);
  branch.getElseRegion().takeBody(elseRegion);
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> DeviceLanes::unrolled(Value from, Value to, int64_t step, int64_t unroll,
                                         ValueRange carried,
                                         function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (unroll == 1)
    return loop(from, to, step, carried, body);
  // Where the main loop stops is a value it carries: the next index.
  SmallVector<Value> state(carried);
  state.push_back(from);
  Value end = arith::SubIOp::create(b, to, index((unroll - 1) * step));
  state = loop(from, end, unroll * step, state, [&](Value at, ValueRange values) {
    SmallVector<Value> next(values.drop_back());
    for (int64_t k = 0; k < unroll; ++k)
      next = body(k == 0 ? at : add(at, index(k * step)), next);
    next.push_back(add(at, index(unroll * step)));
    return next;
  });
  Value rest = state.pop_back_val();
  return loop(rest, to, step, state, body);
}

Value DeviceLanes::constant(TypedAttr value) { return arith::ConstantOp::create(b, value); }

Value DeviceLanes::lane(Value value, int64_t number) {
  if (!isa<VectorType>(value.getType()))
    return value;
  return vector::ExtractOp::create(b, value, ArrayRef<int64_t>{number});
}

} // namespace descent
