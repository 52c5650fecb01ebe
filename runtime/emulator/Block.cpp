//===- Block.cpp - Threads, barriers and meetings of a block ----------------------------------===//

#include "runtime/emulator/Block.h"

#include <fmt/format.h>

#include <algorithm>

namespace descent::emulator {

static thread_local Block *currentBlock = nullptr;

Block &Block::current() { return *currentBlock; }

//===------------------------------------------------------------------------------------------===//
// A block's life
//===-------------------------------------------------------------------------------------------===//

void Block::prepareShared() {
  uint64_t dynamic = grid.dynamicShared;
  if (sharedFor != grid.kernel || sharedForBytes != dynamic || copiesLeft) {
    shared.clear();
    for (uint32_t i = 0; i < grid.kernel->shared_count; ++i) {
      const descent_emulated_variable &variable = grid.module->variables[grid.kernel->shared[i]];
      uint64_t bytes = variable.bytes ? variable.bytes : dynamic;
      auto storage = std::make_unique<char[]>(bytes + 1);
      char *memory = storage.get();
      shared.push_back(std::make_unique<SharedVariable>(SharedVariable{
          Region(fmt::format("{} @{}", variable.bytes ? "shared variable" : "dynamic shared memory",
                             variable.name),
                 *variable.address, bytes, memory),
          std::move(storage)}));
    }
    sharedFor = grid.kernel;
    sharedForBytes = dynamic;
    copiesLeft = false;
  }
  for (auto &variable : shared)
    variable->region.markUnwritten(0, variable->region.bytes);
}

std::optional<Fault> Block::run(const Grid &newGrid, Dim newPosition, const Options &newOptions) {
  grid = newGrid;
  position = newPosition;
  options = newOptions;
  fault.reset();
  count = alive = static_cast<uint32_t>(grid.block.count());
  random = (options.order.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + position.x +
           UINT64_C(65537) * position.y + UINT64_C(65537 * 65537) * position.z;
  writes = writesSeen = 0;
  clocks.reset(count);
  for (Barrier &barrier : barriers)
    barrier = Barrier();
  prepareShared();
  while (threads.size() < count)
    threads.emplace_back();
  ready.clear();
  head = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Thread &thread = threads[i];
    thread.index = i;
    thread.id[0] = i % grid.block.x;
    thread.id[1] = i / grid.block.x % grid.block.y;
    thread.id[2] = i / grid.block.x / grid.block.y;
    thread.wait = Wait::Nothing;
    thread.copies.clear();
    thread.group = 0;
    thread.locals.clear();
    thread.localStorage.clear();
    thread.localTop = 0;
    thread.lastSite = nullptr;
    thread.repeats = 0;
    thread.fiber.prepare(body, i);
    ready.push_back(options.order.kind == Order::Reverse ? count - 1 - i : i);
  }
  Block *outer = currentBlock;
  currentBlock = this;
  if (Thread *first = next()) {
    running = first;
    first->fiber.resume(&main);
  }
  currentBlock = outer;
  running = nullptr;
  return std::move(fault);
}

void Block::body() {
  Block &block = current();
  block.grid.kernel->entry(block.grid.parameters);
  block.exitThread();
}

void Block::finishThread() {
  copiesLeft |= !running->copies.empty();
  running->wait = Wait::Done;
  --alive;
  for (Barrier &barrier : barriers)
    if (barrier.whole && barrier.expected)
      fail(Check::Divergence, barrier.site,
           fmt::format("divergent barrier: {} of {} threads wait here, but thread {} has exited",
                       barrier.waiting.size(), count, threadText(running->index)),
           fmt::format("  thread {} is the first that waits\n", threadText(barrier.waiting[0])),
           "let all threads of the block reach every barrier: no return before the last one, no "
           "barrier under a condition that differs between threads");
}

void Block::exitThread() {
  finishThread();
  // A meeting is of the lanes that have not exited: it may have waited for this one alone. Whoever
  // arrived first then does what the last to arrive would have done.
  uint32_t first = running->warp() * 32, lanes = aliveLanes(running->warp()), woken = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1) || (woken >> lane & 1) || threads[first + lane].wait != Wait::Warp)
      continue;
    Thread &other = threads[first + lane];
    uint32_t present = 0;
    for (uint32_t i = 0; i < 32; ++i)
      if ((lanes >> i & 1) && threads[first + i].wait == Wait::Warp &&
          threads[first + i].site == other.site && threads[first + i].mask == other.mask)
        present |= 1u << i;
    if (present != (other.mask & lanes))
      continue;
    woken |= present;
    other.last = true;
    makeReady(other.index);
  }
  leave();
}

void Block::leave() {
  Thread *after = next();
  if (after) {
    Thread *me = running;
    running = after;
    me->fiber.leave(after->fiber.saved());
  } else {
    if (alive && !fault)
      fail(Check::Deadlock, running->site, "deadlock: no thread of the block can go on", whoWaits(),
           "every thread that others wait for must reach the same barrier or warp operation");
    running->fiber.leave(main);
  }
  __builtin_unreachable();
}

void Block::fail(Check check, const Site *site, const std::string &problem,
                 const std::string &detail, const std::string &cure) {
  // In a scope of its own, since the switch below never returns and no destructor would run. The
  // caller's strings are lost with its stack: a launch has one fault, so that is a few hundred
  // bytes.
  {
    std::string message =
        fmt::format("{}\n{}  in kernel @{}, block ({}, {}, {}), thread {}\n{}  cure: {}", problem,
                    siteText(site), grid.kernel->name, position.x, position.y, position.z,
                    threadText(running->index), detail, cure);
    fault = Fault{check, std::move(message)};
  }
  running->fiber.leave(main);
  __builtin_unreachable();
}

//===-------------------------------------------------------------------------------------------===//
// Scheduling
//===-------------------------------------------------------------------------------------------===//

static uint64_t step(uint64_t &state) { // xorshift
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

Thread *Block::next() {
  if (head == ready.size())
    return nullptr;
  if (options.order.kind == Order::Shuffled)
    std::swap(ready[head], ready[head + step(random) % (ready.size() - head)]);
  Thread *thread = &threads[ready[head++]];
  if (head > 4096) {
    ready.erase(ready.begin(), ready.begin() + static_cast<ptrdiff_t>(head));
    head = 0;
  }
  return thread;
}

void Block::makeReady(uint32_t thread) {
  threads[thread].wait = Wait::Nothing;
  ready.push_back(thread);
}

void Block::suspend() {
  Thread *me = running, *after = next();
  if (!after)
    fail(Check::Deadlock, me->site, "deadlock: no thread of the block can go on", whoWaits(),
         "every thread that others wait for must reach the same barrier or warp operation");
  if (after == me)
    return;
  running = after;
  me->fiber.leave(after->fiber.saved());
}

void Block::yield() {
  running->wait = Wait::Nothing;
  ready.push_back(running->index);
  suspend();
}

std::string Block::whoWaits() const {
  // Threads that wait at one place are one line.
  std::string text;
  std::vector<bool> told(count);
  uint32_t lines = 0;
  for (uint32_t i = 0; i < count && lines < 8; ++i) {
    if (told[i] || threads[i].wait == Wait::Done)
      continue;
    uint32_t same = 0;
    for (uint32_t j = i; j < count; ++j)
      if (threads[j].wait == threads[i].wait && threads[j].site == threads[i].site &&
          threads[j].mask == threads[i].mask) {
        told[j] = true;
        ++same;
      }
    const char *what = threads[i].wait == Wait::Barrier ? "at a barrier"
                       : threads[i].wait == Wait::Warp  ? "at a warp operation"
                                                        : "in a loop";
    text += fmt::format("  {} thread{} {}, the first is {}:\n  {}", same, same == 1 ? "" : "s",
                        what, threadText(i), siteText(threads[i].site));
    ++lines;
  }
  if (alive < count)
    text += fmt::format("  {} of {} threads have exited\n", count - alive, count);
  return text;
}

//===-------------------------------------------------------------------------------------------===//
// Barriers of the block
//===-------------------------------------------------------------------------------------------===//

void Block::barrier(uint64_t *slots, const Site *site) {
  uint64_t kind = slots[0] & 7, id = slots[1], wanted = slots[2];
  bool aligned = slots[0] & DESCENT_BARRIER_ALIGNED;
  bool predicate = slots[3] & 1, whole = wanted == 0;
  if (id >= barriers.size())
    fail(Check::Operand, site, fmt::format("there is no barrier {}", id), "",
         "a block has barriers 0 to 15");
  if (wanted % 32 && wanted != count)
    fail(Check::Operand, site, fmt::format("a barrier of {} threads", wanted), "",
         "the number of threads is a multiple of 32, the warp's size");
  if (wanted > count)
    fail(Check::Operand, site,
         fmt::format("a barrier of {} threads in a block of {}", wanted, count), "",
         "name at most the threads that the block has");
  Barrier &barrier = barriers[id];
  if (whole) {
    if (alive < count)
      fail(Check::Divergence, site,
           fmt::format("divergent barrier: {} of {} threads have exited", count - alive, count), "",
           "let all threads of the block reach every barrier: no return before the last one");
    for (const Barrier &other : barriers)
      if (aligned && other.whole && other.expected && other.site != site)
        fail(Check::Divergence, site,
             "divergent barrier: threads of one block wait at different barriers",
             fmt::format("  thread {} and {} others are at\n  {}", threadText(other.waiting[0]),
                         other.waiting.size() - 1, siteText(other.site)),
             "move the barrier out of the condition that separates the threads");
  }
  for (uint32_t lane = 0; aligned && lane < 32 && running->warp() * 32 + lane < count; ++lane) {
    const Thread &other = threads[running->warp() * 32 + lane];
    if (other.wait == Wait::Barrier && other.site != site)
      fail(Check::Divergence, site,
           "divergent barrier: lanes of one warp are at different barriers",
           fmt::format("  thread {} is at\n  {}", threadText(other.index), siteText(other.site)),
           "all threads of a warp execute an aligned barrier together; move it out of the "
           "condition");
  }
  if (!barrier.expected) {
    barrier = Barrier();
    barrier.expected = whole ? count : static_cast<uint32_t>(wanted);
    barrier.whole = whole;
    barrier.site = site;
  } else if (barrier.expected != (whole ? count : wanted)) {
    fail(Check::Divergence, site,
         fmt::format("barrier {} is for {} threads here and for {} where thread {} arrived", id,
                     whole ? count : wanted, barrier.expected,
                     threadText(barrier.waiting.empty() ? barrier.arrived[0] : barrier.waiting[0])),
         "  " + siteText(barrier.site), "all threads of a barrier name the same number");
  }
  barrier.all &= predicate;
  barrier.any |= predicate;
  barrier.count += predicate;
  bool waits = kind != DESCENT_BARRIER_ARRIVE;
  (waits ? barrier.waiting : barrier.arrived).push_back(running->index);
  running->slots = slots;
  running->site = site;
  bool last = barrier.waiting.size() + barrier.arrived.size() == barrier.expected;
  if (last)
    complete(barrier);
  else if (waits) {
    running->wait = Wait::Barrier;
    running->mask = 0;
    suspend();
  }
}

void Block::complete(Barrier &barrier) {
  if (barrier.waiting.size() == count) {
    clocks.nextInterval();
  } else {
    std::vector<uint32_t> all = barrier.waiting;
    all.insert(all.end(), barrier.arrived.begin(), barrier.arrived.end());
    clocks.meet(all);
  }
  std::vector<uint32_t> waiting = std::move(barrier.waiting);
  std::sort(waiting.begin(), waiting.end());
  if (options.order.kind == Order::Reverse)
    std::reverse(waiting.begin(), waiting.end());
  for (uint32_t thread : waiting) {
    uint64_t *slots = threads[thread].slots;
    switch (slots[0] & 7) {
    case DESCENT_BARRIER_AND:
      slots[0] = barrier.all;
      break;
    case DESCENT_BARRIER_OR:
      slots[0] = barrier.any;
      break;
    case DESCENT_BARRIER_POPC:
      slots[0] = barrier.count;
      break;
    default:
      break;
    }
    if (thread != running->index)
      makeReady(thread);
  }
  barrier = Barrier();
  ++writes;
}

//===-------------------------------------------------------------------------------------------===//
// Meetings of a warp
//===-------------------------------------------------------------------------------------------===//

uint32_t Block::aliveLanes(uint32_t warp) const {
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < 32 && warp * 32 + lane < count; ++lane)
    if (threads[warp * 32 + lane].wait != Wait::Done)
      lanes |= 1u << lane;
  return lanes;
}

bool Block::arrive(uint32_t mask, uint64_t *slots, const Site *site) {
  Thread &me = *running;
  uint32_t first = me.warp() * 32;
  if (!(mask >> me.lane() & 1))
    fail(Check::Operand, site,
         fmt::format("lane {} executes an operation of lanes 0x{:08x}", me.lane(), mask), "",
         "a lane that executes a .sync operation names itself in the mask");
  uint32_t expected = mask & aliveLanes(me.warp()), present = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(expected >> lane & 1) || lane == me.lane())
      continue;
    const Thread &other = threads[first + lane];
    if (other.wait != Wait::Warp)
      continue;
    if (other.site == site && other.mask == mask) {
      present |= 1u << lane;
      continue;
    }
    // It waits for this lane elsewhere: neither will ever go on.
    if (other.mask >> me.lane() & 1)
      fail(Check::Divergence, site,
           other.site == site
               ? fmt::format("lanes of one warp name different masks: 0x{:08x} here, 0x{:08x} by "
                             "thread {}",
                             mask, other.mask, threadText(other.index))
               : "lanes of one warp that should meet are at different operations",
           fmt::format("  thread {} is at\n  {}", threadText(other.index), siteText(other.site)),
           "let all lanes of the mask execute the same operation, with the same mask");
  }
  if ((present | 1u << me.lane()) == expected) {
    me.site = site;
    return false;
  }
  me.wait = Wait::Warp;
  me.site = site;
  me.slots = slots;
  me.mask = mask;
  me.last = false;
  suspend();
  return !me.last;
}

std::array<uint64_t *, 32> Block::gather(uint32_t mask, uint64_t *slots) {
  std::array<uint64_t *, 32> lanes{};
  uint32_t here = mask & aliveLanes(running->warp());
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (here >> lane & 1)
      lanes[lane] = lane == running->lane() ? slots : threads[running->warp() * 32 + lane].slots;
  return lanes;
}

void Block::wake(uint32_t mask) {
  uint32_t here = mask & aliveLanes(running->warp()), first = running->warp() * 32;
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t lane = options.order.kind == Order::Reverse ? 31 - i : i;
    if ((here >> lane & 1) && lane != running->lane())
      makeReady(first + lane);
  }
}

void Block::warpSync(uint64_t *slots, const Site *site) {
  uint32_t mask = static_cast<uint32_t>(slots[0]);
  meet(mask, slots, site, [&](const std::array<uint64_t *, 32> &lanes) {
    std::vector<uint32_t> present;
    for (uint32_t lane = 0; lane < 32; ++lane)
      if (lanes[lane])
        present.push_back(running->warp() * 32 + lane);
    clocks.meet(present);
  });
}

//===-------------------------------------------------------------------------------------------===//
// Names
//===-------------------------------------------------------------------------------------------===//

std::string Block::threadText(uint32_t index) const {
  const Thread &thread = threads[index];
  return fmt::format("({}, {}, {})", thread.id[0], thread.id[1], thread.id[2]);
}

std::string Block::siteText(const Site *site) {
  if (!site)
    return "";
  std::string text = "  at ";
  if (site->source_line)
    text += fmt::format("{}:{}:{}, ", site->source_file, site->source_line, site->source_column);
  if (site->ir_line)
    text += fmt::format("{}:{}, ", site->ir_file, site->ir_line);
  return text + fmt::format("in @{}: {}\n", site->function, site->text);
}

uint64_t Block::reg(uint32_t which) {
  const Thread &me = *running;
  const uint32_t block[] = {grid.block.x, grid.block.y, grid.block.z};
  const uint32_t place[] = {position.x, position.y, position.z};
  const uint32_t size[] = {grid.grid.x, grid.grid.y, grid.grid.z};
  uint32_t lane = me.lane();
  if (which < DESCENT_REGISTER_NTID)
    return me.id[which];
  if (which < DESCENT_REGISTER_CTAID)
    return block[which - DESCENT_REGISTER_NTID];
  if (which < DESCENT_REGISTER_NCTAID)
    return place[which - DESCENT_REGISTER_CTAID];
  if (which < DESCENT_REGISTER_LANEID)
    return size[which - DESCENT_REGISTER_NCTAID];
  switch (which) {
  case DESCENT_REGISTER_LANEID:
    return lane;
  case DESCENT_REGISTER_WARPID:
    return me.warp();
  case DESCENT_REGISTER_NWARPID:
    return (count + 31) / 32;
  case DESCENT_REGISTER_LANEMASK_EQ:
    return 1u << lane;
  case DESCENT_REGISTER_LANEMASK_LE:
    return ~0u >> (31 - lane);
  case DESCENT_REGISTER_LANEMASK_LT:
    return (1u << lane) - 1;
  case DESCENT_REGISTER_LANEMASK_GE:
    return ~0u << lane;
  case DESCENT_REGISTER_LANEMASK_GT:
    return lane == 31 ? 0 : ~0u << (lane + 1);
  case DESCENT_REGISTER_DYNAMIC_SHARED:
    return grid.dynamicShared;
  case DESCENT_REGISTER_TOTAL_SHARED:
    return grid.totalShared;
  default:
    return ++ticks; // clocks run, that is all they promise
  }
}

} // namespace descent::emulator
