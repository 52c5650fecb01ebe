/* A hand-written example of what `descent compile` emits: linear regression with momentum, in mixed
 * precision with a dynamic loss scale S.
 *
 *     prediction = x . w' + b'      x: [8, 3], w: [3, 1], b: [1]; w' and b' are w and b in bf16
 *     loss       = sum over rows of weight * (prediction - y)^2, and the sum of weights
 *     gradient   = S times that of the loss
 *     update     = m <- 0.9 m + gradient / S / loss_weight;  parameter <- parameter - lr m
 *
 * It shows every table of descent/abi.h and is what the runtime's tests train: here the plan, the
 * kernels and their launches, in SpecimenTables.h what is the same on a device. Things to see:
 *   - persistent values come first in the arena and in slabs: parameters, gradients, momenta and
 *     working copies each form one block with the same order of members, so that `update` is one
 *     flat kernel;
 *   - a kernel works on tasks [first, last) and gives the same bits for any split: every sum has
 *     one owner and a fixed order;
 *   - functions contain nothing but launches on buffers at fixed places, and a site says what a
 *     launch is of;
 *   - the gradient that stays behind is that of the sum, times S; one place divides;
 *   - a step whose gradient is not finite changes the scale and its counters and nothing else, and
 *     nobody outside has a say in it. Targets beyond 1e15 make the norm overflow, a smaller scale
 *     cures it; for targets beyond 1e19 the loss itself overflows;
 *   - working copies are in no table: `update` writes them, and `refresh` after a load.
 */
#include "descent/abi.h"

#include <math.h>
#include <string.h>

enum { Batch = 8, Features = 3, ParameterCount = 2 * 64 / 4, ScaleInterval = 20 };

/* The arena's plan: everything the tables name at a multiple of 64 bytes. */
enum {
  AtW = 0,           /* f32 [3, 1] */
  AtB = 64,          /* f32 [1] */
  AtGradientW = 128, /* gradients, in the order of the parameters */
  AtGradientB = 192,
  AtMomentumW = 256, /* momenta, in the order of the parameters */
  AtMomentumB = 320,
  AtUpdates = 384,      /* i64 */
  AtLossScale = 448,    /* f32 */
  AtCleanSteps = 512,   /* i64 */
  AtSkippedSteps = 576, /* i64 */
  AtWorkingW = 640,     /* bf16, element for element as the slab of parameters */
  AtWorkingB = AtWorkingW + 64 / 2,
  PersistentBytes = 704,
  AtX = 704,           /* f32 [8, 3] */
  AtY = 832,           /* f32 [8, 1] */
  AtRowWeights = 896,  /* f32 [8] */
  AtRng = 960,         /* i32 [4]; nothing random here, the input is part of every program */
  AtPrediction = 1024, /* f32 [8, 1] */
  AtError = 1088,      /* f32 [8]: weight * (prediction - y) */
  AtLossSum = 1152,    /* f32 each */
  AtLossWeight = 1216,
  AtNorm = 1280,
  AtRate = 1344,
  AtUnscale = 1408,
  AtCommitted = 1472, /* i1 */
  AtScaleUsed = 1536, /* f32: the state holds the next step's by then */
  ArenaBytes = 1600
};

#include "SpecimenTables.h"

/* Kernels. A row is a task. */
static void predict(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *x = buffers[0], *y = buffers[3], *weights = buffers[4];
  const uint16_t *w = buffers[1], *b = buffers[2];
  float *prediction = buffers[5], *error = buffers[6];
  (void)scratch;
  for (int64_t row = first; row < last; ++row) {
    float sum = widen(b[0]);
    for (int k = 0; k < Features; ++k)
      sum += x[row * Features + k] * widen(w[k]);
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
  const float *x = buffers[0], *error = buffers[1], *scale = buffers[2];
  float *w = buffers[3], *b = buffers[4];
  float *column = scratch; /* To show that scratch is there. */
  for (int64_t task = first; task < last; ++task) {
    for (int row = 0; row < Batch; ++row)
      column[row] = task < Features ? x[row * Features + task] : 1.0f;
    float sum = 0.0f;
    for (int row = 0; row < Batch; ++row)
      sum += *scale * 2.0f * error[row] * column[row];
    *(task < Features ? w + task : b) = sum;
  }
}

/* One task: norm of the mean gradient, schedule (warm-up over ten steps), the decision to commit,
 * and what it means for the scale. */
static void decide(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *slab = buffers[0], *weight = buffers[1];
  float *norm = buffers[6], *rate = buffers[7], *unscale = buffers[8], *scale = buffers[11];
  uint8_t *committed = buffers[9];
  int64_t *updates = buffers[10], *clean = buffers[12], *skipped = buffers[13];
  (void)first, (void)last, (void)scratch;
  *(float *)buffers[14] = *scale;
  *unscale = (float)(1.0 / *scale);
  float square = 0.0f;
  for (int i = 0; i < ParameterCount; ++i)
    square += slab[i] * slab[i];
  *norm = *weight > 0.0f ? sqrtf(square) * *unscale / *weight : 0.0f;
  *rate = 0.05f * (*updates < 10 ? (float)(*updates + 1) / 10.0f : 1.0f);
  *committed = *weight > 0.0f && isfinite(*norm);
  *updates += *committed;
  *skipped += *weight > 0.0f && !*committed;
  if (*committed && ++*clean == ScaleInterval) {
    *scale *= 2.0f;
    *clean = 0;
  } else if (*weight > 0.0f && !*committed) {
    *scale = fmaxf(*scale / 2.0f, 1.0f);
    *clean = 0;
  }
}

/* Each task is 16 elements of the slab, padding included. */
static void update(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *slab = buffers[0], *weight = buffers[1], *rate = buffers[2], *unscale = buffers[3];
  const uint8_t *committed = buffers[4];
  float *parameters = buffers[7], *momenta = buffers[8];
  uint16_t *working = buffers[9];
  (void)scratch;
  if (!*committed)
    return;
  for (int64_t i = 16 * first; i < 16 * last; ++i) {
    momenta[i] = 0.9f * momenta[i] + slab[i] * *unscale / *weight;
    parameters[i] -= *rate * momenta[i];
    working[i] = narrow(parameters[i]);
  }
}

static void copyNarrow(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *parameters = buffers[0];
  uint16_t *working = buffers[1];
  (void)scratch;
  for (int64_t i = 16 * first; i < 16 * last; ++i)
    working[i] = narrow(parameters[i]);
}

static const descent_kernel kernels[] = {
    {"predict_8x3", "nn.matmul, nn.add, nn.sub, nn.mul", predict, Batch, 0, 2.0 * Batch *Features,
     4.0 * Batch *(Features + 5), predictOperands, 7, 5},
    {"loss_8", "nn.mse", loss, 1, 0, 4.0 * Batch, 12.0 * Batch, lossOperands, 5, 3},
    {"gradient_8x3", "gradient of nn.matmul, gradient of nn.add", gradient, Features + 1, 64,
     4.0 * Batch *(Features + 1), 4.0 * Batch *(Features + 1), gradientOperands, 5, 3},
    {"decide", "train.norm, train.schedule, train.scale", decide, 1, 0, 2.0 * ParameterCount,
     4.0 * ParameterCount, decideOperands, 15, 6},
    {"sgd_32", "train.update w, train.update b", update, ParameterCount / 16, 0,
     4.0 * ParameterCount, 22.0 * ParameterCount, updateOperands, 10, 7},
    {"narrow_32", "nn.cast", copyNarrow, ParameterCount / 16, 0, 0.0, 6.0 * ParameterCount,
     copyOperands, 2, 1},
};

#define FORWARD_SITES                                                                              \
  {&kernels[0],                                                                                    \
   "nn.matmul (specimen.mlir:3), nn.add (specimen.mlir:4), nn.sub (specimen.mlir:5), nn.mul",      \
   predictOutputs},                                                                                \
  {                                                                                                \
    &kernels[1], "nn.mse (specimen.mlir:5)", lossOutputs                                           \
  }
static const descent_site evaluateSites[] = {FORWARD_SITES};
static const descent_site stepSites[] = {
    FORWARD_SITES,
    {&kernels[2], "gradient of nn.matmul (specimen.mlir:3), gradient of nn.add (specimen.mlir:4)",
     gradientOutputs},
    {&kernels[3], "train.norm, train.schedule, train.scale", decideOutputs},
    {&kernels[4], "train.update w, train.update b", updateOutputs},
};
static const descent_site refreshSites[] = {{&kernels[5], "nn.cast", copyOutputs}};

static void forward(descent_context *context, uint8_t *arena, const descent_site *sites) {
  void *predictBuffers[] = {arena + AtX,    arena + AtWorkingW,   arena + AtWorkingB,
                            arena + AtY,    arena + AtRowWeights, arena + AtPrediction,
                            arena + AtError};
  descent_launch(context, &sites[0], predictBuffers);
  void *lossBuffers[] = {arena + AtPrediction, arena + AtY, arena + AtRowWeights, arena + AtLossSum,
                         arena + AtLossWeight};
  descent_launch(context, &sites[1], lossBuffers);
}

static void evaluate(descent_context *context, uint8_t *arena) {
  forward(context, arena, evaluateSites);
}

static void step(descent_context *context, uint8_t *arena) {
  forward(context, arena, stepSites);
  void *gradientBuffers[] = {arena + AtX, arena + AtError, arena + AtLossScale, arena + AtGradientW,
                             arena + AtGradientB};
  descent_launch(context, &stepSites[2], gradientBuffers);
  void *decideBuffers[] = {arena + AtGradientW,  arena + AtLossWeight,   arena + AtUpdates,
                           arena + AtLossScale,  arena + AtCleanSteps,   arena + AtSkippedSteps,
                           arena + AtNorm,       arena + AtRate,         arena + AtUnscale,
                           arena + AtCommitted,  arena + AtUpdates,      arena + AtLossScale,
                           arena + AtCleanSteps, arena + AtSkippedSteps, arena + AtScaleUsed};
  descent_launch(context, &stepSites[3], decideBuffers);
  void *updateBuffers[] = {arena + AtGradientW, arena + AtLossWeight, arena + AtRate,
                           arena + AtUnscale,   arena + AtCommitted,  arena + AtW,
                           arena + AtMomentumW, arena + AtW,          arena + AtMomentumW,
                           arena + AtWorkingW};
  descent_launch(context, &stepSites[4], updateBuffers);
}

static void refresh(descent_context *context, uint8_t *arena) {
  void *buffers[] = {arena + AtW, arena + AtWorkingW};
  descent_launch(context, &refreshSites[0], buffers);
}

static const descent_function functions[] = {
    {"step", step, stepOutputs, 7, stepSites, 5, 3},
    {"evaluate", evaluate, evaluateOutputs, 3, evaluateSites, 2, DESCENT_NO_LAUNCH},
    {"refresh", refresh, 0, 0, refreshSites, 1, DESCENT_NO_LAUNCH},
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
               .parameters = 128 + 64,
               .gradients = 128,
               .optimizer = 128 + 4 * 64,
               .activations = ArenaBytes - PersistentBytes,
               .workspace = 0,
               .working_copies = 64,
               .thread_scratch = 64,
               .lower_bound = ArenaBytes},
    .parameters = parameters,
    .parameter_count = 2,
    .states = states,
    .state_count = 6,
    .inputs = inputs,
    .input_count = 4,
    .kernels = kernels,
    .kernel_count = 6,
    .settings = settings,
    .setting_count = sizeof settings / sizeof *settings,
    .functions = functions,
    .function_count = 3,
};
