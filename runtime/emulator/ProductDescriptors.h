//===- ProductDescriptors.h - Handles of the emulated cuBLASLt --------------------------------===//
//
// The library's handle, and the descriptions, layouts and preferences that products are described
// with. They hold what was written to them and refuse what cuBLASLt refuses: an attribute of the
// wrong size, a handle that is gone.
//
//===------------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_PRODUCTDESCRIPTORS_H
#define DESCENT_RUNTIME_EMULATOR_PRODUCTDESCRIPTORS_H

#include "runtime/cuda/Driver.h"

#include <string>

namespace descent::cuda {

struct cublasLtContext {};

struct cublasLtMatmulDescOpaque {
  int32_t compute = CUBLAS_COMPUTE_32F, scale = CUDA_R_32F, pointerMode = 0;
  int32_t transposeA = 0, transposeB = 0;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  uint64_t bias = 0, aux = 0, scaleA = 0, scaleB = 0, scaleC = 0, scaleD = 0, amaxD = 0;
  int64_t biasStride = 0, auxLd = 0, auxStride = 0;
  int32_t processors = 0, auxType = -1, biasType = -1;
  int8_t fastAccumulation = 0;
};

struct cublasLtMatrixLayoutOpaque {
  uint32_t type = 0;
  int32_t order = CUBLASLT_ORDER_COL, batch = 1;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, stride = 0;
};

struct cublasLtMatmulPreferenceOpaque {
  uint32_t searchMode = 0, reductions = 7, alignments[4] = {256, 256, 256, 256};
  uint64_t workspace = 0;
};

} // namespace descent::cuda

namespace descent::emulator {

/// Why the last call was refused, on this thread.
extern thread_local std::string productMessage;
/// Keeps and prints the message.
cuda::cublasStatus_t invalid(std::string what);

/// Whether the handle has been created and not destroyed.
bool isLive(const void *handle);

// Entries of the library's table (runtime/cuda/Driver.h).
cuda::cublasStatus_t createLibrary(cuda::cublasLtHandle_t *handle);
cuda::cublasStatus_t destroyLibrary(cuda::cublasLtHandle_t handle);
cuda::cublasStatus_t createDescription(cuda::cublasLtMatmulDesc_t *description,
                                       cuda::cublasComputeType_t compute,
                                       cuda::cudaDataType_t scale);
cuda::cublasStatus_t destroyDescription(cuda::cublasLtMatmulDesc_t description);
cuda::cublasStatus_t setDescription(cuda::cublasLtMatmulDesc_t d,
                                    cuda::cublasLtMatmulDescAttributes_t attribute,
                                    const void *value, size_t bytes);
cuda::cublasStatus_t createLayout(cuda::cublasLtMatrixLayout_t *layout, cuda::cudaDataType_t type,
                                  uint64_t rows, uint64_t columns, int64_t ld);
cuda::cublasStatus_t destroyLayout(cuda::cublasLtMatrixLayout_t layout);
cuda::cublasStatus_t setLayout(cuda::cublasLtMatrixLayout_t layout,
                               cuda::cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                               size_t bytes);
cuda::cublasStatus_t createPreference(cuda::cublasLtMatmulPreference_t *preference);
cuda::cublasStatus_t destroyPreference(cuda::cublasLtMatmulPreference_t preference);
cuda::cublasStatus_t setPreference(cuda::cublasLtMatmulPreference_t p,
                                   cuda::cublasLtMatmulPreferenceAttributes_t attribute,
                                   const void *value, size_t bytes);

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_PRODUCTDESCRIPTORS_H
