//===- Driver.h - The libraries of CUDA, opened at run time ---------------------------------===//
//
// A training program links no library of CUDA: it opens the driver and cuBLASLt when it starts, or
// uses tables that the emulator answers on the CPU. Everything is called through the tables here,
// one field per function, named as CUDA's manuals name it.
//
// Symbols are exact: `cuMemAlloc` is exported too, with the interface of CUDA 2.0, and would
// resolve without an error; what CUDA's header makes of the name is `cuMemAlloc_v2`.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CUDA_DRIVER_H
#define DESCENT_RUNTIME_CUDA_DRIVER_H

#include "runtime/cuda/Cuda.h"

#include <string>
#include <vector>

namespace descent::cuda {

/// X(field, exported symbol, result, parameters). All are in drivers of CUDA 12.0.
#define DESCENT_CUDA_DRIVER(X)                                                                     \
  X(cuInit, "cuInit", CUresult, (unsigned flags))                                                  \
  X(cuDriverGetVersion, "cuDriverGetVersion", CUresult, (int *version))                            \
  X(cuGetErrorName, "cuGetErrorName", CUresult, (CUresult error, const char **text))               \
  X(cuGetErrorString, "cuGetErrorString", CUresult, (CUresult error, const char **text))           \
  X(cuDeviceGetCount, "cuDeviceGetCount", CUresult, (int *count))                                  \
  X(cuDeviceGet, "cuDeviceGet", CUresult, (CUdevice * device, int ordinal))                        \
  X(cuDeviceGetName, "cuDeviceGetName", CUresult, (char *name, int length, CUdevice device))       \
  X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", CUresult, (CUuuid * uuid, CUdevice device))             \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", CUresult, (size_t * bytes, CUdevice device))          \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", CUresult,                                        \
    (int *value, CUdevice_attribute attribute, CUdevice device))                                   \
  /* The primary context is the one that cuBLASLt and NCCL use. Retaining does not make it         \
   * current; every thread of the host does that for itself. */                                    \
  X(cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", CUresult,                         \
    (CUdevice device, unsigned flags))                                                             \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUresult,                                \
    (CUcontext * context, CUdevice device))                                                        \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", CUresult, (CUdevice device))        \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", CUresult, (CUcontext context))                             \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", CUresult, (CUcontext * context))                           \
  X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", CUresult,                          \
    (int *least, int *greatest))                                                                   \
  X(cuCtxSynchronize, "cuCtxSynchronize", CUresult, ())                                            \
  /* `image` is a cubin, or PTX that ends in a zero byte; for the emulator, the address of a       \
   * descent_emulated_module. */                                                                   \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", CUresult,                                            \
    (CUmodule * module, const void *image, unsigned options, CUjit_option *names, void **values))  \
  X(cuModuleUnload, "cuModuleUnload", CUresult, (CUmodule module))                                 \
  X(cuModuleGetFunction, "cuModuleGetFunction", CUresult,                                          \
    (CUfunction * function, CUmodule module, const char *name))                                    \
  X(cuModuleGetGlobal, "cuModuleGetGlobal_v2", CUresult,                                           \
    (CUdeviceptr * address, size_t * bytes, CUmodule module, const char *name))                    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", CUresult,                                            \
    (int *value, CUfunction_attribute attribute, CUfunction function))                             \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", CUresult,                                            \
    (CUfunction function, CUfunction_attribute attribute, int value))                              \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
    CUresult, (int *blocks, CUfunction function, int threads, size_t dynamicShared))               \
  /* The array `parameters` should end in a null pointer behind the last parameter: the driver     \
   * does not look there, the emulator counts by it. */                                            \
  X(cuLaunchKernel, "cuLaunchKernel", CUresult,                                                    \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,         \
     unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream, void **parameters,   \
     void **extra))                                                                                \
  X(cuMemGetInfo, "cuMemGetInfo_v2", CUresult, (size_t * free, size_t * total))                    \
  X(cuMemAlloc, "cuMemAlloc_v2", CUresult, (CUdeviceptr * address, size_t bytes))                  \
  X(cuMemFree, "cuMemFree_v2", CUresult, (CUdeviceptr address))                                    \
  X(cuMemHostAlloc, "cuMemHostAlloc", CUresult, (void **address, size_t bytes, unsigned flags))    \
  X(cuMemFreeHost, "cuMemFreeHost", CUresult, (void *address))                                     \
  X(cuMemHostRegister, "cuMemHostRegister_v2", CUresult,                                           \
    (void *address, size_t bytes, unsigned flags))                                                 \
  X(cuMemHostUnregister, "cuMemHostUnregister", CUresult, (void *address))                         \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", CUresult,                                           \
    (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                             \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", CUresult,                                           \
    (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                   \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", CUresult,                                           \
    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                             \
  X(cuMemsetD8Async, "cuMemsetD8Async", CUresult,                                                  \
    (CUdeviceptr address, unsigned char value, size_t count, CUstream stream))                     \
  X(cuMemsetD32Async, "cuMemsetD32Async", CUresult,                                                \
    (CUdeviceptr address, unsigned value, size_t count, CUstream stream))                          \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", CUresult,                            \
    (CUstream * stream, unsigned flags, int priority))                                             \
  X(cuStreamDestroy, "cuStreamDestroy_v2", CUresult, (CUstream stream))                            \
  X(cuStreamSynchronize, "cuStreamSynchronize", CUresult, (CUstream stream))                       \
  X(cuStreamQuery, "cuStreamQuery", CUresult, (CUstream stream))                                   \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", CUresult,                                              \
    (CUstream stream, CUevent event, unsigned flags))                                              \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", CUresult,                                     \
    (CUstream stream, CUstreamCaptureMode mode))                                                   \
  X(cuStreamEndCapture, "cuStreamEndCapture", CUresult, (CUstream stream, CUgraph * graph))        \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", CUresult,                                          \
    (CUstream stream, CUstreamCaptureStatus * status))                                             \
  X(cuEventCreate, "cuEventCreate", CUresult, (CUevent * event, unsigned flags))                   \
  X(cuEventDestroy, "cuEventDestroy_v2", CUresult, (CUevent event))                                \
  X(cuEventRecord, "cuEventRecord", CUresult, (CUevent event, CUstream stream))                    \
  X(cuEventRecordWithFlags, "cuEventRecordWithFlags", CUresult,                                    \
    (CUevent event, CUstream stream, unsigned flags))                                              \
  X(cuEventQuery, "cuEventQuery", CUresult, (CUevent event))                                       \
  X(cuEventSynchronize, "cuEventSynchronize", CUresult, (CUevent event))                           \
  X(cuEventElapsedTime, "cuEventElapsedTime", CUresult,                                            \
    (float *milliseconds, CUevent start, CUevent end))                                             \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", CUresult,                                   \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                           \
  X(cuGraphUpload, "cuGraphUpload", CUresult, (CUgraphExec executable, CUstream stream))           \
  X(cuGraphLaunch, "cuGraphLaunch", CUresult, (CUgraphExec executable, CUstream stream))           \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", CUresult, (CUgraphExec executable))                  \
  X(cuGraphDestroy, "cuGraphDestroy", CUresult, (CUgraph graph))

/// The same, null in drivers that are older than the version behind the name.
#define DESCENT_CUDA_DRIVER_OPTIONAL(X)                                                            \
  /* 12.4. Loads a function's code, which the first launch would do: not possible in a capture. */ \
  X(cuFuncLoad, "cuFuncLoad", CUresult, (CUfunction function))                                     \
  /* 12.4. CUDA_ERROR_INVALID_VALUE behind the last parameter. */                                  \
  X(cuFuncGetParamInfo, "cuFuncGetParamInfo", CUresult,                                            \
    (CUfunction function, size_t index, size_t * offset, size_t * bytes))

/// All are in cuBLASLt of CUDA 12.0.
#define DESCENT_CUBLASLT(X)                                                                        \
  X(cublasLtGetVersion, "cublasLtGetVersion", size_t, ())                                          \
  X(cublasLtGetStatusString, "cublasLtGetStatusString", const char *, (cublasStatus_t status))     \
  X(cublasLtCreate, "cublasLtCreate", cublasStatus_t, (cublasLtHandle_t * handle))                 \
  X(cublasLtDestroy, "cublasLtDestroy", cublasStatus_t, (cublasLtHandle_t handle))                 \
  X(cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate", cublasStatus_t,                          \
    (cublasLtMatmulDesc_t * description, cublasComputeType_t compute, cudaDataType_t scale))       \
  X(cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy", cublasStatus_t,                        \
    (cublasLtMatmulDesc_t description))                                                            \
  X(cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", cublasStatus_t,              \
    (cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,                   \
     const void *value, size_t bytes))                                                             \
  X(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate", cublasStatus_t,                      \
    (cublasLtMatrixLayout_t * layout, cudaDataType_t type, uint64_t rows, uint64_t columns,        \
     int64_t leading))                                                                             \
  X(cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", cublasStatus_t,                    \
    (cublasLtMatrixLayout_t layout))                                                               \
  X(cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute", cublasStatus_t,          \
    (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void *value,  \
     size_t bytes))                                                                                \
  X(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", cublasStatus_t,              \
    (cublasLtMatmulPreference_t * preference))                                                     \
  X(cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", cublasStatus_t,            \
    (cublasLtMatmulPreference_t preference))                                                       \
  X(cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute", cublasStatus_t,  \
    (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,        \
     const void *value, size_t bytes))                                                             \
  X(cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic", cublasStatus_t,              \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,          \
     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                 \
     cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t *results,  \
     int *found))                                                                                  \
  X(cublasLtMatmulAlgoCheck, "cublasLtMatmulAlgoCheck", cublasStatus_t,                            \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,          \
     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                 \
     const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result))              \
  X(cublasLtMatmulAlgoConfigGetAttribute, "cublasLtMatmulAlgoConfigGetAttribute", cublasStatus_t,  \
    (const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,        \
     void *value, size_t bytes, size_t *written))                                                  \
  X(cublasLtMatmul, "cublasLtMatmul", cublasStatus_t,                                              \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha, const void *a,  \
     cublasLtMatrixLayout_t aLayout, const void *b, cublasLtMatrixLayout_t bLayout,                \
     const void *beta, const void *c, cublasLtMatrixLayout_t cLayout, void *d,                     \
     cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,       \
     size_t workspaceBytes, CUstream stream))

/// What collectives of data parallelism will call, on the communication stream. Not opened yet.
#define DESCENT_NCCL(X)                                                                            \
  X(ncclGetVersion, "ncclGetVersion", ncclResult_t, (int *version))                                \
  X(ncclGetErrorString, "ncclGetErrorString", const char *, (ncclResult_t result))                 \
  X(ncclGetLastError, "ncclGetLastError", const char *, (ncclComm_t communicator))                 \
  X(ncclGetUniqueId, "ncclGetUniqueId", ncclResult_t, (ncclUniqueId * id))                         \
  X(ncclCommInitRank, "ncclCommInitRank", ncclResult_t,                                            \
    (ncclComm_t * communicator, int ranks, ncclUniqueId id, int rank))                             \
  X(ncclCommGetAsyncError, "ncclCommGetAsyncError", ncclResult_t,                                  \
    (ncclComm_t communicator, ncclResult_t * result))                                              \
  X(ncclCommDestroy, "ncclCommDestroy", ncclResult_t, (ncclComm_t communicator))                   \
  X(ncclCommAbort, "ncclCommAbort", ncclResult_t, (ncclComm_t communicator))                       \
  X(ncclAllReduce, "ncclAllReduce", ncclResult_t,                                                  \
    (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation,         \
     ncclComm_t communicator, CUstream stream))                                                    \
  X(ncclReduceScatter, "ncclReduceScatter", ncclResult_t,                                          \
    (const void *from, void *to, size_t received, ncclDataType_t type, ncclRedOp_t operation,      \
     ncclComm_t communicator, CUstream stream))                                                    \
  X(ncclAllGather, "ncclAllGather", ncclResult_t,                                                  \
    (const void *from, void *to, size_t sent, ncclDataType_t type, ncclComm_t communicator,        \
     CUstream stream))                                                                             \
  X(ncclBroadcast, "ncclBroadcast", ncclResult_t,                                                  \
    (const void *from, void *to, size_t count, ncclDataType_t type, int root,                      \
     ncclComm_t communicator, CUstream stream))                                                    \
  X(ncclGroupStart, "ncclGroupStart", ncclResult_t, ())                                            \
  X(ncclGroupEnd, "ncclGroupEnd", ncclResult_t, ())

#define DESCENT_DECLARE_FIELD(field, symbol, result, parameters) result(*field) parameters;
struct Driver {
  DESCENT_CUDA_DRIVER(DESCENT_DECLARE_FIELD)
  DESCENT_CUDA_DRIVER_OPTIONAL(DESCENT_DECLARE_FIELD)
};
struct Library {
  DESCENT_CUBLASLT(DESCENT_DECLARE_FIELD)
};
struct Collectives {
  DESCENT_NCCL(DESCENT_DECLARE_FIELD)
};
#undef DESCENT_DECLARE_FIELD

/// A stretch of device memory with a name for messages.
struct NamedRange {
  CUdeviceptr address;
  uint64_t bytes;
  const char *name;
};

/// What only an emulator can be told; hardware has no such table.
struct Emulation {
  /// The next launch by this thread may touch these ranges of global memory and no others, whatever
  /// allocation they lie in: tensors of one arena are not told apart otherwise. Copied.
  void (*limitNextLaunch)(const NamedRange *ranges, uint64_t count);
  /// The bytes hold nothing from here on, in the order of the stream: reading them before writing
  /// them is reported.
  CUresult (*forget)(CUdeviceptr address, uint64_t bytes, CUstream stream);
  /// What messages call the allocation that holds the address. Copied.
  void (*nameAllocation)(CUdeviceptr address, const char *name);
  /// What was wrong with the last call that failed, or null.
  const char *(*lastMessage)();
};

/// What a program runs on. The tables live as long as the process.
struct Drivers {
  const Driver *driver = nullptr;
  const Library *library = nullptr;     ///< null where it was not asked for
  const Emulation *emulation = nullptr; ///< null on hardware
};

/// Oldest driver that has all of DESCENT_CUDA_DRIVER and takes the PTX that is emitted (8.0).
inline constexpr int oldestDriver = 12000;

/// Where to look; tests name libraries of their own.
struct DriverNames {
  std::vector<std::string> driver = {"libcuda.so.1"};
  /// By CUDA's version, the newest first: one of CUDA 13 needs a driver of CUDA 13.
  std::vector<std::string> library13 = {"libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13"};
  std::vector<std::string> library12 = {"libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12"};
};

/// Opens the driver, initialises it, and opens cuBLASLt if `withLibrary`. Throws Error: no driver,
/// one that is too old, no device, no cuBLASLt, or one that is too new for the driver.
Drivers openDrivers(bool withLibrary, const DriverNames &names = {});

/// "CUDA 12.4" of 12040.
std::string versionText(int version);

/// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)", with the emulator's message where there is one.
std::string errorText(const Drivers &drivers, CUresult result);

/// Throws Error "WHAT failed: ..." unless the result is CUDA_SUCCESS.
void check(const Drivers &drivers, CUresult result, const std::string &what);

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_DRIVER_H
