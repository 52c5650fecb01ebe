//===- DeviceTileSource.h - Where the operands of a product stand ---------===//
//
// A tile of an operand is brought to shared memory line by line. A *line* is what is contiguous in
// memory, at least in pieces; the place within it is called *run*. Of a matrix [m, k] lines are
// rows and runs columns; of the matrix that a convolution multiplies, which never exists, lines are
// pixels and runs taps and channels. One of the two is k, the other m (or n).
//
// What an element's address needs of its line and of its run is computed apart, so that the tile
// can keep the one that stays the same over its loop.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICETILESOURCE_H
#define DESCENT_PASSES_CUDA_DEVICETILESOURCE_H

#include "passes/Codegen/ContractionBody.h"
#include "passes/Cuda/DeviceTileOps.h"

namespace descent {

/// What is known of a line or of a run: its part of the offset, what else the place depends on, and
/// whether it exists (null: always).
struct TilePlace {
  Index offset = 0;
  llvm::SmallVector<Index, 3> at;
  mlir::Value exists;
};

struct TileSource {
  mlir::Type element;     ///< in memory
  bool depthRuns = false; ///< runs are k, lines m or n; else the other way round
  /// As many elements from any run that is a multiple of it are contiguous and aligned to their
  /// size together, and exist or not together. A power of two.
  int64_t unit = 1;
  std::function<TilePlace(TileOps &, Index)> line, run;
  /// Offset and existence of the element.
  std::function<TilePlace(TileOps &, const TilePlace &line, const TilePlace &run)> place;
};

/// Multiples that lines and runs are asked for in: numbers below a multiple of it may be asked for
/// though they do not exist.
struct TileMultiples {
  int64_t line = 1, run = 1;
};

/// A row-major matrix [lines, runs] of leading dimension `ld`; `base`, a multiple of `baseUnit`, is
/// the offset of its first element.
TileSource matrixSource(mlir::Type element, bool depthRuns, int64_t lines, int64_t runs, int64_t ld,
                        Index base, int64_t baseUnit, TileMultiples multiples);

/// The matrix [pixels, taps * channels] of a convolution: of its forward product, and with lines
/// as k of the weight gradient, where pixels are those of y and channels those of x; of the input
/// gradient the other way round.
TileSource imageSource(mlir::Type element, bool depthRuns, const ConvolutionProduct &convolution,
                       TileMultiples multiples);

/// The matrix [ic, taps * oc] of weights [taps, ic, oc].
TileSource turnedWeightsSource(mlir::Type element, const ConvolutionShape &shape,
                               TileMultiples multiples);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICETILESOURCE_H
