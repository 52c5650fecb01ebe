/* A hand-written example of what `descent compile` emits: linear regression with momentum.
 *
 *     prediction = x . w + b        x: [8, 3], w: [3, 1], b: [1]
 *     loss       = sum over rows of weight * (prediction - y)^2, and the sum of weights
 *     update     = m <- 0.9 m + gradient / loss_weight;  parameter <- parameter - lr m
 *
 * It shows every table of descent/abi.h and is what the runtime's tests train. Things to see:
 *   - persistent values come first in the arena and in slabs: parameters, gradients and momenta
 * each form one block with the same order of members, so that `update` is one flat kernel;
 *   - a kernel works on tasks [first, last) and gives the same bits for any split: every sum has
 * one owner and a fixed order;
 *   - functions contain nothing but launches on buffers at fixed places;
 *   - the gradient that stays behind is that of the sum; one place divides by the weight.
 */
#include "descent/abi.h"

#include <math.h>

enum { Batch = 8, Features = 3, ParameterCount = 2 * 64 / 4 };

/* The arena's plan: everything at a multiple of 64 bytes. */
enum {
  AtW = 0,           /* f32 [3, 1] */
  AtB = 64,          /* f32 [1] */
  AtGradientW = 128, /* gradients, in the order of the parameters */
  AtGradientB = 192,
  AtMomentumW = 256, /* momenta, in the order of the parameters */
  AtMomentumB = 320,
  AtStep = 384, /* i64 */
  PersistentBytes = 448,
  AtX = 448,          /* f32 [8, 3] */
  AtY = 576,          /* f32 [8, 1] */
  AtRowWeights = 640, /* f32 [8] */
  AtRng = 704,        /* i32 [4]; nothing random here, the input is part of every program */
  AtPrediction = 768, /* f32 [8, 1] */
  AtError = 832,      /* f32 [8]: weight * (prediction - y) */
  AtLossSum = 896,    /* f32 each */
  AtLossWeight = 960,
  AtNorm = 1024,
  AtRate = 1088,
  AtCommitted = 1152, /* i1 */
  ArenaBytes = 1216
};

/* Kernels. A row is a task. */
static void predict(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *x = buffers[0], *w = buffers[1], *b = buffers[2], *y = buffers[3],
              *weights = buffers[4];
  float *prediction = buffers[5], *error = buffers[6];
  (void)scratch;
  for (int64_t row = first; row < last; ++row) {
    float sum = b[0];
    for (int k = 0; k < Features; ++k)
      sum += x[row * Features + k] * w[k];
    prediction[row] = sum;
    error[row] = weights[row] != 0.0f ? weights[row] * (sum - y[row]) : 0.0f;
  }
}

/* One task: the sums over rows have one owner. */
static void loss(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *prediction = buffers[0], *y = buffers[1], *weights = buffers[2];
  float *sum = buffers[3], *weight = buffers[4];
  (void)first, (void)last, (void)scratch;
  float s = 0.0f, n = 0.0f;
  for (int row = 0; row < Batch; ++row)
    if (weights[row] != 0.0f) {
      float difference = prediction[row] - y[row];
      s += weights[row] * difference * difference;
      n += weights[row];
    }
  *sum = s;
  *weight = n;
}

/* A column is a task; the last task is the bias. */
static void gradient(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *x = buffers[0], *error = buffers[1];
  float *w = buffers[2], *b = buffers[3];
  float *column = scratch; /* To show that scratch is there. */
  for (int64_t task = first; task < last; ++task) {
    for (int row = 0; row < Batch; ++row)
      column[row] = task < Features ? x[row * Features + task] : 1.0f;
    float sum = 0.0f;
    for (int row = 0; row < Batch; ++row)
      sum += 2.0f * error[row] * column[row];
    *(task < Features ? w + task : b) = sum;
  }
}

/* One task: norm of the mean gradient, schedule (warm-up over ten steps), and the decision to
 * commit. */
static void decide(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *slab = buffers[0], *weight = buffers[1];
  float *norm = buffers[2], *rate = buffers[3];
  int64_t *step = buffers[4];
  uint8_t *committed = buffers[5];
  (void)first, (void)last, (void)scratch;
  float square = 0.0f;
  for (int i = 0; i < ParameterCount; ++i)
    square += slab[i] * slab[i];
  *norm = *weight > 0.0f ? sqrtf(square) / *weight : 0.0f;
  *rate = 0.05f * (*step < 10 ? (float)(*step + 1) / 10.0f : 1.0f);
  *committed = *weight > 0.0f && isfinite(*norm);
  *step += *committed;
}

/* Each task is 16 elements of the slab, padding included. */
static void update(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *slab = buffers[0], *weight = buffers[1], *rate = buffers[2];
  const uint8_t *committed = buffers[3];
  float *parameters = buffers[4], *momenta = buffers[5];
  (void)scratch;
  if (!*committed)
    return;
  for (int64_t i = 16 * first; i < 16 * last; ++i) {
    momenta[i] = 0.9f * momenta[i] + slab[i] / *weight;
    parameters[i] -= *rate * momenta[i];
  }
}

static const descent_kernel kernels[] = {
    {"predict_8x3", "nn.matmul, nn.add, nn.sub, nn.mul", predict, Batch, 0, 2.0 * Batch *Features,
     4.0 * Batch *(Features + 5)},
    {"loss_8", "nn.mse", loss, 1, 0, 4.0 * Batch, 12.0 * Batch},
    {"gradient_8x3", "gradient of nn.matmul, gradient of nn.add", gradient, Features + 1, 64,
     4.0 * Batch *(Features + 1), 4.0 * Batch *(Features + 1)},
    {"decide", "train.norm, train.schedule", decide, 1, 0, 2.0 * ParameterCount,
     4.0 * ParameterCount},
    {"sgd_32", "train.update w, train.update b", update, ParameterCount / 16, 0,
     4.0 * ParameterCount, 20.0 * ParameterCount},
};

static void forward(descent_context *context, uint8_t *arena) {
  void *predictBuffers[] = {arena + AtX,          arena + AtW,          arena + AtB,    arena + AtY,
                            arena + AtRowWeights, arena + AtPrediction, arena + AtError};
  descent_launch(context, &kernels[0], predictBuffers);
  void *lossBuffers[] = {arena + AtPrediction, arena + AtY, arena + AtRowWeights, arena + AtLossSum,
                         arena + AtLossWeight};
  descent_launch(context, &kernels[1], lossBuffers);
}

static void step(descent_context *context, uint8_t *arena) {
  forward(context, arena);
  void *gradientBuffers[] = {arena + AtX, arena + AtError, arena + AtGradientW,
                             arena + AtGradientB};
  descent_launch(context, &kernels[2], gradientBuffers);
  void *decideBuffers[] = {arena + AtGradientW, arena + AtLossWeight, arena + AtNorm,
                           arena + AtRate,      arena + AtStep,       arena + AtCommitted};
  descent_launch(context, &kernels[3], decideBuffers);
  void *updateBuffers[] = {arena + AtGradientW, arena + AtLossWeight, arena + AtRate,
                           arena + AtCommitted, arena + AtW,          arena + AtMomentumW};
  descent_launch(context, &kernels[4], updateBuffers);
}

static const descent_parameter parameters[] = {
    {{"w", DESCENT_F32, 2, {Features, 1}, AtW, 4 * Features},
     DESCENT_INIT_NORMAL,
     1,
     0.0,
     0.1,
     AtGradientW,
     "default",
     1.0,
     0.0},
    {{"b", DESCENT_F32, 1, {1}, AtB, 4},
     DESCENT_INIT_CONSTANT,
     1,
     0.0,
     0.0,
     AtGradientB,
     "default",
     1.0,
     0.0},
};

static const descent_state states[] = {
    {{"w.momentum", DESCENT_F32, 2, {Features, 1}, AtMomentumW, 4 * Features}, 0, 0, 0.0},
    {{"b.momentum", DESCENT_F32, 1, {1}, AtMomentumB, 4}, 1, 0, 0.0},
    {{DESCENT_UPDATES_STATE, DESCENT_I64, 0, {0}, AtStep, 8}, -1, 0, 0.0},
};

static const descent_input inputs[] = {
    {{"x", DESCENT_F32, 2, {Batch, Features}, AtX, 4 * Batch *Features},
     DESCENT_INPUT_DATA,
     0,
     0,
     0,
     0,
     0,
     0},
    {{"y", DESCENT_F32, 2, {Batch, 1}, AtY, 4 * Batch}, DESCENT_INPUT_TARGET, 0, 0, 0, 0, 0, 0},
    {{"row_weights", DESCENT_F32, 1, {Batch}, AtRowWeights, 4 * Batch},
     DESCENT_INPUT_ROW_WEIGHTS,
     0,
     0,
     0,
     0,
     0,
     0},
    {{"rng", DESCENT_I32, 1, {4}, AtRng, 16}, DESCENT_INPUT_RNG, 0, 0, 0, 0, 0, 0},
};

static const descent_tensor stepOutputs[] = {
    {"loss_sum", DESCENT_F32, 0, {0}, AtLossSum, 4},
    {"loss_weight", DESCENT_F32, 0, {0}, AtLossWeight, 4},
    {"grad_norm", DESCENT_F32, 0, {0}, AtNorm, 4},
    {"learning_rate", DESCENT_F32, 0, {0}, AtRate, 4},
    {"committed", DESCENT_I1, 0, {0}, AtCommitted, 1},
};

static const descent_tensor evaluateOutputs[] = {
    {"loss_sum", DESCENT_F32, 0, {0}, AtLossSum, 4},
    {"loss_weight", DESCENT_F32, 0, {0}, AtLossWeight, 4},
    {"predictions", DESCENT_F32, 2, {Batch, 1}, AtPrediction, 4 * Batch},
};

static const descent_function functions[] = {
    {"step", step, stepOutputs, 5},
    {"evaluate", forward, evaluateOutputs, 3},
};

static const descent_setting settings[] = {
    {"batch.size", "8"},         {"data.format", "npz"},     {"data.inputs", "inputs"},
    {"data.targets", "targets"}, {"data.validation", "0.2"}, {"optimizer.kind", "sgd"},
    {"run.seed", "0"},           {"schedule.steps", "200"},
};

/* The assembler name is what the runtime looks for. */
extern const descent_program program __asm__(DESCENT_PROGRAM_SYMBOL);
const descent_program program = {
    .abi_version = DESCENT_ABI_VERSION,
    .struct_bytes = sizeof(descent_program),
    .name = "specimen",
    .compiler = "by hand",
    .cpu = "x86-64",
    .cpu_features = "",
    .plan_hash = 0x5bec13e4, /* any number that changes with the tables */
    .memory = {.arena = ArenaBytes,
               .persistent = PersistentBytes,
               .parameters = 128,
               .gradients = 128,
               .optimizer = 192,
               .activations = ArenaBytes - PersistentBytes,
               .workspace = 0,
               .thread_scratch = 64,
               .lower_bound = ArenaBytes},
    .parameters = parameters,
    .parameter_count = 2,
    .states = states,
    .state_count = 3,
    .inputs = inputs,
    .input_count = 4,
    .kernels = kernels,
    .kernel_count = 5,
    .settings = settings,
    .setting_count = sizeof settings / sizeof *settings,
    .functions = functions,
    .function_count = 2,
};
