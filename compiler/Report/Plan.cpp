//===- Plan.cpp - What a program will do, before it runs ------------------===//
//
// Everything here is read off the schedule: nothing is estimated and nothing is run. What only a
// device has stands in DevicePlan.cpp.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Plan.h"

#include "compiler/Target/EmitDevice.h"
#include "compiler/Target/EmitProgram.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Train/StateNames.h"
#include "dialects/Train/Train.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Precision/PrecisionChoice.h"
#include "passes/Schedule/Lifetimes.h"

#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#define FMT_HEADER_ONLY
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace mlir;

namespace descent {

std::string formatBytes(int64_t bytes) {
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024.0;
  const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(units)) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10.0 ? 2 : 1, units[unit]);
}

static std::string typeText(ShapedType type) {
  std::string text = debugString(type.getElementType());
  text += "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(type.getShape(), stream);
  return text + "]";
}

static void readMemory(Plan &plan, ModuleOp schedule) {
  for (auto arena : schedule.getOps<exec::ArenaOp>())
    plan.memory = {
        static_cast<int64_t>(arena.getSize()),       static_cast<int64_t>(arena.getLowerBound()),
        static_cast<int64_t>(arena.getParameters()), static_cast<int64_t>(arena.getGradients()),
        static_cast<int64_t>(arena.getOptimizer()),  static_cast<int64_t>(arena.getActivations()),
        static_cast<int64_t>(arena.getWorkspace()),  0,
        static_cast<int64_t>(arena.getSize())};
}

/// The launch of @step at which most transient bytes are alive, and the ten largest things alive
/// then.
static void readPeak(Plan &plan, ModuleOp schedule, exec::ProgramOp step) {
  int64_t end = 0;
  llvm::MapVector<int64_t, Plan::Buffer>
      places; // by offset and first launch: views of one place count once
  std::vector<Plan::Buffer> buffers;
  llvm::DenseSet<std::pair<int64_t, int64_t>> seen;
  for (auto buffer : step.getBody().getOps<exec::BufferOp>()) {
    if (!seen.insert({static_cast<int64_t>(buffer.getOffset()),
                      static_cast<int64_t>(buffer.getFirst())})
             .second)
      continue;
    auto type = cast<MemRefType>(buffer.getBuffer().getType());
    buffers.push_back(
        {buffer.getSource().str(), buffer.getCategory().str(), typeText(type),
         schedule::bytesOf(RankedTensorType::get(type.getShape(), type.getElementType())),
         static_cast<int64_t>(buffer.getFirst()), static_cast<int64_t>(buffer.getLast())});
    end = std::max(end, buffers.back().last);
  }
  int64_t most = -1;
  for (int64_t launch = 0; launch <= end; ++launch) {
    int64_t alive = 0;
    for (const Plan::Buffer &buffer : buffers)
      if (buffer.first <= launch && launch <= buffer.last)
        alive += buffer.bytes;
    if (alive > most) {
      most = alive;
      plan.peakLaunch = launch;
    }
  }
  for (Plan::Buffer &buffer : buffers)
    if (buffer.first <= plan.peakLaunch && plan.peakLaunch <= buffer.last)
      plan.largestAtPeak.push_back(std::move(buffer));
  for (auto storage : schedule.getOps<exec::StorageOp>())
    if (storage.getCategory().starts_with("slab.") || storage.getCategory() == "inputs")
      plan.largestAtPeak.push_back({storage.getSymName().str(), storage.getCategory().str(),
                                    typeText(storage.getTensorType()),
                                    schedule::bytesOf(storage.getType()), 0, end});
  llvm::stable_sort(plan.largestAtPeak,
                    [](const auto &a, const auto &b) { return a.bytes > b.bytes; });
  if (plan.largestAtPeak.size() > 10)
    plan.largestAtPeak.resize(10);
}

static void readParameters(Plan &plan, ModuleOp schedule) {
  llvm::StringMap<std::string> copies;
  for (auto storage : schedule.getOps<exec::StorageOp>())
    if (storage.getCategory() == "working")
      copies[storage->getAttrOfType<FlatSymbolRefAttr>("parameter").getValue()] =
          debugString(storage.getTensorType().getElementType());
  for (auto storage : schedule.getOps<exec::StorageOp>()) {
    if (storage.getCategory() != "parameters")
      continue;
    auto group = storage->getAttrOfType<StringAttr>("group");
    plan.parameters.push_back(
        {storage.getSymName().str(), group ? group.str() : "", typeText(storage.getTensorType()),
         copies.lookup(storage.getSymName()),
         storage->getAttrOfType<FloatAttr>("rate_scale").getValueAsDouble(),
         storage->getAttrOfType<FloatAttr>("weight_decay").getValueAsDouble(),
         !storage->hasAttr("frozen"), storage.getTensorType().getNumElements()});
  }
}

/// What the choice of types costs from step to step. Sizes are those of whole slabs, padding
/// included, so that they add up to the memory table's.
static void readKept(Plan &plan, ModuleOp schedule) {
  llvm::MapVector<std::pair<StringRef, Type>, int64_t> slabs; // by category and element type
  int64_t scaling = 0, history = 0;
  bool hasMasters = false;
  for (auto storage : schedule.getOps<exec::StorageOp>()) {
    int64_t bytes = schedule::bytesOf(storage.getType());
    StringRef category = storage.getCategory(), name = storage.getSymName();
    hasMasters |= category == "working";
    if (category.starts_with("slab."))
      slabs[{category, storage.getTensorType().getElementType()}] += bytes;
    else if (category == "optimizer" && !storage->hasAttr("parameter")) {
      if (llvm::is_contained(
              {train::lossScaleState, train::cleanStepsState, train::skippedStepsState}, name))
        scaling += bytes;
      else if (name == train::amaxHistoryState)
        history += bytes;
    }
  }
  for (auto &[key, bytes] : slabs) {
    auto &[category, type] = key;
    std::string what = category.drop_front(5).str(), note;
    if (what == "parameters" && hasMasters) {
      what = "master weights";
      note = "the update reads and writes these; bf16 alone (precision.master = false) saves them";
    } else if (what == "parameters") {
      note = type.isF32() ? "" : "no master weights (precision.master = false)";
    } else if (what == "working") {
      what = "working copies";
      note = "products read these; the update writes them along with the master weights";
    } else if (what == "gradients") {
      note = "of parameters, as they leave the backward pass";
    } else if (what == "optimizer") {
      what = "optimizer state";
      note = type.isF32() ? formatBytes(bytes / 2) + " in bf16 (precision.state)"
                          : "half of what fp32 takes";
    }
    plan.kept.push_back({what, debugString(type), note, bytes});
  }
  if (scaling)
    plan.kept.push_back({"loss scale", "f32, i64", "the scale and its counters", scaling});
  if (history)
    plan.kept.push_back({"fp8 history", "f32",
                         "largest magnitudes of past steps (precision.fp8_history)", history});
}

/// What quantize-products rounds the operands of a product in the forward pass to; empty if
/// nothing.
static std::string quantizedTo(const PrecisionChoice &choice, train::QuantizeAttr quantize) {
  auto fusible = dyn_cast<FusibleOp>(choice.op);
  if (!quantize || choice.overridden || !fusible || !isa<AccumulatingOp>(choice.op) ||
      fusible.getFusionClass() != FusionClass::Contraction)
    return "";
  bool isF32 = !choice.operands || choice.operands.isF32();
  if (quantize.getFormat() == "tf32")
    return isF32 ? "tf32" : "";
  return isF32 ? "" : "f8E4M3FN";
}

FailureOr<std::vector<Plan::Tensor>> readTypes(ModuleOp module) {
  FailureOr<SmallVector<PrecisionChoice>> choices =
      choosePrecision(*module.getOps<nn::ModelOp>().begin());
  if (failed(choices))
    return failure();
  auto quantize = module->getAttrOfType<train::QuantizeAttr>("train.quantize");
  std::vector<Plan::Tensor> tensors;
  for (const PrecisionChoice &choice : *choices) {
    if (isa<nn::ParameterOp>(choice.op)) // the table of parameters has them
      continue;
    for (Value result : choice.op->getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      if (choice.results && isa<FloatType>(type.getElementType()))
        type = type.clone(choice.results);
      std::string operands = choice.operands ? debugString(choice.operands) : "";
      if (std::string format = quantizedTo(choice, quantize); !format.empty())
        operands = format;
      tensors.push_back({nn::sourceName(choice.op), operands, typeText(type), choice.rule});
    }
  }
  return tensors;
}

static void readKernels(Plan &plan, ModuleOp schedule, ModuleOp kernels, exec::ProgramOp step) {
  llvm::MapVector<StringAttr, Plan::Kernel> used;
  for (auto run : step.getBody().getOps<exec::RunOp>()) {
    Plan::Kernel &entry = used[run.getKernelAttr().getAttr()];
    if (entry.launches++)
      continue;
    auto kernel = schedule.lookupSymbol<exec::KernelOp>(run.getKernelAttr());
    KernelCost cost = costOf(kernel);
    entry.name = kernel.getSymName().str();
    entry.kind = kernel.getKind().str();
    if (auto sources = kernel.getSourcesAttr())
      entry.sources = llvm::join(sources.getAsValueRange<StringAttr>(), ", ");
    entry.flops = cost.flops;
    entry.bytes = cost.bytes;
    Operation *function = kernels.lookupSymbol(kernel.getSymName());
    if (function && function->hasAttr(tasksAttrName)) { // a device's kernels have none
      entry.tasks = function->getAttrOfType<IntegerAttr>(tasksAttrName).getInt();
      entry.scratch = function->getAttrOfType<IntegerAttr>(scratchAttrName).getInt();
    }
  }
  for (auto &[name, kernel] : used)
    plan.kernels.push_back(std::move(kernel));
}

Plan makePlan(ModuleOp schedule, ModuleOp kernels) {
  Plan plan;
  readMemory(plan, schedule);
  readParameters(plan, schedule);
  readKept(plan, schedule);
  for (auto program : schedule.getOps<exec::ProgramOp>())
    if (program.getSymName() == "step") {
      readPeak(plan, schedule, program);
      readKernels(plan, schedule, kernels, program);
    }
  for (auto &function : kernels.getOps())
    if (auto scratch = function.getAttrOfType<IntegerAttr>(scratchAttrName))
      plan.memory.threadScratch = std::max(plan.memory.threadScratch, scratch.getInt());
  return plan;
}

Plan makePlan(ModuleOp schedule, ModuleOp kernels, const CudaTarget &cuda, const Cubin *cubin) {
  Plan plan = makePlan(schedule, kernels);
  DeviceMemory behind = deviceMemoryOf(schedule, kernels, cuda);
  plan.memory.deviceWorkspace = behind.workspace;
  plan.memory.deviceStaging = behind.staging;
  // The workspace begins at a multiple of 256 behind the arena (runtime/cuda/DeviceMemory.cpp).
  plan.memory.peak = static_cast<int64_t>(llvm::alignTo(plan.memory.peak, 256)) + behind.workspace +
                     behind.staging;
  plan.memory.lowerBound += behind.workspace + behind.staging;
  plan.device = makeDevicePlan(schedule, kernels, cuda, cubin);
  return plan;
}

static std::string lever(const Plan::Memory &memory) {
  int64_t largest = std::max({memory.parameters, memory.gradients, memory.optimizer,
                              memory.activations, memory.workspace});
  if (largest == memory.activations || largest == memory.workspace)
    return "a smaller batch.size shrinks activations and workspace in proportion";
  if (largest == memory.optimizer)
    return "an optimizer with fewer states (sgd has none or one, adam two)";
  return "a smaller model";
}

std::string printPlan(const Plan &plan) {
  std::string out;
  auto line = [&]<typename... T>(fmt::format_string<T...> format, T &&...arguments) {
    out += fmt::format(format, std::forward<T>(arguments)...) + "\n";
  };
  const Plan::Memory &m = plan.memory;
  line("Memory");
  line("  {:<14}{:>12}", "parameters", formatBytes(m.parameters));
  line("  {:<14}{:>12}", "gradients", formatBytes(m.gradients));
  line("  {:<14}{:>12}", "optimizer", formatBytes(m.optimizer));
  line("  {:<14}{:>12}", "activations", formatBytes(m.activations));
  line("  {:<14}{:>12}", "workspace", formatBytes(m.workspace));
  if (plan.device) {
    line("  {:<14}{:>12}   of the device: kernels and the library of products share it", "scratch",
         formatBytes(m.deviceWorkspace));
    line("  {:<14}{:>12}   of the device: the next batches", "staging",
         formatBytes(m.deviceStaging));
  }
  line("  {:<14}{:>12}   no placement can go below {}", "peak", formatBytes(m.peak),
       formatBytes(m.lowerBound));
  if (!plan.device)
    line("  {:<14}{:>12}   besides, for each thread", "scratch", formatBytes(m.threadScratch));
  line("  To shrink the largest part: {}.", lever(m));
  line("\nLargest at the peak (launch {})", plan.peakLaunch);
  line("  {:>12}  {:<18}{:<22}{:<14}{}", "size", "category", "type", "launches", "source");
  for (const auto &b : plan.largestAtPeak)
    line("  {:>12}  {:<18}{:<22}{:<14}{}", formatBytes(b.bytes), b.category, b.type,
         fmt::format("{} - {}", b.first, b.last), b.source);

  int64_t total = 0;
  for (const auto &p : plan.parameters)
    total += p.elements;
  line("\nParameters ({} tensors, {} values)", plan.parameters.size(), total);
  line("  {:<28}{:<18}{:<7}{:<14}{:>10}{:>10}", "name", "type", "copy", "group", "lr scale",
       "decay");
  for (const auto &p : plan.parameters)
    line("  {:<28}{:<18}{:<7}{:<14}{:>10}{:>10}", p.name, p.shape, p.copy,
         p.trainable ? p.group : "frozen", p.rateScale, p.weightDecay);

  line("\nKept from step to step");
  line("  {:<18}{:<10}{:>12}", "", "type", "size");
  for (const auto &k : plan.kept)
    line("  {:<18}{:<10}{:>12}{}{}", k.what, k.type, formatBytes(k.bytes),
         k.note.empty() ? "" : "   ", k.note);

  auto isWide = [](const Plan::Tensor &tensor) {
    auto isNarrow = [](StringRef type) {
      return type.starts_with("bf16") || type.starts_with("f16") || type.starts_with("tf32");
    };
    return !isNarrow(tensor.type) && !isNarrow(tensor.operands);
  };
  if (!plan.tensors.empty() && llvm::all_of(plan.tensors, isWide)) {
    line("\nTypes: every float tensor of the model is f32");
  } else if (!plan.tensors.empty()) {
    line("\nTypes (forward pass)");
    line("  {:<44}{:<10}{:<24}{}", "tensor", "operands", "type", "rule");
    for (const auto &t : plan.tensors)
      line("  {:<44}{:<10}{:<24}{}", t.source, t.operands, t.type, t.rule);
    line("  The backward pass runs in the same types, op by op{}.",
         llvm::any_of(plan.tensors, [](const auto &t) { return t.operands == "f8E4M3FN"; })
             ? ", with gradients that enter products in f8E5M2"
             : "");
  }

  if (plan.device)
    return out + printDevicePlan(*plan.device);
  line("\nKernels of a step");
  line("  {:<44}{:<10}{:>8}{:>7}{:>12}{:>12}  {}", "name", "kind", "launches", "tasks", "MFLOP",
       "MB", "holds");
  double flops = 0.0, bytes = 0.0;
  int64_t launches = 0;
  for (const auto &k : plan.kernels) {
    auto n = static_cast<double>(k.launches);
    flops += n * k.flops;
    bytes += n * k.bytes;
    launches += k.launches;
    line("  {:<44}{:<10}{:>8}{:>7}{:>12.2f}{:>12.2f}  {}", k.name, k.kind, k.launches, k.tasks,
         k.flops / 1e6, k.bytes / 1e6, k.sources);
  }
  line("  {:<54}{:>8}{:>7}{:>12.2f}{:>12.2f}", "in all", launches, "", flops / 1e6, bytes / 1e6);
  return out;
}

std::string printPlanJson(const Plan &plan) {
  using nlohmann::ordered_json;
  ordered_json json;
  const Plan::Memory &m = plan.memory;
  json["memory"] = {{"peak_bytes", m.peak},
                    {"lower_bound_bytes", m.lowerBound},
                    {"parameters_bytes", m.parameters},
                    {"gradients_bytes", m.gradients},
                    {"optimizer_bytes", m.optimizer},
                    {"activations_bytes", m.activations},
                    {"workspace_bytes", m.workspace},
                    {"thread_scratch_bytes", m.threadScratch}};
  if (plan.device)
    json["memory"].update({{"arena_bytes", m.arena},
                           {"device_workspace_bytes", m.deviceWorkspace},
                           {"device_staging_bytes", m.deviceStaging}});
  json["largest_at_peak"] = ordered_json::array();
  for (const auto &b : plan.largestAtPeak)
    json["largest_at_peak"].push_back({{"source", b.source},
                                       {"category", b.category},
                                       {"type", b.type},
                                       {"bytes", b.bytes},
                                       {"first_launch", b.first},
                                       {"last_launch", b.last}});
  json["parameters"] = ordered_json::array();
  for (const auto &p : plan.parameters)
    json["parameters"].push_back({{"name", p.name},
                                  {"type", p.shape},
                                  {"working_copy", p.copy},
                                  {"elements", p.elements},
                                  {"group", p.group},
                                  {"lr_scale", p.rateScale},
                                  {"weight_decay", p.weightDecay},
                                  {"trainable", p.trainable}});
  json["kept"] = ordered_json::array();
  for (const auto &k : plan.kept)
    json["kept"].push_back(
        {{"what", k.what}, {"type", k.type}, {"bytes", k.bytes}, {"note", k.note}});
  json["tensors"] = ordered_json::array();
  for (const auto &t : plan.tensors)
    json["tensors"].push_back(
        {{"source", t.source}, {"operands", t.operands}, {"type", t.type}, {"rule", t.rule}});
  if (plan.device) {
    addDeviceJson(json, *plan.device);
    return json.dump(2) + "\n";
  }
  json["kernels"] = ordered_json::array();
  for (const auto &k : plan.kernels)
    json["kernels"].push_back({{"name", k.name},
                               {"kind", k.kind},
                               {"sources", k.sources},
                               {"launches", k.launches},
                               {"tasks", k.tasks},
                               {"scratch_bytes", k.scratch},
                               {"flops", k.flops},
                               {"bytes", k.bytes}});
  return json.dump(2) + "\n";
}

} // namespace descent
