// RUN: not descent-opt %s --fold-epilogues=target=tpu 2>&1 | FileCheck %s
// CHECK: error: fold-epilogues knows no target 'tpu'; known are cpu and cuda
func.func @nothing() {
  return
}
