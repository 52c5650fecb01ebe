//===- AssignStreams.cpp - Events between streams -------------------------===//
//
// A device runs launches of one stream in order and those of two side by side. The plan was made
// for the order of the program: whatever touches the same bytes from two streams, also because the
// planner gave them to another value, must keep that order, and an event does so.
//
// For each launch and each other stream, the last launch there that it conflicts with is found; it
// records an event and the launch waits for it, unless an earlier wait implies it. What is implied
// follows from vector clocks: a launch knows, for each stream, up to which launch it is ordered
// behind it.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Schedule/ByteRange.h"

#include "llvm/ADT/DenseMap.h"

#include <array>

namespace descent {
#define GEN_PASS_DEF_ASSIGNSTREAMS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::schedule;

namespace {

constexpr int streams = 2;
/// For each stream the last launch that is complete, -1 for none.
using Clock = std::array<int64_t, streams>;

struct AssignStreamsPass : descent::impl::AssignStreamsBase<AssignStreamsPass> {
  using AssignStreamsBase::AssignStreamsBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      assign(program);
  }

private:
  void assign(exec::ProgramOp program);
};

} // namespace

void AssignStreamsPass::assign(exec::ProgramOp program) {
  SmallVector<exec::RunOp> runs(program.getBody().getOps<exec::RunOp>());
  std::array<SmallVector<int64_t>, streams> onStream;
  std::vector<Clock> clocks(runs.size());
  Builder builder(&getContext());
  int64_t nextEvent = 0;
  for (auto [number, run] : llvm::enumerate(runs)) {
    auto stream = static_cast<size_t>(run.getStream());
    Clock clock{-1, -1};
    if (!onStream[stream].empty())
      clock = clocks[static_cast<size_t>(onStream[stream].back())];
    SmallVector<int64_t> waits;
    for (size_t other = 0; other < streams; ++other) {
      if (other == stream)
        continue;
      for (int64_t earlier : llvm::reverse(onStream[other])) {
        if (earlier <= clock[other])
          break;
        exec::RunOp first = runs[static_cast<size_t>(earlier)];
        if (!conflict(first, run))
          continue;
        if (!first.getRecord())
          first.setRecord(nextEvent++);
        waits.push_back(static_cast<int64_t>(*first.getRecord()));
        const Clock &behind = clocks[static_cast<size_t>(earlier)];
        for (size_t i = 0; i < streams; ++i)
          clock[i] = std::max(clock[i], behind[i]);
        break;
      }
    }
    if (!waits.empty()) {
      run.setWaitsAttr(builder.getDenseI64ArrayAttr(waits));
      ++waitsMade;
    }
    clock[stream] = static_cast<int64_t>(number);
    clocks[number] = clock;
    onStream[stream].push_back(static_cast<int64_t>(number));
  }
  eventsMade += nextEvent;
}
