//===- Verify.h - The compiled step against double precision --------------===//

#ifndef DESCENT_COMPILER_REPORT_VERIFY_H
#define DESCENT_COMPILER_REPORT_VERIFY_H

#include "compiler/Pipelines/Compile.h"

#include <string>
#include <vector>

namespace descent {

/// One line of the table: how far the program is from the reference, relative to the largest
/// magnitude of the reference's tensor.
struct VerifiedTensor {
  std::string name;
  double difference = 0.0;
};

struct VerifyReport {
  double referenceLoss = 0.0, programLoss = 0.0, lossDifference = 0.0;
  std::vector<VerifiedTensor> gradients,
      parameters; ///< gradients of the mean loss; parameters after one update
  double tolerance = 0.0;
  bool passed() const;
};

struct VerifyOptions {
  uint64_t seed = 1;
  /// Largest allowed relative difference; 0 derives it from the type and the longest sum of the
  /// model: 16 ulp of f32 times the square root of its length.
  double tolerance = 0.0;
};

/// Compiles the project with data in memory's stead, runs one step of the program on random inputs,
/// and compares loss, gradients and updated parameters with the interpreter's. Errors are emitted
/// to `context`.
mlir::FailureOr<VerifyReport> verifyProgram(mlir::MLIRContext &context,
                                            const CompileOptions &options,
                                            const VerifyOptions &verify);

/// What one pass did to the meaning, all in double precision.
struct VerifiedPass {
  std::string pass;
  double loss = 0.0, gradients = 0.0,
         updates = 0.0; ///< largest relative difference from the program before the first pass that
                        ///< had the part
  bool changed = false; ///< beyond reassociation in double
};

/// Interprets the program after every pass that leaves tensors.
mlir::FailureOr<std::vector<VerifiedPass>>
verifyEachPass(mlir::MLIRContext &context, const CompileOptions &options, uint64_t seed);

std::string printVerifyReport(const VerifyReport &report);
std::string printVerifiedPasses(const std::vector<VerifiedPass> &passes);

} // namespace descent

#endif // DESCENT_COMPILER_REPORT_VERIFY_H
