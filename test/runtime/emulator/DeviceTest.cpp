//===- DeviceTest.cpp - The engine with hand-written kernels ----------------------------------===//
//
// The kernels here are what compiler/Target/Emulate makes of device code, written by hand: they
// show the contract of descent/emulator.h without a compiler.
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Numbers.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace descent;
using namespace descent::emulator;

namespace {

const Site loadSite{"%v = load", "kernel", "k.ll", "k.cu", 3, 7, 2};
const Site storeSite{"store %v", "kernel", "k.ll", "", 4, 0, 0};
const Site meetSite{"barrier", "kernel", "k.ll", "", 5, 0, 0};

constexpr uint32_t read32 = DESCENT_EMULATE_READ | 2 << 8, write32 = DESCENT_EMULATE_WRITE | 2 << 8;

uint32_t tid() { return static_cast<uint32_t>(descent_emulate_register(DESCENT_REGISTER_TID)); }
template <typename T> T &at(uint64_t address, uint32_t flags, const Site &site) {
  return *static_cast<T *>(descent_emulate_access(address, sizeof(T), flags, &site));
}
template <typename T> T parameter(void *const *parameters, int index) {
  T value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

/// out[i] = sum of all values below and at i in the block's order, by shared memory and barriers.
void scan(void *const *parameters) {
  auto in = parameter<uint64_t>(parameters, 0), out = parameter<uint64_t>(parameters, 1);
  uint32_t count = static_cast<uint32_t>(descent_emulate_register(DESCENT_REGISTER_NTID)),
           i = tid();
  uint64_t shared = DESCENT_EMULATED_SHARED + 16;
  int32_t sum = at<int32_t>(in + 4 * i, read32, loadSite);
  for (uint32_t step = 1; step < count; step *= 2) {
    at<int32_t>(shared + 4 * i, write32, storeSite) = sum;
    uint64_t slots[4] = {DESCENT_BARRIER_SYNC, 0, 0, 0};
    descent_emulate_barrier(slots, &meetSite);
    if (i >= step)
      sum += at<int32_t>(shared + 4 * (i - step), read32, loadSite);
    slots[0] = DESCENT_BARRIER_SYNC;
    descent_emulate_barrier(slots, &meetSite);
  }
  at<int32_t>(out + 4 * i, write32, storeSite) = sum;
}

/// What thread 0 of each block reads from where the parameter says, to the second parameter.
void copyOne(void *const *parameters) {
  at<int32_t>(parameter<uint64_t>(parameters, 1), write32, storeSite) =
      at<int32_t>(parameter<uint64_t>(parameters, 0), read32, loadSite);
}

/// One mma of k and types in the first parameter (k | a << 8 | b << 12); fragments in the second,
/// 16 slots a lane, results over them.
void multiply(void *const *parameters) {
  auto what = parameter<uint64_t>(parameters, 0), memory = parameter<uint64_t>(parameters, 1);
  uint64_t slots[19] = {what & 255, what >> 8 & 15, what >> 12 & 15};
  for (int i = 0; i < 16; ++i)
    slots[3 + i] = at<uint32_t>(memory + 4 * (16 * tid() + i), read32, loadSite);
  descent_emulate_mma(slots, &meetSite);
  for (int i = 0; i < 4; ++i)
    at<uint32_t>(memory + 4 * (16 * tid() + i), write32, storeSite) =
        static_cast<uint32_t>(slots[i]);
}

uint64_t sharedAddress = DESCENT_EMULATED_SHARED + 16, tableAddress = 0;
const int32_t table[2] = {5, 6};
const descent_emulated_variable variables[] = {
    {"buffer", nullptr, 0, 16, &sharedAddress, 1, 0},
    {"table", table, sizeof table, 4, &tableAddress, 0, 1}};
const descent_emulated_parameter parameters[] = {{"in", "ptr", 8, 0}, {"out", "ptr", 8, 0}};
const uint32_t usesBuffer[] = {0};
const descent_emulated_kernel kernels[] = {
    {"scan", scan, parameters, usesBuffer, 2, 1, 0, {0, 0, 0}},
    {"copy", copyOne, parameters, nullptr, 2, 0, 0, {0, 0, 0}},
    {"multiply", multiply, parameters, nullptr, 2, 0, 32, {32, 1, 1}}};
const descent_emulated_module module{DESCENT_EMULATOR_VERSION, 3, 2, kernels, variables};

LaunchRequest request(const char *kernel, uint32_t threads, uint64_t a, uint64_t b,
                      uint32_t shared = 0) {
  LaunchRequest result;
  result.module = &module;
  result.kernel = &Device::find(module, kernel);
  result.block.x = threads;
  result.dynamicShared = shared;
  for (uint64_t value : {a, b}) {
    result.parameters.emplace_back(8);
    std::memcpy(result.parameters.back().data(), &value, 8);
  }
  return result;
}

template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

} // namespace

// Results do not depend on the order of threads, and fibers are used again by launch after launch.
TEST(EmulatorDevice, RunsInEveryOrder) {
  std::vector<int32_t> in(1000), out(1000), expected(1000);
  std::iota(in.begin(), in.end(), -7);
  std::partial_sum(in.begin(), in.end(), expected.begin());
  Device device;
  device.load(module);
  uint64_t a = device.memory.allocate(4000, "in"), b = device.memory.allocate(4000, "out");
  device.memory.copyIn(a, in.data(), 4000);
  for (uint64_t order = 0; order < 6; ++order) {
    device.options.order = {order < 2 ? Order::Kind(order) : Order::Shuffled, order};
    std::optional<Fault> fault = device.launch(request("scan", 1000, a, b, 4000));
    ASSERT_FALSE(fault) << fault->message;
    device.memory.copyOut(out.data(), b, 4000);
    EXPECT_EQ(out, expected);
    device.memory.fill(b, 0, 4000);
  }
}

TEST(EmulatorDevice, AFaultNamesItsPlaceAndEndsTheDevice) {
  Device device;
  device.load(module);
  uint64_t a = device.memory.allocate(4, "the input"), b = device.memory.allocate(4, "the output");
  std::optional<Fault> fault = device.launch(request("copy", 1, a + 4, b));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->check, Check::OutOfBounds);
  for (const char *part :
       {"out of bounds read of 4 bytes", "at k.cu:7:2, k.ll:3, in @kernel: %v = load",
        "kernel @copy, block (0, 0, 0), thread (0, 0, 0)",
        "0 bytes behind the end of the input (4 bytes"})
    EXPECT_NE(fault->message.find(part), std::string::npos) << fault->message;
  EXPECT_NE(
      errorOf([&] { device.launch(request("copy", 1, a, b)); }).find("an earlier launch failed"),
      std::string::npos);
}

// An address of the host is none of the device, and one of the device none of the host.
TEST(EmulatorDevice, HasAnAddressSpaceOfItsOwn) {
  int32_t onHost = 1;
  auto host = reinterpret_cast<uint64_t>(&onHost);
  Device device;
  device.load(module);
  uint64_t a = device.memory.allocate(4, "a");
  EXPECT_FALSE(isDeviceAddress(host));
  EXPECT_TRUE(isDeviceAddress(a));
  EXPECT_NE(
      errorOf([&] { device.memory.copyIn(host, &onHost, 4); }).find("no address of the device"),
      std::string::npos);
  std::optional<Fault> fault = device.launch(request("copy", 1, host, a));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->check, Check::HostPointer);
}

TEST(EmulatorDevice, VariablesHaveTheirFirstValues) {
  Device device;
  device.load(module);
  uint64_t b = device.memory.allocate(4, "b");
  ASSERT_FALSE(device.launch(request("copy", 1, tableAddress + 4, b)));
  int32_t value = 0;
  device.memory.copyOut(&value, b, 4);
  EXPECT_EQ(value, 6);
  std::optional<Fault> fault = device.launch(request("copy", 1, b, tableAddress));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->check, Check::ReadOnly);
}

TEST(EmulatorDevice, RefusesLaunchesThatADriverRefuses) {
  Device device;
  device.load(module);
  auto refused = [&](LaunchRequest launch, const char *why) {
    std::string message = errorOf([&] { device.launch(launch); });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  refused(request("copy", 0, 0, 0), "may be 0");
  refused(request("copy", 1025, 0, 0), "at most 1024");
  refused(request("multiply", 64, 0, 0), "at most 32 (nvvm.maxntid)");
  refused(request("multiply", 16, 0, 0), "exactly 32 x 1 x 1");
  refused(request("scan", 1, 0, 0), "asks for 0 bytes");
  refused(request("scan", 1, 0, 0, 300000), "at most 232448");
  LaunchRequest launch = request("copy", 1, 0, 0);
  launch.parameters.pop_back();
  refused(launch, "has 2 parameters, 1 values");
  launch.parameters.emplace_back(4);
  refused(launch, "parameter 1 (ptr) has 8 bytes, the value given has 4");
  descent_emulated_module old = module;
  old.version = 0;
  EXPECT_NE(errorOf([&] { device.load(old); }).find("compile it again"), std::string::npos);
  EXPECT_NE(errorOf([&] { Device::find(module, "sum"); }).find("has scan, copy, multiply"),
            std::string::npos);
}

TEST(EmulatorMemory, KnowsWhatTheHostDoesWrong) {
  DeviceMemory memory;
  uint64_t a = memory.allocate(100, "a"), b = memory.allocate(UINT64_C(5) << 30, "b");
  char bytes[100] = {};
  auto expect = [](const std::string &message, const char *part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  EXPECT_EQ(a % 512, 256u) << "the alignment that is promised, and no more";
  EXPECT_GT(b - a, UINT64_C(1) << 29);
  EXPECT_EQ(memory.find(b + (UINT64_C(5) << 30) - 1)->name, "b");
  expect(memory.describe(a + 99), "byte 99 of a (100 bytes");
  expect(memory.describe(a - 1), "1 bytes before the start of a");
  expect(errorOf([&] { memory.copyIn(a + 1, bytes, 100); }), "100 bytes at");
  expect(errorOf([&] { memory.copyIn(a + 1, bytes, 100); }),
         "the last 0 bytes behind the end of a");
  expect(errorOf([&] { memory.copyOut(bytes, a + 100, 1); }), "0 bytes behind the end of a");
  expect(errorOf([&] { memory.release(a + 1); }), "no allocation begins there");
  memory.release(a);
  expect(errorOf([&] { memory.release(a); }), "a was freed twice");
  expect(errorOf([&] { memory.copyOut(bytes, a, 1); }), "a, which was freed");
  expect(errorOf([&] { memory.allocate(UINT64_C(1) << 46, "c"); }), "no room for");
  EXPECT_EQ(memory.bytesInUse(), UINT64_C(5) << 30);
  // Addresses are not used again.
  EXPECT_GT(memory.allocate(1, "d"), b);
}

// What was not written stays so through a copy on the device.
TEST(EmulatorMemory, CopiesKeepWhatIsUnwritten) {
  DeviceMemory memory;
  uint64_t a = memory.allocate(200, "a"), b = memory.allocate(200, "b");
  memory.fill(a + 63, 1, 66);
  memory.fill(b, 2, 200);
  memory.copy(b, a, 200);
  char out[2] = {};
  memory.copyOut(out, b + 62, 2);
  EXPECT_EQ(out[0], char(0xff)) << "nobody's value is all ones";
  EXPECT_EQ(out[1], 1);
  Region &region = *memory.find(b);
  EXPECT_EQ(region.firstUnwritten(0, 200), 0);
  EXPECT_EQ(region.firstUnwritten(63, 66), -1);
  EXPECT_EQ(region.firstUnwritten(100, 100), 129);
}

// All shapes of mma against plain sums of small integers, which every type holds.
TEST(EmulatorMma, FragmentsAreThoseOfThePtxIsa) {
  const struct {
    uint64_t k;
    int type, packed;
  } cases[] = {{16, DESCENT_MMA_BF16, 2}, {8, DESCENT_MMA_BF16, 2}, {16, DESCENT_MMA_F16, 2},
               {8, DESCENT_MMA_TF32, 1},  {4, DESCENT_MMA_TF32, 1}, {32, DESCENT_MMA_E4M3, 4},
               {32, DESCENT_MMA_E5M2, 4}, {16, DESCENT_MMA_E4M3, 4}};
  // 1, 2, -1, -2 ... as bits of the type.
  auto encode = [](int type, int value) -> uint32_t {
    if (type == DESCENT_MMA_TF32)
      return bitsOf(static_cast<float>(value));
    if (type == DESCENT_MMA_BF16 || type == DESCENT_MMA_F16)
      return toNarrow(value, type == DESCENT_MMA_F16);
    for (uint32_t bits = 0; bits < 256; ++bits)
      if (mmaElement(type, bits, 0) == value)
        return bits;
    return 0;
  };
  for (auto [k, type, packed] : cases) {
    int a[16][32], b[32][8], c[16][8];
    for (int i = 0; i < 16; ++i)
      for (uint64_t p = 0; p < k; ++p)
        a[i][p] = static_cast<int>((3 * i + 5 * p) % 7) - 3;
    for (uint64_t p = 0; p < k; ++p)
      for (int j = 0; j < 8; ++j)
        b[p][j] = static_cast<int>((p + 2 * j) % 5) - 2;
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j)
        c[i][j] = 10 * i - j;
    // Places of elements as the tables of the ISA's section on each shape give them.
    int registersB = static_cast<int>(k) / (4 * packed);
    std::vector<uint32_t> memory(32 * 16, 0);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t *slot = &memory[16 * lane];
      int row = lane / 4, quad = lane % 4;
      auto pack = [&](auto &&element) {
        uint32_t bits = 0;
        for (int h = 0; h < packed; ++h)
          bits |= encode(type, element(h)) << (32 / packed * h % 32);
        *slot++ = bits;
      };
      for (int r = 0; r < 2 * registersB; ++r)
        pack([&](int h) { return a[row + (r % 2) * 8][quad * packed + h + (r / 2) * 4 * packed]; });
      for (int r = 0; r < registersB; ++r)
        pack([&](int h) { return b[quad * packed + h + r * 4 * packed][row]; });
      for (int r = 0; r < 4; ++r)
        *slot++ = bitsOf(static_cast<float>(c[row + (r / 2) * 8][quad * 2 + r % 2]));
    }
    Device device;
    device.load(module);
    uint64_t address = device.memory.allocate(4 * memory.size(), "fragments");
    device.memory.copyIn(address, memory.data(), 4 * memory.size());
    std::optional<Fault> fault = device.launch(
        request("multiply", 32, k | uint64_t(type) << 8 | uint64_t(type) << 12, address));
    ASSERT_FALSE(fault) << fault->message;
    device.memory.copyOut(memory.data(), address, 4 * memory.size());
    for (int lane = 0; lane < 32; ++lane)
      for (int r = 0; r < 4; ++r) {
        int i = lane / 4 + (r / 2) * 8, j = lane % 4 * 2 + r % 2, sum = c[i][j];
        for (uint64_t p = 0; p < k; ++p)
          sum += a[i][p] * b[p][j];
        EXPECT_EQ(floatOf(memory[16 * lane + r]), sum) << "k " << k << " type " << type;
      }
  }
}
