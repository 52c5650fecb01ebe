//===- DeviceOps.td - What a device does for one launch of a kernel -------===//
//
// Generators of the CUDA target turn each exec.kernel into an exec.device_kernel of the same name: the commands that compute it, on its buffers,
// one after the other on one stream. Beside it stands the gpu.module with the functions that the commands call.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_EXEC_DEVICEOPS
#define DESCENT_DIALECTS_EXEC_DEVICEOPS

def Exec_DeviceKernelOp : Exec_Op<"device_kernel", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, HasParent<"::mlir::ModuleOp">]> {
  let summary = "the commands that compute a kernel on a device";
  let description = [{
    The block's arguments are the kernel's operands, inputs first, as static memrefs of identity layout in the tensors' element types (i1 as i8: one
    byte an element). The body holds exec.workspace, exec.device_launch, exec.device_product and exec.device_fill; commands run in order.
    `workspace` bytes are lent to the kernel while it runs, 256-byte aligned, with undefined contents; all kernels of a stream share them.

    ```mlir
    exec.device_kernel @columns_8 inputs 1 workspace 2048 {
    ^bb0(%x: memref<4096x8xf32>, %y: memref<8xf32>):
      %partial = exec.workspace at 0 : memref<64x8xf32>
      exec.device_launch @columns_8.gpu::@columns_8_partial grid [64, 1, 1] block [256, 1, 1] (%x, %partial) : memref<4096x8xf32>, memref<64x8xf32>
      exec.device_launch @columns_8.gpu::@columns_8_sum grid [1, 1, 1] block [256, 1, 1] (%partial, %y) : memref<64x8xf32>, memref<8xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$inputs, I64Attr:$workspace);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `inputs` $inputs `workspace` $workspace attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Exec_WorkspaceOp : Exec_Op<"workspace", [Pure, HasParent<"DeviceKernelOp">]> {
  let summary = "a part of the kernel's workspace, at a byte offset that is a multiple of 256";
  let arguments = (ins I64Attr:$offset);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "`at` $offset attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Exec_DeviceLaunchOp : Exec_Op<"device_launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one launch of a device function";
  let description = [{
    `function` is @module::@function, a gpu.func of kind kernel that takes the buffers, in order. `shared` is its dynamic shared memory in bytes.

    ```mlir
    exec.device_launch @rows_8.gpu::@rows_8 grid [64, 1, 1] block [256, 1, 1] shared 1024 (%x, %y) : memref<4096x8xf32>, memref<4096x8xf32>
    ```
  }];
  let arguments = (ins SymbolRefAttr:$function, DenseI64ArrayAttr:$grid, DenseI64ArrayAttr:$block, DefaultValuedAttr<I64Attr, "0">:$shared,
                       Variadic<AnyMemRef>:$buffers);
  let assemblyFormat = [{
    $function `grid` $grid `block` $block (`shared` $shared^)? `(` $buffers `)` attr-dict `:` type($buffers)
  }];
  let hasVerifier = 1;
}

def Exec_DeviceFillOp : Exec_Op<"device_fill"> {
  let summary = "sets every byte of a buffer";
  let description = [{
    ```mlir
    exec.device_fill %counts {value = 0 : i8} : memref<256xi32>
    ```
  }];
  let arguments = (ins I8Attr:$value, AnyMemRef:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}

def Exec_DeviceProductOp : Exec_Op<"device_product", [AttrSizedOperandSegments, NoTerminator]> {
  let summary = "a matrix product by the vendor's library";
  let description = [{
    Row-major: D[b] = epilogue(op(A[b]) op(B[b]) (+ D[b] with `accumulate`)), op(A) is m x k, op(B) k x n, D m x n; leading dimensions and strides in
    elements. Sums in f32; the epilogue works on the sum in f32 and what is stored is rounded once. Epilogues (`epilogue`):
      none, bias, relu, relu_bias, gelu, gelu_bias     bias [n] is added to each row before the activation; gelu is the tanh form
      relu_aux, relu_aux_bias, gelu_aux, gelu_aux_bias also store what the activation is applied to in `aux` (gelu: m x n of D's type, leading dimension
                                                       aux_ld; relu: bits)
      drelu, dgelu                                     D = sum * activation'(aux), aux as stored by the forward product
      drelu_bgrad, dgelu_bgrad                         and bias_gradient[n] = column sums of D
      bgrad_a, bgrad_b                                 bias_gradient = row sums of op(A) over k [m], column sums of op(B) over k [n]
    `compute` is "f32" or "tf32". scale_a and scale_b are f32 scalars that operands of f8 types are multiplied with. `otherwise` holds the commands to run
    instead where the library has no algorithm; it uses the buffers of the kernel around it, and is empty where every version has one.

    ```mlir
    exec.device_product %x, %w to %y bias %b {m = 1024 : i64, n = 192 : i64, k = 64 : i64, lda = 64 : i64, ldb = 192 : i64, ldd = 192 : i64, epilogue = "bias"}
      : memref<1024x64xbf16>, memref<64x192xbf16>, memref<1024x192xbf16>, bias memref<192xf32>
    ```
  }];
  let arguments = (ins I64Attr:$m, I64Attr:$n, I64Attr:$k, I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldd,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$accumulate,
                       DefaultValuedAttr<StrAttr, "\"none\"">:$epilogue, DefaultValuedAttr<StrAttr, "\"f32\"">:$compute,
                       DefaultValuedAttr<I64Attr, "1">:$batch, DefaultValuedAttr<I64Attr, "0">:$stride_a, DefaultValuedAttr<I64Attr, "0">:$stride_b,
                       DefaultValuedAttr<I64Attr, "0">:$stride_d, DefaultValuedAttr<I64Attr, "0">:$aux_ld,
                       AnyMemRef:$a, AnyMemRef:$b, AnyMemRef:$d, Optional<AnyMemRef>:$bias, Optional<AnyMemRef>:$aux,
                       Optional<AnyMemRef>:$bias_gradient, Optional<AnyMemRef>:$scale_a, Optional<AnyMemRef>:$scale_b);
  let regions = (region AnyRegion:$otherwise);
  let assemblyFormat = [{
    $a `,` $b `to` $d (`bias` $bias^)? (`aux` $aux^)? (`bias_gradient` $bias_gradient^)? (`scales` $scale_a^ `,` $scale_b)? attr-dict
    `:` type($a) `,` type($b) `,` type($d) (`bias` type($bias)^)? (`aux` type($aux)^)? (`bias_gradient` type($bias_gradient)^)?
    (`scales` type($scale_a)^ `,` type($scale_b))? (`otherwise` $otherwise^)?
  }];
  let hasVerifier = 1;
}

#endif // DESCENT_DIALECTS_EXEC_DEVICEOPS
