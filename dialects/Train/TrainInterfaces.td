//===- TrainInterfaces.td - What an optimizer and a schedule are ----------===//

#ifndef DESCENT_DIALECTS_TRAIN_INTERFACES
#define DESCENT_DIALECTS_TRAIN_INTERFACES

include "mlir/IR/Interfaces.td"

def OptimizerAttrInterface : AttrInterface<"OptimizerAttrInterface"> {
  let description = "An update rule. A new optimizer is one attribute with these methods.";
  let cppNamespace = "::descent::train";
  let methods = [
    InterfaceMethod<"Suffixes of the per-parameter states, f32 and of the parameter's shape: {\"m\", \"v\"} for Adam.",
      "::llvm::SmallVector<::llvm::StringRef>", "getStateNames">,
    InterfaceMethod<[{
        Builds the update of elements in nn ops. `parameter`, `gradient` (already scaled and clipped) and `states` have one shape; `rate` and `count`
        (number of this update, from 1) are tensor<f32>; `weightDecay` is the group's. Returns the new parameter, then the new states.
      }], "::llvm::SmallVector<::mlir::Value>", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$parameter, "::mlir::Value":$gradient,
           "::mlir::ValueRange":$states, "::mlir::Value":$rate, "::mlir::Value":$count, "double":$weightDecay)>];
}

def ScheduleAttrInterface : AttrInterface<"ScheduleAttrInterface"> {
  let description = "Learning rate as a function of the number of the update. It is computed by compiled code, not by the host.";
  let cppNamespace = "::descent::train";
  let methods = [InterfaceMethod<"The rate (tensor<f32>) of update `count` (tensor<f32>, from 1).",
    "::mlir::Value", "buildRate", (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$count)>];
}

#endif // DESCENT_DIALECTS_TRAIN_INTERFACES
