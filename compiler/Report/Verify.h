//===- Verify.h - The compiled step against double precision --------------===//

#ifndef DESCENT_COMPILER_REPORT_VERIFY_H
#define DESCENT_COMPILER_REPORT_VERIFY_H

#include "compiler/Pipelines/Compile.h"

#include <optional>
#include <string>
#include <vector>

namespace descent {

/// One line of the table: how far the program is from the reference, relative to the largest
/// magnitude of the reference's tensor.
struct VerifiedTensor {
  std::string name;
  double difference = 0.0;
  double error = 0.0; ///< how far from exact arithmetic; where the reference rounds
};

struct VerifyReport {
  double referenceLoss = 0.0, programLoss = 0.0, lossDifference = 0.0;
  std::vector<VerifiedTensor> gradients,
      parameters; ///< gradients of the mean loss; parameters after one update
  double tolerance = 0.0;
  /// Whether the reference rounds to the program's types (one of them is narrower than f32);
  /// without it, it is exact.
  bool isRounded = false;
  double exactLoss = 0.0; ///< where it rounds
  double lossScale = 1.0; ///< of the step that was compared
  bool passed() const;
};

struct VerifyOptions {
  uint64_t seed = 1;
  /// Largest allowed relative difference; 0 derives it from the types and the longest sum of the
  /// model: 16 ulp of f32 times the square root of its length, and with narrow types what a few
  /// values that round the other way can do.
  double tolerance = 0.0;
};

/// Compiles the project with data in memory's stead, runs one step of the program on random inputs,
/// and compares loss, gradients and updated parameters with the interpreter's, which rounds where a
/// type is narrower than f32. A dynamic loss scale starts low enough for the step to be taken.
/// Errors are emitted to `context`.
mlir::FailureOr<VerifyReport> verifyProgram(mlir::MLIRContext &context,
                                            const CompileOptions &options,
                                            const VerifyOptions &verify);

/// What one pass did to the meaning, in exact arithmetic, where no type rounds and a cast is
/// nothing; and, where a type of the program is narrower than f32, to what its types make of it.
struct VerifiedPass {
  std::string pass;
  double loss = 0.0, gradients = 0.0,
         updates = 0.0; ///< largest relative difference from the program before the first pass that
                        ///< had the part
  std::optional<double> rounding; ///< largest relative difference of loss and gradients that the
                                  ///< pass made in rounded arithmetic
  bool changed = false; ///< beyond reassociation in double, or rounding of the narrowest type
};

/// Interprets the program after every pass that leaves tensors.
mlir::FailureOr<std::vector<VerifiedPass>>
verifyEachPass(mlir::MLIRContext &context, const CompileOptions &options, uint64_t seed);

std::string printVerifyReport(const VerifyReport &report);
std::string printVerifiedPasses(const std::vector<VerifiedPass> &passes);

} // namespace descent

#endif // DESCENT_COMPILER_REPORT_VERIFY_H
