// What breaks the contract of kernel functions is refused with the argument or attribute at fault.
// RUN: descent-opt %s --check-kernel-functions --split-input-file --verify-diagnostics

// expected-error @below {{kernel function 'k' needs 'descent.scratch' to be a number of bytes, as in 'descent.scratch = 0 : i64'}}
func.func @k(%first: index, %last: index, %scratch: memref<0xi8>) attributes {descent.tasks = 4 : i64} { return }

// -----
// expected-error @below {{kernel function 'k' needs 'descent.tasks' to be a count of tasks, as in 'descent.tasks = 8 : i64'}}
func.func @k(%first: index, %last: index, %scratch: memref<0xi8>)
    attributes {descent.tasks = -1 : i64, descent.scratch = 0 : i64} { return }

// -----
// expected-error @below {{kernel function 'k' must end its arguments with the first task, the last task and the scratch: index, index, 'memref<64xi8>'}}
func.func @k(%first: index, %last: index, %scratch: memref<32xi8>)
    attributes {descent.tasks = 4 : i64, descent.scratch = 64 : i64} { return }

// -----
// expected-error @below {{kernel function 'k' takes buffers as memrefs of static shape and identity layout; argument 1 is 'memref<?xf32>'}}
func.func @k(%a: memref<4xf32>, %b: memref<?xf32>, %first: index, %last: index, %scratch: memref<0xi8>)
    attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} { return }

// -----
// expected-error @below {{kernel function 'k' has no body}}
func.func private @k(%first: index, %last: index, %scratch: memref<0xi8>)
    attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64}

// -----
// expected-error @below {{kernel function 'k' returns values; results are written to output buffers}}
func.func @k(%first: index, %last: index, %scratch: memref<0xi8>) -> index
    attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} { return %first : index }

// -----
func.func @k(%first: index, %last: index, %scratch: memref<0xi8>)
    attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} {
  // expected-error @below {{kernels may not allocate on the heap; take the bytes from the scratch argument or use memref.alloca}}
  %0 = memref.alloc() : memref<4xf32>
  return
}
