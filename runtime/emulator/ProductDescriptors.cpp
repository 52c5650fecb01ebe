//===- ProductDescriptors.cpp - Handles of the emulated cuBLASLt ------------------------------===//

#include "runtime/emulator/ProductDescriptors.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

using namespace descent;
using namespace descent::cuda;
using namespace descent::emulator;

thread_local std::string emulator::productMessage;

namespace {

/// What has been created and not destroyed.
std::mutex handlesMutex;
std::set<const void *> handles;

} // namespace

cublasStatus_t emulator::invalid(std::string what) {
  productMessage = std::move(what);
  fmt::print(stderr, "emulator: {}\n", productMessage);
  return CUBLAS_STATUS_INVALID_VALUE;
}

bool emulator::isLive(const void *handle) {
  std::lock_guard lock(handlesMutex);
  return handles.contains(handle);
}

namespace {

template <typename T> cublasStatus_t createHandle(T **handle, T value = {}) {
  if (!handle)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::lock_guard lock(handlesMutex);
  *handle = new T(value);
  handles.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T> cublasStatus_t destroyHandle(T *handle, const char *what) {
  if (!isLive(handle))
    return invalid(fmt::format("{} of what was never created, or is gone", what));
  std::lock_guard lock(handlesMutex);
  handles.erase(handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t assign(T &field, const void *value, size_t bytes, const char *function,
                      int attribute) {
  if (!value || bytes != sizeof(T))
    return invalid(fmt::format("{}: attribute {} has {} bytes, not {}", function, attribute,
                               sizeof(T), bytes));
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

cublasStatus_t emulator::createLibrary(cublasLtHandle_t *handle) { return createHandle(handle); }
cublasStatus_t emulator::destroyLibrary(cublasLtHandle_t handle) {
  return destroyHandle(handle, "cublasLtDestroy");
}

cublasStatus_t emulator::createDescription(cublasLtMatmulDesc_t *description,
                                           cublasComputeType_t compute, cudaDataType_t scale) {
  cublasLtMatmulDescOpaque value;
  value.compute = compute;
  value.scale = scale;
  return createHandle(description, value);
}
cublasStatus_t emulator::destroyDescription(cublasLtMatmulDesc_t description) {
  return destroyHandle(description, "cublasLtMatmulDescDestroy");
}

cublasStatus_t emulator::setDescription(cublasLtMatmulDesc_t d,
                                        cublasLtMatmulDescAttributes_t attribute, const void *value,
                                        size_t bytes) {
  const char *function = "cublasLtMatmulDescSetAttribute";
  if (!isLive(d))
    return invalid(fmt::format("{}: no such description", function));
  auto set = [&](auto &field) { return assign(field, value, bytes, function, attribute); };
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
    return set(d->compute);
  case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
    return set(d->scale);
  case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    return set(d->pointerMode);
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(d->transposeA);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(d->transposeB);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(d->epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(d->bias);
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    return set(d->biasStride);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return set(d->aux);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return set(d->auxLd);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    return set(d->auxStride);
  case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
    return set(d->processors);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return set(d->scaleA);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return set(d->scaleB);
  case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
    return set(d->scaleC);
  case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
    return set(d->scaleD);
  case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER:
    return set(d->amaxD);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
    return set(d->auxType);
  case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
    return set(d->fastAccumulation);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return set(d->biasType);
  }
  return invalid(fmt::format("{}: unknown attribute {}", function, static_cast<int>(attribute)));
}

cublasStatus_t emulator::createLayout(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                      uint64_t rows, uint64_t columns, int64_t ld) {
  cublasLtMatrixLayoutOpaque value;
  value.type = type;
  value.rows = rows;
  value.columns = columns;
  value.ld = ld;
  return createHandle(layout, value);
}
cublasStatus_t emulator::destroyLayout(cublasLtMatrixLayout_t layout) {
  return destroyHandle(layout, "cublasLtMatrixLayoutDestroy");
}

cublasStatus_t emulator::setLayout(cublasLtMatrixLayout_t layout,
                                   cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                   size_t bytes) {
  const char *function = "cublasLtMatrixLayoutSetAttribute";
  if (!isLive(layout))
    return invalid(fmt::format("{}: no such layout", function));
  auto set = [&](auto &field) { return assign(field, value, bytes, function, attribute); };
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return set(layout->type);
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return set(layout->order);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return set(layout->rows);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return set(layout->columns);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return set(layout->ld);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(layout->batch);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(layout->stride);
  }
  return invalid(fmt::format("{}: unknown attribute {}", function, static_cast<int>(attribute)));
}

cublasStatus_t emulator::createPreference(cublasLtMatmulPreference_t *preference) {
  return createHandle(preference);
}
cublasStatus_t emulator::destroyPreference(cublasLtMatmulPreference_t preference) {
  return destroyHandle(preference, "cublasLtMatmulPreferenceDestroy");
}

cublasStatus_t emulator::setPreference(cublasLtMatmulPreference_t p,
                                       cublasLtMatmulPreferenceAttributes_t attribute,
                                       const void *value, size_t bytes) {
  const char *function = "cublasLtMatmulPreferenceSetAttribute";
  if (!isLive(p))
    return invalid(fmt::format("{}: no such preference", function));
  auto set = [&](auto &field) { return assign(field, value, bytes, function, attribute); };
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
    return set(p->searchMode);
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(p->workspace);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(p->reductions);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(p->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES]);
  }
  return invalid(fmt::format("{}: unknown attribute {}", function, static_cast<int>(attribute)));
}
