/* What device code retargeted to the host and the emulator agree on.
 *
 * compiler/Target/EmulateRetarget.cpp rewrites CUDA kernels (LLVM IR for nvptx64) into host
 * functions: each memory access first asks the engine for the host address behind a device address,
 * each operation of a warp or block is a call. The rewritten module exports one
 * descent_emulated_module; the engine (runtime/emulator) runs its kernels. Plain C, no includes
 * beyond <stdint.h>. Any change of layout or meaning raises DESCENT_EMULATOR_VERSION.
 *
 * Pointers of the device are 64-bit addresses of the device's own space in every address space:
 * shared and local memory are windows of the generic space, at the addresses below, so that casts
 * between address spaces change nothing. None of them is an address of the host.
 */
#ifndef DESCENT_EMULATOR_H
#define DESCENT_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DESCENT_EMULATOR_VERSION 1u
#define DESCENT_EMULATED_MODULE_SYMBOL "descent_emulated_module_v1"
/* The emulator's tables of drivers (runtime/cuda/Driver.h), for descent_device. */
#define DESCENT_EMULATED_DRIVERS_SYMBOL "descent_emulated_drivers"

/* Windows. Shared and local addresses fit 32 bits, since device code may truncate them to that. */
#define DESCENT_EMULATED_SHARED UINT64_C(0x40000000)
#define DESCENT_EMULATED_LOCAL UINT64_C(0x50000000)
#define DESCENT_EMULATED_WINDOW UINT64_C(0x10000000) /* bytes of each of these two */
#define DESCENT_EMULATED_GLOBAL UINT64_C(0x100000000000)
#define DESCENT_EMULATED_GLOBAL_END UINT64_C(0x500000000000)

/* An instruction, for messages. */
typedef struct descent_emulated_site {
  const char *text;        /* as in the IR */
  const char *function;    /* name of the device function that holds it */
  const char *ir_file;     /* the IR file, and the line there; line 0: unknown */
  const char *source_file; /* from debug information; line 0: unknown */
  uint32_t ir_line, source_line, source_column;
} descent_emulated_site;

/* A variable of the device. Those in shared memory have a fixed address; the loader chooses the
 * others' and writes them to *address. Dynamic shared memory is a shared variable of 0 bytes. */
typedef struct descent_emulated_variable {
  const char *name;
  const void *image; /* initial bytes; null: not initialised */
  uint64_t bytes, alignment;
  uint64_t *address;
  uint32_t shared, constant; /* booleans */
} descent_emulated_variable;

typedef struct descent_emulated_parameter {
  const char *name;
  const char *type; /* as IR text: "ptr addrspace(1)", "i32", "float" */
  uint64_t bytes;
  uint32_t by_value; /* an aggregate that the kernel reads through a pointer */
} descent_emulated_parameter;

typedef struct descent_emulated_kernel {
  const char *name;
  void (*entry)(
      void *const *parameters); /* as for cuLaunchKernel: pointers to the values; a by_value
                                   one is the address of its copy on the device */
  const descent_emulated_parameter *parameters;
  const uint32_t *shared; /* indices of the shared variables that it reaches */
  uint32_t parameter_count, shared_count;
  uint32_t max_threads;      /* nvvm.maxntid, 0 if none */
  uint32_t exact_threads[3]; /* nvvm.reqntid, 0 if none */
} descent_emulated_kernel;

typedef struct descent_emulated_module {
  uint32_t version; /* DESCENT_EMULATOR_VERSION */
  uint32_t kernel_count, variable_count;
  const descent_emulated_kernel *kernels;
  const descent_emulated_variable *variables;
} descent_emulated_module;

/* Flags of descent_emulate_access; bits 8-15 are log2 of the alignment that the access needs, bits
 * 16-23 the address space its pointer is typed with. */
enum { DESCENT_EMULATE_READ = 1, DESCENT_EMULATE_WRITE = 2, DESCENT_EMULATE_ATOMIC = 4 };

/* Kinds of descent_emulate_barrier, in slot 0; slots 1 and 2 are barrier and thread count (0: the
 * whole block), slot 3 the predicate. */
enum {
  DESCENT_BARRIER_SYNC = 0,
  DESCENT_BARRIER_ARRIVE = 1,
  DESCENT_BARRIER_AND = 2,
  DESCENT_BARRIER_OR = 3,
  DESCENT_BARRIER_POPC = 4,
  DESCENT_BARRIER_ALIGNED = 8 /* added: all threads of a warp execute the same instruction */
};
/* Kinds of descent_emulate_shuffle, _vote, _match and _redux, in slot 0; then PTX's operands. */
enum { DESCENT_SHUFFLE_UP, DESCENT_SHUFFLE_DOWN, DESCENT_SHUFFLE_XOR, DESCENT_SHUFFLE_INDEX };
enum { DESCENT_VOTE_ALL, DESCENT_VOTE_ANY, DESCENT_VOTE_UNI, DESCENT_VOTE_BALLOT };
enum { DESCENT_MATCH_ANY, DESCENT_MATCH_ALL };
enum {
  DESCENT_REDUX_ADD,
  DESCENT_REDUX_MIN,
  DESCENT_REDUX_MAX,
  DESCENT_REDUX_UMIN,
  DESCENT_REDUX_UMAX,
  DESCENT_REDUX_AND,
  DESCENT_REDUX_OR,
  DESCENT_REDUX_XOR
};
/* Element types of descent_emulate_mma. */
enum { DESCENT_MMA_BF16, DESCENT_MMA_F16, DESCENT_MMA_TF32, DESCENT_MMA_E4M3, DESCENT_MMA_E5M2 };
/* Special registers: the first five times x, y, z; then the others. */
enum {
  DESCENT_REGISTER_TID = 0,
  DESCENT_REGISTER_NTID = 3,
  DESCENT_REGISTER_CTAID = 6,
  DESCENT_REGISTER_NCTAID = 9,
  DESCENT_REGISTER_LANEID = 12,
  DESCENT_REGISTER_WARPID,
  DESCENT_REGISTER_NWARPID,
  DESCENT_REGISTER_LANEMASK_EQ,
  DESCENT_REGISTER_LANEMASK_LE,
  DESCENT_REGISTER_LANEMASK_LT,
  DESCENT_REGISTER_LANEMASK_GE,
  DESCENT_REGISTER_LANEMASK_GT,
  DESCENT_REGISTER_DYNAMIC_SHARED,
  DESCENT_REGISTER_TOTAL_SHARED,
  DESCENT_REGISTER_CLOCK
};
/* descent_emulate_arithmetic*: operation in bits 0-7, rounding in bits 8-9, then flags. */
enum {
  DESCENT_ARITHMETIC_ADD,
  DESCENT_ARITHMETIC_MUL,
  DESCENT_ARITHMETIC_FMA,
  DESCENT_ARITHMETIC_DIV,
  DESCENT_ARITHMETIC_RCP,
  DESCENT_ARITHMETIC_SQRT,
  DESCENT_ARITHMETIC_RSQRT,
  DESCENT_ARITHMETIC_EX2,
  DESCENT_ARITHMETIC_LG2,
  DESCENT_ARITHMETIC_SIN,
  DESCENT_ARITHMETIC_COS,
  DESCENT_ARITHMETIC_MIN,
  DESCENT_ARITHMETIC_MAX,
  DESCENT_ARITHMETIC_ABS,
  DESCENT_ARITHMETIC_FLOOR,
  DESCENT_ARITHMETIC_CEIL,
  DESCENT_ARITHMETIC_TRUNC,
  DESCENT_ARITHMETIC_ROUND, /* to even, as cvt.rni */
  DESCENT_ARITHMETIC_COPY,  /* the operand itself, for flags alone */
  DESCENT_ROUND_NEAREST = 0 << 8,
  DESCENT_ROUND_ZERO = 1 << 8,
  DESCENT_ROUND_DOWN = 2 << 8,
  DESCENT_ROUND_UP = 3 << 8,
  DESCENT_ARITHMETIC_FTZ = 1 << 10,  /* subnormal operands and results become zero */
  DESCENT_ARITHMETIC_SAT = 1 << 11,  /* into [0, 1]; NaN becomes 0 */
  DESCENT_ARITHMETIC_NAN = 1 << 12,  /* min and max: NaN if either operand is */
  DESCENT_ARITHMETIC_RELU = 1 << 13, /* negative results become zero */
  DESCENT_ARITHMETIC_HALF = 1 << 14  /* narrow elements are f16, not bf16 */
};

/* The calls. X(name, result, parameters). `slots` is an array of 64-bit slots: operands in, results
 * out. */
#define DESCENT_EMULATOR_ENTRIES(X)                                                                \
  /* Host address of `bytes` bytes at a device address, or the end of the launch. */               \
  X(access, void *,                                                                                \
    (uint64_t address, uint64_t bytes, uint32_t flags, const descent_emulated_site *site))         \
  /* memcpy, memmove and memset. */                                                                \
  X(copy, void, (uint64_t to, uint64_t from, uint64_t bytes, const descent_emulated_site *site))   \
  X(fill, void, (uint64_t to, uint32_t value, uint64_t bytes, const descent_emulated_site *site))  \
  /* Local memory: a mark at a function's entry, variables, and back to the mark at its exits. */  \
  X(local_mark, uint64_t, (void))                                                                  \
  X(local_release, void, (uint64_t mark))                                                          \
  X(local, uint64_t, (uint64_t bytes, uint64_t alignment, const descent_emulated_site *site))      \
  X(register, uint64_t, (uint32_t which))                                                          \
  X(space, uint32_t, (uint64_t address, uint32_t space))                                           \
  X(barrier, void, (uint64_t * slots, const descent_emulated_site *site))                          \
  X(warp_sync, void, (uint64_t * slots, const descent_emulated_site *site))                        \
  X(shuffle, void, (uint64_t * slots, const descent_emulated_site *site))                          \
  X(vote, void, (uint64_t * slots, const descent_emulated_site *site))                             \
  X(match, void, (uint64_t * slots, const descent_emulated_site *site))                            \
  X(redux, void, (uint64_t * slots, const descent_emulated_site *site))                            \
  X(elect, void, (uint64_t * slots, const descent_emulated_site *site))                            \
  /* Slot 0: number of matrices, slot 1: transposed, slot 2: the lane's row address. */            \
  X(ldmatrix, void, (uint64_t * slots, const descent_emulated_site *site))                         \
  X(stmatrix, void, (uint64_t * slots, const descent_emulated_site *site))                         \
  /* Slots 0-2: k and the element types of A and B; then the fragments of A, B, C. */              \
  X(mma, void, (uint64_t * slots, const descent_emulated_site *site))                              \
  /* Slots: size; destination, source, bytes to read. */                                           \
  X(cp_async, void, (uint64_t * slots, const descent_emulated_site *site))                         \
  X(cp_async_commit, void, (uint64_t * slots, const descent_emulated_site *site))                  \
  X(cp_async_wait, void, (uint64_t * slots, const descent_emulated_site *site))                    \
  X(cp_async_wait_all, void, (uint64_t * slots, const descent_emulated_site *site))                \
  X(yield, void, (uint64_t * slots, const descent_emulated_site *site))                            \
  X(exit, void, (uint64_t * slots, const descent_emulated_site *site))                             \
  X(trap, void, (uint64_t * slots, const descent_emulated_site *site))                             \
  X(arithmetic, float, (uint32_t code, float a, float b, float c))                                 \
  X(arithmetic_double, double, (uint32_t code, double a, double b, double c))                      \
  X(arithmetic_narrow, uint16_t, (uint32_t code, uint16_t a, uint16_t b, uint16_t c))              \
  X(arithmetic_pair, uint32_t, (uint32_t code, uint32_t a, uint32_t b, uint32_t c))                \
  /* f32 to bf16 or f16 and pairs of them (the first operand becomes the upper half). */           \
  X(narrow, uint16_t, (uint32_t code, float value))                                                \
  X(narrow_pair, uint32_t, (uint32_t code, float high, float low))                                 \
  X(tf32, uint32_t, (float value))                                                                 \
  X(permute, uint32_t, (uint32_t a, uint32_t b, uint32_t selector))

#define DESCENT_EMULATOR_DECLARE(name, result, parameters) result descent_emulate_##name parameters;
DESCENT_EMULATOR_ENTRIES(DESCENT_EMULATOR_DECLARE)
#undef DESCENT_EMULATOR_DECLARE

#ifdef __cplusplus
}
#endif

#endif /* DESCENT_EMULATOR_H */
