//===- Ordering.cpp - Which work of several streams is ordered ------------------------------===//

#include "runtime/emulator/Ordering.h"

#include <algorithm>

namespace descent::emulator {

void Clock::set(uint32_t timeline, uint32_t number) {
  if (timeline >= seen.size())
    seen.resize(timeline + 1);
  seen[timeline] = number;
}

void Clock::join(const Clock &other) {
  if (other.seen.size() > seen.size())
    seen.resize(other.seen.size());
  for (size_t i = 0; i < other.seen.size(); ++i)
    seen[i] = std::max(seen[i], other.seen[i]);
}

uint16_t Names::number(const std::string &name) {
  auto found = numbers.find(name);
  if (found != numbers.end())
    return found->second;
  if (texts.size() > UINT16_MAX)
    return 0;
  texts.push_back(name);
  return numbers[name] = static_cast<uint16_t>(texts.size() - 1);
}

std::optional<OrderShadow::Conflict> OrderShadow::touch(uint64_t part, bool write, Stamp stamp,
                                                        const Clock &clock) {
  if (part >= cells.size())
    cells.resize(part + 1);
  Cell &cell = cells[part];
  // An operation that already ran is either ordered before this one or not ordered at all.
  auto ordered = [&](Stamp other) { return other.number <= clock.of(other.timeline); };
  if (!ordered(cell.write))
    return Conflict{cell.write, true, part};
  if (write) {
    for (Stamp read : cell.reads)
      if (!ordered(read))
        return Conflict{read, false, part};
    cell = {stamp, {}};
    return std::nullopt;
  }
  if (ordered(cell.reads[0]))
    cell.reads[0] = stamp;
  else if (ordered(cell.reads[1]))
    cell.reads[1] = stamp;
  return std::nullopt;
}

} // namespace descent::emulator
