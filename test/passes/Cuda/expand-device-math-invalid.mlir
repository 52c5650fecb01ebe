// What has neither an instruction nor an expansion is refused, before it becomes a call that nothing answers.
// RUN: descent-opt %s --expand-device-math --split-input-file --verify-diagnostics

func.func @hyperbolic(%x: f32) -> f32 {
  // expected-error @+1 {{'math.atanh' op has no form in device code for 'f32'; expand-device-math would have to learn one}}
  %0 = math.atanh %x : f32
  return %0 : f32
}

// -----

func.func @remainder(%x: f32, %y: f32) -> f32 {
  // expected-error @+1 {{'arith.remf' op has no form in device code for 'f32'; expand-device-math would have to learn one}}
  %0 = arith.remf %x, %y : f32
  return %0 : f32
}
