//===- Products.cpp - Matrix products by cuBLASLt ---------------------------------------------===//
//
// The library orders its algorithms by an estimate. The first few are run on memory of their own
// and timed with events; another than the first is taken only if it is clearly faster, so that
// noise does not decide. What was decided is kept in a file (ProductChoices.h).
//
// All products of a program are gathered first, those in `otherwise` too: the one that runs instead
// of another is one like it without the epilogue.
//
//===------------------------------------------------------------------------------------------===//

#include "runtime/cuda/Products.h"

#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

using namespace descent;
using namespace descent::cuda;

/// As many of the library's algorithms are timed, each so many times in a row, so often.
static constexpr int mostAlgorithms = 8, runs = 5, rounds = 3;
/// The part of the first algorithm's time that another must stay below to be taken.
static constexpr float clearlyFaster = 0.95f;

static uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Operands lie at multiples of this in the arena, and may lie at no multiple of more: members of
/// slabs do. Algorithms ask for sixteen bytes at most.
static constexpr uint64_t operandAlignment = 64;

struct Products::Bound {
  ProductCall call;
  cublasLtMatmulAlgo_t algorithm;
  CUdeviceptr workspace;
  uint64_t workspaceBytes;
};

/// Memory to try algorithms in, a stream and two events.
class Products::Trial {
public:
  Trial(const Drivers &drivers, CUstream stream) : drivers(drivers), stream(stream) {
    cuda::check(drivers, drivers.driver->cuEventCreate(&start, CU_EVENT_DEFAULT),
                "creating an event");
    cuda::check(drivers, drivers.driver->cuEventCreate(&end, CU_EVENT_DEFAULT),
                "creating an event");
  }
  ~Trial() {
    if (memory)
      drivers.driver->cuMemFree(memory);
    for (CUevent event : {start, end})
      if (event)
        drivers.driver->cuEventDestroy(event);
  }

  /// Small positive numbers in whatever type somebody reads them. Returns the result of the
  /// allocation.
  CUresult reserve(uint64_t bytes) {
    CUresult result = drivers.driver->cuMemAlloc(&memory, bytes);
    if (result != CUDA_SUCCESS) {
      memory = 0;
      return result;
    }
    if (drivers.emulation)
      drivers.emulation->nameAllocation(memory, "memory to try matrix products in");
    cuda::check(drivers, drivers.driver->cuMemsetD8Async(memory, 0x3c, bytes, stream),
                "filling memory");
    cuda::check(drivers, drivers.driver->cuStreamSynchronize(stream), "filling memory");
    return result;
  }
  bool hasMemory() const { return memory != 0; }

  /// Places for a product, as aligned as its own, and behind them the workspace.
  ProductAddresses place(const descent_product &product) {
    ProductAddresses addresses;
    uint64_t next = 0;
    forEachPlace(product, [&](const descent_place &place, CUdeviceptr ProductAddresses::*field) {
      uint64_t start = operandAlignment + place.offset % operandAlignment;
      addresses.*field = base() + next + start;
      next += aligned(start + place.bytes);
    });
    workspace = memory ? memory + next : 0;
    return addresses;
  }
  static uint64_t bytesFor(const descent_product &product) {
    uint64_t bytes = 0;
    forEachPlace(product, [&](const descent_place &place, CUdeviceptr ProductAddresses::*) {
      bytes += aligned(operandAlignment + place.offset % operandAlignment + place.bytes);
    });
    return bytes;
  }

  cublasStatus_t run(const ProductCall &call, const cublasLtMatmulAlgo_t &algorithm,
                     uint64_t workspaceBytes) {
    cublasStatus_t status = call.run(algorithm, workspace, workspaceBytes, stream);
    cuda::check(drivers, drivers.driver->cuStreamSynchronize(stream), "running a matrix product");
    return status;
  }

  /// Microseconds of one run, the best of a few; nothing if the algorithm does not run after all.
  std::optional<float> time(const ProductCall &call, const cublasLtMatmulAlgo_t &algorithm,
                            uint64_t workspaceBytes) {
    if (run(call, algorithm, workspaceBytes) != CUBLAS_STATUS_SUCCESS)
      return std::nullopt;
    std::optional<float> best;
    for (int round = 0; round < rounds; ++round) {
      const char *what = "timing matrix products";
      cuda::check(drivers, drivers.driver->cuEventRecord(start, stream), what);
      for (int i = 0; i < runs; ++i)
        call.check(call.run(algorithm, workspace, workspaceBytes, stream), "a run");
      cuda::check(drivers, drivers.driver->cuEventRecord(end, stream), what);
      cuda::check(drivers, drivers.driver->cuEventSynchronize(end), what);
      float milliseconds = 0;
      cuda::check(drivers, drivers.driver->cuEventElapsedTime(&milliseconds, start, end), what);
      float each = milliseconds * 1000 / runs;
      best = best ? std::min(*best, each) : each;
    }
    return best;
  }

private:
  /// Without memory an algorithm can still be asked for; it depends on alignments alone.
  CUdeviceptr base() const { return memory ? memory : 4096; }

  const Drivers &drivers;
  CUstream stream;
  CUevent start = nullptr, end = nullptr;
  CUdeviceptr memory = 0, workspace = 0;
};

Products::Products(const Drivers &drivers, std::string name, int capability, int processors)
    : drivers(drivers), deviceName(std::move(name)), capability(capability),
      processors(processors) {
  // The name is part of a line of the file.
  std::ranges::replace_if(
      deviceName, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  cublasStatus_t status = drivers.library->cublasLtCreate(&handle);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(fmt::format("cuBLASLt does not start on {}: {} ({})", deviceName,
                            drivers.library->cublasLtGetStatusString(status),
                            static_cast<int>(status)));
}

Products::~Products() {
  bounds.clear();
  if (handle)
    drivers.library->cublasLtDestroy(handle);
}

/// Where, in the workspace of the kernels, that of the library begins.
uint64_t Products::workspaceOffset(const descent_product &product) const {
  uint64_t end = 0;
  forEachPlace(product, [&](const descent_place &place, CUdeviceptr ProductAddresses::*) {
    if (place.operand == DESCENT_WORKSPACE)
      end = std::max(end, aligned(place.offset + place.bytes));
  });
  return end;
}

uint64_t Products::workspaceLimit(const descent_product &product) const {
  uint64_t offset = workspaceOffset(product);
  return offset < workspaceBytes
             ? std::min(workspaceBytes - offset, libraryWorkspaceBytes(capability))
             : 0;
}

std::string Products::keyOf(const descent_product &p) const {
  std::string key = fmt::format(
      "cuBLASLt {} | {} | {} SMs | {}x{}x{} batch {} | ld {} {} {} {} | stride {} {} {} | {}{} | "
      "compute {} epilogue {} accumulate {} | workspace {} |",
      drivers.library->cublasLtGetVersion(), deviceName, processors, p.m, p.n, p.k, p.batch, p.lda,
      p.ldb, p.ldd, p.ld_aux, p.stride_a, p.stride_b, p.stride_d, p.transpose_a ? 'T' : 'N',
      p.transpose_b ? 'T' : 'N', p.compute, p.epilogue, p.accumulate, workspaceLimit(p));
  forEachPlace(p, [&](const descent_place &place, CUdeviceptr ProductAddresses::*) {
    key += fmt::format(" {}@{}", place.dtype, place.offset % operandAlignment);
  });
  return key;
}

static void
forEachProduct(const char *kernel, const descent_command *commands, uint64_t count,
               const std::function<void(const char *, const descent_product &)> &visit) {
  for (uint64_t i = 0; i < count; ++i)
    if (commands[i].kind == DESCENT_COMMAND_PRODUCT) {
      visit(kernel, *commands[i].product);
      forEachProduct(kernel, commands[i].product->otherwise, commands[i].product->otherwise_count,
                     visit);
    }
}

std::optional<ProductChoice> Products::pick(const char *kernel, const descent_product &product,
                                            bool measure, Trial &trial) {
  uint64_t limit = workspaceLimit(product);
  ProductCall call(drivers, handle, product, trial.place(product));
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  auto algorithms = call.algorithms(limit, mostAlgorithms, status);
  std::optional<ProductChoice> best;
  if (!trial.hasMemory() || !measure) {
    for (const auto &candidate : algorithms)
      if (!best &&
          (!trial.hasMemory() || trial.run(call, candidate.algo, limit) == CUBLAS_STATUS_SUCCESS))
        best = ProductChoice{candidate.algo, 0};
  } else if (!algorithms.empty()) {
    ++measurements;
    float first = 0;
    for (const auto &candidate : algorithms) {
      std::optional<float> time = trial.time(call, candidate.algo, limit);
      if (!time)
        continue;
      if (!best)
        first = *time;
      if (!best || (*time < first * clearlyFaster && *time < best->microseconds))
        best = ProductChoice{candidate.algo, *time};
    }
  }
  if (best)
    return best;
  std::string reason =
      status == CUBLAS_STATUS_SUCCESS
          ? "offers no algorithm"
          : fmt::format("has none ({})", drivers.library->cublasLtGetStatusString(status));
  if (product.otherwise_count == 0)
    throw Error(fmt::format(
        "kernel {} needs the matrix product {} of cuBLASLt, and version {} {} on {}; the program "
        "holds no other code for it: a newer cuBLASLt, or another precision.compute, would do",
        kernel, describe(product), drivers.library->cublasLtGetVersion(), reason, deviceName));
  bool sums =
      product.epilogue == DESCENT_EPILOGUE_BGRAD_A || product.epilogue == DESCENT_EPILOGUE_BGRAD_B;
  remarks.push_back(fmt::format("kernel {} {} by generated code: cuBLASLt {} for {}", kernel,
                                sums ? "adds up an operand" : "runs", reason, describe(product)));
  return std::nullopt;
}

void Products::choose(const descent_program &program, const Options &options, CUstream stream) {
  workspaceBytes = program.memory.device_workspace;
  uint64_t most = 0;
  std::vector<std::pair<const char *, const descent_product *>> all;
  for (uint64_t i = 0; i < program.kernel_count; ++i)
    forEachProduct(program.kernels[i].name, program.kernels[i].commands,
                   program.kernels[i].command_count,
                   [&](const char *kernel, const descent_product &product) {
                     all.push_back({kernel, &product});
                     most = std::max(most, Trial::bytesFor(product) + workspaceLimit(product));
                   });
  if (all.empty())
    return;

  ProductChoices known;
  if (!options.file.empty())
    known = readChoices(options.file, remarks);
  Trial trial(drivers, stream);
  if (CUresult result = trial.reserve(most); result != CUDA_SUCCESS)
    remarks.push_back(fmt::format("no {} bytes of device memory to try matrix products in ({}); "
                                  "the library's own choice is taken, and not kept",
                                  most, errorText(drivers, result)));

  std::map<std::string, std::optional<ProductChoice>> decided; // equal products are decided once
  ProductChoices fresh;
  for (auto [kernel, product] : all) {
    std::string key = keyOf(*product);
    auto [entry, first] = decided.insert({key, std::nullopt});
    if (!first)
      continue;
    if (auto found = known.find(key); found != known.end()) {
      // A file may have been made by a library that says the same version and is another.
      uint64_t limit = workspaceLimit(*product);
      ProductCall call(drivers, handle, *product, trial.place(*product));
      if (call.accepts(found->second.algorithm, limit) &&
          (!trial.hasMemory() ||
           trial.run(call, found->second.algorithm, limit) == CUBLAS_STATUS_SUCCESS)) {
        entry->second = found->second;
        continue;
      }
      remarks.push_back(fmt::format("{} holds an algorithm for {} that cuBLASLt does not accept; "
                                    "another is chosen for this run",
                                    options.file, describe(*product)));
    }
    entry->second = pick(kernel, *product, options.measure, trial);
    if (entry->second && trial.hasMemory())
      fresh.insert({key, *entry->second});
  }
  if (!fresh.empty() && !options.file.empty()) {
    mergeChoices(options.file, fresh, remarks);
    for (const auto &[key, choice] : fresh)
      decided[key] = choice;
  }
  for (auto [kernel, product] : all) {
    const std::optional<ProductChoice> &choice = decided[keyOf(*product)];
    // Equal products may differ in what could run instead.
    if (!choice && product->otherwise_count == 0)
      throw Error(fmt::format("kernel {} needs the matrix product {}, for which cuBLASLt {} has no "
                              "algorithm on {}, and the program no other code",
                              kernel, describe(*product), drivers.library->cublasLtGetVersion(),
                              deviceName));
    chosen[product] = choice ? std::optional(choice->algorithm) : std::nullopt;
  }
}

bool Products::isAvailable(const descent_product &product) const {
  auto found = chosen.find(&product);
  return found != chosen.end() && found->second;
}

size_t Products::bind(const descent_product &product, const CUdeviceptr *operands,
                      CUdeviceptr workspace) {
  auto found = chosen.find(&product);
  if (found == chosen.end() || !found->second)
    throw Error(
        fmt::format("no algorithm was chosen for the matrix product {}", describe(product)));
  ProductAddresses addresses;
  forEachPlace(product, [&](const descent_place &place, CUdeviceptr ProductAddresses::*field) {
    CUdeviceptr base = place.operand == DESCENT_WORKSPACE ? workspace : operands[place.operand];
    // Algorithms were chosen for places in operands that are aligned so.
    if (base % operandAlignment)
      throw Error(fmt::format("an operand of the matrix product {} lies at 0x{:x}, which is no "
                              "multiple of {}: the plan is broken",
                              describe(product), base, operandAlignment));
    addresses.*field = base + place.offset;
  });
  bounds.push_back(std::unique_ptr<Bound>(
      new Bound{ProductCall(drivers, handle, product, addresses), *found->second,
                workspace + workspaceOffset(product), workspaceLimit(product)}));
  return bounds.size() - 1;
}

void Products::enqueue(size_t bound, CUstream stream) const {
  const Bound &b = *bounds[bound];
  b.call.check(b.call.run(b.algorithm, b.workspace, b.workspaceBytes, stream), "a run");
}
