//===- Races.cpp - Which accesses of a block's threads are ordered --------===//

#include "runtime/emulator/Races.h"

#include <algorithm>

namespace descent::emulator {

void Clocks::reset(uint32_t threads) {
  count = threads;
  width = 32;
  known.assign(size_t(count) * width, 0);
  for (uint32_t thread = 0; thread < count; ++thread)
    known[size_t(thread) * width + thread % 32] = 1;
  ++interval;
}

void Clocks::widen() {
  std::vector<uint32_t> wide(size_t(count) * count, 0);
  for (uint32_t thread = 0; thread < count; ++thread)
    for (uint32_t other = thread / 32 * 32; other < std::min(count, thread / 32 * 32 + 32); ++other)
      wide[size_t(thread) * count + other] = known[size_t(thread) * 32 + other % 32];
  known = std::move(wide);
  width = count;
}

void Clocks::meet(const std::vector<uint32_t> &threads) {
  if (threads.empty())
    return;
  bool oneWarp = true;
  for (uint32_t thread : threads)
    oneWarp &= thread / 32 == threads[0] / 32;
  if (!oneWarp && width != count)
    widen();
  std::vector<uint32_t> latest(width, 0);
  for (uint32_t thread : threads)
    for (uint32_t i = 0; i < width; ++i)
      latest[i] = std::max(latest[i], known[size_t(thread) * width + i]);
  for (uint32_t thread : threads) {
    std::copy(latest.begin(), latest.end(), known.begin() + size_t(thread) * width);
    ++known[size_t(thread) * width + thread % width];
  }
}

const Record *Shadow::checkCell(Cell &cell, const Record &access, bool write,
                                const Clocks &clocks) {
  uint32_t thread = access.thread();
  bool bothAtomic = access.atomic() && cell.write.atomic();
  // A copy in flight is ordered before nothing until its thread waits for it.
  if (cell.write.interval &&
      (cell.write.inFlight() || (!bothAtomic && !clocks.ordered(cell.write, thread)))) {
    conflict = cell.write;
    conflictIsWrite = true;
    return &conflict;
  }
  if (write) {
    for (Record &read : cell.reads)
      if (!(access.atomic() && read.atomic()) && !clocks.ordered(read, thread)) {
        conflict = read;
        conflictIsWrite = false;
        return &conflict;
      }
    cell.write = access;
    return nullptr;
  }
  Record &first = cell.reads[0], &second = cell.reads[1];
  if (first.interval == 0 || clocks.ordered(first, thread)) {
    first = access;
  } else if (second.interval == 0 || clocks.ordered(second, thread) ||
             (first.thread() / 32 == second.thread() / 32 && first.thread() / 32 != thread / 32)) {
    second = access;
  }
  return nullptr;
}

/// Bytes [offset, end) of one granule that is accessed in parts.
const Record *Shadow::checkParts(Chunk &chunk, Parts &parts, uint64_t offset, uint64_t end,
                                 const Record &access, bool write, const Clocks &clocks) {
  while (offset < end) {
    uint64_t word = offset % granule / 4, next = std::min(end, (offset / 4 + 1) * 4);
    Cell &whole = parts.cells[word];
    uint16_t &part = parts.parts[word];
    if (next - offset == 4 && !part) {
      if (const Record *other = checkCell(whole, access, write, clocks)) {
        conflictOffset = offset;
        return other;
      }
    } else {
      if (!part) {
        chunk.bytes.push_back({whole, whole, whole, whole});
        part = static_cast<uint16_t>(chunk.bytes.size());
        held += 4 * sizeof(Cell);
      }
      for (uint64_t byte = offset; byte < next; ++byte)
        if (const Record *other =
                checkCell(chunk.bytes[part - 1][byte % 4], access, write, clocks)) {
          conflictOffset = byte;
          return other;
        }
    }
    offset = next;
  }
  return nullptr;
}

const Record *Shadow::check(uint64_t offset, uint64_t count, const Record &access, bool write,
                            const Clocks &clocks) {
  uint64_t end = offset + count;
  while (offset < end) {
    uint64_t place = offset / granule, next = std::min(end, (place + 1) * granule);
    if (place / granules >= chunks.size())
      chunks.resize(place / granules + 1);
    auto &chunk = chunks[place / granules];
    if (!chunk) {
      chunk = std::make_unique<Chunk>();
      held += sizeof(Chunk);
    }
    Cell &whole = chunk->cells[place % granules];
    uint16_t &part = chunk->parts[place % granules];
    if (next - offset == granule && !part) {
      if (const Record *other = checkCell(whole, access, write, clocks)) {
        conflictOffset = offset;
        return other;
      }
    } else {
      if (!part) {
        chunk->words.push_back({{whole, whole, whole, whole}});
        part = static_cast<uint16_t>(chunk->words.size());
        held += sizeof(Parts);
      }
      if (const Record *other =
              checkParts(*chunk, chunk->words[part - 1], offset, next, access, write, clocks))
        return other;
    }
    offset = next;
  }
  return nullptr;
}

void Shadow::land(uint64_t offset, uint64_t count, const Record &record) {
  for (uint64_t byte = offset; byte < offset + count; ++byte) {
    Chunk &chunk = *chunks[byte / granule / granules];
    uint64_t place = byte / granule % granules;
    if (!chunk.parts[place]) {
      chunk.cells[place].write = record;
      continue;
    }
    Parts &parts = chunk.words[chunk.parts[place] - 1];
    uint64_t word = byte % granule / 4;
    (parts.parts[word] ? chunk.bytes[parts.parts[word] - 1][byte % 4] : parts.cells[word]).write =
        record;
  }
}

} // namespace descent::emulator
