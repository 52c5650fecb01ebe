//===- Products.cpp - cuBLASLt, answered on the CPU -------------------------------------------===//
//
// The table of runtime/cuda/Driver.h; what products are described with is in
// ProductDescriptors.cpp. As in cuBLASLt, most of what is wrong with a description shows only when
// an algorithm is asked for; what is supported follows the tables of CUDA's manual.
//
// A product is put on its stream and computed when its turn has come. What cuBLASLt leaves to luck
// is an error here: an algorithm used for another product than it was chosen for, a pointer less
// aligned than was promised, a workspace or a result that lies over an operand. The workspace is
// overwritten before the operands are read.
//
//===------------------------------------------------------------------------------------------===//

#include "runtime/emulator/Products.h"

#include "runtime/core/Error.h"
#include "runtime/emulator/Driver.h"
#include "runtime/emulator/ProductArithmetic.h"
#include "runtime/emulator/ProductDescriptors.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

using namespace descent;
using namespace descent::cuda;
using namespace descent::emulator;

namespace {

//===----------------------------------------------------------------------------------------===//
// What is supported
//===----------------------------------------------------------------------------------------===//

struct Problem {
  const cublasLtMatmulDescOpaque *description;
  const cublasLtMatrixLayoutOpaque *a, *b, *c, *d;

  ElementType biasType() const {
    return static_cast<ElementType>(description->biasType >= 0 ? description->biasType
                                                               : static_cast<int>(d->type));
  }
  ElementType auxType() const {
    return static_cast<ElementType>(description->auxType >= 0 ? description->auxType
                                                              : static_cast<int>(d->type));
  }
};

struct EpilogueForm {
  Activation activation = Activation::None;
  bool bias = false, storeAux = false;
  BiasGradient gradient = BiasGradient::None;

  bool hasAux() const {
    return storeAux || activation == Activation::ReluGradient ||
           activation == Activation::GeluGradient;
  }
  bool isMask() const {
    return activation == Activation::Relu || activation == Activation::ReluGradient;
  }
};

std::optional<EpilogueForm> epilogueForm(uint32_t epilogue) {
  using enum Activation;
  switch (epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
    return EpilogueForm{};
  case CUBLASLT_EPILOGUE_BIAS:
    return EpilogueForm{None, true};
  case CUBLASLT_EPILOGUE_RELU:
    return EpilogueForm{Relu};
  case CUBLASLT_EPILOGUE_RELU_BIAS:
    return EpilogueForm{Relu, true};
  case CUBLASLT_EPILOGUE_RELU_AUX:
    return EpilogueForm{Relu, false, true};
  case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    return EpilogueForm{Relu, true, true};
  case CUBLASLT_EPILOGUE_GELU:
    return EpilogueForm{Gelu};
  case CUBLASLT_EPILOGUE_GELU_BIAS:
    return EpilogueForm{Gelu, true};
  case CUBLASLT_EPILOGUE_GELU_AUX:
    return EpilogueForm{Gelu, false, true};
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    return EpilogueForm{Gelu, true, true};
  case CUBLASLT_EPILOGUE_DRELU:
    return EpilogueForm{ReluGradient};
  case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    return EpilogueForm{ReluGradient, false, false, BiasGradient::OfD};
  case CUBLASLT_EPILOGUE_DGELU:
    return EpilogueForm{GeluGradient};
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    return EpilogueForm{GeluGradient, false, false, BiasGradient::OfD};
  case CUBLASLT_EPILOGUE_BGRADA:
    return EpilogueForm{None, false, false, BiasGradient::OfA};
  case CUBLASLT_EPILOGUE_BGRADB:
    return EpilogueForm{None, false, false, BiasGradient::OfB};
  }
  return std::nullopt;
}

bool isNarrow(uint32_t type) { return type == CUDA_R_16BF || type == CUDA_R_16F; }
bool isEight(uint32_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

/// Why there is no algorithm for the problem; empty if there is one.
std::string refusal(const Problem &p) {
  LibrarySettings settings = librarySettings();
  if (settings.none)
    return "DESCENT_EMULATOR_CUBLASLT=none";
  const auto &description = *p.description;
  const auto &[_, a, b, c, d] = p;
  std::optional<EpilogueForm> form = epilogueForm(description.epilogue);
  if (!form)
    return fmt::format("unknown epilogue {}", description.epilogue);
  if (description.scale != CUDA_R_32F || description.pointerMode != CUBLASLT_POINTER_MODE_HOST)
    return "scales other than f32 on the host";
  for (const auto *layout : {a, b, c, d}) {
    if (layout->order != CUBLASLT_ORDER_COL)
      return "a matrix that is not column-major";
    if (layout->rows == 0 || layout->columns == 0 ||
        layout->ld < static_cast<int64_t>(layout->rows))
      return fmt::format("a matrix of {} x {} with a leading dimension of {}", layout->rows,
                         layout->columns, layout->ld);
    if (layout->batch != d->batch || layout->batch < 1)
      return fmt::format("batches of {} and {} matrices", layout->batch, d->batch);
    if (layout->stride < 0)
      return "a negative stride between matrices";
  }
  if (d->batch > 1 &&
      d->stride < d->ld * static_cast<int64_t>(d->columns - 1) + static_cast<int64_t>(d->rows))
    return "results that overlap";
  uint64_t m = description.transposeA ? a->columns : a->rows;
  uint64_t k = description.transposeA ? a->rows : a->columns;
  uint64_t n = description.transposeB ? b->rows : b->columns;
  if ((description.transposeB ? b->columns : b->rows) != k || d->rows != m || d->columns != n ||
      c->rows != m || c->columns != n || c->type != d->type)
    return "matrices that do not fit together";

  bool tf32 = description.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (description.compute != CUBLAS_COMPUTE_32F && !tf32)
    return fmt::format("compute type {}", description.compute);
  bool eight = isEight(a->type) && isEight(b->type);
  bool wide = a->type == CUDA_R_32F && b->type == CUDA_R_32F && d->type == CUDA_R_32F;
  bool narrow =
      isNarrow(a->type) && b->type == a->type && (d->type == a->type || d->type == CUDA_R_32F);
  if (eight) {
    if (a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2)
      return "a product of two E5M2 matrices";
    if (d->type != CUDA_R_32F && !isNarrow(d->type))
      return "a result of eight bits";
    if (!description.transposeA || description.transposeB)
      return "eight-bit operands that do not lie along k";
    if (m % 16 || n % 16 || k % 16 || a->ld % 16 || b->ld % 16 || d->ld % 16)
      return "eight-bit operands whose sizes are no multiples of 16";
  } else if (!wide && !narrow) {
    return fmt::format("types {} x {} -> {}", a->type, b->type, d->type);
  }
  if (tf32 && !wide)
    return "TF32 on operands other than f32";
  if (!eight && (description.scaleA || description.scaleB))
    return "scales of operands that have more than eight bits";
  if (description.scaleC || description.scaleD || description.amaxD)
    return "scales or the largest value of a result that has more than eight bits";

  bool vector = form->bias || form->gradient != BiasGradient::None;
  int64_t type = static_cast<int64_t>(p.biasType());
  if (vector && !description.bias)
    return "an epilogue whose bias pointer is not set";
  if (vector && eight && type != (d->type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF))
    return "a bias that is not bf16 beside eight-bit operands";
  if (vector && !eight && type != d->type &&
      (settings.strict || type != CUDA_R_32F || form->gradient != BiasGradient::None))
    return "a bias of another type than the result";
  if (eight && (form->gradient != BiasGradient::None || form->hasAux()))
    return "this epilogue on eight-bit operands";
  if (settings.strict && narrow && d->type == CUDA_R_32F &&
      (form->activation != Activation::None || form->gradient != BiasGradient::None))
    return "this epilogue on an f32 result of narrower operands";
  if (form->gradient != BiasGradient::None && d->batch > 1 && description.biasStride == 0)
    return "one bias gradient for several matrices";
  if (form->hasAux()) {
    int64_t unit = form->isMask() ? 128 : 8;
    if (!description.aux)
      return "an epilogue whose auxiliary pointer is not set";
    if (description.auxLd % unit || description.auxLd < static_cast<int64_t>(m) ||
        (d->batch > 1 && description.auxStride % unit))
      return fmt::format("an auxiliary matrix with a leading dimension of {}, which must be a "
                         "multiple of {} and at least {}",
                         description.auxLd, unit, m);
    if (!form->isMask() && p.auxType() != static_cast<ElementType>(d->type))
      return "an auxiliary matrix of another type than the result";
  }
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------------------------===//

/// What the 64 bytes of an algorithm hold here.
struct Algorithm {
  static constexpr uint64_t magic = 0x6465'7363'656e'7431;
  uint64_t mark, id, splits, problem, workspace;
  uint8_t alignments[4]; ///< of A, B, C, D: powers of two
  uint8_t bias, aux;
  uint8_t unused[2];
  uint64_t reserved[2];
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

uint64_t hashOf(const Problem &p) {
  uint64_t hash = 0xcbf29ce484222325;
  auto mix = [&](auto value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  const auto &d = *p.description;
  for (int64_t value : {int64_t(d.compute), int64_t(d.transposeA), int64_t(d.transposeB),
                        int64_t(d.epilogue), int64_t(d.biasType), int64_t(d.auxType), d.auxLd})
    mix(value);
  for (const auto *layout : {p.a, p.b, p.c, p.d}) {
    mix(layout->type);
    mix(layout->rows);
    mix(layout->columns);
    mix(layout->ld);
    mix(layout->batch);
    mix(layout->stride);
  }
  return hash;
}

/// The power of two that an address is aligned to, up to 256.
uint8_t alignmentOf(uint64_t address) {
  return static_cast<uint8_t>(address ? std::min(8, std::countr_zero(address)) : 8);
}

std::optional<Problem> problemOf(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                 cublasLtMatrixLayout_t d) {
  for (const void *handle :
       {static_cast<const void *>(description), static_cast<const void *>(a),
        static_cast<const void *>(b), static_cast<const void *>(c), static_cast<const void *>(d)})
    if (!isLive(handle)) {
      invalid("a product with a description or a layout that is none, or is gone");
      return std::nullopt;
    }
  return Problem{description, a, b, c, d};
}

cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t preference, int wanted,
                         cublasLtMatmulHeuristicResult_t *results, int *found) {
  std::optional<Problem> problem = problemOf(description, a, b, c, d);
  if (!isLive(handle) || !problem || !isLive(preference) || wanted <= 0 || !results || !found)
    return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  if (productMessage = refusal(*problem); !productMessage.empty())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm base = {};
  base.mark = Algorithm::magic;
  base.splits = 1;
  base.problem = hashOf(*problem);
  for (int i = 0; i < 4; ++i)
    base.alignments[i] = alignmentOf(preference->alignments[i]);
  base.bias = alignmentOf(description->bias);
  base.aux = alignmentOf(description->aux);
  auto offer = [&](uint64_t id, uint64_t splits, uint64_t workspace) {
    if (*found == wanted || workspace > preference->workspace)
      return;
    Algorithm algorithm = base;
    algorithm.id = id;
    algorithm.splits = splits;
    algorithm.workspace = workspace;
    cublasLtMatmulHeuristicResult_t &result = results[(*found)++] = {};
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  };
  offer(0, 1, 0);
  offer(1, 1, 4096);
  if (librarySettings().split && (preference->reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE))
    offer(2, 2, 2 * sizeof(float) * d->rows * d->columns);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkAlgorithm(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *chosen,
                              cublasLtMatmulHeuristicResult_t *result) {
  std::optional<Problem> problem = problemOf(description, a, b, c, d);
  if (!isLive(handle) || !problem || !chosen || !result)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (productMessage = refusal(*problem); !productMessage.empty())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm;
  std::memcpy(&algorithm, chosen, sizeof algorithm);
  if (algorithm.mark != Algorithm::magic || algorithm.problem != hashOf(*problem)) {
    productMessage = "the algorithm was chosen for another product";
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *result = {};
  result->algo = *chosen;
  result->workspaceSize = algorithm.workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t algorithmConfiguration(const cublasLtMatmulAlgo_t *chosen,
                                      cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
                                      size_t bytes, size_t *written) {
  Algorithm algorithm;
  std::memcpy(&algorithm, chosen, sizeof algorithm);
  uint32_t number = 0;
  switch (attribute) {
  case CUBLASLT_ALGO_CONFIG_ID:
    number = static_cast<uint32_t>(algorithm.id);
    break;
  case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
    number = static_cast<uint32_t>(algorithm.splits);
    break;
  case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
    number = algorithm.splits > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : 0;
    break;
  case CUBLASLT_ALGO_CONFIG_TILE_ID:
  case CUBLASLT_ALGO_CONFIG_STAGES_ID:
    break;
  }
  if (algorithm.mark != Algorithm::magic || (bytes != sizeof number && bytes != 0))
    return invalid("cublasLtMatmulAlgoConfigGetAttribute: a value of the wrong size");
  if (bytes)
    std::memcpy(value, &number, bytes);
  if (written)
    *written = sizeof number;
  return CUBLAS_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------===//

ProductMatrix matrixOf(const cublasLtMatrixLayoutOpaque &layout, const void *address) {
  return {static_cast<ElementType>(layout.type),
          reinterpret_cast<uint64_t>(address),
          static_cast<int64_t>(layout.rows),
          static_cast<int64_t>(layout.columns),
          layout.ld,
          layout.stride};
}

ProductTask taskOf(const Problem &p, const void *a, const void *b, const void *c, void *d,
                   float alpha, float beta, int splits) {
  const auto &description = *p.description;
  EpilogueForm form = *epilogueForm(description.epilogue);
  ProductTask task;
  task.a = matrixOf(*p.a, a);
  task.b = matrixOf(*p.b, b);
  task.c = matrixOf(*p.c, c);
  task.d = matrixOf(*p.d, d);
  task.batch = p.d->batch;
  task.transposeA = description.transposeA != CUBLAS_OP_N;
  task.transposeB = description.transposeB != CUBLAS_OP_N;
  task.tf32 = description.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  task.splits = splits;
  task.alpha = alpha;
  task.beta = beta;
  task.scaleA = description.scaleA;
  task.scaleB = description.scaleB;
  if (form.bias || form.gradient != BiasGradient::None) {
    task.bias = description.bias;
    task.biasType = p.biasType();
    task.biasStride = description.biasStride;
    task.biasGradient = form.gradient;
  }
  task.activation = form.activation;
  if (form.hasAux()) {
    task.aux = description.aux;
    task.storeAux = form.storeAux;
    task.auxType = p.auxType();
    task.auxLd = description.auxLd;
    task.auxStride = description.auxStride;
  }
  return task;
}

/// What two operands share that must not; empty if nothing does.
std::string overlap(const ProductTask &task, uint64_t workspace, uint64_t workspaceBytes) {
  struct Range {
    uint64_t address, bytes;
    bool written;
    std::string what;
  };
  std::vector<Range> ranges;
  forEachOperand(task, [&](uint64_t address, uint64_t bytes, bool written, const char *what) {
    ranges.push_back({address, bytes, written, what});
  });
  if (workspaceBytes)
    ranges.push_back({workspace, workspaceBytes, true, "the workspace"});
  for (const Range &one : ranges)
    for (const Range &other : ranges) {
      bool inPlace = one.what == "D" && other.what == "C" && one.address == other.address;
      if (&one != &other && one.written && !inPlace && one.address < other.address + other.bytes &&
          other.address < one.address + one.bytes)
        return one.what + " lies over " + other.what;
    }
  return {};
}

cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha,
                      const void *a, cublasLtMatrixLayout_t aLayout, const void *b,
                      cublasLtMatrixLayout_t bLayout, const void *beta, const void *c,
                      cublasLtMatrixLayout_t cLayout, void *d, cublasLtMatrixLayout_t dLayout,
                      const cublasLtMatmulAlgo_t *chosen, void *workspace, size_t workspaceBytes,
                      CUstream stream) {
  std::optional<Problem> problem = problemOf(description, aLayout, bLayout, cLayout, dLayout);
  if (!isLive(handle) || !problem || !alpha || !beta || !a || !b || !d)
    return invalid("cublasLtMatmul: something is null, or gone");
  if (!chosen)
    return invalid("cublasLtMatmul: without an algorithm, one is looked for at every call");
  cublasLtMatmulHeuristicResult_t checked;
  if (cublasStatus_t status =
          checkAlgorithm(handle, description, aLayout, bLayout, cLayout, dLayout, chosen, &checked);
      status != CUBLAS_STATUS_SUCCESS) {
    fmt::print(stderr, "emulator: cublasLtMatmul: {}\n", productMessage);
    return status;
  }
  Algorithm algorithm;
  std::memcpy(&algorithm, chosen, sizeof algorithm);
  auto space = reinterpret_cast<uint64_t>(workspace);
  if (algorithm.workspace > workspaceBytes || (workspaceBytes && space % 256))
    return invalid(fmt::format("cublasLtMatmul: the algorithm needs {} bytes of workspace, "
                               "aligned to 256; given are {} at 0x{:x}",
                               algorithm.workspace, workspaceBytes, space));
  float factors[2];
  std::memcpy(&factors[0], alpha, sizeof(float));
  std::memcpy(&factors[1], beta, sizeof(float));
  ProductTask task =
      taskOf(*problem, a, b, c, d, factors[0], factors[1], static_cast<int>(algorithm.splits));

  const std::pair<uint64_t, uint8_t> promised[] = {{task.a.address, algorithm.alignments[0]},
                                                   {task.b.address, algorithm.alignments[1]},
                                                   {task.c.address, algorithm.alignments[2]},
                                                   {task.d.address, algorithm.alignments[3]},
                                                   {task.bias, algorithm.bias},
                                                   {task.aux, algorithm.aux}};
  const char *names[] = {"A", "B", "C", "D", "the bias", "the auxiliary matrix"};
  for (size_t i = 0; i < std::size(promised); ++i)
    if (promised[i].first && alignmentOf(promised[i].first) < promised[i].second)
      return invalid(fmt::format("cublasLtMatmul: {} at 0x{:x} is less aligned than the {} bytes "
                                 "that were promised when the algorithm was chosen",
                                 names[i], promised[i].first, 1 << promised[i].second));
  if (std::string what = overlap(task, space, workspaceBytes); !what.empty())
    return invalid("cublasLtMatmul: " + what);

  std::vector<CUdeviceptr> uses;
  forEachOperand(task,
                 [&](uint64_t address, uint64_t, bool, const char *) { uses.push_back(address); });
  std::string name = fmt::format("cublasLtMatmul {}x{}x{}", task.d.rows, task.d.columns,
                                 task.transposeA ? task.a.rows : task.a.columns);
  auto run = [task, space, used = algorithm.workspace](Work &work) {
    if (used)
      std::memset(work.write(space, used, "the workspace"), 0xff, used);
    computeProduct(task,
                   {[&](void *to, uint64_t address, uint64_t bytes, const char *what) {
                      std::memcpy(to, work.read(address, bytes, what), bytes);
                    },
                    [&](uint64_t address, const void *from, uint64_t bytes, const char *what) {
                      std::memcpy(work.write(address, bytes, what), from, bytes);
                    }});
  };
  CUresult result = enqueue(stream, std::move(name), std::move(uses), std::move(run));
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

//===----------------------------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------------------------===//

size_t version() { return 130100; }

const char *statusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_INTERNAL_ERROR:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "an unknown status";
}

} // namespace

LibrarySettings emulator::librarySettings() {
  LibrarySettings settings;
  const char *text = std::getenv("DESCENT_EMULATOR_CUBLASLT");
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == "strict")
      settings.strict = true;
    else if (word == "none")
      settings.none = true;
    else if (word == "split")
      settings.split = true;
    else
      throw Error(fmt::format("DESCENT_EMULATOR_CUBLASLT={}: '{}' is none of strict, none, split",
                              text, word));
  }
  return settings;
}

const std::string &emulator::libraryMessage() { return productMessage; }

extern "C" const Library descent_emulated_library = {
    .cublasLtGetVersion = version,
    .cublasLtGetStatusString = statusString,
    .cublasLtCreate = createLibrary,
    .cublasLtDestroy = destroyLibrary,
    .cublasLtMatmulDescCreate = createDescription,
    .cublasLtMatmulDescDestroy = destroyDescription,
    .cublasLtMatmulDescSetAttribute = setDescription,
    .cublasLtMatrixLayoutCreate = createLayout,
    .cublasLtMatrixLayoutDestroy = destroyLayout,
    .cublasLtMatrixLayoutSetAttribute = setLayout,
    .cublasLtMatmulPreferenceCreate = createPreference,
    .cublasLtMatmulPreferenceDestroy = destroyPreference,
    .cublasLtMatmulPreferenceSetAttribute = setPreference,
    .cublasLtMatmulAlgoGetHeuristic = heuristic,
    .cublasLtMatmulAlgoCheck = checkAlgorithm,
    .cublasLtMatmulAlgoConfigGetAttribute = algorithmConfiguration,
    .cublasLtMatmul = matmul,
};
