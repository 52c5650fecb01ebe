//===- Program.cpp - Checks and look-ups of a compiled program ------------------------------===//
//
// The tables come from another build of the compiler, from a cross compilation, or from a hand: a
// wrong one is refused here, where its entry can be named, and not found by a kernel that writes
// outside the arena.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Program.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

using namespace descent;

uint64_t descent::elementBytes(int32_t dtype) {
  static constexpr uint64_t bytes[] = {4, 2, 2, 4, 8, 1, 1, 1};
  return dtype >= DESCENT_F32 && dtype <= DESCENT_F8E5M2 ? bytes[dtype] : 0;
}

const char *descent::dtypeName(int32_t dtype) {
  static constexpr const char *names[] = {"f32", "bf16", "f16",    "i32",
                                          "i64", "i1",   "f8E4M3", "f8E5M2"};
  return dtype >= DESCENT_F32 && dtype <= DESCENT_F8E5M2 ? names[dtype] : "?";
}

static std::string typeText(int32_t dtype, int32_t rank, const int64_t *shape) {
  std::string text = fmt::format("{} [", dtypeName(dtype));
  for (int i = 0; i < rank; ++i)
    text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + "]";
}

std::string descent::typeText(const descent_tensor &tensor) {
  return ::typeText(tensor.dtype, tensor.rank, tensor.shape);
}

std::string descent::typeText(const descent_operand &operand) {
  return ::typeText(operand.dtype, operand.rank, operand.shape);
}

uint64_t descent::elementCount(const descent_operand &operand) {
  uint64_t count = 1;
  for (int i = 0; i < operand.rank; ++i)
    count *= static_cast<uint64_t>(operand.shape[i]);
  return count;
}

uint64_t descent::byteCount(const descent_operand &operand) {
  return elementCount(operand) * elementBytes(operand.dtype);
}

uint64_t descent::gradientBytes(const descent_parameter &parameter) {
  return parameter.tensor.bytes / elementBytes(parameter.tensor.dtype) * sizeof(float);
}

namespace {

class Checker {
public:
  explicit Checker(const descent_program &program) : program(program) {}

  void run() {
    checkVersion();
    pointer(program.name, "name");
    pointer(program.compiler, "compiler");
    if (program.memory.persistent > program.memory.arena)
      fail("memory.persistent exceeds memory.arena");
    checkParameters();
    checkStates();
    checkInputs();
    checkKernels();
    checkFunctions();
    if (program.device)
      checkDevice(program);
    for (uint64_t i = 0; i < program.setting_count; ++i)
      if (!program.settings[i].key || !program.settings[i].value)
        fail(fmt::format("setting {} has no key or no value", i));
  }

private:
  [[noreturn]] void fail(const std::string &what) {
    throw Error("this program's tables are damaged: " + what + "; compile the model again");
  }

  void pointer(const void *value, const std::string &what) {
    if (!value)
      fail(what + " is null");
  }

  void checkVersion() {
    if (program.abi_version != DESCENT_ABI_VERSION)
      throw Error(fmt::format("the model was compiled for version {} of the runtime interface, "
                              "this runtime has version {}; compile and "
                              "link it with one and the same release of descent",
                              program.abi_version, DESCENT_ABI_VERSION));
    if (program.struct_bytes != sizeof(descent_program))
      throw Error(fmt::format(
          "the model's program table has {} bytes, this runtime expects {}, though both say "
          "version {} of the "
          "runtime interface; compile and link it with one and the same release of descent",
          program.struct_bytes, sizeof(descent_program), DESCENT_ABI_VERSION));
  }

  void checkTensor(const descent_tensor &tensor, const std::string &what) {
    pointer(tensor.name, what + "'s name");
    std::string name = fmt::format("{} '{}'", what, tensor.name);
    uint64_t bytes = elementBytes(tensor.dtype);
    if (!bytes)
      fail(fmt::format("{} has the unknown element type {}", name, tensor.dtype));
    if (tensor.rank < 0 || tensor.rank > DESCENT_MAX_RANK)
      fail(fmt::format("{} has rank {}", name, tensor.rank));
    for (int i = 0; i < tensor.rank; ++i) {
      if (tensor.shape[i] < 0)
        fail(fmt::format("{} has the dimension {}", name, tensor.shape[i]));
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.shape[i]), &bytes))
        fail(fmt::format("{} is larger than memory can be", name));
    }
    if (bytes != tensor.bytes)
      fail(fmt::format("{} is {}, which is {} bytes, and says {}", name, typeText(tensor), bytes,
                       tensor.bytes));
    checkPlace(tensor.offset, tensor.bytes, name);
  }

  void checkPlace(uint64_t offset, uint64_t bytes, const std::string &name) {
    if (offset % 64)
      fail(fmt::format("{} lies at offset {}, no multiple of 64", name, offset));
    if (offset > program.memory.arena || bytes > program.memory.arena - offset)
      fail(fmt::format("{} ends behind the arena of {} bytes", name, program.memory.arena));
  }

  void checkUnique(std::set<std::string> &names, const descent_tensor &tensor,
                   const std::string &what) {
    if (!names.insert(tensor.name).second)
      fail(fmt::format("there are two {}s named '{}'", what, tensor.name));
  }

  void checkParameters() {
    std::set<std::string> names;
    for (uint64_t i = 0; i < program.parameter_count; ++i) {
      const descent_parameter &parameter = program.parameters[i];
      checkTensor(parameter.tensor, "parameter");
      checkUnique(names, parameter.tensor, "parameter");
      std::string name = fmt::format("parameter '{}'", parameter.tensor.name);
      if (parameter.tensor.dtype != DESCENT_F32 && parameter.tensor.dtype != DESCENT_BF16)
        fail(name + " is neither f32 nor bf16");
      if (parameter.initializer < DESCENT_INIT_CONSTANT ||
          parameter.initializer > DESCENT_INIT_UNIFORM)
        fail(fmt::format("{} has the unknown initializer {}", name, parameter.initializer));
      if (parameter.trainable && parameter.gradient_offset == DESCENT_NO_OFFSET)
        fail(name + " is trainable and has no gradient");
      if (parameter.gradient_offset != DESCENT_NO_OFFSET)
        checkPlace(parameter.gradient_offset, gradientBytes(parameter), "the gradient of " + name);
    }
  }

  void checkStates() {
    std::set<std::string> names;
    for (uint64_t i = 0; i < program.state_count; ++i) {
      const descent_state &state = program.states[i];
      checkTensor(state.tensor, "state");
      checkUnique(names, state.tensor, "state");
      if (state.parameter < -1 || state.parameter >= static_cast<int64_t>(program.parameter_count))
        fail(fmt::format("state '{}' belongs to parameter {} of {}", state.tensor.name,
                         state.parameter, program.parameter_count));
      checkCounter(state.tensor, DESCENT_UPDATES_STATE, DESCENT_I64);
      checkCounter(state.tensor, DESCENT_LOSS_SCALE_STATE, DESCENT_F32);
      checkCounter(state.tensor, DESCENT_CLEAN_STEPS_STATE, DESCENT_I64);
      checkCounter(state.tensor, DESCENT_SKIPPED_STEPS_STATE, DESCENT_I64);
    }
  }

  /// A state of a name that this runtime reads has the type it reads.
  void checkCounter(const descent_tensor &tensor, std::string_view name, int32_t dtype) {
    if (tensor.name == name && (tensor.dtype != dtype || tensor.rank != 0))
      fail(fmt::format("state '{}' is {} and should be one {}", name, typeText(tensor),
                       dtypeName(dtype)));
  }

  void checkInputs() {
    std::set<std::string> names;
    int64_t batch = -1;
    for (uint64_t i = 0; i < program.input_count; ++i) {
      const descent_input &input = program.inputs[i];
      checkTensor(input.tensor, "input");
      checkUnique(names, input.tensor, "input");
      std::string name = fmt::format("input '{}'", input.tensor.name);
      if (input.role < DESCENT_INPUT_DATA || input.role > DESCENT_INPUT_RNG)
        fail(fmt::format("{} has the unknown role {}", name, input.role));
      if (input.role == DESCENT_INPUT_RNG) {
        if (input.tensor.dtype != DESCENT_I32 || input.tensor.rank != 1 ||
            input.tensor.shape[0] != 4)
          fail(fmt::format("{} is {} and should be i32 [4]", name, typeText(input.tensor)));
        continue;
      }
      if (input.tensor.rank < 1 || input.tensor.shape[0] < 1)
        fail(name + " has no batch dimension");
      if (batch < 0)
        batch = input.tensor.shape[0];
      if (input.tensor.shape[0] != batch)
        fail(fmt::format("{} has a batch of {}, the inputs before it {}", name,
                         input.tensor.shape[0], batch));
      if (input.role == DESCENT_INPUT_ROW_WEIGHTS &&
          (input.tensor.dtype != DESCENT_F32 || input.tensor.rank != 1))
        fail(fmt::format("{} is {} and should be f32 [batch]", name, typeText(input.tensor)));
      if (input.bounded && input.tensor.dtype != DESCENT_I32 && input.tensor.dtype != DESCENT_I64)
        fail(name + " has bounds and no integer type");
    }
    if (batch < 0)
      fail("there is no input with a batch dimension");
  }

  void checkKernels() {
    for (uint64_t i = 0; i < program.kernel_count; ++i) {
      const descent_kernel &kernel = program.kernels[i];
      pointer(kernel.name, fmt::format("the name of kernel {}", i));
      if (!kernel.function && !program.device)
        fail(fmt::format("kernel '{}' has no function", kernel.name));
      if ((kernel.tasks < 1 && !program.device) || kernel.tasks > INT32_MAX)
        fail(fmt::format("kernel '{}' has {} tasks", kernel.name, kernel.tasks));
      if (kernel.scratch_bytes > program.memory.thread_scratch)
        fail(fmt::format("kernel '{}' needs {} bytes of scratch, the plan has {}", kernel.name,
                         kernel.scratch_bytes, program.memory.thread_scratch));
      if (kernel.input_count >= kernel.operand_count)
        fail(fmt::format("kernel '{}' has {} operands, {} of them inputs", kernel.name,
                         kernel.operand_count, kernel.input_count));
      pointer(kernel.operands, fmt::format("the operand table of kernel '{}'", kernel.name));
      for (uint64_t j = 0; j < kernel.operand_count; ++j)
        checkOperand(kernel.operands[j], fmt::format("operand {} of kernel '{}'", j, kernel.name));
    }
  }

  void checkOperand(const descent_operand &operand, const std::string &name) {
    uint64_t bytes = elementBytes(operand.dtype);
    if (!bytes)
      fail(fmt::format("{} has the unknown element type {}", name, operand.dtype));
    if (operand.rank < 0 || operand.rank > DESCENT_MAX_RANK)
      fail(fmt::format("{} has rank {}", name, operand.rank));
    for (int i = 0; i < operand.rank; ++i)
      if (operand.shape[i] < 0 ||
          __builtin_mul_overflow(bytes, static_cast<uint64_t>(operand.shape[i]), &bytes))
        fail(fmt::format("{} has the impossible shape {}", name, typeText(operand)));
  }

  void checkSites(const descent_function &function) {
    if (function.gradients_ready != DESCENT_NO_LAUNCH &&
        function.gradients_ready >= function.site_count)
      fail(fmt::format("the gradients of '{}' are ready at launch {} of {}", function.name,
                       function.gradients_ready, function.site_count));
    for (uint64_t i = 0; i < function.site_count; ++i) {
      const descent_site &site = function.sites[i];
      std::string name = fmt::format("launch {} of '{}'", i, function.name);
      if (site.kernel < program.kernels || site.kernel >= program.kernels + program.kernel_count)
        fail(name + " is of no kernel of the table");
      pointer(site.source, "the source of " + name);
      pointer(site.outputs, "the output names of " + name);
      for (uint64_t j = 0; j < site.kernel->operand_count - site.kernel->input_count; ++j)
        pointer(site.outputs[j], fmt::format("the name of output {} of {}", j, name));
    }
  }

  void requireOutput(const descent_function &function, const char *name, int32_t dtype) {
    const descent_tensor *output = findOutput(function, name);
    if (!output)
      fail(fmt::format("function '{}' has no output '{}'", function.name, name));
    if (output->dtype != dtype || output->bytes != elementBytes(dtype))
      fail(fmt::format("output '{}' of '{}' is {} and should be one {}", name, function.name,
                       typeText(*output), dtypeName(dtype)));
  }

  void checkFunctions() {
    for (uint64_t i = 0; i < program.function_count; ++i) {
      const descent_function &function = program.functions[i];
      pointer(function.name, fmt::format("the name of function {}", i));
      if (!function.run && !program.device)
        fail(fmt::format("function '{}' has no code", function.name));
      for (uint64_t j = 0; j < function.output_count; ++j)
        checkTensor(function.outputs[j], fmt::format("'{}' output", function.name));
      checkSites(function);
    }
    const descent_function &step = findFunction(program, "step");
    for (const char *name : {"loss_sum", "loss_weight", "grad_norm", "learning_rate"})
      requireOutput(step, name, DESCENT_F32);
    requireOutput(step, "committed", DESCENT_I1);
    for (const char *name : {"unscale", "loss_scale"})
      if (findOutput(step, name))
        requireOutput(step, name, DESCENT_F32);
    const descent_function &evaluate = findFunction(program, "evaluate");
    for (const char *name : {"loss_sum", "loss_weight"})
      requireOutput(evaluate, name, DESCENT_F32);
  }

  const descent_program &program;
};

} // namespace

void descent::checkProgram(const descent_program &program) { Checker(program).run(); }

int64_t descent::batchSize(const descent_program &program) {
  for (uint64_t i = 0; i < program.input_count; ++i)
    if (program.inputs[i].role != DESCENT_INPUT_RNG)
      return program.inputs[i].tensor.shape[0];
  return 0;
}

const descent_function *descent::lookFunction(const descent_program &program,
                                              std::string_view name) {
  for (uint64_t i = 0; i < program.function_count; ++i)
    if (name == program.functions[i].name)
      return &program.functions[i];
  return nullptr;
}

const descent_function &descent::findFunction(const descent_program &program,
                                              std::string_view name) {
  if (const descent_function *function = lookFunction(program, name))
    return *function;
  throw Error(fmt::format(
      "this program's tables are damaged: there is no function '{}'; compile the model again",
      name));
}

const descent_tensor *descent::findState(const descent_program &program, std::string_view name) {
  for (uint64_t i = 0; i < program.state_count; ++i)
    if (name == program.states[i].tensor.name)
      return &program.states[i].tensor;
  return nullptr;
}

const descent_tensor *descent::findOutput(const descent_function &function, std::string_view name) {
  for (uint64_t i = 0; i < function.output_count; ++i)
    if (name == function.outputs[i].name)
      return &function.outputs[i];
  return nullptr;
}

//===----------------------------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------------------------===//

Settings::Settings(const descent_program &program) {
  for (uint64_t i = 0; i < program.setting_count; ++i)
    values[program.settings[i].key] = program.settings[i].value;
}

std::optional<std::string> Settings::text(const std::string &key) const {
  auto found = values.find(key);
  if (found == values.end())
    return std::nullopt;
  return found->second;
}

std::string Settings::text(const std::string &key, const std::string &otherwise) const {
  return text(key).value_or(otherwise);
}

/// Parses all of `text` as a number of type T; TOML allows underscores between digits.
template <typename T>
static T parseNumber(const std::string &key, std::string text, const char *kind) {
  std::erase(text, '_');
  T value{};
  const char *begin = text.data() + (text.starts_with('+') ? 1 : 0),
             *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || begin == end)
    throw Error(fmt::format("the recipe's {} = {} is not {}", key, text, kind));
  return value;
}

int64_t Settings::integer(const std::string &key, int64_t otherwise) const {
  std::optional<std::string> value = text(key);
  return value ? parseNumber<int64_t>(key, *value, "a whole number") : otherwise;
}

double Settings::real(const std::string &key, double otherwise) const {
  std::optional<std::string> value = text(key);
  return value ? parseNumber<double>(key, *value, "a number") : otherwise;
}

bool Settings::flag(const std::string &key, bool otherwise) const {
  std::optional<std::string> value = text(key);
  if (!value)
    return otherwise;
  if (*value != "true" && *value != "false")
    throw Error(fmt::format("the recipe's {} = {} is neither true nor false", key, *value));
  return *value == "true";
}
