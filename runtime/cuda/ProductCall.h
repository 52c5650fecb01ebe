//===- ProductCall.h - One product, described to cuBLASLt -------------------------------------===//
//
// The one place that knows how a row-major product becomes a column-major one. A row-major matrix
// of R x C is, in the same memory, a column-major one of C x R with the same leading dimension. A
// bias of cuBLASLt belongs to the rows of D, so D has to be N x M: what is asked for is
//
//     D^T [n x m] = op(B)^T [n x k]  op(A)^T [k x m]
//
// B goes first. A matrix that is not transposed in the program already lies as its transpose, and
// needs no operation; one that is needs OP_T. Sums over rows and columns, alignments and scales
// change sides with their matrices.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_CUDA_PRODUCTCALL_H
#define DESCENT_RUNTIME_CUDA_PRODUCTCALL_H

#include "runtime/cuda/Driver.h"

#include <descent/abi.h>

namespace descent::cuda {

/// "1024x384x128, bf16 x bf16 -> f32, epilogue bias": a product for messages.
std::string describe(const descent_product &product);

/// Where the operands of a product lie; 0 for those it has not.
struct ProductAddresses {
  CUdeviceptr a = 0, b = 0, d = 0, bias = 0, aux = 0, biasGradient = 0, scaleA = 0, scaleB = 0;
};

/// Calls visit(place, field of ProductAddresses) for the operands that the product has.
template <typename Visit> void forEachPlace(const descent_product &product, Visit visit) {
  const std::pair<const descent_place *, CUdeviceptr ProductAddresses::*> places[] = {
      {&product.a, &ProductAddresses::a},
      {&product.b, &ProductAddresses::b},
      {&product.d, &ProductAddresses::d},
      {&product.bias, &ProductAddresses::bias},
      {&product.aux, &ProductAddresses::aux},
      {&product.bias_gradient, &ProductAddresses::biasGradient},
      {&product.scale_a, &ProductAddresses::scaleA},
      {&product.scale_b, &ProductAddresses::scaleB}};
  for (auto [place, field] : places)
    if (place->operand != DESCENT_NO_OPERAND)
      visit(*place, field);
}

/// The descriptors of a product. Functions throw Error, with the product in the message, when
/// cuBLASLt refuses what it must accept.
class ProductCall {
public:
  ProductCall(const Drivers &drivers, cublasLtHandle_t handle, const descent_product &product,
              const ProductAddresses &addresses);
  ~ProductCall();
  ProductCall(const ProductCall &) = delete;

  /// The library's algorithms, the one it expects to be the fastest first. Sums that are made of
  /// parts are made in f32, in an order that does not depend on time. Empty if there are none;
  /// `status` says why.
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(uint64_t workspaceBytes, int most,
                                                          cublasStatus_t &status) const;
  /// Whether an algorithm from a file can compute this with so much workspace.
  bool accepts(const cublasLtMatmulAlgo_t &algorithm, uint64_t workspaceBytes) const;

  cublasStatus_t run(const cublasLtMatmulAlgo_t &algorithm, CUdeviceptr workspace,
                     uint64_t workspaceBytes, CUstream stream) const;

  /// Throws Error unless the status is success.
  void check(cublasStatus_t status, const char *what) const;

private:
  template <typename T> void set(cublasLtMatmulDescAttributes_t attribute, T value);
  cublasLtMatrixLayout_t layout(const descent_place &place, int64_t rows, int64_t columns,
                                int64_t ld, int64_t stride);
  void setEpilogue();
  void destroy();

  const Drivers &drivers;
  cublasLtHandle_t handle;
  const descent_product &product;
  ProductAddresses addresses;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
};

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_PRODUCTCALL_H
