//===- DeviceRowLayout.cpp - How threads share the rows of a kernel -------===//

#include "passes/Cuda/DeviceRowLayout.h"
#include "passes/Codegen/Lanes.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace descent {

/// Bytes that one access of a thread moves.
constexpr int64_t accessBytes = 16;
constexpr int64_t mostThreads = 1024;
/// Elements a thread may own where they are kept in registers.
constexpr int64_t mostElements = 32;
/// Copies of the code of one chunk.
constexpr int64_t mostUnrolled = 8;
/// Trips through the loop over a long row, before more threads share it.
constexpr int64_t longestLoop = 16;

/// Registers for all that a thread keeps. The largest block leaves each thread 64 in all; below,
/// half of 128 are kept values, and several blocks still fit a multiprocessor.
static int64_t mostKept(int64_t team) { return team == mostThreads ? 24 : 64; }

/// Calls `visit` with the strides and the type of every operand that varies along the row.
static void forEachStream(const RowGraph &graph, const RowSchedule &schedule,
                          function_ref<void(const LinearForm &, Type)> visit) {
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Load && schedule.varies(node.get()))
      visit(node->strides, node->type);
  for (const RowResult &result : graph.results)
    if (!result.strides.empty() && result.strides.back() != 0)
      visit(result.strides, result.type);
}

/// Whether the rows of an operand start at the same place relative to chunks as rows of `length`
/// elements that lie one behind the other.
static bool inStep(const RowGraph &graph, const LinearForm &strides, int64_t length,
                   int64_t width) {
  if (strides.empty() || strides.back() != 1)
    return false;
  for (unsigned i = strides.size() - 1; i-- > 0; length *= graph.sizes[i])
    if (graph.sizes[i] != 1 && (strides[i] - length) % width != 0)
      return false;
  return true;
}

bool DeviceRowLayout::aligned(const RowGraph &graph, const LinearForm &strides) const {
  return inStep(graph, strides, peeled ? graph.sizes.back() : 0, width);
}

static int64_t widestChunk(const RowGraph &graph, const RowSchedule &schedule) {
  int64_t bytes = 2;
  forEachStream(graph, schedule, [&](const LinearForm &, Type type) {
    bytes = std::max(bytes, storageBytes(type));
  });
  return accessBytes / bytes;
}

/// The widest chunk of which a row holds a whole number, aligned in every operand.
static int64_t wholeChunk(const RowGraph &graph, const RowSchedule &schedule) {
  int64_t width = widestChunk(graph, schedule);
  auto fits = [&] {
    bool all = schedule.columns % width == 0;
    forEachStream(graph, schedule, [&](const LinearForm &strides, Type) {
      all &= strides.back() != 1 || inStep(graph, strides, 0, width);
    });
    return all;
  };
  while (width > 1 && !fits())
    width /= 2;
  return width;
}

static void chooseFlat(DeviceRowLayout &layout, const RowGraph &graph,
                       const RowSchedule &schedule) {
  if (schedule.rows == 1) {
    layout.width = widestChunk(graph, schedule);
    layout.tail = schedule.columns % layout.width;
  } else {
    layout.width = wholeChunk(graph, schedule);
  }
  layout.chunks = schedule.columns / layout.width;
  int64_t items = schedule.rows * layout.chunks + layout.tail;
  layout.block = std::min<int64_t>(256, llvm::alignTo(items, 32));
  // What all chunks share is computed by every thread: where that is dear, a thread does several.
  unsigned shared = 0;
  for (const RowStage &stage : schedule.stages)
    for (const RowNode *node : stage.uniform)
      if (llvm::all_of(node->depends, [](int64_t d) { return d == 0; }))
        shared = std::max(shared, node->cost);
  constexpr unsigned dear = 12;
  constexpr int64_t enoughBlocks = 1024, mostRounds = 8;
  if (shared >= dear)
    layout.rounds = std::clamp<int64_t>(items / (layout.block * enoughBlocks), 1, mostRounds);
  layout.grid = llvm::divideCeil(items, layout.block * layout.rounds);
}

/// Values along the row that a later stage needs again and that stay in registers for it.
static int64_t countKept(const RowGraph &graph, const RowSchedule &schedule) {
  constexpr unsigned cheap = 6; // computed again
  int64_t count = 0;
  for (auto &node : graph.nodes()) {
    if (node->kind != RowNode::Kind::Load && node->cost <= cheap)
      continue;
    count += llvm::count_if(schedule.stages, [&](const RowStage &stage) {
               return stage.visited.contains(node.get());
             }) > 1;
  }
  return count;
}

static void chooseTeam(DeviceRowLayout &layout, const RowGraph &graph,
                       const RowSchedule &schedule) {
  layout.width = wholeChunk(graph, schedule);
  layout.chunks = schedule.columns / layout.width;
  int64_t kept = countKept(graph, schedule);
  auto fits = [&](int64_t team) {
    int64_t chunks = llvm::divideCeil(layout.chunks, team), elements = chunks * layout.width;
    // Where nothing is kept, side by side is only for more loads in flight.
    return elements <= mostElements && elements * kept <= mostKept(team) &&
           chunks <= (kept ? mostUnrolled : 4);
  };
  if (layout.chunks <= 32) {
    layout.team = llvm::bit_ceil<uint64_t>(layout.chunks);
  } else {
    layout.team = 32;
    while (layout.team < mostThreads && !fits(layout.team))
      layout.team *= 2;
  }
  layout.unrolled = layout.chunks <= 32 || (fits(layout.team) && (kept || layout.team == 32));
  if (!layout.unrolled) {
    int64_t widest = widestChunk(graph, schedule);
    if (layout.width < widest) {
      DeviceRowLayout peeled = layout;
      peeled.width = widest;
      peeled.peeled = true;
      bool any = false;
      forEachStream(graph, schedule, [&](const LinearForm &strides, Type) {
        any |= peeled.aligned(graph, strides);
      });
      if (any) {
        layout = peeled;
        layout.chunks = schedule.columns / layout.width;
      }
    }
    layout.team = 32;
    while (layout.team < mostThreads && layout.chunks > longestLoop * layout.team)
      layout.team *= 2;
  }
  layout.perThread = llvm::divideCeil(layout.chunks, layout.team);
  // What is no more than a warp shares a block with others, as far as there are others.
  constexpr int64_t sharedBlock = 128;
  layout.block =
      layout.team > 32
          ? layout.team
          : std::min<int64_t>(sharedBlock, llvm::alignTo(schedule.rows * layout.team, 32));
  layout.grid = llvm::divideCeil(schedule.rows, layout.rowsPerBlock());
}

DeviceRowLayout DeviceRowLayout::choose(const RowGraph &graph, const RowSchedule &schedule) {
  DeviceRowLayout layout;
  if (graph.hasReductions)
    chooseTeam(layout, graph, schedule);
  else
    chooseFlat(layout, graph, schedule);
  return layout;
}

} // namespace descent
