/* What the specimens say of their model, whatever they run on: Specimen.c for the CPU, and the one
 * among the tests for a device. The including file has planned the arena before: the places At...
 * and the sizes Batch, Features and ParameterCount are its own.
 *
 *   - operands: types of the kernels' operands, inputs first;
 *   - outputs: for each launch, who makes what it writes;
 *   - parameters, states, inputs, outputs of functions: what the runtime reads and writes by name;
 *   - settings: what the model file asked for.
 */
#ifndef DESCENT_RUNTIME_CORE_SPECIMENTABLES_H
#define DESCENT_RUNTIME_CORE_SPECIMENTABLES_H

#include "descent/abi.h"

#include <math.h>
#include <string.h>

/* Numbers of the working copies: bf16. */
static uint16_t narrow(float wide) {
  uint32_t bits;
  memcpy(&bits, &wide, sizeof bits);
  if (isnan(wide))
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16); /* To nearest, ties to even. */
}

static float widen(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Types of the kernels' operands, inputs first. */
#define SCALAR(type)                                                                               \
  {                                                                                                \
    type, 0, { 0 }                                                                                 \
  }
#define SLAB(type)                                                                                 \
  {                                                                                                \
    type, 1, { ParameterCount }                                                                    \
  }
static const descent_operand predictOperands[] = {{DESCENT_F32, 2, {Batch, Features}},
                                                  {DESCENT_BF16, 2, {Features, 1}},
                                                  {DESCENT_BF16, 1, {1}},
                                                  {DESCENT_F32, 2, {Batch, 1}},
                                                  {DESCENT_F32, 1, {Batch}},
                                                  {DESCENT_F32, 2, {Batch, 1}},
                                                  {DESCENT_F32, 2, {Batch, 1}}};
static const descent_operand lossOperands[] = {{DESCENT_F32, 2, {Batch, 1}},
                                               {DESCENT_F32, 2, {Batch, 1}},
                                               {DESCENT_F32, 1, {Batch}},
                                               SCALAR(DESCENT_F32),
                                               SCALAR(DESCENT_F32)};
static const descent_operand gradientOperands[] = {{DESCENT_F32, 2, {Batch, Features}},
                                                   {DESCENT_F32, 2, {Batch, 1}},
                                                   SCALAR(DESCENT_F32),
                                                   {DESCENT_F32, 2, {Features, 1}},
                                                   {DESCENT_F32, 1, {1}}};
static const descent_operand decideOperands[] = {
    SLAB(DESCENT_F32),   SCALAR(DESCENT_F32), SCALAR(DESCENT_I64), SCALAR(DESCENT_F32),
    SCALAR(DESCENT_I64), SCALAR(DESCENT_I64), SCALAR(DESCENT_F32), SCALAR(DESCENT_F32),
    SCALAR(DESCENT_F32), SCALAR(DESCENT_I1),  SCALAR(DESCENT_I64), SCALAR(DESCENT_F32),
    SCALAR(DESCENT_I64), SCALAR(DESCENT_I64), SCALAR(DESCENT_F32)};
static const descent_operand updateOperands[] = {
    SLAB(DESCENT_F32),  SCALAR(DESCENT_F32), SCALAR(DESCENT_F32), SCALAR(DESCENT_F32),
    SCALAR(DESCENT_I1), SLAB(DESCENT_F32),   SLAB(DESCENT_F32),   SLAB(DESCENT_F32),
    SLAB(DESCENT_F32),  SLAB(DESCENT_BF16)};
static const descent_operand copyOperands[] = {SLAB(DESCENT_F32), SLAB(DESCENT_BF16)};

/* What each launch is of, and who makes its outputs. */
static const char *const predictOutputs[] = {"nn.add (specimen.mlir:4)",
                                             "nn.sub (specimen.mlir:5)"};
static const char *const lossOutputs[] = {"nn.mse (specimen.mlir:5)", "nn.mse (specimen.mlir:5)"};
static const char *const gradientOutputs[] = {"gradient of w", "gradient of b"};
static const char *const decideOutputs[] = {"train.norm",  "train.schedule", "train.scale",
                                            "train.norm",  "updates",        "loss_scale",
                                            "clean_steps", "skipped_steps",  "train.scale"};
static const char *const updateOutputs[] = {"default.parameters", "default.momentum",
                                            "default.working"};
static const char *const copyOutputs[] = {"default.working"};

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
    {{DESCENT_UPDATES_STATE, DESCENT_I64, 0, {0}, AtUpdates, 8}, -1, 0, 0.0},
    {{DESCENT_LOSS_SCALE_STATE, DESCENT_F32, 0, {0}, AtLossScale, 4}, -1, 0, 65536.0},
    {{DESCENT_CLEAN_STEPS_STATE, DESCENT_I64, 0, {0}, AtCleanSteps, 8}, -1, 0, 0.0},
    {{DESCENT_SKIPPED_STEPS_STATE, DESCENT_I64, 0, {0}, AtSkippedSteps, 8}, -1, 0, 0.0},
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
    {"unscale", DESCENT_F32, 0, {0}, AtUnscale, 4},
    {"loss_scale", DESCENT_F32, 0, {0}, AtScaleUsed, 4},
};

static const descent_tensor evaluateOutputs[] = {
    {"loss_sum", DESCENT_F32, 0, {0}, AtLossSum, 4},
    {"loss_weight", DESCENT_F32, 0, {0}, AtLossWeight, 4},
    {"predictions", DESCENT_F32, 2, {Batch, 1}, AtPrediction, 4 * Batch},
};

static const descent_setting settings[] = {
    {"batch.size", "8"},
    {"data.format", "npz"},
    {"data.inputs", "inputs"},
    {"data.targets", "targets"},
    {"data.validation", "0.2"},
    {"optimizer.kind", "sgd"},
    {"precision.compute", "bf16"},
    {"precision.loss_scale", "dynamic"},
    {"precision.loss_scale_interval", "20"},
    {"run.seed", "0"},
    {"schedule.steps", "200"},
};

#endif
