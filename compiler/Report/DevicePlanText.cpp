//===- DevicePlanText.cpp - The device's plan as text and JSON ------------===//

#include "compiler/Report/DevicePlan.h"
#include "compiler/Report/Plan.h"
#include "llvm/ADT/STLExtras.h"

#define FMT_HEADER_ONLY
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace descent {

static std::string microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

/// "64", "64x12" or "64x12x2".
static std::string sizes(const std::array<int64_t, 3> &size) {
  std::string text = std::to_string(size[0]);
  if (size[1] != 1 || size[2] != 1)
    text += "x" + std::to_string(size[1]);
  if (size[2] != 1)
    text += "x" + std::to_string(size[2]);
  return text;
}

static std::string functionLine(const DevicePlan::Function &function) {
  std::string registers = "?", spills = "?", occupancy = "?", waves = "?";
  int64_t shared = function.dynamicShared;
  if (function.resources) {
    const DeviceResources &r = *function.resources;
    registers = std::to_string(r.registers);
    spills = std::to_string(r.spillStores + r.spillLoads);
    shared += r.shared;
  }
  if (function.occupancy) {
    const Occupancy &o = *function.occupancy;
    occupancy = o.blocks ? fmt::format("{:.0f} % ({} blocks, {})", 100 * o.share, o.blocks,
                                       nameOf(o.limit).str())
                         : "cannot be launched: too much " + nameOf(o.limit).str();
    waves = fmt::format("{:.2f}", function.waves);
  }
  return fmt::format("    {:<48}{:>14}{:>7}{:>6}{:>9}{:>8}{:>8}  {}{}", function.name,
                     sizes(function.grid), sizes(function.block), registers, shared, spills, waves,
                     occupancy, function.isFallback ? "; only without the library" : "");
}

static std::string productLine(const DevicePlan::Product &p) {
  std::string batch = p.batch > 1 ? fmt::format("{} of ", p.batch) : "";
  std::string types = p.a == p.b ? p.a : p.a + ", " + p.b;
  return fmt::format("    library: {}{} x {} x {}{}, {} to {}{}{}{}", batch, p.m, p.n, p.k,
                     p.transposeA || p.transposeB ? fmt::format(" ({}{})", p.transposeA ? "t" : "n",
                                                                p.transposeB ? "t" : "n")
                                                  : "",
                     types, p.d, p.epilogue == "none" ? "" : ", " + p.epilogue,
                     p.accumulate ? ", accumulates" : "",
                     p.isAligned ? "" : "; rows are not aligned to 16 bytes");
}

static void printKernels(std::string &out, const DevicePlan &plan) {
  auto line = [&]<typename... T>(fmt::format_string<T...> format, T &&...arguments) {
    out += fmt::format(format, std::forward<T>(arguments)...) + "\n";
  };
  line(
      "\nKernels of a step for {} (one launch; times in microseconds, commands with {:.1f} between "
      "them not counted)",
      plan.cuda.chip, commandGap * 1e6);
  line("  {:<50}{:<15}{:>8}{:>12}{:>10}{:>6}{:>10}{:>10}  {:<11}{}", "name", "kind", "launches",
       "MFLOP", "MB", "type", "roofline", "expected", "bound by", "holds");
  line("    {:<48}{:>14}{:>7}{:>6}{:>9}{:>8}{:>8}  {}", "function", "grid", "block", "regs",
       "shared B", "spill B", "waves", "warps of a multiprocessor (limit)");
  for (const DevicePlan::Kernel &k : plan.kernels) {
    line("  {:<50}{:<15}{:>8}{:>12.2f}{:>10.2f}{:>6}{:>10}{:>10}  {:<11}{}", k.name, k.kind,
         k.launches, k.flops / 1e6, k.bytes / 1e6, k.rate, microseconds(k.roofline),
         microseconds(k.expected), k.isMemoryBound ? "memory" : "arithmetic", k.sources);
    for (const DevicePlan::Product &product : k.products)
      line("{}", productLine(product));
    for (const DevicePlan::Function &function : k.functions)
      line("{}", functionLine(function));
    if (k.fills)
      line("    {} fill{}", k.fills, k.fills == 1 ? "" : "s");
  }
  if (!plan.noResources.empty())
    line("  Registers, spills, static shared memory and warps are not known: {}.",
         plan.noResources);
}

std::string printDevicePlan(const DevicePlan &plan) {
  std::string out;
  auto line = [&]<typename... T>(fmt::format_string<T...> format, T &&...arguments) {
    out += fmt::format(format, std::forward<T>(arguments)...) + "\n";
  };
  printKernels(out, plan);
  const CudaTarget &c = plan.cuda;
  line("\nTime of a step: predicted for {} ({} multiprocessors, {:.2f} TB/s, f32 {:.0f}, tf32 "
       "{:.0f}, bf16 {:.0f} TFLOP/s); nothing here is measured",
       c.product, c.multiprocessors, c.memoryBandwidth / 1e12, c.f32Flops / 1e12,
       c.tf32Flops / 1e12, c.halfFlops / 1e12);
  line("  {:<16}{:>9}{:>10}{:>12}{:>11}{:>13}{:>13}   {}", "class", "launches", "commands", "GFLOP",
       "GB", "roofline ms", "expected ms", "assumes of arithmetic, of bandwidth");
  for (const auto &[name, sum] : plan.classes)
    line("  {:<16}{:>9}{:>10}{:>12.2f}{:>11.3f}{:>13.3f}{:>13.3f}   {:.0f} %, {:.0f} %", name,
         sum.launches, sum.commands, sum.flops / 1e9, sum.bytes / 1e9, sum.roofline * 1e3,
         sum.expected * 1e3, 100 * sum.assumed.rate, 100 * sum.assumed.bandwidth);
  const DevicePlan::Step &step = plan.step;
  line("  {:<16}{:>9}{:>10}{:>12}{:>11}{:>13.3f}{:>13.3f}   {:.1f} us a command of the graph",
       "gaps", "", step.commands, "", "", step.gaps * 1e3, step.gaps * 1e3, commandGap * 1e6);
  line("  {:<58}{:>13.3f}{:>13.3f}", "in all", step.roofline * 1e3, step.expected * 1e3);
  if (step.items)
    line("  {:<58}{:>13.0f}{:>13.0f}", step.areTokens ? "tokens a second" : "samples a second",
         static_cast<double>(step.items) / step.roofline,
         static_cast<double>(step.items) / step.expected);
  if (step.peakFlops > 0.0)
    line("  {:<58}{:>12.1f}%{:>12.1f}%   {:.2f} GFLOP of products, convolutions and attention",
         "share of the dense " + step.peakType + " peak",
         100 * step.modelFlops / step.roofline / step.peakFlops,
         100 * step.modelFlops / step.expected / step.peakFlops, step.modelFlops / 1e9);
  line("  {:<58}{:>13}{:>13.2f}   that sum is {:.3f} ms",
       "step over (library's products + other bytes / bandwidth)", "", step.expected / step.floor,
       step.floor * 1e3);
  return out;
}

static ordered_json functionJson(const DevicePlan::Function &function) {
  ordered_json json{
      {"name", function.name},         {"grid", function.grid},
      {"block", function.block},       {"threads", function.threads()},
      {"blocks", function.blocks()},   {"dynamic_shared_bytes", function.dynamicShared},
      {"operands", function.operands}, {"fallback", function.isFallback}};
  if (function.resources) {
    const DeviceResources &r = *function.resources;
    json["registers"] = r.registers;
    json["static_shared_bytes"] = r.shared;
    json["stack_bytes"] = r.stack;
    json["spill_store_bytes"] = r.spillStores;
    json["spill_load_bytes"] = r.spillLoads;
  }
  if (function.occupancy) {
    const Occupancy &o = *function.occupancy;
    json["occupancy"] = {{"blocks", o.blocks},
                         {"warps", o.warps},
                         {"share", o.share},
                         {"limit", nameOf(o.limit).str()}};
    json["waves"] = function.waves;
  }
  return json;
}

static ordered_json productJson(const DevicePlan::Product &p) {
  return {{"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"batch", p.batch},
          {"transpose_a", p.transposeA},
          {"transpose_b", p.transposeB},
          {"accumulate", p.accumulate},
          {"a", p.a},
          {"b", p.b},
          {"d", p.d},
          {"compute", p.compute},
          {"epilogue", p.epilogue},
          {"rows_aligned", p.isAligned},
          {"flops", p.flops},
          {"bytes", p.bytes},
          {"roofline_us", p.roofline * 1e6},
          {"expected_us", p.expected * 1e6}};
}

void addDeviceJson(ordered_json &json, const DevicePlan &plan) {
  const CudaTarget &c = plan.cuda;
  json["device"] = {{"target", c.name()},
                    {"chip", c.chip},
                    {"product", c.product},
                    {"multiprocessors", c.multiprocessors},
                    {"bandwidth", c.memoryBandwidth},
                    {"f32_flops", c.f32Flops},
                    {"tf32_flops", c.tf32Flops},
                    {"half_flops", c.halfFlops},
                    {"f8_flops", c.f8Flops}};
  if (plan.noResources.empty())
    json["device"]["resources"] = "ptxas";
  else
    json["device"]["no_resources"] = plan.noResources;

  json["kernels"] = ordered_json::array();
  for (const DevicePlan::Kernel &k : plan.kernels) {
    ordered_json kernel{{"name", k.name},
                        {"kind", k.kind},
                        {"sources", k.sources},
                        {"launches", k.launches},
                        {"commands", k.commands},
                        {"fills", k.fills},
                        {"flops", k.flops},
                        {"bytes", k.bytes},
                        {"class", k.timeClass},
                        {"rate", k.rate},
                        {"bound", k.isMemoryBound ? "memory" : "arithmetic"},
                        {"roofline_us", k.roofline * 1e6},
                        {"expected_us", k.expected * 1e6},
                        {"functions", ordered_json::array()},
                        {"products", ordered_json::array()}};
    for (const DevicePlan::Function &function : k.functions)
      kernel["functions"].push_back(functionJson(function));
    for (const DevicePlan::Product &product : k.products)
      kernel["products"].push_back(productJson(product));
    json["kernels"].push_back(std::move(kernel));
  }

  const DevicePlan::Step &step = plan.step;
  ordered_json classes = ordered_json::array();
  for (const auto &[name, sum] : plan.classes)
    classes.push_back({{"class", name},
                       {"launches", sum.launches},
                       {"commands", sum.commands},
                       {"flops", sum.flops},
                       {"bytes", sum.bytes},
                       {"roofline_ms", sum.roofline * 1e3},
                       {"expected_ms", sum.expected * 1e3},
                       {"assumed_rate_share", sum.assumed.rate},
                       {"assumed_bandwidth_share", sum.assumed.bandwidth}});
  json["step"] = {{step.areTokens ? "tokens" : "samples", step.items},
                  {"commands", step.commands},
                  {"gaps_ms", step.gaps * 1e3},
                  {"roofline_ms", step.roofline * 1e3},
                  {"expected_ms", step.expected * 1e3},
                  {"floor_ms", step.floor * 1e3},
                  {"model_flops", step.modelFlops},
                  {"peak_type", step.peakType},
                  {"peak_flops", step.peakFlops},
                  {"expected_peak_share",
                   step.peakFlops > 0.0 ? step.modelFlops / step.expected / step.peakFlops : 0.0},
                  {"classes", std::move(classes)}};
}

} // namespace descent
