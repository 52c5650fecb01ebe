// Functions that did not come out of the bare-pointer conversion.
// RUN: descent-opt %s --wrap-kernel-functions --split-input-file --verify-diagnostics

// expected-error @+1 {{kernel function 'k' must take pointers, two i64 and a pointer, not '!llvm.func<void (ptr, i64, i64)>'}}
llvm.func @k(%a: !llvm.ptr, %first: i64, %last: i64) attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} {
  llvm.return
}

// -----

// expected-error @+1 {{kernel function 'k' must take pointers, two i64 and a pointer}}
llvm.func @k(%a: f32, %first: i64, %last: i64, %scratch: !llvm.ptr) attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} {
  llvm.return
}
