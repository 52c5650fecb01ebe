//===- KernelOracle.h - Kernels against the double-precision interpreter --===//
//
// A kernel is written as an exec.kernel, run from machine code and compared with ReferenceOp on the
// same inputs. Outputs and scratch hold NaN first; every kernel runs for several groupings of its
// tasks, whose bits must be equal, and with each result over each input that reusableOperands
// allows, which must not change a bit either.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_TEST_PASSES_CODEGEN_KERNELORACLE_H
#define DESCENT_TEST_PASSES_CODEGEN_KERNELORACLE_H

#include "KernelTesting.h"
#include "mlir/Parser/Parser.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include "llvm/Object/ObjectFile.h"
#include <functional>
#include <memory>

namespace descent::testing {

using EmitFunction = mlir::FailureOr<mlir::func::FuncOp> (*)(exec::KernelOp, mlir::ModuleOp,
                                                             const CpuTarget &);

/// Values of one tensor as they lie in memory.
struct Memory {
  mlir::Type element;
  std::vector<uint8_t> bytes;
  static constexpr size_t margin = 128;

  Memory(mlir::RankedTensorType type) : element(type.getElementType()) {
    bytes.assign(type.getNumElements() * width() + 2 * margin, 0xFF); // NaN in every float type
  }
  size_t width() const { return element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8; }
  uint8_t *data() { return bytes.data() + margin; }
  size_t count() const { return (bytes.size() - 2 * margin) / width(); }
  bool marginsIntact() const {
    for (size_t i = 0; i < margin; ++i)
      if (bytes[i] != 0xFF || bytes[bytes.size() - 1 - i] != 0xFF)
        return false;
    return true;
  }
  double get(size_t i) {
    uint8_t *at = data() + i * width();
    if (auto floats = mlir::dyn_cast<mlir::FloatType>(element)) {
      uint64_t bits = 0;
      std::memcpy(&bits, at, width());
      llvm::APFloat value(floats.getFloatSemantics(), llvm::APInt(floats.getWidth(), bits));
      bool lossy;
      value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
      return value.convertToDouble();
    }
    int64_t bits = 0;
    std::memcpy(&bits, at, width());
    return element.isInteger(32) ? double(int32_t(bits)) : double(bits);
  }
  void set(size_t i, double value) {
    uint8_t *at = data() + i * width();
    uint64_t bits;
    if (auto floats = mlir::dyn_cast<mlir::FloatType>(element)) {
      llvm::APFloat narrow(value);
      bool lossy;
      narrow.convert(floats.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
      bits = narrow.bitcastToAPInt().getZExtValue();
    } else {
      bits = static_cast<uint64_t>(static_cast<int64_t>(value));
    }
    std::memcpy(at, &bits, width());
  }
};

/// Without an instruction or a pattern for it, LLVM makes a conversion of narrow floats a call of
/// compiler-rt, one an element (__truncsfbf2, __extendhfsf2, ...).
inline void expectNoConversionCalls(llvm::ArrayRef<char> object) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "kernels"));
  ASSERT_TRUE(bool(file));
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::StringRef name = llvm::cantFail(symbol.getName());
    EXPECT_FALSE(name.starts_with("__trunc") || name.starts_with("__extend")) << name.str();
  }
}

using Inputs = std::vector<reference::Tensor>;

/// Evaluates the kernel's body in double precision.
inline std::vector<reference::Tensor> interpret(exec::KernelOp kernel, const Inputs &inputs) {
  llvm::DenseMap<mlir::Value, reference::Tensor> values;
  mlir::Block &body = kernel.getBody().front();
  for (auto [argument, input] : llvm::zip_equal(body.getArguments(), inputs))
    values[argument] = input;
  for (mlir::Operation &op : body.without_terminator()) {
    llvm::SmallVector<reference::Tensor> operands, results;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(values[operand]);
    EXPECT_TRUE(succeeded(mlir::cast<ReferenceOp>(op).evaluate(operands, results)));
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), results))
      values[result] = tensor;
  }
  std::vector<reference::Tensor> outputs;
  for (mlir::Value value : body.getTerminator()->getOperands())
    outputs.push_back(values[value]);
  return outputs;
}

/// `text` holds one exec.kernel. `fill(input, element)` gives input values, which are rounded to
/// the type first. `tolerance` is relative to 1 + the reference's magnitude; results are compared
/// exactly where it is 0.
inline void expectKernel(const std::string &text, EmitFunction emit,
                         std::function<double(unsigned, size_t)> fill, double tolerance) {
  SCOPED_TRACE(text);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context());
  ASSERT_TRUE(module);
  exec::KernelOp kernel = *module->getOps<exec::KernelOp>().begin();
  std::vector<Memory> inputs;
  Inputs references;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto tensor = mlir::cast<mlir::RankedTensorType>(type);
    inputs.emplace_back(tensor);
    references.emplace_back(std::vector<int64_t>(tensor.getShape()));
    for (size_t k = 0; k < inputs.back().count(); ++k) {
      inputs.back().set(k, fill(i, k));
      references.back().values[k] = inputs.back().get(k);
    }
  }
  std::vector<reference::Tensor> expected = interpret(kernel, references);
  std::vector<std::pair<unsigned, unsigned>> reuse = {{~0u, ~0u}};
  for (auto pair : reusableOperands(kernel))
    reuse.push_back(pair);

  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    mlir::OwningOpRef<mlir::ModuleOp> code = mlir::ModuleOp::create(kernel.getLoc());
    auto function = emit(kernel, *code, target);
    ASSERT_TRUE(succeeded(function));
    ASSERT_TRUE(succeeded(mlir::verify(*code)));
    int64_t tasks = (*function)->getAttrOfType<mlir::IntegerAttr>(tasksAttrName).getInt();
    int64_t scratchBytes = (*function)->getAttrOfType<mlir::IntegerAttr>(scratchAttrName).getInt();
    ASSERT_TRUE(succeeded(lowerKernelFunctions(*code, target)));
    auto object = compileToObject(*code, target);
    ASSERT_TRUE(succeeded(object));
    expectNoConversionCalls(*object);
    auto jit = KernelJit::load(*object, kernel.getLoc());
    ASSERT_TRUE(succeeded(jit));
    descent_kernel_function run = (*jit)->kernel(kernel.getName());
    ASSERT_TRUE(run);
    std::vector<std::vector<uint8_t>> first;
    for (auto [result, input] : reuse)
      for (int64_t grouping : {tasks, int64_t(1), int64_t(3)}) {
        std::vector<Memory> in = inputs, out;
        std::vector<void *> pointers;
        for (Memory &memory : in)
          pointers.push_back(memory.data());
        for (mlir::Type type : kernel.getResultTypes())
          out.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
        for (auto [i, memory] : llvm::enumerate(out))
          pointers.push_back(i == result ? in[input].data() : memory.data());
        size_t scratchSize = (scratchBytes + 64 + 63) / 64 * 64;
        std::unique_ptr<uint8_t, decltype(&std::free)> scratch(
            static_cast<uint8_t *>(std::aligned_alloc(64, scratchSize)), &std::free);
        for (int64_t task = 0; task < tasks; task += grouping) {
          std::memset(scratch.get(), 0xFF, scratchSize);
          run(pointers.data(), task, std::min(task + grouping, tasks), scratch.get());
        }
        for (auto [i, memory] : llvm::enumerate(in)) {
          ASSERT_TRUE(memory.marginsIntact()) << "input " << i;
          ASSERT_TRUE(i == input || memory.bytes == inputs[i].bytes)
              << "input " << i << " is written";
        }
        for (auto [i, memory] : llvm::enumerate(out)) {
          ASSERT_TRUE(memory.marginsIntact()) << "result " << i;
          Memory &written = i == result ? in[input] : memory;
          if (first.size() <= i) {
            first.push_back(written.bytes);
            for (size_t k = 0; k < written.count(); ++k) {
              double want = expected[i].values[k], got = written.get(k);
              double rounding = tolerance;
              if (written.element.isBF16() && tolerance)
                rounding += 1.0 / 128;
              bool same = got == want || (std::isnan(got) && std::isnan(want));
              ASSERT_TRUE(same || std::abs(got - want) <= rounding * (1 + std::abs(want)))
                  << "result " << i << " element " << k << ": " << got << ", reference " << want
                  << ", tasks " << tasks;
            }
          }
          ASSERT_EQ(first[i], written.bytes)
              << "result " << i << " depends on the grouping of tasks (" << grouping << " of "
              << tasks << ") or on lying over input " << int(input);
        }
      }
  }
}

/// Random values in [-2, 2), the same for the same position.
inline double noise(unsigned input, size_t element) {
  uint64_t x = (uint64_t(input) << 40) + element + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return double(x >> 11) / double(1ull << 53) * 4 - 2;
}

inline std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

} // namespace descent::testing

#endif // DESCENT_TEST_PASSES_CODEGEN_KERNELORACLE_H
