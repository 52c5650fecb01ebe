//===- EmulateIntrinsics.cpp - What an llvm.nvvm intrinsic becomes --------===//
//
// Names of intrinsics are regular, so they are taken apart instead of listed: an operation, then
// modifiers. A modifier that is not understood makes the whole name unknown; nothing is guessed.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/EmulateIntrinsics.h"
#include "runtime/include/descent/emulator.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace descent {
namespace {

using Intrinsic = EmulatedIntrinsic;
using Found = std::optional<Intrinsic>;

Intrinsic::Input constant(uint64_t value) { return {false, value}; }
Intrinsic::Input operand(uint64_t index) { return {true, index}; }

Found slots(StringRef entry, std::initializer_list<Intrinsic::Input> inputs,
            bool allOperands = true) {
  Intrinsic result{Intrinsic::Slots, entry};
  result.inputs.assign(inputs);
  result.allOperands = allOperands;
  return result;
}

Found value(uint64_t number) { return Intrinsic{Intrinsic::Value, "", number}; }

std::optional<unsigned> axis(StringRef name) {
  return StringSwitch<std::optional<unsigned>>(name)
      .Case("x", 0u)
      .Case("y", 1u)
      .Case("z", 2u)
      .Default(std::nullopt);
}

Found specialRegister(StringRef name) {
  auto [family, dimension] = name.rsplit('.');
  // A cluster is one block here.
  if (family == "cluster.ctaid" || name == "cluster.ctarank")
    return value(0);
  if (family == "cluster.nctaid" || name == "cluster.nctarank")
    return value(1);
  auto base = StringSwitch<std::optional<unsigned>>(family)
                  .Case("tid", DESCENT_REGISTER_TID)
                  .Case("ntid", DESCENT_REGISTER_NTID)
                  .Cases({"ctaid", "clusterid"}, DESCENT_REGISTER_CTAID)
                  .Cases({"nctaid", "nclusterid"}, DESCENT_REGISTER_NCTAID)
                  .Default(std::nullopt);
  if (base)
    if (auto which = axis(dimension))
      return Intrinsic{Intrinsic::Register, "", *base + *which};
  if (name == "warpsize")
    return value(32);
  if (name == "smid" || name == "gridid")
    return value(0);
  if (name == "nsmid")
    return value(1);
  auto which =
      StringSwitch<std::optional<unsigned>>(name)
          .Case("laneid", DESCENT_REGISTER_LANEID)
          .Case("warpid", DESCENT_REGISTER_WARPID)
          .Case("nwarpid", DESCENT_REGISTER_NWARPID)
          .Case("lanemask.eq", DESCENT_REGISTER_LANEMASK_EQ)
          .Case("lanemask.le", DESCENT_REGISTER_LANEMASK_LE)
          .Case("lanemask.lt", DESCENT_REGISTER_LANEMASK_LT)
          .Case("lanemask.ge", DESCENT_REGISTER_LANEMASK_GE)
          .Case("lanemask.gt", DESCENT_REGISTER_LANEMASK_GT)
          .Case("dynamic_smem_size", DESCENT_REGISTER_DYNAMIC_SHARED)
          .Case("total_smem_size", DESCENT_REGISTER_TOTAL_SHARED)
          .Cases({"clock", "clock64", "globaltimer", "globaltimer.lo"}, DESCENT_REGISTER_CLOCK)
          .Default(std::nullopt);
  if (which)
    return Intrinsic{Intrinsic::Register, "", *which};
  return std::nullopt;
}

/// What follows "barrier.cta.".
Found barrier(StringRef name) {
  unsigned kind = DESCENT_BARRIER_SYNC;
  bool reduces = name.consume_front("red.");
  if (reduces) {
    auto [operation, rest] = name.split('.');
    auto which = StringSwitch<std::optional<unsigned>>(operation)
                     .Case("and", DESCENT_BARRIER_AND)
                     .Case("or", DESCENT_BARRIER_OR)
                     .Case("popc", DESCENT_BARRIER_POPC)
                     .Default(std::nullopt);
    if (!which)
      return std::nullopt;
    kind = *which;
    name = rest;
  } else if (name.consume_front("arrive.")) {
    kind = DESCENT_BARRIER_ARRIVE;
  } else if (!name.consume_front("sync.")) {
    return std::nullopt;
  }
  if (name.consume_front("aligned."))
    kind |= DESCENT_BARRIER_ALIGNED;
  bool counted = name == "count";
  if (!counted && name != "all")
    return std::nullopt;
  return slots("barrier",
               {constant(kind), operand(0), counted ? operand(1) : constant(0),
                reduces ? operand(counted ? 2 : 1) : constant(0)},
               false);
}

/// What follows "mma.m16n8k".
Found mma(StringRef name) {
  uint64_t k;
  if (name.consumeInteger(10, k) || !name.consume_front(".row.col."))
    return std::nullopt;
  auto type = [](StringRef text) {
    return StringSwitch<std::optional<unsigned>>(text)
        .Case("e4m3", DESCENT_MMA_E4M3)
        .Case("e5m2", DESCENT_MMA_E5M2)
        .Default(std::nullopt);
  };
  std::optional<unsigned> a, b;
  if (name == "bf16" && (k == 8 || k == 16))
    a = b = DESCENT_MMA_BF16;
  else if (name == "f32.f32" && (k == 8 || k == 16)) // the types of D and C; A and B are f16
    a = b = DESCENT_MMA_F16;
  else if (name == "tf32" && (k == 4 || k == 8))
    a = b = DESCENT_MMA_TF32;
  else if (name.consume_front("f32.") && name.consume_back(".f32") && (k == 16 || k == 32)) {
    a = type(name.split('.').first);
    b = type(name.split('.').second);
  }
  if (!a || !b)
    return std::nullopt;
  return slots("mma", {constant(k), constant(*a), constant(*b)});
}

Found matrixAccess(StringRef entry, StringRef name) {
  // ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3
  if (!name.consume_front("sync.aligned.m8n8.x"))
    return std::nullopt;
  uint64_t count;
  if (name.consumeInteger(10, count))
    return std::nullopt;
  bool transposed = name.consume_front(".trans");
  if (!name.starts_with(".b16"))
    return std::nullopt;
  return slots(entry, {constant(count), constant(transposed)});
}

Found copyAsync(StringRef name) {
  if (name == "commit.group")
    return slots("cp_async_commit", {});
  if (name == "wait.group")
    return slots("cp_async_wait", {});
  if (name == "wait.all")
    return slots("cp_async_wait_all", {});
  bool sized = name.consume_back(".s");
  uint64_t bytes;
  if (!(name.consume_front("ca.shared.global.") || name.consume_front("cg.shared.global.")) ||
      name.getAsInteger(10, bytes))
    return std::nullopt;
  return slots("cp_async",
               {constant(bytes), operand(0), operand(1), sized ? operand(2) : constant(UINT64_MAX)},
               false);
}

Found warpOperation(StringRef name) {
  if (name.consume_front("shfl.sync.")) {
    auto [mode, type] = name.split('.');
    auto kind = StringSwitch<std::optional<unsigned>>(mode)
                    .Case("up", DESCENT_SHUFFLE_UP)
                    .Case("down", DESCENT_SHUFFLE_DOWN)
                    .Case("bfly", DESCENT_SHUFFLE_XOR)
                    .Case("idx", DESCENT_SHUFFLE_INDEX)
                    .Default(std::nullopt);
    type.consume_back("p");
    if (kind && (type == "i32" || type == "f32"))
      return slots("shuffle", {constant(*kind)});
  } else if (name.consume_front("vote.") && name.consume_back(".sync")) {
    auto kind = StringSwitch<std::optional<unsigned>>(name)
                    .Case("all", DESCENT_VOTE_ALL)
                    .Case("any", DESCENT_VOTE_ANY)
                    .Case("uni", DESCENT_VOTE_UNI)
                    .Case("ballot", DESCENT_VOTE_BALLOT)
                    .Default(std::nullopt);
    if (kind)
      return slots("vote", {constant(*kind)});
  } else if (name.starts_with("match.any.sync.i")) {
    return slots("match", {constant(DESCENT_MATCH_ANY)});
  } else if (name.starts_with("match.all.sync.i")) {
    return slots("match", {constant(DESCENT_MATCH_ALL)});
  } else if (name.consume_front("redux.sync.")) {
    auto kind = StringSwitch<std::optional<unsigned>>(name)
                    .Case("add", DESCENT_REDUX_ADD)
                    .Case("min", DESCENT_REDUX_MIN)
                    .Case("max", DESCENT_REDUX_MAX)
                    .Case("umin", DESCENT_REDUX_UMIN)
                    .Case("umax", DESCENT_REDUX_UMAX)
                    .Case("and", DESCENT_REDUX_AND)
                    .Case("or", DESCENT_REDUX_OR)
                    .Case("xor", DESCENT_REDUX_XOR)
                    .Default(std::nullopt);
    if (kind)
      return slots("redux", {constant(*kind)});
  } else if (name == "elect.sync") {
    return slots("elect", {});
  } else if (name == "bar.warp.sync") {
    return slots("warp_sync", {});
  }
  return std::nullopt;
}

/// f2bf16.rn, ff2f16x2.rz.relu and the like.
Found conversion(StringRef name) {
  bool pair = name.consume_front("ff2");
  if (!pair && !name.consume_front("f2"))
    return std::nullopt;
  if (name == "tf32.rna")
    return Intrinsic{Intrinsic::Direct, "tf32", 0, {}, true};
  uint64_t code = 0;
  if (name.consume_front("f16"))
    code = DESCENT_ARITHMETIC_HALF;
  else if (!name.consume_front("bf16"))
    return std::nullopt;
  if (pair && !name.consume_front("x2"))
    return std::nullopt;
  if (name.consume_front(".rz"))
    code |= DESCENT_ROUND_ZERO;
  else if (!name.consume_front(".rn"))
    return std::nullopt;
  if (name.consume_front(".relu"))
    code |= DESCENT_ARITHMETIC_RELU;
  if (!name.empty())
    return std::nullopt;
  return Intrinsic{Intrinsic::Direct, pair ? "narrow_pair" : "narrow", 0, {constant(code)}, true};
}

/// add.rn.f, fma.rz.ftz.sat.f, ex2.approx.ftz.f32, fmax.nan.bf16x2 and the like.
Found arithmetic(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  auto operation = StringSwitch<std::optional<uint64_t>>(parts[0])
                       .Case("add", DESCENT_ARITHMETIC_ADD)
                       .Case("mul", DESCENT_ARITHMETIC_MUL)
                       .Case("fma", DESCENT_ARITHMETIC_FMA)
                       .Case("div", DESCENT_ARITHMETIC_DIV)
                       .Case("rcp", DESCENT_ARITHMETIC_RCP)
                       .Case("sqrt", DESCENT_ARITHMETIC_SQRT)
                       .Case("rsqrt", DESCENT_ARITHMETIC_RSQRT)
                       .Case("ex2", DESCENT_ARITHMETIC_EX2)
                       .Case("lg2", DESCENT_ARITHMETIC_LG2)
                       .Case("sin", DESCENT_ARITHMETIC_SIN)
                       .Case("cos", DESCENT_ARITHMETIC_COS)
                       .Case("fmin", DESCENT_ARITHMETIC_MIN)
                       .Case("fmax", DESCENT_ARITHMETIC_MAX)
                       .Case("fabs", DESCENT_ARITHMETIC_ABS)
                       .Case("floor", DESCENT_ARITHMETIC_FLOOR)
                       .Case("ceil", DESCENT_ARITHMETIC_CEIL)
                       .Case("trunc", DESCENT_ARITHMETIC_TRUNC)
                       .Case("round", DESCENT_ARITHMETIC_ROUND)
                       .Case("saturate", DESCENT_ARITHMETIC_COPY | DESCENT_ARITHMETIC_SAT)
                       .Default(std::nullopt);
  if (!operation)
    return std::nullopt;
  uint64_t code = *operation;
  StringRef type = "f"; // "div.full" and "ex2.approx" may name none
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto flag = StringSwitch<std::optional<uint64_t>>(part)
                    .Cases({"rn", "approx", "full"}, 0u)
                    .Case("rz", DESCENT_ROUND_ZERO)
                    .Case("rm", DESCENT_ROUND_DOWN)
                    .Case("rp", DESCENT_ROUND_UP)
                    .Case("ftz", DESCENT_ARITHMETIC_FTZ)
                    .Case("sat", DESCENT_ARITHMETIC_SAT)
                    .Case("nan", DESCENT_ARITHMETIC_NAN)
                    .Case("relu", DESCENT_ARITHMETIC_RELU)
                    .Default(std::nullopt);
    if (flag)
      code |= *flag;
    else if (part == parts.back())
      type = part;
    else
      return std::nullopt;
  }
  if (type.contains("f16") && !type.contains("bf16"))
    code |= DESCENT_ARITHMETIC_HALF;
  StringRef entry = StringSwitch<StringRef>(type)
                        .Cases({"f", "f32"}, "arithmetic")
                        .Cases({"d", "f64"}, "arithmetic_double")
                        .Cases({"f16", "bf16"}, "arithmetic_narrow")
                        .Cases({"f16x2", "bf16x2", "v2f16", "v2bf16"}, "arithmetic_pair")
                        .Default("");
  if (entry.empty())
    return std::nullopt;
  return Intrinsic{Intrinsic::Direct, entry, 0, {constant(code)}, true};
}

} // namespace

Found emulatedIntrinsic(StringRef name) {
  if (name.consume_front("read.ptx.sreg."))
    return specialRegister(name);
  if (name.consume_front("barrier.cta."))
    return barrier(name);
  if (name.consume_front("mma.m16n8k"))
    return mma(name);
  if (name.consume_front("ldmatrix."))
    return matrixAccess("ldmatrix", name);
  if (name.consume_front("stmatrix."))
    return matrixAccess("stmatrix", name);
  if (name.consume_front("cp.async."))
    return copyAsync(name);
  if (name.consume_front("isspacep.")) {
    auto space = StringSwitch<std::optional<unsigned>>(name)
                     .Case("global", 1u)
                     .Cases({"shared", "shared.cluster"}, 3u)
                     .Case("const", 4u)
                     .Case("local", 5u)
                     .Default(std::nullopt);
    if (!space)
      return std::nullopt;
    return Intrinsic{Intrinsic::Space, "", *space};
  }
  if (name.starts_with("membar.") || name.starts_with("fence.") || name.starts_with("prefetch") ||
      name.starts_with("griddepcontrol.") || name.starts_with("setmaxnreg.") ||
      name == "pm.event.mask")
    return Intrinsic{Intrinsic::Nothing};
  if (name == "nanosleep")
    return slots("yield", {});
  if (name == "exit")
    return slots("exit", {});
  // Of the lanes that happen to be together, the only one that is certain is the caller's.
  if (name == "activemask")
    return Intrinsic{Intrinsic::Register, "", DESCENT_REGISTER_LANEMASK_EQ};
  if (name == "reflect" || name == "is_explicit_cluster")
    return value(0);
  if (name == "prmt")
    return Intrinsic{Intrinsic::Direct, "permute", 0, {}, true};
  // Overloaded names carry their type: ex2.approx.ftz.f32.
  if (Found found = warpOperation(name))
    return found;
  if (Found found = conversion(name))
    return found;
  return arithmetic(name);
}

} // namespace descent
