//===- NarrowFloatsTest.cpp - Conversions of narrow floats, value by value ---===//
//
// The arithmetic of NarrowFloats.h as machine code, on vectors and on scalars, for AVX2 and for the
// host. The reference is written from the formats' definitions: the list of a format's numbers as
// doubles, and a search for the nearest. Inputs are every code; every number of a format and every
// midpoint between two, with the f32 values around each; and f32 patterns spread over all there
// are.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NarrowFloats.h"
#include "../../passes/Codegen/KernelTesting.h"
#include "passes/Codegen/Emitter.h"
#include "passes/Codegen/KernelFunction.h"
#include <algorithm>

using namespace mlir;

namespace descent::testing {
namespace {

using Convert = llvm::function_ref<Value(Emitter &, Value, Value)>;

/// Converts `count` elements: a kernel of one task over (from, second operand, to), with whole
/// vectors and then scalars.
class Converter {
public:
  Converter(Type from, Type to, const CpuTarget &target, Convert convert) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
    auto stored = [](Type type) -> Type {
      return IntegerType::get(&context(), type.getIntOrFloatBitWidth());
    };
    Type u = Float32Type::get(&context());
    SmallVector<Type> buffers;
    for (Type type : {stored(from), u, stored(to)})
      buffers.push_back(MemRefType::get({capacity}, type));
    func::FuncOp function =
        createKernelFunction(*module, module->getLoc(), "convert", buffers, 1, 0);
    OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
    Emitter e(builder, module->getLoc());
    auto arguments = function.getArguments();
    Index begin = Value(arguments[3]), end = Value(arguments[4]);
    int64_t width = 4 * target.lanes();
    Index whole = e.add(begin, e.roundDown(e.sub(end, begin), width));
    auto as = [&](Value value, Type element) -> Value {
      Type type = element;
      if (auto vector = dyn_cast<VectorType>(value.getType()))
        type = vector.clone(element);
      return arith::BitcastOp::create(builder, e.loc, type, value);
    };
    e.loop(begin, whole, width, [&](Index i) {
      Value result = convert(e, as(e.loadVector(arguments[0], i, width), from),
                             e.loadVector(arguments[1], i, width));
      e.storeVector(as(result, stored(to)), arguments[2], i);
    });
    e.loop(whole, end, 1, [&](Index i) {
      Value result = convert(e, as(e.load(arguments[0], i), from), e.load(arguments[1], i));
      e.store(as(result, stored(to)), arguments[2], i);
    });
    func::ReturnOp::create(builder, e.loc);
    auto created = KernelJit::create(*module, target);
    EXPECT_TRUE(succeeded(created));
    if (succeeded(created))
      jit = std::move(*created);
  }

  template <typename From, typename To>
  std::vector<To> run(const std::vector<From> &inputs, const std::vector<float> &second = {}) {
    std::vector<To> results(inputs.size());
    void *buffers[] = {const_cast<From *>(inputs.data()), const_cast<float *>(second.data()),
                       results.data()};
    // The last few by themselves, too few for a vector.
    auto count = static_cast<int64_t>(inputs.size()), last = std::max<int64_t>(count - 300, 0);
    auto kernel = jit->kernel("convert");
    kernel(buffers, 0, last, nullptr);
    for (int64_t i = last; i < count; ++i)
      kernel(buffers, i, i + 1, nullptr);
    return results;
  }

private:
  static constexpr int64_t capacity = int64_t(1) << 40;
  std::unique_ptr<KernelJit> jit;
};

float fromBits(uint32_t bits) { return llvm::bit_cast<float>(bits); }
uint32_t bitsOf(float x) { return llvm::bit_cast<uint32_t>(x); }

/// A format by its definition.
struct Format {
  const char *name;
  unsigned width, mantissa;
  int bias;
  unsigned largest; ///< pattern of the largest number
  bool hasInfinity; ///< its pattern follows the largest number's; all above are NaN
  bool saturates;

  /// The value of a pattern without sign.
  double value(unsigned pattern) const {
    if (pattern > largest)
      return hasInfinity && pattern == largest + 1 ? INFINITY : NAN;
    unsigned exponent = pattern >> mantissa, fraction = pattern & ((1u << mantissa) - 1);
    if (exponent == 0)
      return std::ldexp(double(fraction), 1 - bias - int(mantissa));
    return std::ldexp(double(fraction + (1u << mantissa)), int(exponent) - bias - int(mantissa));
  }
  Type type() const {
    return StringRef(name) == "f8E4M3FN" ? Type(Float8E4M3FNType::get(&context()))
           : StringRef(name) == "f8E5M2" ? Type(Float8E5M2Type::get(&context()))
           : StringRef(name) == "bf16"   ? Type(BFloat16Type::get(&context()))
                                         : Type(Float16Type::get(&context()));
  }
  /// The pattern, without sign, of the number nearest to a magnitude that is not NaN.
  unsigned nearest(double magnitude) const {
    if (magnitude >= value(largest)) {
      // Half a unit above the largest number would be the tie with the next, which is even.
      double unit = value(largest) - value(largest - 1);
      bool overflows = !(magnitude < value(largest) + unit / 2);
      return overflows && !saturates ? largest + 1 : largest;
    }
    unsigned low = 0, high = largest; // value(low) <= magnitude < value(high)
    while (high - low > 1) {
      unsigned middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    double below = magnitude - value(low), above = value(high) - magnitude;
    return below < above ? low : above < below ? high : (low & 1 ? high : low);
  }
};

const Format formats[] = {{"f8E4M3FN", 8, 3, 7, 0x7e, false, true},
                          {"f8E5M2", 8, 2, 15, 0x7b, true, true},
                          {"bf16", 16, 7, 127, 0x7f7f, true, false},
                          {"f16", 16, 10, 15, 0x7bff, true, false}};

std::vector<float> interesting(const Format &format) {
  std::vector<float> list;
  auto around = [&](double value) {
    uint32_t bits = bitsOf(static_cast<float>(value));
    for (int offset = -2; offset <= 2; ++offset)
      if (offset >= 0 || bits >= unsigned(-offset))
        for (uint32_t sign : {0u, 0x80000000u})
          list.push_back(fromBits((bits + offset) | sign));
  };
  for (unsigned pattern = 0; pattern <= format.largest; ++pattern) {
    around(format.value(pattern));
    if (pattern < format.largest)
      around((format.value(pattern) + format.value(pattern + 1)) / 2);
  }
  double largest = format.value(format.largest), unit = largest - format.value(format.largest - 1);
  around(largest + unit / 2); // for bf16 beyond f32: infinity and the numbers before it
  for (uint32_t bits : {0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7f80ffffu, 0x7fc00000u,
                        0x7fffffffu, 0x00000001u, 0x007fffffu, 0x00800000u})
    for (uint32_t sign : {0u, 0x80000000u})
      list.push_back(fromBits(bits | sign));
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 4999)
    list.push_back(fromBits(uint32_t(bits)));
  return list;
}

template <typename Code> void expectNarrowing(const Format &format) {
  SCOPED_TRACE(format.name);
  std::vector<float> inputs = interesting(format);
  std::vector<float> second(inputs.size());
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Converter converter(Float32Type::get(&context()), format.type(), target,
                        [&](Emitter &e, Value x, Value) {
                          return narrowFloat(e.builder, e.loc, x, format.type());
                        });
    std::vector<Code> codes = converter.run<float, Code>(inputs, second);
    unsigned signBit = 1u << (format.width - 1);
    for (size_t i = 0; i < inputs.size(); ++i) {
      float x = inputs[i];
      unsigned magnitude = codes[i] & (signBit - 1);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(format.value(magnitude)))
            << std::hex << bitsOf(x) << " became " << unsigned(codes[i]);
        continue;
      }
      unsigned wanted = format.nearest(std::fabs(double(x)));
      // vcvtneps2bf16 takes subnormal numbers for zero.
      if (format.width == 16 && format.mantissa == 7 && target.bf16Conversion &&
          std::fabs(x) < std::numeric_limits<float>::min())
        wanted = 0;
      ASSERT_EQ(unsigned(codes[i]), wanted | (std::signbit(x) ? signBit : 0))
          << "of " << x << " (" << std::hex << bitsOf(x) << ")";
    }
  }
}

TEST(NarrowFloats, RoundToNearestEven) {
  for (const Format &format : formats)
    if (format.width == 8)
      expectNarrowing<uint8_t>(format);
    else
      expectNarrowing<uint16_t>(format);
}

template <typename Code> void expectWidening(const Format &format) {
  SCOPED_TRACE(format.name);
  std::vector<Code> codes;
  for (int turn = 0; turn < 4; ++turn) // so that vectors and scalars both see every code
    for (unsigned code = 0; code < 1u << format.width; ++code)
      codes.push_back(static_cast<Code>(code));
  std::vector<float> second(codes.size());
  unsigned signBit = 1u << (format.width - 1);
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Converter converter(format.type(), Float32Type::get(&context()), target,
                        [](Emitter &e, Value x, Value) { return widenFloat(e.builder, e.loc, x); });
    std::vector<float> values = converter.run<Code, float>(codes, second);
    for (size_t i = 0; i < codes.size(); ++i) {
      double wanted = format.value(codes[i] & (signBit - 1));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(values[i])) << std::hex << unsigned(codes[i]);
        continue;
      }
      wanted = codes[i] & signBit ? -wanted : wanted;
      ASSERT_TRUE(values[i] == wanted && std::signbit(values[i]) == std::signbit(wanted))
          << std::hex << unsigned(codes[i]) << " became " << values[i] << ", not " << wanted;
    }
  }
}

TEST(NarrowFloats, WidenExactly) {
  for (const Format &format : formats)
    if (format.width == 8)
      expectWidening<uint8_t>(format);
    else
      expectWidening<uint16_t>(format);
}

TEST(NarrowFloats, RoundToTf32) {
  Format tf32 = {"tf32", 19, 10, 127, 0x3fbff, true, false};
  std::vector<float> inputs = interesting(tf32);
  std::vector<float> second(inputs.size());
  Type f32 = Float32Type::get(&context());
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Converter converter(f32, f32, target, [](Emitter &e, Value x, Value) {
      return roundToTf32(e.builder, e.loc, x);
    });
    std::vector<float> results = converter.run<float, float>(inputs, second);
    for (size_t i = 0; i < inputs.size(); ++i) {
      float x = inputs[i];
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(results[i]));
        continue;
      }
      double wanted = tf32.value(tf32.nearest(std::fabs(double(x))));
      ASSERT_EQ(results[i], std::signbit(x) ? -wanted : wanted) << std::hex << bitsOf(x);
    }
  }
}

// Of x = (1 + k / 65536) times a power of two, up in k of 65536 cases; never past a neighbour; what
// bf16 holds stays itself.
TEST(NarrowFloats, RoundStochastically) {
  std::vector<float> inputs, uniform;
  auto add = [&](uint32_t bits, uint32_t share, float within) {
    inputs.push_back(fromBits(bits));
    uniform.push_back((share + within) / 65536.0f);
  };
  for (uint32_t low : {0x0000u, 0x0001u, 0x1234u, 0x7fffu, 0x8000u, 0xffffu})
    for (uint32_t share = 0; share < 65536; share += share < 16 || share > 65520 ? 1 : 13)
      for (uint32_t high : {0x3f800000u, 0xc2450000u, 0x00010000u, 0x7f7f0000u})
        add(high | low, share, share % 3 ? 0.0f : 0.5f);
  for (uint32_t bits : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu, 0x7fc00000u, 0u,
                        0x80000000u, 0x7f7fffffu})
    for (uint32_t share : {0u, 1u, 65535u})
      add(bits, share, 0.0f);
  // As the 24 bits of a random number give it: the largest below one.
  inputs.push_back(1.0f);
  uniform.push_back(16777215.0f / 16777216.0f);

  Type f32 = Float32Type::get(&context());
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Converter converter(
        f32, BFloat16Type::get(&context()), target,
        [](Emitter &e, Value x, Value u) { return roundStochastically(e.builder, e.loc, x, u); });
    std::vector<uint16_t> results = converter.run<float, uint16_t>(inputs, uniform);
    for (size_t i = 0; i < inputs.size(); ++i) {
      uint32_t bits = bitsOf(inputs[i]);
      float back = fromBits(uint32_t(results[i]) << 16);
      if (!std::isfinite(inputs[i])) {
        ASSERT_TRUE(std::isnan(inputs[i]) ? std::isnan(back) : back == inputs[i])
            << std::hex << bits << " became " << results[i];
        continue;
      }
      auto share = static_cast<uint32_t>(double(uniform[i]) * 65536.0);
      ASSERT_EQ(results[i], (bits + share) >> 16)
          << std::hex << bits << " with share " << std::dec << share;
    }
  }
}

} // namespace
} // namespace descent::testing
