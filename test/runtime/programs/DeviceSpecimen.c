/* The device sibling of runtime/core/Specimen.c: the same model with the same sums in the same
 * order, as what `descent compile --target cuda-emulated` emits. Its kernels are device code
 * retargeted to the host (descent/emulator.h), written by hand: one thread of one block per task.
 *
 * Besides the tables of a device it shows:
 *   - everything the tables name lies at a multiple of 256 bytes;
 *   - a launch on the communication stream: `loss` runs beside `gradient`, with an event that it
 *     waits for and one that it records;
 *   - a kernel of two commands that use the workspace.
 */
#include "descent/abi.h"
#include "descent/emulator.h"

#include <math.h>
#include <string.h>

enum { Batch = 8, Features = 3, ParameterCount = 2 * 256 / 4, ScaleInterval = 20 };

enum {
  AtW = 0,
  AtB = 256,
  AtGradientW = 512,
  AtGradientB = 768,
  AtMomentumW = 1024,
  AtMomentumB = 1280,
  AtUpdates = 1536,
  AtLossScale = 1792,
  AtCleanSteps = 2048,
  AtSkippedSteps = 2304,
  AtWorkingW = 2560, /* bf16 */
  AtWorkingB = AtWorkingW + 256 / 2,
  PersistentBytes = 2816,
  AtX = 2816,
  AtY = 3072,
  AtRowWeights = 3328,
  AtRng = 3584,
  AtPrediction = 3840,
  AtError = 4096,
  AtLossSum = 4352,
  AtLossWeight = 4608,
  AtNorm = 4864,
  AtRate = 5120,
  AtUnscale = 5376,
  AtCommitted = 5632,
  AtScaleUsed = 5888,
  ArenaBytes = 6144,
  WorkspaceBytes = 256,
  SlotBytes = AtRng + 256 - AtX
};

#include "runtime/core/SpecimenTables.h"

/* Memory of the device: every access asks where it is. */
static const descent_emulated_site site = {"by hand", "DeviceSpecimen", "", "", 0, 0, 0};
enum { Read = DESCENT_EMULATE_READ, Write = DESCENT_EMULATE_WRITE };

static void *at(uint64_t address, uint32_t bytes, uint32_t flags) {
  uint32_t alignment = bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;
  return descent_emulate_access(address, bytes, flags | alignment << 8, &site);
}
static float load(uint64_t base, int64_t i) { return *(float *)at(base + 4 * i, 4, Read); }
static void store(uint64_t base, int64_t i, float value) {
  *(float *)at(base + 4 * i, 4, Write) = value;
}
static int64_t loadCount(uint64_t base) { return *(int64_t *)at(base, 8, Read); }
static void storeCount(uint64_t base, int64_t value) { *(int64_t *)at(base, 8, Write) = value; }
static uint16_t loadNarrow(uint64_t base, int64_t i) {
  return *(uint16_t *)at(base + 2 * i, 2, Read);
}
static void storeNarrow(uint64_t base, int64_t i, uint16_t value) {
  *(uint16_t *)at(base + 2 * i, 2, Write) = value;
}
static uint64_t argument(void *const *parameters, int index) {
  uint64_t value;
  memcpy(&value, parameters[index], sizeof value);
  return value;
}
static int64_t task(void) {
  return (int64_t)(descent_emulate_register(DESCENT_REGISTER_CTAID) *
                       descent_emulate_register(DESCENT_REGISTER_NTID) +
                   descent_emulate_register(DESCENT_REGISTER_TID));
}

static void predict(void *const *parameters) {
  uint64_t x = argument(parameters, 0), w = argument(parameters, 1), b = argument(parameters, 2),
           y = argument(parameters, 3), weights = argument(parameters, 4);
  int64_t row = task();
  float sum = widen(loadNarrow(b, 0));
  for (int k = 0; k < Features; ++k)
    sum += load(x, row * Features + k) * widen(loadNarrow(w, k));
  store(argument(parameters, 5), row, sum);
  float weight = load(weights, row);
  store(argument(parameters, 6), row, weight != 0.0f ? weight * (sum - load(y, row)) : 0.0f);
}

static void loss(void *const *parameters) {
  uint64_t prediction = argument(parameters, 0), y = argument(parameters, 1),
           weights = argument(parameters, 2);
  float s = 0.0f, n = 0.0f;
  for (int row = 0; row < Batch; ++row) {
    float weight = load(weights, row);
    if (weight != 0.0f) {
      float difference = load(prediction, row) - load(y, row);
      s += weight * difference * difference;
      n += weight;
    }
  }
  store(argument(parameters, 3), 0, s);
  store(argument(parameters, 4), 0, n);
}

/* Copies x, with a column of ones behind it, to the workspace, which was filled with zeros. */
static void transpose(void *const *parameters) {
  uint64_t x = argument(parameters, 0), columns = argument(parameters, 1);
  int64_t column = task();
  for (int row = 0; row < Batch; ++row)
    store(columns, column * Batch + row,
          column < Features ? load(x, row * Features + column) : 1.0f);
}

static void gradient(void *const *parameters) {
  uint64_t columns = argument(parameters, 0), error = argument(parameters, 1),
           scale = argument(parameters, 2);
  int64_t column = task();
  float sum = 0.0f;
  for (int row = 0; row < Batch; ++row)
    sum += load(scale, 0) * 2.0f * load(error, row) * load(columns, column * Batch + row);
  store(argument(parameters, column < Features ? 3 : 4), column < Features ? column : 0, sum);
}

static void decide(void *const *parameters) {
  uint64_t slab = argument(parameters, 0), updates = argument(parameters, 10),
           scaleState = argument(parameters, 11), clean = argument(parameters, 12),
           skipped = argument(parameters, 13);
  float weight = load(argument(parameters, 1), 0), scale = load(scaleState, 0);
  store(argument(parameters, 14), 0, scale);
  float unscale = (float)(1.0 / scale), square = 0.0f;
  store(argument(parameters, 8), 0, unscale);
  for (int i = 0; i < ParameterCount; ++i)
    square += load(slab, i) * load(slab, i);
  float norm = weight > 0.0f ? sqrtf(square) * unscale / weight : 0.0f;
  store(argument(parameters, 6), 0, norm);
  int64_t count = loadCount(updates), cleanSteps = loadCount(clean);
  store(argument(parameters, 7), 0, 0.05f * (count < 10 ? (float)(count + 1) / 10.0f : 1.0f));
  int committed = weight > 0.0f && isfinite(norm);
  *(uint8_t *)at(argument(parameters, 9), 1, Write) = (uint8_t)committed;
  storeCount(updates, count + committed);
  storeCount(skipped, loadCount(skipped) + (weight > 0.0f && !committed));
  if (committed && ++cleanSteps == ScaleInterval) {
    scale *= 2.0f;
    cleanSteps = 0;
  } else if (weight > 0.0f && !committed) {
    scale = fmaxf(scale / 2.0f, 1.0f);
    cleanSteps = 0;
  }
  store(scaleState, 0, scale);
  storeCount(clean, cleanSteps);
}

static void update(void *const *parameters) {
  uint64_t slab = argument(parameters, 0), values = argument(parameters, 7),
           momenta = argument(parameters, 8), working = argument(parameters, 9);
  float weight = load(argument(parameters, 1), 0), rate = load(argument(parameters, 2), 0),
        unscale = load(argument(parameters, 3), 0);
  if (!*(uint8_t *)at(argument(parameters, 4), 1, Read))
    return;
  int64_t i = task();
  float momentum = 0.9f * load(momenta, i) + load(slab, i) * unscale / weight;
  float value = load(values, i) - rate * momentum;
  store(momenta, i, momentum);
  store(values, i, value);
  storeNarrow(working, i, narrow(value));
}

static void copyNarrow(void *const *parameters) {
  int64_t i = task();
  storeNarrow(argument(parameters, 1), i, narrow(load(argument(parameters, 0), i)));
}

/* The module: as many pointers as the functions have. */
static const descent_emulated_parameter pointers[15] = {
    {"0", "ptr", 8, 0},  {"1", "ptr", 8, 0},  {"2", "ptr", 8, 0},  {"3", "ptr", 8, 0},
    {"4", "ptr", 8, 0},  {"5", "ptr", 8, 0},  {"6", "ptr", 8, 0},  {"7", "ptr", 8, 0},
    {"8", "ptr", 8, 0},  {"9", "ptr", 8, 0},  {"10", "ptr", 8, 0}, {"11", "ptr", 8, 0},
    {"12", "ptr", 8, 0}, {"13", "ptr", 8, 0}, {"14", "ptr", 8, 0}};
static const descent_emulated_kernel functions[] = {
    {"predict", predict, pointers, 0, 7, 0, 0, {0, 0, 0}},
    {"loss", loss, pointers, 0, 5, 0, 0, {0, 0, 0}},
    {"transpose", transpose, pointers, 0, 2, 0, 0, {0, 0, 0}},
    {"gradient", gradient, pointers, 0, 5, 0, 0, {0, 0, 0}},
    {"decide", decide, pointers, 0, 15, 0, 0, {0, 0, 0}},
    {"update", update, pointers, 0, 10, 0, 0, {0, 0, 0}},
    {"copy_narrow", copyNarrow, pointers, 0, 2, 0, 0, {0, 0, 0}}};
static const descent_emulated_module module = {DESCENT_EMULATOR_VERSION, 7, 0, functions, 0};

enum { Slab = 4 * ParameterCount, Column = 4 * Batch };
#define F32(operand, bytes)                                                                        \
  { operand, DESCENT_F32, 0, bytes }
#define I64(operand)                                                                               \
  { operand, DESCENT_I64, 0, 8 }
static const descent_place predictPlaces[] = {F32(0, 4 * Batch * Features),
                                              {1, DESCENT_BF16, 0, 2 * Features},
                                              {2, DESCENT_BF16, 0, 2},
                                              F32(3, Column),
                                              F32(4, Column),
                                              F32(5, Column),
                                              F32(6, Column)};
static const descent_place lossPlaces[] = {F32(0, Column), F32(1, Column), F32(2, Column),
                                           F32(3, 4), F32(4, 4)};
static const descent_place columnsPlace[] = {F32(DESCENT_WORKSPACE, (Features + 1) * Column)};
static const descent_place transposePlaces[] = {F32(0, 4 * Batch * Features),
                                                F32(DESCENT_WORKSPACE, (Features + 1) * Column)};
static const descent_place gradientPlaces[] = {F32(DESCENT_WORKSPACE, (Features + 1) * Column),
                                               F32(1, Column), F32(2, 4), F32(3, 4 * Features),
                                               F32(4, 4)};
static const descent_place decidePlaces[] = {
    F32(0, Slab), F32(1, 4),  I64(2),    F32(3, 4), I64(4),
    I64(5),       F32(6, 4),  F32(7, 4), F32(8, 4), {9, DESCENT_I1, 0, 1},
    I64(10),      F32(11, 4), I64(12),   I64(13),   F32(14, 4)};
static const descent_place updatePlaces[] = {
    F32(0, Slab), F32(1, 4),    F32(2, 4),    F32(3, 4),    {4, DESCENT_I1, 0, 1},
    F32(5, Slab), F32(6, Slab), F32(7, Slab), F32(8, Slab), {9, DESCENT_BF16, 0, Slab / 2}};
static const descent_place copyPlaces[] = {F32(0, Slab), {1, DESCENT_BF16, 0, Slab / 2}};

#define LAUNCH(function, blocks, threads, places)                                                  \
  {                                                                                                \
    DESCENT_COMMAND_LAUNCH, 0, function, {blocks, 1, 1}, {threads, 1, 1}, places,                  \
        sizeof places / sizeof *places, 0, 0, 0                                                    \
  }
static const descent_command predictCommands[] = {LAUNCH("predict", 2, Batch / 2, predictPlaces)};
static const descent_command lossCommands[] = {LAUNCH("loss", 1, 1, lossPlaces)};
static const descent_command gradientCommands[] = {
    {DESCENT_COMMAND_FILL, 0, 0, {0, 0, 0}, {0, 0, 0}, columnsPlace, 1, 0, 0, 0},
    LAUNCH("transpose", 1, Features + 1, transposePlaces),
    LAUNCH("gradient", Features + 1, 1, gradientPlaces)};
static const descent_command decideCommands[] = {LAUNCH("decide", 1, 1, decidePlaces)};
static const descent_command updateCommands[] = {
    LAUNCH("update", ParameterCount / 32, 32, updatePlaces)};
static const descent_command copyCommands[] = {
    LAUNCH("copy_narrow", ParameterCount / 32, 32, copyPlaces)};

static const descent_kernel kernels[] = {
    {"predict_8x3", "nn.matmul, nn.add, nn.sub, nn.mul", 0, 0, 0, 2.0 * Batch *Features,
     4.0 * Batch *(Features + 5), predictOperands, 7, 5, predictCommands, 1},
    {"loss_8", "nn.mse", 0, 0, 0, 4.0 * Batch, 12.0 * Batch, lossOperands, 5, 3, lossCommands, 1},
    {"gradient_8x3", "gradient of nn.matmul, gradient of nn.add", 0, 0, 0,
     4.0 * Batch *(Features + 1), 4.0 * Batch *(Features + 1), gradientOperands, 5, 3,
     gradientCommands, 3},
    {"decide", "train.norm, train.schedule, train.scale", 0, 0, 0, 2.0 * ParameterCount,
     4.0 * ParameterCount, decideOperands, 15, 6, decideCommands, 1},
    {"sgd_32", "train.update w, train.update b", 0, 0, 0, 4.0 * ParameterCount,
     22.0 * ParameterCount, updateOperands, 10, 7, updateCommands, 1},
    {"narrow_32", "nn.cast", 0, 0, 0, 0.0, 6.0 * ParameterCount, copyOperands, 2, 1, copyCommands,
     1},
};

static const uint64_t predictOffsets[] = {AtX,          AtWorkingW,   AtWorkingB, AtY,
                                          AtRowWeights, AtPrediction, AtError};
static const uint64_t lossOffsets[] = {AtPrediction, AtY, AtRowWeights, AtLossSum, AtLossWeight};
static const uint64_t gradientOffsets[] = {AtX, AtError, AtLossScale, AtGradientW, AtGradientB};
static const uint64_t decideOffsets[] = {AtGradientW,  AtLossWeight,   AtUpdates,  AtLossScale,
                                         AtCleanSteps, AtSkippedSteps, AtNorm,     AtRate,
                                         AtUnscale,    AtCommitted,    AtUpdates,  AtLossScale,
                                         AtCleanSteps, AtSkippedSteps, AtScaleUsed};
static const uint64_t updateOffsets[] = {AtGradientW, AtLossWeight, AtRate,      AtUnscale,
                                         AtCommitted, AtW,          AtMomentumW, AtW,
                                         AtMomentumW, AtWorkingW};
static const uint64_t refreshOffsets[] = {AtW, AtWorkingW};

/* Event 0: the predictions are there. Event 1: the loss is. */
enum { Predicted = 0, Lost = 1 };
static const int32_t afterPredict[] = {Predicted}, afterLoss[] = {Lost};
#define FORWARD_SITES                                                                              \
  {&kernels[0],                                                                                    \
   "nn.matmul (specimen.mlir:3), nn.add (specimen.mlir:4), nn.sub (specimen.mlir:5), nn.mul",      \
   predictOutputs,                                                                                 \
   predictOffsets,                                                                                 \
   DESCENT_STREAM_COMPUTE,                                                                         \
   Predicted,                                                                                      \
   0,                                                                                              \
   0},                                                                                             \
  {                                                                                                \
    &kernels[1], "nn.mse (specimen.mlir:5)", lossOutputs, lossOffsets,                             \
        DESCENT_STREAM_COMMUNICATION, Lost, afterPredict, 1                                        \
  }
static const descent_site evaluateSites[] = {FORWARD_SITES};
static const descent_site stepSites[] = {
    FORWARD_SITES,
    {&kernels[2], "gradient of nn.matmul (specimen.mlir:3), gradient of nn.add (specimen.mlir:4)",
     gradientOutputs, gradientOffsets, DESCENT_STREAM_COMPUTE, -1, 0, 0},
    {&kernels[3], "train.norm, train.schedule, train.scale", decideOutputs, decideOffsets,
     DESCENT_STREAM_COMPUTE, -1, afterLoss, 1},
    {&kernels[4], "train.update w, train.update b", updateOutputs, updateOffsets,
     DESCENT_STREAM_COMPUTE, -1, 0, 0},
};
static const descent_site refreshSites[] = {
    {&kernels[5], "nn.cast", copyOutputs, refreshOffsets, DESCENT_STREAM_COMPUTE, -1, 0, 0}};

static const descent_function programFunctions[] = {
    {"step", 0, stepOutputs, 7, stepSites, 5, 3, 2},
    {"evaluate", 0, evaluateOutputs, 3, evaluateSites, 2, DESCENT_NO_LAUNCH, 2},
    {"refresh", 0, 0, 0, refreshSites, 1, DESCENT_NO_LAUNCH, 0},
};

/* The emulator's tables; what they are made of is none of this file's business. */
extern const char drivers __asm__("descent_emulated_drivers");
static const descent_device device = {
    .target = "cuda-emulated", .capability = 80, .emulated = &module, .drivers = &drivers};

/* A test links this beside the specimen, which has the name of all programs. */
#ifndef DEVICE_SPECIMEN_SYMBOL
#define DEVICE_SPECIMEN_SYMBOL DESCENT_PROGRAM_SYMBOL
#endif
extern const descent_program program __asm__(DEVICE_SPECIMEN_SYMBOL);
const descent_program program = {
    .abi_version = DESCENT_ABI_VERSION,
    .struct_bytes = sizeof(descent_program),
    .name = "specimen",
    .compiler = "by hand",
    .cpu = "x86-64",
    .cpu_features = "",
    .plan_hash = 0x5bec13e4, /* that of the specimen, whose checkpoints fit */
    .memory = {.arena = ArenaBytes,
               .persistent = PersistentBytes,
               .parameters = 512 + 256,
               .gradients = 512,
               .optimizer = 512 + 4 * 256,
               .activations = ArenaBytes - PersistentBytes,
               .workspace = 0,
               .working_copies = 256,
               .thread_scratch = 0,
               .lower_bound = ArenaBytes,
               .device_workspace = WorkspaceBytes,
               .device_staging = DESCENT_INPUT_SLOTS * SlotBytes},
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
    .functions = programFunctions,
    .function_count = 3,
    .device = &device,
};
