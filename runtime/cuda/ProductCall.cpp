//===- ProductCall.cpp - One product, described to cuBLASLt ---------------===//

#include "runtime/cuda/ProductCall.h"

#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

using namespace descent;
using namespace descent::cuda;

namespace {

struct TypeEntry {
  int32_t dtype;
  cudaDataType_t type;
  const char *name;
};
constexpr TypeEntry types[] = {{DESCENT_F32, CUDA_R_32F, "f32"},
                               {DESCENT_BF16, CUDA_R_16BF, "bf16"},
                               {DESCENT_F16, CUDA_R_16F, "f16"},
                               {DESCENT_F8E4M3, CUDA_R_8F_E4M3, "f8E4M3FN"},
                               {DESCENT_F8E5M2, CUDA_R_8F_E5M2, "f8E5M2"}};

const TypeEntry *typeOf(const descent_place &place) {
  for (const TypeEntry &entry : types)
    if (entry.dtype == place.dtype)
      return &entry;
  return nullptr;
}

std::string typeName(const descent_place &place) {
  const TypeEntry *entry = typeOf(place);
  return entry ? entry->name : fmt::format("type {}", place.dtype);
}

struct EpilogueEntry {
  const char *name; ///< as exec.device_product spells it
  cublasLtEpilogue_t epilogue;
};
/// By enum descent_epilogue. Row sums of the program's first operand are column sums of D's.
constexpr EpilogueEntry epilogues[] = {
    {"none", CUBLASLT_EPILOGUE_DEFAULT},      {"bias", CUBLASLT_EPILOGUE_BIAS},
    {"relu", CUBLASLT_EPILOGUE_RELU},         {"relu_bias", CUBLASLT_EPILOGUE_RELU_BIAS},
    {"gelu", CUBLASLT_EPILOGUE_GELU},         {"gelu_bias", CUBLASLT_EPILOGUE_GELU_BIAS},
    {"relu_aux", CUBLASLT_EPILOGUE_RELU_AUX}, {"relu_aux_bias", CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
    {"gelu_aux", CUBLASLT_EPILOGUE_GELU_AUX}, {"gelu_aux_bias", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
    {"drelu", CUBLASLT_EPILOGUE_DRELU},       {"drelu_bgrad", CUBLASLT_EPILOGUE_DRELU_BGRAD},
    {"dgelu", CUBLASLT_EPILOGUE_DGELU},       {"dgelu_bgrad", CUBLASLT_EPILOGUE_DGELU_BGRAD},
    {"bgrad_a", CUBLASLT_EPILOGUE_BGRADB},    {"bgrad_b", CUBLASLT_EPILOGUE_BGRADA},
};
static_assert(std::size(epilogues) == DESCENT_EPILOGUE_BGRAD_B + 1);

const EpilogueEntry *epilogueOf(const descent_product &product) {
  bool known = product.epilogue >= 0 && product.epilogue < static_cast<int>(std::size(epilogues));
  return known ? &epilogues[product.epilogue] : nullptr;
}

/// What cuBLASLt may assume of an address.
uint32_t alignmentOf(CUdeviceptr address) {
  return 1u << std::min(8, std::countr_zero(address | 256));
}

} // namespace

std::string cuda::describe(const descent_product &product) {
  const EpilogueEntry *epilogue = epilogueOf(product);
  std::string text = fmt::format("{}x{}x{}", product.m, product.n, product.k);
  if (product.batch > 1)
    text = fmt::format("{} of {}", product.batch, text);
  text += fmt::format(", {}{} x {}{} -> {}", typeName(product.a),
                      product.transpose_a ? " transposed" : "", typeName(product.b),
                      product.transpose_b ? " transposed" : "", typeName(product.d));
  text +=
      fmt::format(", epilogue {}", epilogue ? epilogue->name : fmt::format("{}", product.epilogue));
  if (product.bias.operand != DESCENT_NO_OPERAND)
    text += fmt::format(" ({})", typeName(product.bias));
  if (product.compute == DESCENT_COMPUTE_TF32)
    text += ", tf32";
  if (product.accumulate)
    text += ", accumulating";
  return text;
}

void ProductCall::check(cublasStatus_t status, const char *what) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(fmt::format("cuBLASLt refuses {} for the matrix product {}: {} ({})", what,
                            describe(product), drivers.library->cublasLtGetStatusString(status),
                            static_cast<int>(status)));
}

template <typename T> void ProductCall::set(cublasLtMatmulDescAttributes_t attribute, T value) {
  cublasStatus_t status =
      drivers.library->cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value);
  if (status != CUBLAS_STATUS_SUCCESS)
    check(status, fmt::format("attribute {}", static_cast<int>(attribute)).c_str());
}

cublasLtMatrixLayout_t ProductCall::layout(const descent_place &place, int64_t rows,
                                           int64_t columns, int64_t ld, int64_t stride) {
  const TypeEntry *type = typeOf(place);
  if (!type)
    throw Error(fmt::format("a matrix product of elements of type {}, which no library multiplies: "
                            "the program is broken",
                            place.dtype));
  cublasLtMatrixLayout_t made = nullptr;
  check(drivers.library->cublasLtMatrixLayoutCreate(&made, type->type, static_cast<uint64_t>(rows),
                                                    static_cast<uint64_t>(columns), ld),
        "the layout of a matrix");
  auto batch = static_cast<int32_t>(product.batch);
  cublasStatus_t counted = drivers.library->cublasLtMatrixLayoutSetAttribute(
                     made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                 strided = drivers.library->cublasLtMatrixLayoutSetAttribute(
                     made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
  if (counted != CUBLAS_STATUS_SUCCESS || strided != CUBLAS_STATUS_SUCCESS) {
    drivers.library->cublasLtMatrixLayoutDestroy(made);
    check(counted, "a number of matrices");
    check(strided, "a stride between matrices");
  }
  return made;
}

ProductCall::ProductCall(const Drivers &drivers, cublasLtHandle_t handle,
                         const descent_product &product, const ProductAddresses &addresses)
    : drivers(drivers), handle(handle), product(product), addresses(addresses) {
  try {
    check(drivers.library->cublasLtMatmulDescCreate(&description,
                                                    product.compute == DESCENT_COMPUTE_TF32
                                                        ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                        : CUBLAS_COMPUTE_32F,
                                                    CUDA_R_32F),
          "a description");
    set(CUBLASLT_MATMUL_DESC_TRANSA,
        static_cast<int32_t>(product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(CUBLASLT_MATMUL_DESC_TRANSB,
        static_cast<int32_t>(product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    int64_t m = product.m, n = product.n, k = product.k;
    first = layout(product.b, product.transpose_b ? k : n, product.transpose_b ? n : k, product.ldb,
                   product.stride_b);
    second = layout(product.a, product.transpose_a ? m : k, product.transpose_a ? k : m,
                    product.lda, product.stride_a);
    result = layout(product.d, n, m, product.ldd, product.stride_d);
    setEpilogue();
    if (addresses.scaleB)
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, addresses.scaleB);
    if (addresses.scaleA)
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, addresses.scaleA);
  } catch (...) {
    destroy();
    throw;
  }
}

/// Pointers are set before an algorithm is asked for: it depends on how they are aligned.
void ProductCall::setEpilogue() {
  const EpilogueEntry *entry = epilogueOf(product);
  if (!entry)
    throw Error(fmt::format("a matrix product with the epilogue {}, which this runtime does not "
                            "know: the program is broken",
                            product.epilogue));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(entry->epilogue));
  // A bias and its gradient use the same attributes; no epilogue has both.
  bool gradient = addresses.biasGradient != 0;
  if (CUdeviceptr vector = gradient ? addresses.biasGradient : addresses.bias) {
    const descent_place &place = gradient ? product.bias_gradient : product.bias;
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
    const TypeEntry *type = typeOf(place);
    bool eight = product.a.dtype == DESCENT_F8E4M3 || product.a.dtype == DESCENT_F8E5M2;
    // Said only where it differs from what cuBLASLt assumes: saying it at all is refused for some
    // types.
    if (type && (place.dtype != product.d.dtype || eight))
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type->type));
  }
  if (addresses.aux) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, addresses.aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.ld_aux);
    if (product.batch > 1)
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, product.m * product.ld_aux);
  }
}

void ProductCall::destroy() {
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      drivers.library->cublasLtMatrixLayoutDestroy(layout);
  if (description)
    drivers.library->cublasLtMatmulDescDestroy(description);
}

ProductCall::~ProductCall() { destroy(); }

std::vector<cublasLtMatmulHeuristicResult_t>
ProductCall::algorithms(uint64_t workspaceBytes, int most, cublasStatus_t &status) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check(drivers.library->cublasLtMatmulPreferenceCreate(&preference), "a preference");
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return drivers.library->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                                                 sizeof value);
  };
  // Partial sums in the type of the result would round a bf16 result more than once, and those
  // added in place do so by turns.
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  uint32_t resultAlignment = alignmentOf(addresses.d);
  cublasStatus_t refused = CUBLAS_STATUS_SUCCESS;
  for (cublasStatus_t one :
       {prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes),
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions),
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(addresses.b)),
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(addresses.a)),
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, resultAlignment),
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, resultAlignment)})
    if (one != CUBLAS_STATUS_SUCCESS)
      refused = one;
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  if (refused == CUBLAS_STATUS_SUCCESS)
    status = drivers.library->cublasLtMatmulAlgoGetHeuristic(handle, description, first, second,
                                                             result, result, preference, most,
                                                             results.data(), &found);
  drivers.library->cublasLtMatmulPreferenceDestroy(preference);
  check(refused, "a preference");
  results.resize(static_cast<size_t>(status == CUBLAS_STATUS_SUCCESS ? found : 0));
  std::erase_if(results, [&](const cublasLtMatmulHeuristicResult_t &one) {
    return one.state != CUBLAS_STATUS_SUCCESS || one.workspaceSize > workspaceBytes;
  });
  return results;
}

bool ProductCall::accepts(const cublasLtMatmulAlgo_t &algorithm, uint64_t workspaceBytes) const {
  cublasLtMatmulHeuristicResult_t checked = {};
  return drivers.library->cublasLtMatmulAlgoCheck(handle, description, first, second, result,
                                                  result, &algorithm,
                                                  &checked) == CUBLAS_STATUS_SUCCESS &&
         checked.workspaceSize <= workspaceBytes;
}

cublasStatus_t ProductCall::run(const cublasLtMatmulAlgo_t &algorithm, CUdeviceptr workspace,
                                uint64_t workspaceBytes, CUstream stream) const {
  static constexpr float one = 1, zero = 0;
  auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void *>(address); };
  return drivers.library->cublasLtMatmul(
      handle, description, &one, pointer(addresses.b), first, pointer(addresses.a), second,
      product.accumulate ? &one : &zero, pointer(addresses.d), result, pointer(addresses.d), result,
      &algorithm, workspaceBytes ? pointer(workspace) : nullptr, workspaceBytes, stream);
}
