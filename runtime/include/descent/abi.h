/* The contract between a compiled model and the runtime.
 *
 * `descent compile` emits one object file that exports one `descent_program` (symbol
 * DESCENT_PROGRAM_SYMBOL). The runtime is linked with it and calls its functions; the object calls
 * back through the entries of DESCENT_RUNTIME_ENTRIES. Neither side includes a header of the other:
 * this file is all they share. It is plain C11, has no includes beyond <stdint.h>, and every struct
 * is laid out by natural alignment on a 64-bit machine. Any change of layout or meaning raises
 * DESCENT_ABI_VERSION; the runtime refuses a program of another version.
 *
 * runtime/core/Specimen.c is a hand-written example of what the compiler emits.
 */
#ifndef DESCENT_ABI_H
#define DESCENT_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DESCENT_ABI_VERSION 3u
#define DESCENT_PROGRAM_SYMBOL "descent_program_v3"
#define DESCENT_NO_OFFSET UINT64_MAX
#define DESCENT_NO_LAUNCH UINT64_MAX
#define DESCENT_MAX_RANK 8

/* Element types, in the order of the compiler's table. Sizes: 4, 2, 2, 4, 8, 1, 1, 1 bytes (i1 is
 * one byte, 0 or 1; the two eight-bit floats are those of the OCP, E4M3 has no infinity). */
enum descent_dtype {
  DESCENT_F32 = 0,
  DESCENT_BF16 = 1,
  DESCENT_F16 = 2,
  DESCENT_I32 = 3,
  DESCENT_I64 = 4,
  DESCENT_I1 = 5,
  DESCENT_F8E4M3 = 6,
  DESCENT_F8E5M2 = 7
};

/* A dense row-major tensor at a fixed place of the arena. */
typedef struct descent_tensor {
  const char *name; /* any bytes; unique within its table */
  int32_t dtype;    /* enum descent_dtype */
  int32_t rank;     /* 0 .. DESCENT_MAX_RANK */
  int64_t shape[DESCENT_MAX_RANK];
  uint64_t offset; /* bytes from the arena's start, a multiple of 64 */
  uint64_t bytes;  /* product of shape times element size */
} descent_tensor;

/* How a parameter gets its first value. Random values are Philox 4x32-10 keyed by (seed, FNV-1a of
 * the name, element), computed in f32 and rounded to nearest even where the parameter is bf16. */
enum descent_initializer {
  DESCENT_INIT_CONSTANT = 0, /* a */
  DESCENT_INIT_NORMAL = 1,   /* mean a, standard deviation b */
  DESCENT_INIT_UNIFORM = 2   /* [a, b) */
};

typedef struct descent_parameter {
  descent_tensor tensor; /* f32, or bf16 where no f32 master is kept */
  int32_t initializer;   /* enum descent_initializer */
  int32_t trainable;     /* 0: frozen, no gradient, no state */
  double a, b;
  uint64_t gradient_offset;   /* f32, same shape: after a step, the gradient of the *sum* of losses
                                 divided by the step's output "unscale"; DESCENT_NO_OFFSET if
                                 frozen */
  const char *group;          /* optimizer group */
  double learning_rate_scale; /* of that group, for --describe */
  double weight_decay;
} descent_parameter;

/* Persistent values that are not parameters: moments, counters. Set to `initial` at the start,
 * saved in checkpoints. The state named DESCENT_UPDATES_STATE (i64, rank 0) counts committed
 * updates. With a dynamic loss scale there are the scale (f32, rank 0), the clean steps since it
 * last changed and the skipped steps (i64, rank 0); with a static one only the last. These change
 * in steps that do not commit, a state of its parameter's shape never does. */
#define DESCENT_UPDATES_STATE "updates"
#define DESCENT_LOSS_SCALE_STATE "loss_scale"
#define DESCENT_CLEAN_STEPS_STATE "clean_steps"
#define DESCENT_SKIPPED_STEPS_STATE "skipped_steps"
typedef struct descent_state {
  descent_tensor tensor;
  int32_t parameter; /* index of the parameter it belongs to, or -1 */
  int32_t reserved;
  double initial;
} descent_state;

enum descent_input_role {
  DESCENT_INPUT_DATA = 0,   /* a batch of model inputs, leading dimension is the batch */
  DESCENT_INPUT_TARGET = 1, /* a batch of targets */
  DESCENT_INPUT_ROW_WEIGHTS =
      2,                /* f32 [batch]: 1 for a real row, 0 for padding of the last batch */
  DESCENT_INPUT_RNG = 3 /* i32 [4]: seed low, seed high, iteration (from 0), stream */
};

typedef struct descent_input {
  descent_tensor tensor; /* the caller writes the batch here before step or evaluate */
  int32_t role;          /* enum descent_input_role */
  int32_t bounded; /* 1: integer values must lie in [low, high) or equal ignore_index; the runtime
                      checks each batch */
  int64_t low, high;
  int64_t ignore_index; /* meaningful if has_ignore_index */
  int32_t has_ignore_index;
  int32_t reserved;
} descent_input;

/* Processes tasks [first, last) of a kernel. `buffers` holds the operands in declaration order,
 * inputs then outputs; `scratch` is private to the calling thread, 64-byte aligned, and at least
 * scratch_bytes long. The result of a task does not depend on which thread runs it or on how tasks
 * are grouped, so any split of [0, tasks) gives the same bits. */
typedef void (*descent_kernel_function)(void *const *buffers, int64_t first, int64_t last,
                                        void *scratch);

/* Element type and shape of what a kernel reads or writes. */
typedef struct descent_operand {
  int32_t dtype; /* enum descent_dtype */
  int32_t rank;  /* 0 .. DESCENT_MAX_RANK */
  int64_t shape[DESCENT_MAX_RANK];
} descent_operand;

/* What a device does for a launch of a kernel: commands, one after the other on one stream. */
enum descent_command_kind {
  DESCENT_COMMAND_LAUNCH = 0,  /* a device function */
  DESCENT_COMMAND_PRODUCT = 1, /* a matrix product of the vendor's library */
  DESCENT_COMMAND_FILL = 2     /* sets bytes */
};

/* Where an operand of a command lies: in an operand of the kernel, or in the workspace. */
#define DESCENT_WORKSPACE (-1)
#define DESCENT_NO_OPERAND (-2)
typedef struct descent_place {
  int32_t operand; /* index, inputs first; DESCENT_WORKSPACE; DESCENT_NO_OPERAND where optional */
  int32_t dtype;   /* of the elements there */
  uint64_t offset; /* bytes from the operand's, or the workspace's, start */
  uint64_t bytes;
} descent_place;

enum descent_compute { DESCENT_COMPUTE_F32 = 0, DESCENT_COMPUTE_TF32 = 1 };

/* Of exec.device_product, whose description says what each computes. */
enum descent_epilogue {
  DESCENT_EPILOGUE_NONE = 0,
  DESCENT_EPILOGUE_BIAS,
  DESCENT_EPILOGUE_RELU,
  DESCENT_EPILOGUE_RELU_BIAS,
  DESCENT_EPILOGUE_GELU,
  DESCENT_EPILOGUE_GELU_BIAS,
  DESCENT_EPILOGUE_RELU_AUX,
  DESCENT_EPILOGUE_RELU_AUX_BIAS,
  DESCENT_EPILOGUE_GELU_AUX,
  DESCENT_EPILOGUE_GELU_AUX_BIAS,
  DESCENT_EPILOGUE_DRELU,
  DESCENT_EPILOGUE_DRELU_BGRAD,
  DESCENT_EPILOGUE_DGELU,
  DESCENT_EPILOGUE_DGELU_BGRAD,
  DESCENT_EPILOGUE_BGRAD_A,
  DESCENT_EPILOGUE_BGRAD_B
};

typedef struct descent_command descent_command;

/* Row-major: D[i] = epilogue(op(A[i]) op(B[i]) (+ D[i])), for i < batch; m x k times k x n. Leading
 * dimensions and strides are in elements. */
typedef struct descent_product {
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldd, ld_aux;
  int64_t stride_a, stride_b, stride_d;
  int32_t transpose_a, transpose_b, accumulate; /* booleans */
  int32_t compute;                              /* enum descent_compute */
  int32_t epilogue;                             /* enum descent_epilogue */
  int32_t reserved;
  descent_place a, b, d, bias, aux, bias_gradient, scale_a, scale_b;
  const descent_command *otherwise; /* instead, where the library has no algorithm */
  uint64_t otherwise_count;
} descent_product;

struct descent_command {
  int32_t kind;            /* enum descent_command_kind */
  uint32_t dynamic_shared; /* LAUNCH: bytes */
  const char *function;    /* LAUNCH: its name in the image */
  uint32_t grid[3], block[3];
  const descent_place *operands; /* LAUNCH: the function's arguments, each a pointer; FILL: one */
  uint64_t operand_count;
  const descent_product *product; /* PRODUCT */
  int32_t value;                  /* FILL: the byte */
  int32_t reserved;
};

typedef struct descent_kernel {
  const char *name;    /* e.g. "gemm_bias_gelu_768x512x128" */
  const char *sources; /* the source ops it holds, e.g. "nn.matmul h.0.fc, nn.add, nn.gelu" */
  descent_kernel_function function;
  int64_t tasks;
  uint64_t scratch_bytes;
  double flops;                    /* of one launch */
  double bytes;                    /* read and written by one launch, each operand once */
  const descent_operand *operands; /* inputs first, then outputs */
  uint64_t operand_count;
  uint64_t input_count;
  const descent_command *commands; /* for a device, which has no `function` and no tasks */
  uint64_t command_count;
} descent_kernel;

/* One launch of a function. Equal kernels are one, so only the site knows which ops of the model a
 * launch computes. */
typedef struct descent_site {
  const descent_kernel *kernel; /* of the program's table */
  const char *source;           /* as the kernel's sources, but of this place */
  const char *const *outputs;   /* for each output of the kernel: the op that makes it, with the
                                   file and line where they are known */
  const uint64_t *offsets;      /* of the operands in the arena, inputs first */
  int32_t stream;               /* of a device: enum descent_stream */
  int32_t record;               /* event recorded behind the launch, or -1 */
  const int32_t *waits; /* events that the launch waits for, recorded by earlier sites on other
                           streams */
  uint64_t wait_count;
} descent_site;

/* Streams of a device. Work of one is ordered; events order the streams. A function starts on the
 * compute stream and ends there: the others wait for its start and are waited for at its end. */
enum descent_stream {
  DESCENT_STREAM_COMPUTE = 0,
  DESCENT_STREAM_COMMUNICATION = 1 /* collectives */
};

typedef struct descent_context descent_context; /* owned by the runtime, opaque to compiled code */

/* A function's launches are those of `sites`, each once and in this order. What a function leaves
 * behind, valid until the next call:
 *   "step"      loss_sum, loss_weight, grad_norm, learning_rate (f32), committed (i1), and where
 *               there is a loss scale unscale (f32): stored gradients times this are gradients of
 *               the sum of losses, and loss_scale (f32): the scale of this step
 *   "evaluate"  loss_sum, loss_weight, and predictions (the model's output, f32, batch leading)
 *   "refresh"   nothing; exists where narrow working copies of parameters are kept, and computes
 *               them from the parameters. Called whenever parameters were set from outside, before
 *               the first step or evaluate. */
typedef struct descent_function {
  const char *name;
  void (*run)(descent_context *context, uint8_t *arena); /* null for a device: `sites` say all */
  const descent_tensor *outputs;
  uint64_t output_count;
  const descent_site *sites;
  uint64_t site_count;
  uint64_t gradients_ready; /* the first launch that reads a whole slab of gradients, or
                               DESCENT_NO_LAUNCH */
  uint64_t event_count;     /* that `sites` record */
} descent_function;

typedef struct descent_setting { /* the recipe, flattened: "optimizer.kind" = "adamw", "batch.size"
                                    = "32", "data.path" absolute */
  const char *key;
  const char *value; /* TOML scalars without quotes; arrays as TOML text */
} descent_setting;

typedef struct descent_memory { /* bytes; arena = persistent part + transient part, without
                                   per-thread scratch */
  uint64_t arena, persistent;
  uint64_t parameters, gradients, optimizer, activations,
      workspace;             /* activations and workspace: at the peak */
  uint64_t working_copies;   /* narrow copies of parameters, counted in `parameters` too */
  uint64_t thread_scratch;   /* each thread adds this much behind the arena */
  uint64_t lower_bound;      /* no order-preserving plan can need less */
  uint64_t device_workspace; /* behind the arena of a device, once for each of its streams that
                                needs one: shared by the launches of the compute stream */
  uint64_t device_staging;   /* behind that: DESCENT_INPUT_SLOTS copies of the inputs, each input at
                                its place in the arena less that of the first */
} descent_memory;

#define DESCENT_INPUT_SLOTS 2

/* Device code. A cubin fits the chips of its compute capability's major version from its minor on,
 * PTX is compiled by the driver for any that is at least as new. */
enum descent_image_kind { DESCENT_IMAGE_CUBIN = 0, DESCENT_IMAGE_PTX = 1 };
typedef struct descent_image {
  int32_t kind;       /* enum descent_image_kind */
  int32_t capability; /* 90 for sm_90 */
  const void *data;   /* PTX ends in a zero byte, which `bytes` counts */
  uint64_t bytes;
} descent_image;

struct descent_emulated_module;

typedef struct descent_device {
  const char *target; /* "cuda:sm_90" or "cuda-emulated" */
  int32_t capability; /* that the program was made for: 90 */
  int32_t reserved;
  const descent_image *images; /* cubins first; none where emulated */
  uint64_t image_count;
  const struct descent_emulated_module *emulated; /* descent/emulator.h; null for hardware */
  const void *drivers; /* null: the libraries of the system are opened; else the emulator's tables
                          (runtime/cuda/Driver.h) */
} descent_device;

typedef struct descent_program {
  uint32_t abi_version;  /* DESCENT_ABI_VERSION of the compiler */
  uint32_t struct_bytes; /* sizeof(descent_program) seen by the compiler */
  const char *name;      /* the model's name */
  const char *compiler;  /* version text */
  const char *cpu;       /* LLVM name of the CPU it was compiled for */
  const char
      *cpu_features;  /* what it needs, comma separated: "avx2,fma,avx512f"; checked at start */
  uint64_t plan_hash; /* of everything a checkpoint depends on: parameters, states, their shapes and
                         types */
  descent_memory memory;
  const descent_parameter *parameters;
  uint64_t parameter_count;
  const descent_state *states;
  uint64_t state_count;
  const descent_input *inputs;
  uint64_t input_count;
  const descent_kernel *kernels;
  uint64_t kernel_count;
  const descent_setting *settings;
  uint64_t setting_count;
  const descent_function *functions;
  uint64_t function_count;
  const descent_device *device; /* null for a CPU program */
} descent_program;

/* What compiled code may call: X(result, name, parameters). One list for the declarations below,
 * the runtime's completeness check and the compiler's declarations. */
#define DESCENT_RUNTIME_ENTRIES(X)                                                                 \
  /* Runs all tasks of a site's kernel on the context's threads and returns when the last has      \
   * finished. */                                                                                  \
  X(void, descent_launch,                                                                          \
    (descent_context * context, const descent_site *site, void *const *buffers))

#define DESCENT_DECLARE_ENTRY(result, name, parameters) result name parameters;
DESCENT_RUNTIME_ENTRIES(DESCENT_DECLARE_ENTRY)
#undef DESCENT_DECLARE_ENTRY

#ifdef __cplusplus
}
#endif

#endif /* DESCENT_ABI_H */
