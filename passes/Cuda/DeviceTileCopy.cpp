//===- DeviceTileCopy.cpp - Tiles of operands to shared memory ------------===//
//
// A chunk of 16 bytes of shared memory is copied by one thread, in one piece where its source is
// contiguous and aligned, else in pieces of 8 or 4 bytes, all of them asynchronous: the hardware
// writes zeros for what does not exist, and no register holds what is under way. What cannot go
// this way (f8, which becomes f16 or bf16, and two-byte numbers at odd places) is loaded to
// registers before the step that is multiplied meanwhile, and stored behind it.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "dialects/NN/NarrowFloats.h"
#include "passes/Cuda/DeviceLanes.h"
#include "passes/Cuda/DeviceTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace descent {

TileLayout TileLayout::of(const DeviceTilePlan &plan, const TileSource &source, int64_t extent) {
  TileLayout layout;
  layout.chunkElements = 16 / plan.elementBytes();
  layout.lines = source.depthRuns ? extent : plan.depth;
  layout.chunks = (source.depthRuns ? plan.depth : extent) / layout.chunkElements;
  if (plan.math == TileMath::Floats) {
    // Threads next to each other read lines four apart, or chunks of one line.
    layout.shift = 2;
    layout.swizzled = source.depthRuns ? std::min<int64_t>(layout.chunks, 8) : 1;
    return layout;
  }
  if (plan.math == TileMath::Tf32 && !source.depthRuns) {
    // Fragments are read word by word, eight neighbours of four lines in a row.
    layout.swizzled = 4;
    layout.factor = 2;
    return layout;
  }
  // ldmatrix reads one chunk of eight lines in a row. Lines of fewer than eight chunks reach
  // different banks by themselves, as many as go into 128 bytes.
  layout.swizzled = std::min<int64_t>(layout.chunks, 8);
  layout.shift = 3 - llvm::Log2_64(layout.swizzled);
  return layout;
}

Index TileLayout::turn(TileOps &e, Index line) const {
  return e.mul(e.rem(e.div(line, int64_t(1) << shift), swizzled), factor);
}

Index TileLayout::chunkAt(TileOps &e, Index line, Index chunk) const {
  return e.add(e.mul(line, lineBytes()), e.mul(e.bitXor(chunk, turn(e, line)), 16));
}

bool TileCopy::isAsync(const DeviceTilePlan &plan, const TileSource &source) {
  return source.element == plan.element(source.element.getContext()) &&
         source.unit * plan.elementBytes() >= 4;
}

TileCopy::TileCopy(TileOps &e, const DeviceTilePlan &plan, const TileSource &source, Value pointer,
                   const TileLayout &layout, Index start)
    : plan(plan), source(source), layout(layout), pointer(pointer) {
  unit = std::min(source.unit, layout.chunkElements);
  linesPerPass = plan.threads() / layout.chunks;
  passes = llvm::divideCeil(layout.lines, linesPerPass);
  Index thread = e.thread();
  Index chunk = e.rem(thread, layout.chunks), line = e.div(thread, layout.chunks);
  firstLine = line;
  firstRun = e.mul(chunk, layout.chunkElements);
  for (int64_t pass = 0; pass < passes; ++pass) {
    Index mine = e.add(line, pass * linesPerPass);
    to.push_back(layout.chunkAt(e, mine, chunk));
    bool all = (pass + 1) * linesPerPass <= layout.lines;
    active.push_back(all ? Value() : e.less(mine, layout.lines));
    if (source.depthRuns)
      fixed.push_back(source.line(e, e.add(start, mine)));
  }
  if (!source.depthRuns)
    for (int64_t element = 0; element < layout.chunkElements; element += unit)
      fixed.push_back(source.run(e, e.add(e.add(start, firstRun), element)));
}

SmallVector<Type> TileCopy::chunkTypes() const {
  auto type = VectorType::get({layout.chunkElements}, plan.element(source.element.getContext()));
  return SmallVector<Type>(passes, type);
}

SmallVector<TilePlace> TileCopy::movingPlaces(TileOps &e, Index k) {
  SmallVector<TilePlace> places;
  if (source.depthRuns)
    for (int64_t element = 0; element < layout.chunkElements; element += unit)
      places.push_back(source.run(e, e.add(e.add(k, firstRun), element)));
  else
    for (int64_t pass = 0; pass < passes; ++pass)
      places.push_back(source.line(e, e.add(e.add(k, firstLine), pass * linesPerPass)));
  return places;
}

void TileCopy::forEachPiece(TileOps &e, Index k, int64_t pass, ArrayRef<TilePlace> moving,
                            function_ref<void(int64_t, const TilePlace &)> body) {
  for (int64_t piece = 0; piece * unit < layout.chunkElements; ++piece) {
    const TilePlace &line = source.depthRuns ? fixed[pass] : moving[pass];
    const TilePlace &run = source.depthRuns ? moving[piece] : fixed[piece];
    body(piece * unit, source.place(e, line, run));
  }
}

void TileCopy::copy(TileOps &e, Value tile, Index k) {
  SmallVector<TilePlace> moving = movingPlaces(e, k);
  for (int64_t pass = 0; pass < passes; ++pass) {
    auto body = [&] {
      Value chunk = e.sharedAt(tile, to[pass]);
      forEachPiece(e, k, pass, moving, [&](int64_t element, const TilePlace &place) {
        e.copyAsync(e.sharedAt(chunk, element * plan.elementBytes()),
                    e.globalAt(pointer, place.offset, source.element), unit * plan.elementBytes(),
                    place.exists);
      });
    };
    if (active[pass])
      e.when(active[pass], body);
    else
      body();
  }
}

/// f8 as f16, exactly. E5M2 is the upper byte of f16; E4M3, shifted left by 7, is the f16 of 2^-8
/// times its value, and its NaN stands where a finite number would be.
static Value halfFromF8(TileOps &e, Value codes, Type element) {
  OpBuilder &b = e.builder;
  Location loc = e.loc;
  auto lanes = cast<VectorType>(codes.getType());
  auto words = VectorType::get(lanes.getShape(), b.getI16Type()),
       halves = VectorType::get(lanes.getShape(), b.getF16Type());
  auto word = [&](int64_t bits) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(words, APInt(16, static_cast<uint64_t>(bits))));
  };
  auto half = [&](double number) -> Value {
    APFloat value(number);
    bool lost;
    value.convert(APFloat::IEEEhalf(), APFloat::rmNearestTiesToEven, &lost);
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(halves, value));
  };
  Value code = arith::ExtUIOp::create(b, loc, words, codes);
  auto asHalf = [&](Value bits) -> Value { return arith::BitcastOp::create(b, loc, halves, bits); };
  if (isa<Float8E5M2Type>(element))
    return asHalf(arith::ShLIOp::create(b, loc, code, word(8)));
  Value magnitude = arith::AndIOp::create(b, loc, code, word(0x7f));
  Value sign =
      arith::ShLIOp::create(b, loc, arith::AndIOp::create(b, loc, code, word(0x80)), word(8));
  Value scaled =
      asHalf(arith::OrIOp::create(b, loc, arith::ShLIOp::create(b, loc, magnitude, word(7)), sign));
  Value number = arith::MulFOp::create(b, loc, scaled, half(256.0));
  Value isNaN = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, magnitude, word(0x7f));
  return arith::SelectOp::create(b, loc, isNaN, half(std::nan("")), number);
}

Value TileCopy::convert(TileOps &e, Value chunk) {
  Type wanted = plan.element(source.element.getContext());
  if (source.element == wanted)
    return chunk;
  if (nn::isF8(source.element) && wanted.isF16())
    return halfFromF8(e, chunk, source.element);
  Type narrow = cast<VectorType>(chunk.getType()).clone(source.element);
  if (nn::isF8(source.element))
    chunk = arith::BitcastOp::create(e.builder, e.loc, narrow, chunk);
  return narrowFloat(e.builder, e.loc, widenFloat(e.builder, e.loc, chunk), wanted);
}

SmallVector<Value> TileCopy::begin(TileOps &e, Index k) {
  // f8 travels as the bytes it is; zero is zero in every type.
  Type stored = nn::isF8(source.element) ? e.builder.getI8Type() : source.element;
  Type pieceType = unit == 1 ? stored : Type(VectorType::get({unit}, stored));
  Value zero = arith::ConstantOp::create(e.builder, e.loc, e.builder.getZeroAttr(pieceType));
  SmallVector<TilePlace> moving = movingPlaces(e, k);
  SmallVector<Value> chunks;
  for (int64_t pass = 0; pass < passes; ++pass) {
    SmallVector<Value> elements;
    forEachPiece(e, k, pass, moving, [&](int64_t, const TilePlace &place) {
      // What does not exist is read from the buffer's start, which does, and dropped.
      Value exists = e.both(active[pass], place.exists);
      Index offset = exists ? e.select(exists, place.offset, 0) : place.offset;
      Value piece = e.loadFrom(e.globalAt(pointer, offset, stored), pieceType,
                               unit * deviceBytes(source.element));
      if (exists)
        piece = arith::SelectOp::create(e.builder, e.loc, exists, piece, zero);
      for (int64_t i = 0; i < unit; ++i)
        elements.push_back(e.extract(piece, i));
    });
    chunks.push_back(convert(e, e.join(elements)));
  }
  return chunks;
}

void TileCopy::finish(TileOps &e, Value tile, ValueRange chunks) {
  for (int64_t pass = 0; pass < passes; ++pass) {
    auto body = [&] { e.storeTo(e.sharedAt(tile, to[pass]), chunks[pass], 16); };
    if (active[pass])
      e.when(active[pass], body);
    else
      body();
  }
}

} // namespace descent
