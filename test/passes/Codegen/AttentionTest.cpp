//===- AttentionTest.cpp - Attention kernels against double precision -----===//
//
// Sizes off and on every boundary (vector, panel, tile, block of queries, block of keys, run of
// queries), causal or not, q, k, v apart or in one tensor, for AVX2 and for the host.
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"
#include "mlir/Parser/Parser.h"
#include "passes/Codegen/AttentionForm.h"
#include "passes/Codegen/KernelFunction.h"

using namespace mlir;

namespace descent::testing {
namespace {

struct Case {
  int64_t length, depth, heads, batch;
  bool causal, fused;

  int64_t columns() const { return heads * depth; }
  int64_t elements() const { return batch * length * columns(); }
  std::string name() const {
    return "t" + std::to_string(length) + "_d" + std::to_string(depth) + "_h" +
           std::to_string(heads) + "_b" + std::to_string(batch) + (causal ? "_causal" : "_full") +
           (fused ? "_fused" : "_apart");
  }
};

/// Every length with some depths, every depth with some lengths; heads, batch and layouts take
/// turns.
std::vector<Case> cases() {
  std::vector<Case> list;
  int turn = 0;
  for (int64_t length : {1, 2, 7, 16, 33, 64, 100, 256})
    for (int64_t depth : {1, 3, 8, 16, 20, 32, 64}) {
      bool often =
          depth == 8 || depth == 20 || depth == 64 || length == 7 || length == 33 || length == 100;
      if (!often)
        continue;
      ++turn;
      list.push_back({length, depth, turn % 2 ? 3 : 1, turn % 3 == 0 ? 1 : 2, turn % 4 != 0,
                      turn % 5 % 2 == 0});
    }
  // More than one block of keys, and more than one run of queries.
  list.push_back({300, 16, 2, 1, true, true});
  list.push_back({300, 5, 1, 1, false, false});
  list.push_back({450, 8, 1, 2, true, true});
  list.push_back({450, 8, 1, 1, false, false});
  return list;
}

/// A tensor of the model's [B, T, H, D] in either layout.
struct Place {
  int64_t offset, stride;
  size_t operator()(const Case &c, int64_t b, int64_t t, int64_t h, int64_t d) const {
    return (b * c.length + t) * stride + offset + h * c.depth + d;
  }
};
Place part(const Case &c, bool fused, int64_t number) {
  return {fused ? number * c.columns() : 0, fused ? 3 * c.columns() : c.columns()};
}

/// The operation in double: outputs, and gradients for incoming ones.
struct Reference {
  std::vector<double> o, logsumexp, dq, dk, dv; // [B, T, H, D] and [B, H, T]

  Reference(const Case &c, const std::vector<Buffer> &qkv, const Buffer &dout) {
    for (auto *gradient : {&o, &dq, &dk, &dv})
      gradient->assign(c.elements(), 0);
    logsumexp.assign(c.batch * c.heads * c.length, 0);
    Place plain = part(c, false, 0);
    double scale = 1 / std::sqrt(double(c.depth));
    auto read = [&](int which, int64_t b, int64_t t, int64_t h, int64_t d) {
      return double((c.fused ? qkv[0] : qkv[which])[part(c, c.fused, which)(c, b, t, h, d)]);
    };
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t i = 0; i < c.length; ++i) {
          int64_t seen = c.causal ? i + 1 : c.length;
          std::vector<double> p(seen), slope(seen);
          double most = -INFINITY, total = 0, mean = 0;
          for (int64_t j = 0; j < seen; ++j) {
            for (int64_t d = 0; d < c.depth; ++d)
              p[j] += read(0, b, i, h, d) * read(1, b, j, h, d) * scale;
            most = std::max(most, p[j]);
          }
          for (double &x : p)
            total += x = std::exp(x - most);
          logsumexp[(b * c.heads + h) * c.length + i] = most + std::log(total);
          for (int64_t j = 0; j < seen; ++j) {
            p[j] /= total;
            for (int64_t d = 0; d < c.depth; ++d) {
              double incoming = dout[plain(c, b, i, h, d)];
              o[plain(c, b, i, h, d)] += p[j] * read(2, b, j, h, d);
              slope[j] += incoming * read(2, b, j, h, d);
              dv[plain(c, b, j, h, d)] += p[j] * incoming;
            }
            mean += p[j] * slope[j];
          }
          for (int64_t j = 0; j < seen; ++j)
            for (int64_t d = 0; d < c.depth; ++d) {
              double ds = scale * p[j] * (slope[j] - mean);
              dq[plain(c, b, i, h, d)] += ds * read(1, b, j, h, d);
              dk[plain(c, b, j, h, d)] += ds * read(0, b, i, h, d);
            }
        }
  }
};

/// Scores carry the error of a sum over D, results that of a sum over T; column sums of the
/// probabilities reach ln T under the causal mask.
double tolerance(const Case &c) {
  return (sumTolerance(c.depth) + sumTolerance(c.length)) * (1 + std::log(double(c.length)));
}

void expectNear(const Case &c, const Buffer &got, Place place, const std::vector<double> &wanted,
                const char *what) {
  Place plain = part(c, false, 0);
  double bound = tolerance(c), worst = 0;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t t = 0; t < c.length; ++t)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t d = 0; d < c.depth; ++d) {
          double error = std::abs(got[place(c, b, t, h, d)] - wanted[plain(c, b, t, h, d)]);
          ASSERT_TRUE(error <= bound)
              << what << " at b " << b << " t " << t << " h " << h << " d " << d << " is "
              << got[place(c, b, t, h, d)] << ", not " << wanted[plain(c, b, t, h, d)];
          worst = std::max(worst, error);
        }
  ::testing::Test::RecordProperty(what, std::to_string(worst / bound));
}

/// The form that a kernel of this case has. Buffers: inputs, then outputs.
AttentionForm formOf(const Case &c, bool gradient) {
  AttentionForm form;
  form.batch = c.batch, form.length = c.length, form.heads = c.heads, form.depth = c.depth,
  form.causal = c.causal;
  Type f32 = Float32Type::get(&context());
  auto plain = MemRefType::get({c.batch, c.length, c.columns()}, f32);
  auto whole = MemRefType::get({c.batch, c.length, 3 * c.columns()}, f32);
  auto rows = MemRefType::get({c.batch, c.heads, c.length}, f32);
  auto take = [&](MemRefType type) {
    form.buffers.push_back(type);
    return unsigned(form.buffers.size() - 1);
  };
  auto single = [&](MemRefType type) {
    return AttentionOperand{take(type), 0, type.getShape().back()};
  };
  auto three = [&](auto &a, auto &b, auto &c2) {
    unsigned first = c.fused ? take(whole) : 0;
    int number = 0;
    for (auto assign :
         {std::function<void(AttentionOperand)>([&](AttentionOperand x) { a = x; }),
          std::function<void(AttentionOperand)>([&](AttentionOperand x) { b = x; }),
          std::function<void(AttentionOperand)>([&](AttentionOperand x) { c2 = x; })}) {
      Place place = part(c, c.fused, number++);
      assign({c.fused ? first : take(plain), place.offset, place.stride});
    }
  };
  if (!gradient) {
    three(form.q, form.k, form.v);
    form.o = single(plain);
    form.logsumexp = single(rows);
    return form;
  }
  form.dout = single(plain);
  three(form.q, form.k, form.v);
  form.o = single(plain);
  form.logsumexp = single(rows);
  three(form.dq, form.dk, form.dv);
  return form;
}

class Attention : public ::testing::Test {
public:
  struct Kernels {
    std::unique_ptr<KernelJit> jit;
    std::vector<std::pair<int64_t, int64_t>> tasksAndScratch[2];
  };

  /// Both kernels of every case in one module, as a program has them.
  static void build(const std::vector<Case> &list, const CpuTarget &target, Kernels &kernels) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
    for (const Case &c : list)
      for (bool gradient : {false, true}) {
        func::FuncOp function = (gradient ? emitAttentionGrad : emitAttention)(
            formOf(c, gradient), module->getLoc(), c.name() + (gradient ? "_grad" : ""), *module,
            target);
        kernels.tasksAndScratch[gradient].push_back(
            {function->getAttrOfType<IntegerAttr>(tasksAttrName).getInt(),
             function->getAttrOfType<IntegerAttr>(scratchAttrName).getInt()});
      }
    ASSERT_TRUE(succeeded(verify(*module)));
    auto jit = KernelJit::create(*module, target);
    ASSERT_TRUE(succeeded(jit));
    kernels.jit = std::move(*jit);
  }

  static std::vector<Buffer> inputs(const Case &c, unsigned seed) {
    std::vector<Buffer> list;
    for (int i = 0; i < (c.fused ? 1 : 3); ++i)
      list.emplace_back(size_t(c.elements() * (c.fused ? 3 : 1)), seed + i);
    return list;
  }
};

bool sameBits(const Buffer &a, const Buffer &b) {
  return std::memcmp(a.data(), b.data(), a.size * 4) == 0;
}

TEST_F(Attention, ForwardAndGradientEqualTheReference) {
  std::vector<Case> list = cases();
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Kernels kernels;
    build(list, target, kernels);
    for (size_t i = 0; i < list.size(); ++i) {
      const Case &c = list[i];
      SCOPED_TRACE(c.name());
      std::vector<Buffer> qkv = inputs(c, 10);
      Buffer dout(c.elements(), 20);
      Reference reference(c, qkv, dout);
      Place plain = part(c, false, 0);

      auto [tasks, scratch] = kernels.tasksAndScratch[0][i];
      auto forward = kernels.jit->kernel(c.name());
      ASSERT_NE(forward, nullptr);
      auto run = [&](int64_t grouping, Buffer &o, Buffer &logsumexp) {
        std::vector<Buffer *> buffers;
        for (Buffer &buffer : qkv)
          buffers.push_back(&buffer);
        buffers.insert(buffers.end(), {&o, &logsumexp});
        runKernel(forward, buffers, tasks, scratch, grouping);
      };
      Buffer o(c.elements()), logsumexp(c.batch * c.heads * c.length), o2 = o,
                                                                       logsumexp2 = logsumexp;
      run(tasks, o, logsumexp);
      expectNear(c, o, plain, reference.o, "o");
      for (size_t row = 0; row < logsumexp.size; ++row)
        ASSERT_TRUE(std::abs(logsumexp[row] - reference.logsumexp[row]) <= tolerance(c))
            << "logsumexp of row " << row;
      run(1, o2, logsumexp2);
      EXPECT_TRUE(sameBits(o, o2) && sameBits(logsumexp, logsumexp2))
          << "bits depend on how tasks are grouped";

      auto [gradientTasks, gradientScratch] = kernels.tasksAndScratch[1][i];
      auto gradient = kernels.jit->kernel(c.name() + "_grad");
      ASSERT_NE(gradient, nullptr);
      auto runGradient = [&](int64_t grouping, std::vector<Buffer> &results) {
        std::vector<Buffer *> buffers = {&dout};
        for (Buffer &buffer : qkv)
          buffers.push_back(&buffer);
        buffers.insert(buffers.end(), {&o, &logsumexp});
        for (Buffer &buffer : results)
          buffers.push_back(&buffer);
        runKernel(gradient, buffers, gradientTasks, gradientScratch, grouping);
      };
      std::vector<Buffer> results;
      for (const Buffer &buffer : qkv)
        results.emplace_back(buffer.size);
      std::vector<Buffer> results2 = results;
      runGradient(gradientTasks, results);
      expectNear(c, results[0], part(c, c.fused, 0), reference.dq, "dq");
      expectNear(c, results[c.fused ? 0 : 1], part(c, c.fused, 1), reference.dk, "dk");
      expectNear(c, results[c.fused ? 0 : 2], part(c, c.fused, 2), reference.dv, "dv");
      runGradient(1, results2);
      for (size_t r = 0; r < results.size(); ++r)
        EXPECT_TRUE(sameBits(results[r], results2[r])) << "bits depend on how tasks are grouped";
    }
  }
}

/// One case, forward, with inputs that the test spoils.
struct Forward {
  Case c;
  std::vector<Buffer> qkv;
  Buffer o, logsumexp;

  explicit Forward(const Case &c)
      : c(c), qkv(), o(c.elements()), logsumexp(c.batch * c.heads * c.length) {
    for (unsigned i = 0; i < 3; ++i)
      qkv.emplace_back(c.elements(), i + 1);
  }
  float &at(Buffer &buffer, int64_t t, int64_t d = 0) { return buffer[t * c.columns() + d]; }
  bool rowIs(int64_t t, bool (*property)(float)) {
    for (int64_t d = 0; d < c.columns(); ++d)
      if (!property(at(o, t, d)))
        return false;
    return property(logsumexp[t]);
  }
  void run(Attention::Kernels &kernels) {
    auto [tasks, scratch] = kernels.tasksAndScratch[0][0];
    runKernel(kernels.jit->kernel(c.name()), {&qkv[0], &qkv[1], &qkv[2], &o, &logsumexp}, tasks,
              scratch, 1);
  }
};
bool isNan(float x) { return std::isnan(x); }
bool isFinite(float x) { return std::isfinite(x); }

// A NaN of any payload in a query spoils its row and no other; in a key the rows that see it, and
// of those that do not, at most ones in its tile. An infinite score is no number after softmax.
TEST_F(Attention, NonFiniteInputsComeOutAsNaN) {
  Case c = {100, 16, 1, 1, true, false};
  uint32_t allOnes = 0xffffffffu;
  float payload;
  std::memcpy(&payload, &allOnes, 4);
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Kernels kernels;
    build({c}, target, kernels);
    for (float bad : {payload, std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity()}) {
      Forward query(c);
      query.at(query.qkv[0], 50) = bad;
      query.run(kernels);
      for (int64_t t = 0; t < c.length; ++t)
        EXPECT_TRUE(query.rowIs(t, t == 50 ? isNan : isFinite)) << "row " << t;
    }
    Forward key(c);
    key.at(key.qkv[1], 50) = payload;
    key.run(kernels);
    for (int64_t t = 0; t < c.length; ++t)
      EXPECT_TRUE(key.rowIs(t, t >= 50 ? isNan : isFinite)) << "row " << t;
    Forward value(c);
    value.at(value.qkv[2], 50) = payload;
    value.run(kernels);
    for (int64_t t = 0; t < c.length; ++t) {
      EXPECT_TRUE(t < 50 || std::isnan(value.at(value.o, t, 0))) << "row " << t;
      EXPECT_TRUE(t > 50 - target.tileRows() || std::isfinite(value.at(value.o, t, 0)))
          << "row " << t;
      EXPECT_TRUE(std::isfinite(value.at(value.o, t, 1)))
          << "row " << t << ": the other columns have no NaN";
    }
  }
}

// Scores of 1e9 and more, where rounding is coarser than the range of exp: weights stay in [0, 1],
// so outputs stay within v's range, and gradients stay finite.
TEST_F(Attention, HugeScoresKeepWeightsInRange) {
  Case c = {70, 8, 1, 1, true, false};
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Kernels kernels;
    build({c}, target, kernels);
    Forward forward(c);
    for (size_t i = 0; i < forward.qkv[0].size; ++i)
      forward.qkv[0][i] *= 1e10f;
    forward.run(kernels);
    for (size_t i = 0; i < forward.o.size; ++i)
      ASSERT_TRUE(std::abs(forward.o[i]) <= 1.0f + 1e-5f);
    Buffer dout(c.elements(), 9), dq(c.elements()), dk = dq, dv = dq;
    auto [tasks, scratch] = kernels.tasksAndScratch[1][0];
    auto &qkv = forward.qkv;
    runKernel(kernels.jit->kernel(c.name() + "_grad"),
              {&dout, &qkv[0], &qkv[1], &qkv[2], &forward.o, &forward.logsumexp, &dq, &dk, &dv},
              tasks, scratch, tasks);
    for (size_t i = 0; i < dq.size; ++i)
      ASSERT_TRUE(std::isfinite(dq[i]) && std::isfinite(dk[i]) && std::abs(dv[i]) <= c.length);
  }
}

// The nn ops of a kernel say where its operands lie: in one tensor through a split and a concat, or
// apart.
TEST_F(Attention, KernelsAreReadAsTheyAreWritten) {
  const char *source = R"(
    exec.kernel @fused "attention_grad" (%dout: tensor<2x7x6xf32>, %qkv: tensor<2x7x18xf32>, %o: tensor<2x7x6xf32>,
                                         %l: tensor<2x3x7xf32>) -> tensor<2x7x18xf32> {
      %q, %k, %v = nn.split %qkv axis 2 sections 3 : tensor<2x7x18xf32>
      %dq, %dk, %dv = nn.attention_grad %dout, %q, %k, %v, %o, %l heads 3 causal : tensor<2x7x6xf32>, tensor<2x7x6xf32>,
        tensor<2x7x6xf32>, tensor<2x7x6xf32>, tensor<2x7x6xf32>, tensor<2x3x7xf32>
      %dqkv = nn.concat %dq, %dk, %dv axis 2 : tensor<2x7x6xf32>, tensor<2x7x6xf32>, tensor<2x7x6xf32>
      exec.yield %dqkv : tensor<2x7x18xf32>
    }
    exec.kernel @apart "attention" (%v: tensor<2x7x6xf32>, %q: tensor<2x7x6xf32>, %k: tensor<2x7x6xf32>)
        -> (tensor<2x3x7xf32>, tensor<2x7x6xf32>) {
      %o, %l = nn.attention %q, %k, %v heads 3 save_logsumexp : tensor<2x7x6xf32>, tensor<2x7x6xf32>, tensor<2x7x6xf32>
      exec.yield %l, %o : tensor<2x3x7xf32>, tensor<2x7x6xf32>
    })";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context());
  ASSERT_TRUE(module);
  auto is = [](const AttentionOperand &operand, unsigned buffer, int64_t offset, int64_t stride) {
    return operand.buffer == buffer && operand.offset == offset && operand.rowStride == stride;
  };
  auto fused = AttentionForm::parse(module->lookupSymbol<exec::KernelOp>("fused"));
  ASSERT_TRUE(succeeded(fused));
  EXPECT_TRUE(fused->batch == 2 && fused->length == 7 && fused->heads == 3 && fused->depth == 2 &&
              fused->causal);
  EXPECT_TRUE(is(fused->dout, 0, 0, 6) && is(*fused->o, 2, 0, 6) && fused->logsumexp->buffer == 3);
  EXPECT_TRUE(is(fused->q, 1, 0, 18) && is(fused->k, 1, 6, 18) && is(fused->v, 1, 12, 18));
  EXPECT_TRUE(is(*fused->dq, 4, 0, 18) && is(*fused->dk, 4, 6, 18) && is(*fused->dv, 4, 12, 18));
  auto apart = AttentionForm::parse(module->lookupSymbol<exec::KernelOp>("apart"));
  ASSERT_TRUE(succeeded(apart));
  EXPECT_TRUE(!apart->causal && apart->buffers.size() == 5);
  EXPECT_TRUE(is(apart->q, 1, 0, 6) && is(apart->k, 2, 0, 6) && is(apart->v, 0, 0, 6));
  EXPECT_TRUE(is(*apart->o, 4, 0, 6) && apart->logsumexp->buffer == 3);
}

} // namespace
} // namespace descent::testing
