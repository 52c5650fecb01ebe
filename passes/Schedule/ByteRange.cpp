//===- ByteRange.cpp - Where a buffer lies in the arena -------------------===//

#include "passes/Schedule/ByteRange.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace descent::schedule {

ByteRange rangeOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t bytes = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t offset = llvm::TypeSwitch<Operation *, int64_t>(buffer.getDefiningOp())
                       .Case<exec::BufferOp, exec::GetOp>([](auto op) { return op.getOffset(); });
  return {offset, offset + bytes};
}

bool conflict(exec::RunOp a, exec::RunOp b) {
  auto writesWhatTouches = [](exec::RunOp writer, exec::RunOp other) {
    return llvm::any_of(writer.getOutputs(), [&](Value written) {
      ByteRange range = rangeOf(written);
      return llvm::any_of(other->getOperands(),
                          [&](Value touched) { return range.overlaps(rangeOf(touched)); });
    });
  };
  return writesWhatTouches(a, b) || writesWhatTouches(b, a);
}

} // namespace descent::schedule
