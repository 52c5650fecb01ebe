//===- descent-opt.cpp - Runs any pass on a file --------------------------===//

#include "compiler/Pipelines/Register.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  descent::registerAllPasses();
  mlir::DialectRegistry registry;
  descent::registerAllDialects(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Descent's optimizer driver\n", registry));
}
