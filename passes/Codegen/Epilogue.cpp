//===- Epilogue.cpp - What happens to a tile of a product -----------------===//
//
// The tile has just been stored to a buffer that stays in L1; this reads it row by row, applies the
// epilogue to vectors and writes the outputs. Against applying it to the tile's registers that
// costs one store and one load per vector, about one hundredth of a product of depth 128, and saves
// one copy of the epilogue per accumulator in each kind of tile. Because outputs are written only
// here, after all sums of the tile are complete, an input may share memory with an output.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Epilogue.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace descent {

std::optional<EpilogueInput> EpilogueInput::broadcast(MemRefType type, ArrayRef<int64_t> output) {
  ArrayRef<int64_t> shape = type.getShape();
  if (output.empty() || shape.size() > output.size())
    return std::nullopt;
  SmallVector<int64_t> padded(output.size() - shape.size(), 1);
  padded.append(shape.begin(), shape.end());
  EpilogueInput input;
  input.type = type;
  int64_t n = output.back();
  if (padded.back() == n && n != 1)
    input.columnStride = 1;
  else if (padded.back() != 1)
    return std::nullopt;
  // From the inside out: axes that repeat, axes that count, axes that repeat.
  enum { Inner, Middle, Outer } part = Inner;
  for (size_t axis = output.size() - 1; axis-- > 0;) {
    if (padded[axis] != output[axis] && padded[axis] != 1)
      return std::nullopt;
    if (output[axis] == 1)
      continue;
    bool counts = padded[axis] != 1;
    if (part == Outer && counts)
      return std::nullopt;
    if (part == Inner && counts)
      part = Middle;
    else if (part == Middle && !counts)
      part = Outer;
    if (part == Inner)
      input.rowDivisor *= output[axis];
    else if (part == Middle)
      input.rowPeriod *= output[axis];
  }
  if (input.rowPeriod > 1)
    input.rowStride = input.columnStride ? n : 1;
  return input;
}

LogicalResult checkEpilogue(Location loc, const ProductSpec &spec) {
  auto refuse = [&](const Twine &what) {
    return emitError(loc) << "product kernel '" << spec.name << "' " << what;
  };
  const EpilogueSpec &epilogue = spec.epilogue;
  int64_t elements = spec.batch * spec.m * spec.n;
  if (epilogue.outputs.empty())
    return refuse("has no output");
  for (MemRefType type : epilogue.outputs)
    if (!type.hasStaticShape() || type.getNumElements() != elements) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      return refuse("has an output of type " + text + "; it needs " + Twine(elements) +
                    " elements");
    }
  if (!epilogue.function) {
    if (epilogue.outputs.size() != 1 || !epilogue.inputs.empty() ||
        !epilogue.outputs[0].getElementType().isF32())
      return refuse(
          "has no epilogue function, so it takes no further inputs and writes one output of f32");
    return success();
  }
  if (spec.accumulate)
    return refuse(
        "cannot accumulate behind an epilogue; read the old value as an input of the epilogue");
  for (Type type : epilogue.outputs)
    if (cast<MemRefType>(type).getElementType().isInteger(1))
      return refuse("has an output of i1; buffers of i1 are passed as i8");
  for (const EpilogueInput &input : epilogue.inputs) {
    if (input.type.getElementType().isInteger(1))
      return refuse("has an input of i1; buffers of i1 are passed as i8");
    int64_t rows = spec.batch * spec.m;
    int64_t lastRow =
        input.rowPeriod == 1 ? 0 : std::min(input.rowPeriod - 1, (rows - 1) / input.rowDivisor);
    if (input.columnStride < 0 || input.columnStride > 1 || input.rowDivisor < 1 ||
        input.rowPeriod < 1 ||
        lastRow * input.rowStride + (spec.n - 1) * input.columnStride >=
            input.type.getNumElements()) {
      std::string text;
      llvm::raw_string_ostream(text) << input.type;
      return refuse("reads an epilogue input of type " + text + " beyond its end");
    }
  }
  return success();
}

func::FuncOp createEpilogue(ModuleOp module, Location loc, const ProductSpec &spec,
                            const CpuTarget &target) {
  const EpilogueSpec &epilogue = spec.epilogue;
  MLIRContext *context = module.getContext();
  Type index = IndexType::get(context), f32 = Float32Type::get(context);
  SmallVector<Type> types = {flatType(f32), index, index, index, index, index, index};
  for (const EpilogueInput &input : epilogue.inputs)
    types.push_back(flatType(input.type.getElementType()));
  for (MemRefType type : epilogue.outputs)
    types.push_back(flatType(type.getElementType()));
  int64_t lanes = target.lanes(), panel = target.tileVectors() * lanes;

  return getOrCreateHelper(
      module, spec.name + ".epilogue", types, [&](Emitter &helper, ValueRange arguments) {
        Emitter e(helper.builder, loc);
        Value accumulators = arguments[0];
        Index from = arguments[1], ld = arguments[2], row0 = arguments[3], column0 = arguments[4];
        Index rows = arguments[5], columns = arguments[6];
        ValueRange inputs = arguments.drop_front(7).take_front(epilogue.inputs.size());
        ValueRange outputs = arguments.take_back(epilogue.outputs.size());

        auto fetch = [&](Value buffer, Index offset, Value mask) {
          return mask ? e.loadMasked(buffer, offset, mask) : e.loadVector(buffer, offset, lanes);
        };
        // Inputs that are the same for all rows are read once per vector of columns, `fixed`; null
        // where an input varies.
        auto readFixed = [&](Index column, Value mask) {
          SmallVector<Value> fixed;
          for (auto [input, buffer] : llvm::zip_equal(epilogue.inputs, inputs)) {
            if (input.rowStride)
              fixed.push_back(Value());
            else if (input.columnStride)
              fixed.push_back(fetch(buffer, column, mask));
            else
              fixed.push_back(e.splat(e.load(buffer, 0), lanes));
          }
          return fixed;
        };
        auto vector = [&](Index i, Index j, Value mask, ArrayRef<Value> fixed) {
          Index row = e.add(row0, i), column = e.add(column0, j);
          EpiloguePoint point;
          point.product = fetch(accumulators, e.add(e.add(from, e.mul(i, ld)), j), mask);
          point.row = e.value(row);
          point.column = e.value(column);
          for (auto [position, input] : llvm::enumerate(epilogue.inputs)) {
            if (fixed[position]) {
              point.inputs.push_back(fixed[position]);
              continue;
            }
            Index r = e.div(row, input.rowDivisor);
            if (input.rowPeriod * input.rowDivisor < spec.batch * spec.m)
              r = e.rem(r, input.rowPeriod);
            Index offset = e.mul(r, input.rowStride);
            if (input.columnStride)
              point.inputs.push_back(fetch(inputs[position], e.add(offset, column), mask));
            else
              point.inputs.push_back(e.splat(e.load(inputs[position], offset), lanes));
          }
          SmallVector<Value> results = epilogue.function(e.builder, e.loc, point);
          Index offset = e.add(e.mul(row, spec.n), column);
          for (auto [result, buffer] : llvm::zip_equal(results, outputs)) {
            if (mask)
              e.storeMasked(result, buffer, offset, mask);
            else
              e.storeVector(result, buffer, offset);
          }
        };
        auto masked = [&] {
          e.loop(0, columns, lanes, [&](Index j) {
            Value mask = e.prefixMask(e.sub(columns, j), lanes);
            SmallVector<Value> fixed = readFixed(e.add(column0, j), mask);
            e.loop(0, rows, 1, [&](Index i) { vector(i, j, mask, fixed); });
          });
        };
        auto whole = [&] {
          SmallVector<SmallVector<Value>> fixed;
          for (int64_t j = 0; j < panel; j += lanes)
            fixed.push_back(readFixed(e.add(column0, j), Value()));
          e.loop(0, rows, 1, [&](Index i) {
            for (int64_t j = 0; j < panel; j += lanes)
              vector(i, j, Value(), fixed[j / lanes]);
          });
        };
        if (spec.n < panel)
          masked();
        else if (spec.n % panel == 0)
          whole();
        else
          e.when(e.equal(columns, panel), whole, masked);
      });
}

} // namespace descent
