//===- StreamsTest.cpp - The emulated driver: order, asynchrony, memory ---------------------===//

#include "test/runtime/emulator/Driven.h"

#include <algorithm>

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
