//===- GraphsTest.cpp - The emulated driver: capture and graphs -----------------------------===//

#include "test/runtime/emulator/Driven.h"

#include <algorithm>
#include <thread>

using namespace descent;
using namespace descent::emulator;
using namespace descent::emulator::driven;

namespace {

class EmulatedGraphs : public Driven {
protected:
  CUresult beginCapture(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    return cu.cuStreamBeginCapture(first, mode);
  }
  CUgraphExec endCapture() {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    EXPECT_EQ(cu.cuStreamEndCapture(first, &graph), CUDA_SUCCESS) << lastMessage();
    EXPECT_EQ(cu.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuGraphDestroy(graph), CUDA_SUCCESS);
    return executable;
  }
  void refuseEnd(CUresult expected) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cu.cuStreamEndCapture(first, &graph), expected);
    EXPECT_EQ(graph, nullptr);
  }
};

} // namespace

// A fork and a join: x + 1 on one stream, x + 2 on the other, then their sum in two additions.
TEST_F(EmulatedGraphs, ReplaysWhatWasCaptured) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    begin(seed == 0   ? DriverSettings::Eager
          : seed == 1 ? DriverSettings::Late
                      : DriverSettings::Shuffled,
          seed);
    CUdeviceptr x = allocate(256), a = allocate(256), b = allocate(256);
    CUevent fork = event(), join = event();
    cu.cuMemsetD32Async(x, 0, 64, first);
    ASSERT_EQ(beginCapture(), CUDA_SUCCESS);
    cu.cuEventRecord(fork, first);
    cu.cuStreamWaitEvent(second, fork, 0);
    launchAdd(x, a, 1, first);
    launchAdd(x, b, 2, second);
    cu.cuEventRecord(join, second);
    cu.cuStreamWaitEvent(first, join, 0);
    launchAdd(b, x, 10, first);
    CUgraphExec graph = endCapture();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    cu.cuStreamIsCapturing(second, &status);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    for (int step = 0; step < 3; ++step)
      EXPECT_EQ(cu.cuGraphLaunch(graph, first), CUDA_SUCCESS);
    EXPECT_EQ(read(x, first), 36);
    EXPECT_EQ(read(a, first), 25);
    EXPECT_EQ(cu.cuGraphExecDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuGraphLaunch(graph, first), CUDA_ERROR_INVALID_HANDLE);
  }
}

// Both branches write b and nothing orders them: every replay would be checked, the first says so.
TEST_F(EmulatedGraphs, BranchesAreCheckedForOrder) {
  begin();
  CUdeviceptr x = allocate(256), b = allocate(256);
  CUevent fork = event(), join = event();
  cu.cuMemsetD32Async(x, 0, 64, first);
  beginCapture();
  cu.cuEventRecord(fork, first);
  cu.cuStreamWaitEvent(second, fork, 0);
  launchAdd(x, b, 2, second);
  cu.cuEventRecord(join, second);
  launchAdd(b, x, 1, first); // should come behind the wait
  cu.cuStreamWaitEvent(first, join, 0);
  CUgraphExec graph = endCapture();
  EXPECT_EQ(cu.cuGraphLaunch(graph, first), CUDA_SUCCESS);
  EXPECT_NE(cu.cuStreamSynchronize(first), CUDA_SUCCESS);
  std::string message = lastMessage();
  EXPECT_TRUE(message.find("unordered access") != std::string::npos ||
              message.find("uninitialised") != std::string::npos)
      << message;
  EXPECT_NE(message.find("graph 1, branch of stream"), std::string::npos) << message;
}

TEST_F(EmulatedGraphs, AnUnjoinedStreamIsNamed) {
  begin();
  CUdeviceptr x = allocate(256), b = allocate(256);
  CUevent fork = event();
  beginCapture();
  cu.cuEventRecord(fork, first);
  cu.cuStreamWaitEvent(second, fork, 0);
  launchAdd(x, b, 2, second);
  refuseEnd(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  expectMessage({"stream 2 joined the capture, but nothing of stream 1 waits for its last work",
                 "kernel 'add'"});
}

TEST_F(EmulatedGraphs, WaitingInACaptureEndsIt) {
  begin();
  beginCapture();
  EXPECT_EQ(cu.cuStreamSynchronize(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expectMessage({"cuStreamSynchronize of stream 1, which is being captured"});
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cu.cuStreamIsCapturing(first, &status);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CUdeviceptr x = 0;
  EXPECT_EQ(cu.cuMemsetD8Async(x, 0, 0, first), CUDA_SUCCESS); // nothing to do
  refuseEnd(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  beginCapture();
  EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  refuseEnd(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  beginCapture();
  EXPECT_EQ(cu.cuMemAlloc(&x, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expectMessage({"cuMemAlloc while stream 1 is being captured", "before cuStreamBeginCapture"});
  refuseEnd(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// A capture of mode THREAD_LOCAL binds its own thread; a loader of data may allocate beside it.
TEST_F(EmulatedGraphs, TheModeSaysWhomACaptureBinds) {
  begin();
  for (bool global : {false, true}) {
    beginCapture(global ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      CUdeviceptr x = 0;
      cu.cuCtxSetCurrent(context);
      result = cu.cuMemAlloc(&x, 4);
    }).join();
    EXPECT_EQ(result, global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    if (global)
      expectMessage({"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL"});
    CUgraph graph = nullptr;
    cu.cuStreamEndCapture(first, &graph);
  }
}

TEST_F(EmulatedGraphs, EventsOfACaptureAreNoEventsOfTheHost) {
  begin();
  CUevent inside = event(), outside = event();
  cu.cuEventRecord(outside, second);
  beginCapture();
  EXPECT_EQ(cu.cuStreamWaitEvent(first, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  expectMessage({"event 2 was recorded outside of the capture"});
  refuseEnd(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  beginCapture();
  cu.cuEventRecord(inside, first);
  endCapture();
  EXPECT_EQ(cu.cuEventSynchronize(inside), CUDA_ERROR_CAPTURED_EVENT);
  expectMessage({"event 1 was last recorded in a capture"});
  EXPECT_EQ(cu.cuStreamWaitEvent(second, inside, 0), CUDA_ERROR_CAPTURED_EVENT);
}

// An external event of a graph is an event of every launch.
TEST_F(EmulatedGraphs, ExternalEventsAreRecordedByLaunches) {
  begin();
  CUdeviceptr x = allocate(256), y = allocate(256);
  CUevent filled = event(), done = event();
  cu.cuMemsetD32Async(x, 0, 64, second);
  beginCapture();
  EXPECT_EQ(cu.cuStreamWaitEvent(first, filled, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
  launchAdd(x, y, 3, first);
  cu.cuEventRecordWithFlags(done, first, CU_EVENT_RECORD_EXTERNAL);
  CUgraphExec graph = endCapture();
  cu.cuEventRecord(filled, second);
  cu.cuGraphLaunch(graph, first);
  cu.cuStreamWaitEvent(second, done, 0);
  EXPECT_EQ(read(y, second), 3);
}

TEST_F(EmulatedGraphs, CopiesOfGraphsNeedPinnedMemory) {
  begin();
  CUdeviceptr x = allocate(256);
  float pageable[64] = {}, *pinned = pin(64);
  beginCapture();
  EXPECT_EQ(cu.cuMemcpyHtoDAsync(x, pageable, 256, first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expectMessage({"pageable memory in a capture", "cuMemHostAlloc"});
  refuseEnd(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  beginCapture();
  cu.cuMemcpyHtoDAsync(x, pinned, 256, first);
  CUgraphExec graph = endCapture();
  for (float value : {4.0f, 5.0f}) {
    std::fill_n(pinned, 64, value);
    cu.cuGraphLaunch(graph, first);
    EXPECT_EQ(read(x, first), value);
  }
  cu.cuMemFreeHost(pinned);
  EXPECT_EQ(cu.cuGraphLaunch(graph, first), CUDA_ERROR_INVALID_VALUE);
  expectMessage({"pinned memory that was given back"});
}

TEST_F(EmulatedGraphs, LibrariesAreCaptured) {
  begin();
  CUdeviceptr x = allocate(4);
  cu.cuMemsetD32Async(x, 0, 1, first);
  beginCapture();
  EXPECT_EQ(enqueue(first, "count", {x},
                    [=](Work &work) {
                      float value;
                      char *at = work.update(x, 4, "the count");
                      std::memcpy(&value, at, 4);
                      value += 1;
                      std::memcpy(at, &value, 4);
                    }),
            CUDA_SUCCESS);
  CUgraphExec graph = endCapture();
  for (int i = 0; i < 5; ++i)
    cu.cuGraphLaunch(graph, first);
  EXPECT_EQ(read(x, first), 5);
}
