/* A language model as `descent compile` would emit it, by hand: one table of logits for each byte.
 *
 *     logits[b, t, :] = table[tokens[b, t], :]     table: [V, V]
 *     loss            = sum of cross entropies over positions of real rows
 *     update          = table <- table - 10 gradient / loss_weight
 *
 * It trains on text, predicts [B, T, V], and bounds its tokens, so the scripts can test data,
 * sampling and refusals without the compiler.
 */
#include "descent/abi.h"

#include <math.h>

enum { B = 4, T = 16, V = 128 };
enum {
  AtTable = 0,
  AtGradient = AtTable + 4 * V * V,
  AtStep = AtGradient + 4 * V * V,
  Persistent = AtStep + 64,
  AtTokens = Persistent,
  AtTargets = AtTokens + 4 * B * T,
  AtRowWeights = AtTargets + 4 * B * T,
  AtLogits = AtRowWeights + 64,
  AtLosses = AtLogits + 4 * B * T * V,
  AtLossSum = AtLosses + 4 * B * T,
  AtLossWeight = AtLossSum + 64,
  AtNorm = AtLossWeight + 64,
  AtRate = AtNorm + 64,
  AtCommitted = AtRate + 64,
  Bytes = AtCommitted + 64
};

/* A position is a task: logits, and the loss of the position. */
static void look(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *table = buffers[0];
  const int32_t *tokens = buffers[1], *targets = buffers[2];
  const float *weights = buffers[3];
  float *logits = buffers[4], *losses = buffers[5];
  (void)scratch;
  for (int64_t i = first; i < last; ++i) {
    const float *row = table + V * tokens[i];
    float peak = row[0], sum = 0.0f;
    for (int k = 0; k < V; ++k) {
      logits[V * i + k] = row[k];
      peak = row[k] > peak ? row[k] : peak;
    }
    for (int k = 0; k < V; ++k)
      sum += expf(row[k] - peak);
    losses[i] = weights[i / T] * (logf(sum) + peak - row[targets[i]]);
  }
}

static void total(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *losses = buffers[0], *weights = buffers[1];
  float *sum = buffers[2], *weight = buffers[3];
  (void)first, (void)last, (void)scratch;
  *sum = *weight = 0.0f;
  for (int i = 0; i < B * T; ++i)
    *sum += losses[i];
  for (int i = 0; i < B; ++i)
    *weight += T * weights[i];
}

/* A row of the table is a task: it has one owner, who adds the positions in order. */
static void gradient(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *logits = buffers[0];
  const int32_t *tokens = buffers[1], *targets = buffers[2];
  const float *weights = buffers[3];
  float *gradient = buffers[4];
  (void)scratch;
  for (int64_t row = first; row < last; ++row) {
    for (int k = 0; k < V; ++k)
      gradient[V * row + k] = 0.0f;
    for (int i = 0; i < B * T; ++i) {
      if (tokens[i] != row)
        continue;
      float sum = 0.0f;
      for (int k = 0; k < V; ++k)
        sum += expf(logits[V * i + k]);
      for (int k = 0; k < V; ++k)
        gradient[V * row + k] +=
            weights[i / T] * (expf(logits[V * i + k]) / sum - (k == targets[i]));
    }
  }
}

static void decide(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *gradient = buffers[0], *weight = buffers[1];
  float *norm = buffers[2], *rate = buffers[3];
  int64_t *step = buffers[4];
  uint8_t *committed = buffers[5];
  (void)first, (void)last, (void)scratch;
  double square = 0.0;
  for (int i = 0; i < V * V; ++i)
    square += (double)gradient[i] * gradient[i];
  *norm = *weight > 0.0f ? (float)sqrt(square) / *weight : 0.0f;
  *rate = 10.0f;
  *committed = *weight > 0.0f && isfinite(*norm);
  *step += *committed;
}

static void update(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  const float *gradient = buffers[0], *weight = buffers[1], *rate = buffers[2];
  const uint8_t *committed = buffers[3];
  float *table = buffers[4];
  (void)scratch;
  for (int64_t i = V * first; *committed && i < V * last; ++i)
    table[i] -= *rate * gradient[i] / *weight;
}

#define SCALAR(type)                                                                               \
  {                                                                                                \
    type, 0, { 0 }                                                                                 \
  }
static const descent_operand lookOperands[] = {
    {DESCENT_F32, 2, {V, V}}, {DESCENT_I32, 2, {B, T}},    {DESCENT_I32, 2, {B, T}},
    {DESCENT_F32, 1, {B}},    {DESCENT_F32, 3, {B, T, V}}, {DESCENT_F32, 2, {B, T}}};
static const descent_operand totalOperands[] = {
    {DESCENT_F32, 2, {B, T}}, {DESCENT_F32, 1, {B}}, SCALAR(DESCENT_F32), SCALAR(DESCENT_F32)};
static const descent_operand gradientOperands[] = {{DESCENT_F32, 3, {B, T, V}},
                                                   {DESCENT_I32, 2, {B, T}},
                                                   {DESCENT_I32, 2, {B, T}},
                                                   {DESCENT_F32, 1, {B}},
                                                   {DESCENT_F32, 2, {V, V}}};
static const descent_operand decideOperands[] = {{DESCENT_F32, 1, {V * V}}, SCALAR(DESCENT_F32),
                                                 SCALAR(DESCENT_F32),       SCALAR(DESCENT_F32),
                                                 SCALAR(DESCENT_I64),       SCALAR(DESCENT_I1)};
static const descent_operand updateOperands[] = {{DESCENT_F32, 1, {V * V}},
                                                 SCALAR(DESCENT_F32),
                                                 SCALAR(DESCENT_F32),
                                                 SCALAR(DESCENT_I1),
                                                 {DESCENT_F32, 1, {V * V}}};

static const descent_kernel kernels[] = {
    {"look", "nn.embedding, nn.cross_entropy", look, B *T, 0, 3.0 * B *T *V, 8.0 * B *T *V,
     lookOperands, 6, 4},
    {"total", "nn.loss", total, 1, 0, B *T, 4.0 * B *T, totalOperands, 4, 2},
    {"gradient", "gradient of nn.embedding", gradient, V, 0, 4.0 * B *T *V, 4.0 * V *V,
     gradientOperands, 5, 4},
    {"decide", "train.norm", decide, 1, 0, 2.0 * V *V, 4.0 * V *V, decideOperands, 6, 2},
    {"update", "train.update table", update, V, 0, 3.0 * V *V, 12.0 * V *V, updateOperands, 5, 4},
};

static const char *const lookOutputs[] = {"nn.embedding (bigram.mlir:2)",
                                          "nn.cross_entropy (bigram.mlir:3)"};
static const char *const totalOutputs[] = {"nn.loss (bigram.mlir:4)", "nn.loss (bigram.mlir:4)"};
static const char *const gradientOutputs[] = {"gradient of table"};
static const char *const decideOutputs[] = {"train.norm", "train.schedule", "updates",
                                            "train.norm"};
static const char *const updateOutputs[] = {"default.parameters"};
static const descent_site sites[] = {
    {&kernels[0], "nn.embedding (bigram.mlir:2), nn.cross_entropy (bigram.mlir:3)", lookOutputs},
    {&kernels[1], "nn.loss (bigram.mlir:4)", totalOutputs},
    {&kernels[2], "gradient of nn.embedding (bigram.mlir:2)", gradientOutputs},
    {&kernels[3], "train.norm", decideOutputs},
    {&kernels[4], "train.update table", updateOutputs},
};

static void forward(descent_context *context, uint8_t *arena) {
  void *lookBuffers[] = {arena + AtTable,      arena + AtTokens, arena + AtTargets,
                         arena + AtRowWeights, arena + AtLogits, arena + AtLosses};
  descent_launch(context, &sites[0], lookBuffers);
  void *totalBuffers[] = {arena + AtLosses, arena + AtRowWeights, arena + AtLossSum,
                          arena + AtLossWeight};
  descent_launch(context, &sites[1], totalBuffers);
}

static void step(descent_context *context, uint8_t *arena) {
  forward(context, arena);
  void *gradientBuffers[] = {arena + AtLogits, arena + AtTokens, arena + AtTargets,
                             arena + AtRowWeights, arena + AtGradient};
  descent_launch(context, &sites[2], gradientBuffers);
  void *decideBuffers[] = {arena + AtGradient, arena + AtLossWeight, arena + AtNorm,
                           arena + AtRate,     arena + AtStep,       arena + AtCommitted};
  descent_launch(context, &sites[3], decideBuffers);
  void *updateBuffers[] = {arena + AtGradient, arena + AtLossWeight, arena + AtRate,
                           arena + AtCommitted, arena + AtTable};
  descent_launch(context, &sites[4], updateBuffers);
}

static const descent_parameter parameters[] = {
    {{"table", DESCENT_F32, 2, {V, V}, AtTable, 4 * V *V},
     DESCENT_INIT_UNIFORM,
     1,
     -0.01,
     0.01,
     AtGradient,
     "default",
     1.0,
     0.0},
};
static const descent_state states[] = {
    {{DESCENT_UPDATES_STATE, DESCENT_I64, 0, {0}, AtStep, 8}, -1, 0, 0.0}};
static const descent_input inputs[] = {
    {{"tokens", DESCENT_I32, 2, {B, T}, AtTokens, 4 * B *T}, DESCENT_INPUT_DATA, 1, 0, V, 0, 0, 0},
    {{"targets", DESCENT_I32, 2, {B, T}, AtTargets, 4 * B *T},
     DESCENT_INPUT_TARGET,
     1,
     0,
     V,
     0,
     0,
     0},
    {{"row_weights", DESCENT_F32, 1, {B}, AtRowWeights, 4 * B},
     DESCENT_INPUT_ROW_WEIGHTS,
     0,
     0,
     0,
     0,
     0,
     0},
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
    {"predictions", DESCENT_F32, 3, {B, T, V}, AtLogits, 4 * B *T *V},
};
static const descent_function functions[] = {
    {"step", step, stepOutputs, 5, sites, 5, 3},
    {"evaluate", forward, evaluateOutputs, 3, sites, 2, DESCENT_NO_LAUNCH}};
static const descent_setting settings[] = {
    {"batch.size", "4"},        {"data.format", "text"}, {"data.sequence", "16"},
    {"data.validation", "0.1"}, {"run.seed", "0"},       {"schedule.steps", "300"},
};

extern const descent_program program __asm__(DESCENT_PROGRAM_SYMBOL);
const descent_program program = {
    .abi_version = DESCENT_ABI_VERSION,
    .struct_bytes = sizeof(descent_program),
    .name = "bigram",
    .compiler = "by hand",
    .cpu = "x86-64",
    .cpu_features = "",
    .plan_hash = 0xb19a,
    .memory = {.arena = Bytes,
               .persistent = Persistent,
               .parameters = 4 * V * V,
               .gradients = 4 * V * V,
               .optimizer = 64,
               .activations = Bytes - Persistent,
               .workspace = 0,
               .thread_scratch = 0,
               .lower_bound = Bytes},
    .parameters = parameters,
    .parameter_count = 1,
    .states = states,
    .state_count = 1,
    .inputs = inputs,
    .input_count = 3,
    .kernels = kernels,
    .kernel_count = 5,
    .settings = settings,
    .setting_count = sizeof settings / sizeof *settings,
    .functions = functions,
    .function_count = 2,
};
