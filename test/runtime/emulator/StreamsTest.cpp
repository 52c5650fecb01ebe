//===- StreamsTest.cpp - The emulated driver: order, asynchrony, memory ---------------------===//

#include "test/runtime/emulator/Driven.h"

#include <algorithm>
#include <thread>

using namespace descent;
using namespace descent::emulator;
using namespace descent::emulator::driven;

namespace {

class EmulatedStreams : public Driven {
protected:
  /// Copies in on the second stream, a kernel on the first; `ordered` records the event between.
  float copyAndAdd(bool ordered) {
    CUdeviceptr x = allocate(256), y = allocate(256);
    EXPECT_EQ(cu.cuMemsetD32Async(x, 0, 64, first), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_SUCCESS);
    float *host = pin(64), *result = pin(1);
    for (int i = 0; i < 64; ++i)
      host[i] = 10;
    cu.cuMemcpyHtoDAsync(x, host, 256, second);
    CUevent ready = event();
    if (ordered) {
      cu.cuEventRecord(ready, second);
      cu.cuStreamWaitEvent(first, ready, 0);
    }
    launchAdd(x, y, 1, first);
    cu.cuMemcpyDtoHAsync(result, y, 4, first);
    status = cu.cuStreamSynchronize(first);
    status = std::max(status, cu.cuStreamSynchronize(second));
    return *result;
  }
  CUresult status = CUDA_SUCCESS;
};

} // namespace

TEST_F(EmulatedStreams, OrderedWorkIsRightInEveryOrder) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    begin(seed == 0   ? DriverSettings::Eager
          : seed == 1 ? DriverSettings::Late
                      : DriverSettings::Shuffled,
          seed);
    EXPECT_EQ(copyAndAdd(true), 11);
    EXPECT_EQ(status, CUDA_SUCCESS) << lastMessage();
  }
}

// The planted fault of the late order: the kernel runs although the copy was enqueued before it.
TEST_F(EmulatedStreams, AMissingEventShowsInTheResult) {
  beginUnchecked(DriverSettings::Eager);
  EXPECT_EQ(copyAndAdd(false), 11);
  beginUnchecked(DriverSettings::Late);
  EXPECT_EQ(copyAndAdd(false), 1);
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    beginUnchecked(DriverSettings::Shuffled, seed);
    wrong += copyAndAdd(false) != 11;
  }
  EXPECT_GT(wrong, 0);
  EXPECT_LT(wrong, 16);
}

// The check between streams needs no luck: it finds the same in every order.
TEST_F(EmulatedStreams, AMissingEventIsReportedInEveryOrder) {
  for (DriverSettings::Kind order :
       {DriverSettings::Eager, DriverSettings::Late, DriverSettings::Shuffled}) {
    begin(order, 3);
    copyAndAdd(false);
    EXPECT_NE(status, CUDA_SUCCESS);
    expectMessage({"unordered access", "kernel 'add' on stream 1",
                   "copy of 256 bytes to the device", "stream 2", "cuStreamWaitEvent"});
  }
}

// Waiting for an event is waiting for what it stands behind, and orders what the host enqueues
// next.
TEST_F(EmulatedStreams, WhatTheHostWaitedForIsOrdered) {
  begin();
  CUdeviceptr x = allocate(256);
  CUevent done = event();
  cu.cuMemsetD32Async(x, 0, 64, first);
  cu.cuEventRecord(done, first);
  EXPECT_EQ(cu.cuEventSynchronize(done), CUDA_SUCCESS);
  EXPECT_EQ(launchAdd(x, x, 2, second), CUDA_SUCCESS);
  EXPECT_EQ(read(x, second), 2);
}

// A query does not wait, but who asks again and again comes to an end.
TEST_F(EmulatedStreams, AQueryLetsTimePass) {
  begin();
  CUdeviceptr x = allocate(256);
  CUevent done = event();
  cu.cuMemsetD32Async(x, 0, 64, first);
  cu.cuEventRecord(done, first);
  EXPECT_EQ(cu.cuEventQuery(done), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cu.cuStreamQuery(second), CUDA_SUCCESS);
  CUresult result = CUDA_ERROR_NOT_READY;
  for (int i = 0; i < 4 && result == CUDA_ERROR_NOT_READY; ++i)
    result = cu.cuEventQuery(done);
  EXPECT_EQ(result, CUDA_SUCCESS);
}

TEST_F(EmulatedStreams, PinnedMemoryIsReadWhenTheCopyRuns) {
  begin();
  CUdeviceptr x = allocate(256);
  float *host = pin(64);
  std::fill_n(host, 64, 1.0f);
  cu.cuMemcpyHtoDAsync(x, host, 256, first);
  host[3] = 2; // too early
  EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_ERROR_LAUNCH_FAILED);
  expectMessage({"changed while a copy from it was pending", "event behind the copy"});
}

// As the driver does: such a copy has taken the bytes, or brought them, when it returns.
TEST_F(EmulatedStreams, PageableCopiesAreSynchronous) {
  begin();
  CUdeviceptr x = allocate(8);
  float host[2] = {1, 2}, back[2] = {};
  cu.cuMemcpyHtoDAsync(x, host, 8, first);
  host[0] = 7;
  EXPECT_EQ(cu.cuMemcpyDtoHAsync(back, x, 8, first), CUDA_SUCCESS);
  EXPECT_EQ(back[0], 1);
  EXPECT_EQ(back[1], 2);
}

// A result is not there before the host has waited for it.
TEST_F(EmulatedStreams, ACopyToTheHostTakesItsTime) {
  begin();
  CUdeviceptr x = allocate(4);
  float *host = pin(1);
  *host = 5;
  cu.cuMemsetD32Async(x, 0, 1, first);
  cu.cuMemcpyDtoHAsync(host, x, 4, first);
  EXPECT_NE(*host, 0);
  cu.cuStreamSynchronize(first);
  EXPECT_EQ(*host, 0);
}

TEST_F(EmulatedStreams, HostPointersAreNamed) {
  begin();
  CUdeviceptr x = allocate(256);
  float host[64] = {};
  auto address = reinterpret_cast<CUdeviceptr>(host);
  EXPECT_EQ(cu.cuMemcpyHtoDAsync(address, host, 256, first), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"cuMemcpyHtoDAsync: argument `to`", "a host pointer"});
  EXPECT_EQ(cu.cuMemcpyDtoHAsync(reinterpret_cast<void *>(x), x, 4, first),
            CUDA_ERROR_INVALID_VALUE);
  expectMessage({"cuMemcpyDtoHAsync: argument `to`", "an address of the device"});
  EXPECT_EQ(cu.cuMemsetD8Async(address, 0, 4, first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launchAdd(x, address, 1, first), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"cuLaunchKernel of 'add': argument 1 ('to')", "a host pointer"});
}

TEST_F(EmulatedStreams, MemoryIsGivenBackOnceAndWhenNobodyUsesIt) {
  begin();
  CUdeviceptr x = allocate(256), y = allocate(256);
  cu.cuMemsetD32Async(x, 0, 64, first);
  EXPECT_EQ(cu.cuMemFree(x), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"cuMemFree of allocation 1 while fill of 256 bytes on stream 1",
                 "has not run, uses it", "cuStreamSynchronize"});
  cu.cuStreamSynchronize(first);
  EXPECT_EQ(cu.cuMemFree(x), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFree(x), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"double free of allocation 1 (256 bytes"});
  EXPECT_EQ(cu.cuMemFree(y + 4), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"not the start of an allocation", "byte 4 of allocation 2"});
  EXPECT_EQ(cu.cuMemFree(0), CUDA_SUCCESS);
  EXPECT_EQ(launchAdd(x, y, 1, first), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"argument 0 ('from')", "allocation 1, which was freed"});
}

TEST_F(EmulatedStreams, PinnedMemoryStaysWhileACopyIsPending) {
  begin();
  CUdeviceptr x = allocate(256);
  float *host = pin(64);
  std::vector<float> registered(64, 1.0f);
  EXPECT_EQ(cu.cuMemHostRegister(registered.data(), 256, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemHostRegister(registered.data() + 8, 4, 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  cu.cuMemcpyHtoDAsync(x, host, 256, first);
  cu.cuMemcpyHtoDAsync(x, registered.data(), 256, first);
  EXPECT_EQ(cu.cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
  expectMessage(
      {"cuMemFreeHost of 256 bytes of host memory while copy of 256 bytes to the device"});
  EXPECT_EQ(cu.cuMemHostUnregister(registered.data()), CUDA_ERROR_INVALID_VALUE);
  cu.cuStreamSynchronize(first);
  EXPECT_EQ(cu.cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFreeHost(registered.data()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu.cuMemHostUnregister(registered.data()), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemHostUnregister(registered.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(EmulatedStreams, LaunchesAreChecked) {
  begin();
  CUdeviceptr x = allocate(256);
  float value = 1;
  auto launch = [&](std::vector<void *> parameters) {
    return cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, first, parameters.data(), nullptr);
  };
  EXPECT_EQ(launch({&x, &x, nullptr}), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"'add': 2 values are given; it has 3 parameters", "parameter 2 is a float"});
  EXPECT_EQ(launch({&x, &x, &value, &value, nullptr}), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"more values are given than its 3 parameters"});
  struct {
    CUdeviceptr from, to;
    float value;
  } packed{x, x, 1};
  size_t size = 20;
  void *extra[] = {reinterpret_cast<void *>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), &packed,
                   reinterpret_cast<void *>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size, nullptr};
  cu.cuMemsetD32Async(x, 0, 64, first);
  EXPECT_EQ(cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, first, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(read(x, first), 1);
  size = 24;
  EXPECT_EQ(cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, first, nullptr, extra),
            CUDA_ERROR_INVALID_VALUE);
  expectMessage({"the buffer of parameters has 24 bytes; its 3 parameters take 20"});
  EXPECT_EQ(cu.cuLaunchKernel(add, 1, 1, 1, 1025, 1, 1, 0, first, nullptr, extra),
            CUDA_ERROR_INVALID_VALUE);
  size_t offset = 0, bytes = 0;
  EXPECT_EQ(cu.cuFuncGetParamInfo(add, 2, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(offset, 16u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(cu.cuFuncGetParamInfo(add, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedStreams, MuchSharedMemoryIsAskedFor) {
  begin();
  CUdeviceptr x = allocate(4);
  EXPECT_EQ(launchShared(x, first, 49152), CUDA_SUCCESS);
  EXPECT_EQ(launchShared(x, first, 49153), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"49153 bytes of dynamic shared memory", "cuFuncSetAttribute"});
  auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EXPECT_EQ(cu.cuFuncSetAttribute(shared, attribute, 100000), CUDA_SUCCESS);
  EXPECT_EQ(launchShared(x, first, 100000), CUDA_SUCCESS);
  EXPECT_EQ(read(x, first), 3);
  EXPECT_EQ(cu.cuFuncSetAttribute(shared, attribute, 166913), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"166912 in all"});
}

// A fault belongs to the work, not to the call that enqueued it, and the device is lost.
TEST_F(EmulatedStreams, AFaultIsSticky) {
  begin();
  CUdeviceptr x = allocate(128), y = allocate(256);
  cu.cuMemsetD32Async(x, 0, 32, first);
  EXPECT_EQ(launchAdd(x, y, 1, first, 64), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectMessage({"out of bounds read of 4 bytes", "behind the end of allocation 1",
                 "the operation: kernel 'add' on stream 1"});
  EXPECT_EQ(cu.cuMemsetD32Async(y, 0, 1, second), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu.cuMemFree(x), CUDA_SUCCESS); // what a program does at its end
}

// Tensors of one arena: the runtime says which parts a launch may touch.
TEST_F(EmulatedStreams, ALaunchMayBeLimitedToItsOperands) {
  begin();
  CUdeviceptr arena = allocate(1024);
  cu.cuMemsetD32Async(arena, 0, 256, first);
  const Emulation &emulation = *descent_emulated_drivers.emulation;
  emulation.nameAllocation(arena, "the arena");
  NamedRange operands[] = {{arena, 256, "x"}, {arena + 256, 128, "y"}};
  emulation.limitNextLaunch(operands, 2);
  EXPECT_EQ(launchAdd(arena, arena + 256, 1, first, 32), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_SUCCESS);
  emulation.limitNextLaunch(operands, 2);
  EXPECT_EQ(launchAdd(arena, arena + 256, 1, first, 64), CUDA_SUCCESS);
  EXPECT_NE(cu.cuStreamSynchronize(first), CUDA_SUCCESS);
  expectMessage({"out of bounds write of 4 bytes: outside of the launch's operands",
                 "behind the end of y (128 bytes)", "of the arena"});
}

// A value of an earlier step is no value of this one.
TEST_F(EmulatedStreams, ForgottenMemoryIsNotInitialised) {
  begin();
  CUdeviceptr x = allocate(256);
  cu.cuMemsetD32Async(x, 0, 64, first);
  EXPECT_EQ(descent_emulated_drivers.emulation->forget(x, 256, first), CUDA_SUCCESS);
  launchAdd(x, x, 1, first);
  EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_ERROR_LAUNCH_FAILED);
  expectMessage({"uninitialised read"});
}

TEST_F(EmulatedStreams, HandlesOfDestroyedObjectsAreToldFromGarbage) {
  begin();
  CUevent done = event();
  EXPECT_EQ(cu.cuStreamDestroy(second), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuEventDestroy(done), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuEventRecord(done, first), CUDA_ERROR_INVALID_HANDLE);
  expectMessage({"event 1 was destroyed"});
  EXPECT_EQ(cu.cuStreamSynchronize(second), CUDA_ERROR_INVALID_HANDLE);
  expectMessage({"stream 2 was destroyed"});
  EXPECT_EQ(cu.cuStreamSynchronize(nullptr), CUDA_ERROR_NOT_SUPPORTED);
  expectMessage({"default stream"});
}

TEST_F(EmulatedStreams, MemoryEnds) {
  DriverSettings settings;
  settings.memory = 1 << 20;
  begin(settings);
  size_t free = 0, total = 0;
  CUdeviceptr big = 0;
  EXPECT_EQ(cu.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, size_t(1) << 20);
  EXPECT_EQ(cu.cuMemAlloc(&big, free + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu.cuMemAlloc(&big, free), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 0u);
}

TEST_F(EmulatedStreams, EveryThreadSetsItsContext) {
  begin();
  CUresult without = CUDA_SUCCESS, with = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    CUdeviceptr x = 0;
    without = cu.cuMemAlloc(&x, 4);
    cu.cuCtxSetCurrent(context);
    with = cu.cuMemAlloc(&x, 4);
  }).join();
  EXPECT_EQ(without, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(with, CUDA_SUCCESS);
}

// Calls are counted, so that a test can say that a loop does not wait.
TEST_F(EmulatedStreams, CallsAreCounted) {
  begin();
  descent_emulator_reset_calls();
  CUdeviceptr x = allocate(4);
  cu.cuMemsetD32Async(x, 0, 1, first);
  cu.cuMemsetD32Async(x, 0, 1, first);
  cu.cuStreamSynchronize(first);
  EXPECT_EQ(descent_emulator_calls("cuMemsetD32Async"), 2u);
  EXPECT_EQ(descent_emulator_calls("cuStreamSynchronize"), 1u);
  EXPECT_EQ(descent_emulator_calls("cuCtxSynchronize"), 0u);
}

// Work of a library is checked as a kernel is, and reads what was written before it in the stream.
TEST_F(EmulatedStreams, LibrariesEnqueueWork) {
  begin();
  CUdeviceptr x = allocate(256), y = allocate(4);
  cu.cuMemsetD32Async(x, 0, 64, first);
  launchAdd(x, x, 2, first);
  auto sum = [=](Work &work) {
    auto *from = reinterpret_cast<const float *>(work.read(x, 256, "the terms"));
    float total = 0;
    for (int i = 0; i < 64; ++i)
      total += from[i];
    std::memcpy(work.write(y, 4, "the sum"), &total, 4);
  };
  EXPECT_EQ(enqueue(first, "sum", {x, y}, sum), CUDA_SUCCESS);
  EXPECT_EQ(read(y, first), 128);
  EXPECT_EQ(
      enqueue(first, "sum of 65", {x, y}, [=](Work &work) { work.read(x, 260, "the terms"); }),
      CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectMessage({"the terms reads 260 bytes", "behind the end of allocation 1",
                 "the operation: sum of 65 on stream 1"});
}
