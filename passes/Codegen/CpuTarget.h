//===- CpuTarget.h - What the kernel generators know of a CPU -------------===//
//
// The generators choose vector width, tile size and cache blocks from this description and from
// nothing else, so that compiling for another CPU than the host's is a matter of naming it.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_CPUTARGET_H
#define DESCENT_PASSES_CODEGEN_CPUTARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace descent {

struct CpuTarget {
  std::string name; ///< LLVM's name of the CPU: "znver4", "haswell", ...
  std::string
      features; ///< LLVM's feature string, "+avx2,-avx512f,..."; empty means what the name implies
  int vectorBits = 256;        ///< widest vectors worth using: 256 (AVX2 with FMA) or 512 (AVX-512)
  bool bf16Conversion = false; ///< has AVX512_BF16: vcvtneps2bf16 and vdpbf16ps
  int64_t l1Bytes = 32 << 10;  ///< data cache of one core
  int64_t l2Bytes = 512 << 10; ///< private cache of one core

  /// Lanes of a vector of f32.
  int lanes() const { return vectorBits / 32; }

  /// Rows and vectors of the register tile of matrix products. 6 x 2 fills the 16 registers of AVX2
  /// and 12 x 2 leaves 6 of the 32 of AVX-512 (14 x 2 spills as soon as the k loop is unrolled);
  /// with either, arithmetic and not loads bounds the inner loop.
  int tileRows() const { return vectorBits == 512 ? 12 : 6; }
  int tileVectors() const { return 2; }

  /// Whether products of bf16 are multiplied as such, in pairs; else they are widened to f32.
  bool bf16Products() const { return bf16Conversion && vectorBits == 512; }

  /// The extensions that generated code relies on, as the ABI's `cpu_features` spells them.
  std::vector<std::string> requiredFeatures() const;

  /// The machine this process runs on. Fails if it has no AVX2 with FMA.
  static llvm::Expected<CpuTarget> host();

  /// "native" for the host, else a CPU that LLVM knows. Fails with the known names for an unknown
  /// one, and for a CPU without AVX2.
  static llvm::Expected<CpuTarget> named(llvm::StringRef name);
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_CPUTARGET_H
