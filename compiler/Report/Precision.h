//===- Precision.h - What a recipe's types cost in accuracy ---------------===//

#ifndef DESCENT_COMPILER_REPORT_PRECISION_H
#define DESCENT_COMPILER_REPORT_PRECISION_H

#include "compiler/Pipelines/Compile.h"
#include "compiler/Reference/GradientRange.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace descent {

/// Errors of one tensor against double precision, |x - exact| / |exact| in the Euclidean norm.
/// Infinite where something overflowed.
struct PrecisionErrors {
  std::string name;
  int64_t elements = 0;
  double fp32 = 0.0;    ///< every op in fp32
  double recipe = 0.0;  ///< as the recipe says
  double castAll = 0.0; ///< every op in the recipe's narrow type, softmax, norms and losses too
};

struct PrecisionReport {
  std::string compute;    ///< as the recipe has it
  std::string narrowType; ///< bf16 or fp16: what castAll casts to; empty where nothing is narrow
  std::string lossScale;  ///< none, dynamic or a number
  double scale = 1.0;     ///< the number, or where the dynamic scale starts
  int skipped = 0;        ///< first steps that a dynamic scale skips until gradients are finite
  /// After them. Without a scale the backward pass starts at the gradient of the sum of losses,
  /// which is what a scale of the batch's weight would give: then it is that.
  double scaleUsed = 1.0;
  PrecisionErrors loss;
  std::vector<PrecisionErrors> gradients;
  /// Of values of the backward pass that are rounded to f16, at scale 1; counts at 1 and scaleUsed,
  /// and at `scale` where that differs. Empty where nothing is f16.
  std::optional<reference::GradientRange> range;
  std::vector<std::string> advice; ///< sentences
};

struct PrecisionOptions {
  uint64_t seed = 1;
  /// Called now and then with the share of the work that is done.
  std::function<void(double share)> progress;
};

/// Interprets one step of the recipe's model on random inputs five times: exactly, in fp32, in the
/// recipe's types, with everything narrow, and for the magnitudes of its gradients. Errors are
/// emitted to `context`.
mlir::FailureOr<PrecisionReport> analysePrecision(mlir::MLIRContext &context,
                                                  const CompileOptions &options,
                                                  const PrecisionOptions &precision);

/// Sentences for `advice`: what the numbers say about the recipe.
std::vector<std::string> advisePrecision(const PrecisionReport &report);

std::string printPrecisionReport(const PrecisionReport &report);
std::string precisionReportJson(const PrecisionReport &report);

} // namespace descent

#endif // DESCENT_COMPILER_REPORT_PRECISION_H
