//===- Products.h - Matrix products by cuBLASLt -----------------------------------------------===//
//
// An executor uses this in three steps. `choose`, before the arena exists, finds an algorithm for
// every product of the program, or that there is none. `bind` makes what a call needs, for the
// addresses of one place. `enqueue` is all that happens in the loop or in the capture of a graph:
// one call; nothing is allocated and nothing depends on time.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_CUDA_PRODUCTS_H
#define DESCENT_RUNTIME_CUDA_PRODUCTS_H

#include "runtime/cuda/ProductCall.h"
#include "runtime/cuda/ProductChoices.h"

#include <memory>
#include <optional>

namespace descent::cuda {

/// Bytes of workspace that cuBLASLt is given, where the plan has as many.
constexpr uint64_t libraryWorkspaceBytes(int capability) {
  return (capability >= 90 ? UINT64_C(32) : UINT64_C(4)) << 20;
}

class Products {
public:
  struct Options {
    std::string file;    ///< of choices; empty: none is read or written
    bool measure = true; ///< else the library's first algorithm is taken
  };

  /// `name`, `capability` and `processors` are those of the device. Throws Error.
  Products(const Drivers &drivers, std::string name, int capability, int processors);
  ~Products();
  Products(const Products &) = delete;

  /// Chooses an algorithm for every product of the program, measuring where the file has none, and
  /// runs each once, since the first run of an algorithm loads its code. Uses device memory of its
  /// own, no more than the operands of one product and the workspace, and gives it back: the arena
  /// is best allocated afterwards. Throws Error for a product that has neither an algorithm nor
  /// other commands to run instead.
  void choose(const descent_program &program, const Options &options, CUstream stream);

  /// Whether the library computes this product of the program; if not, the commands of its
  /// `otherwise` are to be run.
  bool isAvailable(const descent_product &product) const;

  /// Prepares calls of an available product; returns their number for `enqueue`. `operands` are the
  /// addresses of the kernel's operands, inputs first; `workspace` is the one of all kernels, in
  /// which cuBLASLt gets what lies behind the product's own places. Throws Error.
  size_t bind(const descent_product &product, const CUdeviceptr *operands, CUdeviceptr workspace);
  /// Throws Error.
  void enqueue(size_t bound, CUstream stream) const;

  /// What the user should know: a file that could not be used, products that other code computes.
  const std::vector<std::string> &notes() const { return remarks; }
  /// Products for which this process measured algorithms.
  uint64_t measured() const { return measurements; }

private:
  struct Bound;
  class Trial;

  uint64_t workspaceOffset(const descent_product &product) const;
  uint64_t workspaceLimit(const descent_product &product) const;
  std::string keyOf(const descent_product &product) const;
  std::optional<ProductChoice> pick(const char *kernel, const descent_product &product,
                                    bool measure, Trial &trial);

  Drivers drivers;
  std::string deviceName;
  int capability, processors;
  cublasLtHandle_t handle = nullptr;
  uint64_t workspaceBytes = 0; ///< of the program's kernels
  std::map<const descent_product *, std::optional<cublasLtMatmulAlgo_t>> chosen;
  std::vector<std::unique_ptr<Bound>> bounds;
  std::vector<std::string> remarks;
  uint64_t measurements = 0;
};

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_PRODUCTS_H
