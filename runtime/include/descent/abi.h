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

#define DESCENT_ABI_VERSION 2u
#define DESCENT_PROGRAM_SYMBOL "descent_program_v2"
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
} descent_kernel;

/* One launch of a function. Equal kernels are one, so only the site knows which ops of the model a
 * launch computes. */
typedef struct descent_site {
  const descent_kernel *kernel; /* of the program's table */
  const char *source;           /* as the kernel's sources, but of this place */
  const char *const *outputs;   /* for each output of the kernel: the op that makes it, with the
                                   file and line where they are known */
} descent_site;

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
  void (*run)(descent_context *context, uint8_t *arena);
  const descent_tensor *outputs;
  uint64_t output_count;
  const descent_site *sites;
  uint64_t site_count;
  uint64_t gradients_ready; /* the first launch that reads a whole slab of gradients, or
                               DESCENT_NO_LAUNCH */
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
      workspace;           /* activations and workspace: at the peak */
  uint64_t working_copies; /* narrow copies of parameters, counted in `parameters` too */
  uint64_t thread_scratch; /* each thread adds this much behind the arena */
  uint64_t lower_bound;    /* no order-preserving plan can need less */
} descent_memory;

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
