//===- Warp.cpp - Operations of a warp --------------------------------------------------------===//
//
// Semantics are those of the PTX ISA. A shuffle that takes its value from a lane outside the mask,
// or from one that has exited, is undefined there and a fault here.
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/emulator/Block.h"
#include "runtime/emulator/Numbers.h"

#include <fmt/format.h>

using namespace descent::emulator;

using Lanes = std::array<uint64_t *, 32>;

namespace {
/// What a slot of each lane holds.
struct Column {
  Column(const Lanes &lanes, int slot) {
    for (int lane = 0; lane < 32; ++lane)
      values[lane] = lanes[lane] ? lanes[lane][slot] : 0;
  }
  uint64_t operator[](int lane) const { return values[lane]; }
  uint64_t values[32];
};
} // namespace

static Block &block() { return Block::current(); }

extern "C" {

void descent_emulate_shuffle(uint64_t *slots, const Site *site) {
  block().meet(static_cast<uint32_t>(slots[1]), slots, site, [&](const Lanes &lanes) {
    Column kinds(lanes, 0), values(lanes, 2), offsets(lanes, 3), limits(lanes, 4);
    for (int lane = 0; lane < 32; ++lane) {
      if (!lanes[lane])
        continue;
      int offset = offsets[lane] & 31, segment = limits[lane] >> 8 & 31, clamp = limits[lane] & 31;
      int last = (lane & segment) | (clamp & ~segment), from = lane;
      bool inside = false;
      switch (kinds[lane]) {
      case DESCENT_SHUFFLE_UP:
        from = lane - offset;
        inside = from >= last;
        break;
      case DESCENT_SHUFFLE_DOWN:
        from = lane + offset;
        inside = from <= last;
        break;
      case DESCENT_SHUFFLE_XOR:
        from = lane ^ offset;
        inside = from <= last;
        break;
      default:
        from = (lane & segment) | (offset & ~segment);
        inside = from <= last;
        break;
      }
      if (!inside)
        from = lane;
      if (!lanes[from] && block().enabled(Check::Shuffle))
        block().fail(
            Check::Shuffle, site,
            fmt::format("shuffle: lane {} takes the value of lane {}, which takes no part", lane,
                        from),
            "", "name the lane in the mask, keep it from exiting, or make the segment smaller");
      lanes[lane][0] = lanes[from] ? values[from] : UINT32_MAX;
      lanes[lane][1] = inside;
    }
  });
}

void descent_emulate_vote(uint64_t *slots, const Site *site) {
  block().meet(static_cast<uint32_t>(slots[1]), slots, site, [&](const Lanes &lanes) {
    Column kinds(lanes, 0), predicates(lanes, 2);
    uint32_t present = 0, ballot = 0;
    for (int lane = 0; lane < 32; ++lane)
      if (lanes[lane]) {
        present |= 1u << lane;
        ballot |= uint32_t(predicates[lane] & 1) << lane;
      }
    for (int lane = 0; lane < 32; ++lane)
      if (lanes[lane])
        lanes[lane][0] = kinds[lane] == DESCENT_VOTE_ALL   ? ballot == present
                         : kinds[lane] == DESCENT_VOTE_ANY ? ballot != 0
                         : kinds[lane] == DESCENT_VOTE_UNI ? ballot == present || ballot == 0
                                                           : ballot;
  });
}

void descent_emulate_match(uint64_t *slots, const Site *site) {
  block().meet(static_cast<uint32_t>(slots[1]), slots, site, [&](const Lanes &lanes) {
    Column kinds(lanes, 0), values(lanes, 2);
    for (int lane = 0; lane < 32; ++lane) {
      if (!lanes[lane])
        continue;
      uint32_t present = 0, equal = 0;
      for (int other = 0; other < 32; ++other)
        if (lanes[other]) {
          present |= 1u << other;
          equal |= uint32_t(values[other] == values[lane]) << other;
        }
      bool all = equal == present;
      lanes[lane][0] = kinds[lane] == DESCENT_MATCH_ANY ? equal : all ? present : 0;
      lanes[lane][1] = all;
    }
  });
}

void descent_emulate_redux(uint64_t *slots, const Site *site) {
  block().meet(static_cast<uint32_t>(slots[2]), slots, site, [&](const Lanes &lanes) {
    Column kinds(lanes, 0), values(lanes, 1);
    uint32_t result = 0;
    bool first = true;
    for (int lane = 0; lane < 32; ++lane) {
      if (!lanes[lane])
        continue;
      auto value = static_cast<uint32_t>(values[lane]);
      auto a = static_cast<int32_t>(result), b = static_cast<int32_t>(value);
      if (first)
        result = value;
      else
        switch (kinds[lane]) {
        case DESCENT_REDUX_ADD:
          result += value;
          break;
        case DESCENT_REDUX_MIN:
          result = static_cast<uint32_t>(std::min(a, b));
          break;
        case DESCENT_REDUX_MAX:
          result = static_cast<uint32_t>(std::max(a, b));
          break;
        case DESCENT_REDUX_UMIN:
          result = std::min(result, value);
          break;
        case DESCENT_REDUX_UMAX:
          result = std::max(result, value);
          break;
        case DESCENT_REDUX_AND:
          result &= value;
          break;
        case DESCENT_REDUX_OR:
          result |= value;
          break;
        default:
          result ^= value;
          break;
        }
      first = false;
    }
    for (uint64_t *lane : lanes)
      if (lane)
        lane[0] = result;
  });
}

void descent_emulate_elect(uint64_t *slots, const Site *site) {
  block().meet(static_cast<uint32_t>(slots[0]), slots, site, [&](const Lanes &lanes) {
    int leader = -1;
    for (int lane = 31; lane >= 0; --lane)
      if (lanes[lane])
        leader = lane;
    for (int lane = 0; lane < 32; ++lane)
      if (lanes[lane]) {
        lanes[lane][0] = leader;
        lanes[lane][1] = lane == leader;
      }
  });
}

void descent_emulate_warp_sync(uint64_t *slots, const Site *site) { block().warpSync(slots, site); }

} // extern "C"

//===-------------------------------------------------------------------------------------------===//
// Matrices
//===-------------------------------------------------------------------------------------------===//

/// .aligned instructions are of whole warps.
static void requireWarp(const Lanes &lanes, const Site *site) {
  for (int lane = 0; lane < 32; ++lane)
    if (!lanes[lane])
      block().fail(
          Check::Divergence, site,
          fmt::format("a matrix operation of a whole warp, but lane {} takes no part", lane), "",
          "launch whole warps, and let no lane exit before the last such operation");
}

extern "C" {

void descent_emulate_ldmatrix(uint64_t *slots, const Site *site) {
  block().meet(~0u, slots, site, [&](const Lanes &lanes) {
    requireWarp(lanes, site);
    Column addresses(lanes, 2);
    int count = static_cast<int>(slots[0]);
    bool transposed = slots[1];
    uint32_t result[4][32];
    for (int matrix = 0; matrix < count; ++matrix) {
      uint16_t rows[8][8];
      for (int row = 0; row < 8; ++row) {
        uint32_t lane = 8 * matrix + row;
        std::memcpy(rows[row], block().hostOf(lane, addresses[lane], 16, 16, false, site), 16);
        // One lane gives the address, others receive the values: it is they who must be ordered
        // behind the writes. The first of them stands for all.
        uint32_t reader = transposed ? row / 2 : 4 * row;
        if (reader != lane)
          block().hostOf(reader, addresses[lane], 16, 16, false, site);
      }
      for (int lane = 0; lane < 32; ++lane) {
        int i = lane / 4, j = 2 * (lane % 4);
        result[matrix][lane] = transposed ? rows[j][i] | uint32_t(rows[j + 1][i]) << 16
                                          : rows[i][j] | uint32_t(rows[i][j + 1]) << 16;
      }
    }
    for (int lane = 0; lane < 32; ++lane)
      for (int matrix = 0; matrix < count; ++matrix)
        lanes[lane][matrix] = result[matrix][lane];
  });
}

void descent_emulate_stmatrix(uint64_t *slots, const Site *site) {
  block().meet(~0u, slots, site, [&](const Lanes &lanes) {
    requireWarp(lanes, site);
    Column addresses(lanes, 2);
    int count = static_cast<int>(slots[0]);
    bool transposed = slots[1];
    for (int matrix = 0; matrix < count; ++matrix) {
      uint16_t rows[8][8];
      for (int lane = 0; lane < 32; ++lane) {
        int i = lane / 4, j = 2 * (lane % 4);
        auto pair = static_cast<uint32_t>(lanes[lane][3 + matrix]);
        (transposed ? rows[j][i] : rows[i][j]) = pair & 0xffff;
        (transposed ? rows[j + 1][i] : rows[i][j + 1]) = pair >> 16;
      }
      for (int row = 0; row < 8; ++row) {
        uint32_t lane = 8 * matrix + row;
        std::memcpy(block().hostOf(lane, addresses[lane], 16, 16, true, site), rows[row], 16);
      }
    }
  });
}

/// D = A B + C with A 16 x k, B k x 8. Products are exact, the sum is taken in double and rounded
/// once; PTX leaves order and rounding open, so tests of kernels need tolerances.
void descent_emulate_mma(uint64_t *slots, const Site *site) {
  block().meet(~0u, slots, site, [&](const Lanes &lanes) {
    requireWarp(lanes, site);
    int k = static_cast<int>(slots[0]);
    auto typeA = static_cast<int>(slots[1]), typeB = static_cast<int>(slots[2]);
    int packed = typeA == DESCENT_MMA_TF32 ? 1 : typeA <= DESCENT_MMA_F16 ? 2 : 4; // to a register
    int registersB = k / (4 * packed), registersA = 2 * registersB;
    double a[16][32], b[32][8], c[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const uint64_t *fragment = lanes[lane] + 3;
      int group = lane / 4, quad = lane % 4;
      for (int r = 0; r < registersA; ++r)
        for (int h = 0; h < packed; ++h)
          a[group + 8 * (r & 1)][quad * packed + h + 4 * packed * (r >> 1)] =
              mmaElement(typeA, static_cast<uint32_t>(fragment[r]), h);
      fragment += registersA;
      for (int r = 0; r < registersB; ++r)
        for (int h = 0; h < packed; ++h)
          b[quad * packed + h + 4 * packed * r][group] =
              mmaElement(typeB, static_cast<uint32_t>(fragment[r]), h);
      fragment += registersB;
      for (int r = 0; r < 4; ++r)
        c[group + 8 * (r >> 1)][2 * quad + (r & 1)] = floatOf(static_cast<uint32_t>(fragment[r]));
    }
    for (int i = 0; i < 16; ++i)
      for (int p = 0; p < k; ++p)
        for (int j = 0; j < 8; ++j)
          c[i][j] += a[i][p] * b[p][j];
    for (int lane = 0; lane < 32; ++lane)
      for (int r = 0; r < 4; ++r)
        lanes[lane][r] =
            bitsOf(static_cast<float>(c[lane / 4 + 8 * (r >> 1)][2 * (lane % 4) + (r & 1)]));
  });
}

} // extern "C"
