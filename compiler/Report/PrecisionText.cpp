//===- PrecisionText.cpp - The precision report as text and JSON ----------===//
//
// Thresholds of the advice are stated once, here. They are about what a user would act on: a
// thousandth of the gradient elements lost, a gradient that is wrong by a tenth.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Precision.h"

#include "llvm/ADT/STLExtras.h"

#define FMT_HEADER_ONLY
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace descent::reference;

namespace descent {

constexpr double tooManyLost = 1e-3, tooInaccurate = 0.1;

static std::string percent(double share) {
  if (share == 0.0)
    return "0 %";
  if (share < 5e-5)
    return "< 0.01 %";
  return fmt::format("{:.{}f} %", 100.0 * share, share < 0.0995 ? 2 : share < 0.9995 ? 1 : 0);
}

static std::string number(double scale) { return fmt::format("{:.10g}", scale); }

/// The share that rounds to zero at a power of two, from the histogram: below half the least
/// subnormal. (Exactly half rounds to zero as well; single values do not matter to a share.)
static double lostShare(const GradientRange &range, double scale) {
  const int half = std::ilogb(range.format().leastSubnormal()) - 1;
  int64_t lost = 0;
  for (auto [exponent, count] : range.exponents())
    if (exponent + std::ilogb(scale) < half)
      lost += count;
  return range.share(lost);
}

static const RangeCount &countAt(const GradientRange &range, double scale) {
  return *llvm::find_if(range.counts(),
                        [&](const RangeCount &count) { return count.scale == scale; });
}

//===----------------------------------------------------------------------===//
// Advice
//===----------------------------------------------------------------------===//

static std::string adviseUnscaled(const GradientRange &range, const PrecisionReport &report) {
  const RangeCount &count = countAt(range, report.scaleUsed);
  double lost = range.share(count.lost), recommended = range.recommendedScale();
  std::string start =
      fmt::format("fp16 without a loss scale starts the backward pass from the sum of "
                  "the losses, as a scale of {} does, and ",
                  number(report.scaleUsed));
  std::string remedy = fmt::format("set precision.loss_scale = \"dynamic\", or {} to keep it fixed "
                                   "(loses {}, and leaves a factor of 16 to overflow).",
                                   number(recommended), percent(lostShare(range, recommended)));
  if (count.overflowing > 0)
    return start +
           fmt::format("overflows {} of gradient elements: every step would be skipped; ",
                       percent(range.share(count.overflowing))) +
           remedy;
  if (lost >= tooManyLost)
    return start +
           fmt::format("loses {} of gradient elements to zero{}; ", percent(lost),
                       count.subnormal > 0 ? fmt::format(" and keeps {} with fewer bits",
                                                         percent(range.share(count.subnormal)))
                                           : std::string()) +
           remedy;
  return start + fmt::format("loses {} of gradient elements to zero: little on these inputs, but "
                             "gradients shrink as training goes on; precision.loss_scale = "
                             "\"dynamic\" guards against that.",
                             percent(lost));
}

static std::string adviseStatic(const GradientRange &range, double scale) {
  const RangeCount &count = countAt(range, scale);
  double lost = range.share(count.lost), recommended = range.recommendedScale();
  if (count.overflowing > 0)
    return fmt::format("The loss scale {} overflows {} of gradient elements, and one is enough to "
                       "skip the step; set precision.loss_scale to {} or less, or to \"dynamic\".",
                       number(scale), percent(range.share(count.overflowing)), number(recommended));
  if (lost >= tooManyLost && recommended > scale)
    return fmt::format("The loss scale {} loses {} of gradient elements to zero; {} would lose {} "
                       "and leave a factor of 16 to overflow.",
                       number(scale), percent(lost), number(recommended),
                       percent(lostShare(range, recommended)));
  return fmt::format("The loss scale {} fits: it loses {} of gradient elements to zero, and the "
                     "largest is {:.2g} times below overflow.",
                     number(scale), percent(lost),
                     range.format().largest / (range.largest() * scale));
}

static std::string adviseDynamic(const GradientRange &range, const PrecisionReport &report) {
  const RangeCount &count = countAt(range, report.scaleUsed);
  std::string text =
      report.skipped == 0
          ? fmt::format("The dynamic loss scale fits where it starts, at {}", number(report.scale))
          : fmt::format("The dynamic loss scale starts at {} and skips {} step{} until it fits, at "
                        "{}",
                        number(report.scale), report.skipped, report.skipped == 1 ? "" : "s",
                        number(report.scaleUsed));
  text +=
      fmt::format(": {} of gradient elements are lost to zero (at scale 1 {}).",
                  percent(range.share(count.lost)), percent(range.share(countAt(range, 1.0).lost)));
  if (count.overflowing > 0)
    text += fmt::format(" At its floor {} still overflow: no scale fits this model, and it would "
                        "not train; bf16 has the range.",
                        percent(range.share(count.overflowing)));
  return text;
}

static std::string adviseScale(const PrecisionReport &report) {
  if (report.range && report.range->elements() > 0) {
    if (report.lossScale == "none")
      return adviseUnscaled(*report.range, report);
    return report.lossScale == "dynamic" ? adviseDynamic(*report.range, report)
                                         : adviseStatic(*report.range, report.scale);
  }
  if (report.narrowType.empty() || report.compute == "fp32")
    return report.narrowType.empty() && report.compute == "fp32"
               ? "fp32: nothing is narrowed; --set precision.compute=bf16 (or fp16) shows what "
                 "that "
                 "would cost."
               : "No gradient is rounded to fp16: no loss scale is needed.";
  std::string needless = report.lossScale == "none" ? "" : "; precision.loss_scale can be removed";
  if (report.compute == "fp8")
    return "fp8: every operand of a product has a scale of its own, and the rest is bf16 with the "
           "exponent range of fp32: no loss scale is needed" +
           needless + ".";
  return report.narrowType + " has the exponent range of fp32: no loss scale is needed" + needless +
         ".";
}

std::vector<std::string> advisePrecision(const PrecisionReport &report) {
  std::vector<std::string> advice{adviseScale(report)};
  if (report.gradients.empty() || (report.narrowType.empty() && report.compute == "fp32"))
    return advice;
  const PrecisionErrors &worst = *llvm::max_element(
      report.gradients, [](const auto &a, const auto &b) { return a.recipe < b.recipe; });
  if (std::isinf(worst.recipe))
    advice.push_back(fmt::format("The gradient of '{}' overflows.", worst.name));
  else
    advice.push_back(fmt::format(
        "The least accurate gradient is that of '{}': {:.1e} off{}.", worst.name, worst.recipe,
        worst.recipe >= tooInaccurate ? "; [[precision.override]] with op or match and type = "
                                        "\"fp32\" widens ops on its way, "
                                        "`descent plan` lists their types"
                                      : ""));
  return advice;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string error(double value) {
  return std::isinf(value) ? "overflow" : fmt::format("{:.1e}", value);
}

static std::string line(const PrecisionErrors &errors, bool isNarrow) {
  std::string text = fmt::format("{:<34}{:>12}{:>12}{:>12}", errors.name,
                                 errors.name == "loss" ? "" : std::to_string(errors.elements),
                                 error(errors.fp32), error(errors.recipe));
  return text + (isNarrow ? fmt::format("{:>16}\n", error(errors.castAll)) : "\n");
}

/// What becomes of most elements of a group at a scale.
static const char *fate(const GradientRange &range, int first, int last, double scale) {
  const nn::FloatFormat &format = range.format();
  int64_t lost = 0, subnormal = 0, overflowing = 0, fine = 0;
  for (auto it = range.exponents().lower_bound(first);
       it != range.exponents().end() && it->first <= last; ++it) {
    double least = std::ldexp(scale, it->first); // the group's magnitudes are at least this
    int64_t &kind = 2.0 * least <= format.leastSubnormal() / 2.0 ? lost
                    : least < format.leastNormal()               ? subnormal
                    : least > format.largest                     ? overflowing
                                                                 : fine;
    kind += it->second;
  }
  int64_t most = std::max({lost, subnormal, overflowing, fine});
  return most == 0             ? ""
         : most == lost        ? "lost"
         : most == subnormal   ? "fewer bits"
         : most == overflowing ? "overflow"
                               : "kept";
}

static std::string printRange(const GradientRange &range, const PrecisionReport &report) {
  auto nameOf = [&](const RangeCount &count) {
    return report.lossScale == "none" && count.scale == report.scaleUsed
               ? std::string("no scale")
               : "scale " + number(count.scale);
  };
  std::string text =
      fmt::format("\ngradients that are rounded to fp16: {} elements besides {} exact zeros; "
                  "magnitudes at scale 1, of the mean loss\n",
                  range.elements(), range.zeros());
  if (range.elements() == 0)
    return text;
  int first = range.exponents().begin()->first, last = range.exponents().rbegin()->first;
  constexpr int mostRows = 20;
  int width = 1;
  while ((last - first) / width >= mostRows)
    width *= 2;
  int64_t fullest = 0;
  std::vector<std::pair<int, int64_t>> groups;
  auto floorTo = [&](int e) { return e - ((e % width) + width) % width; };
  for (int start = floorTo(first); start <= last; start += width) {
    int64_t count = 0;
    for (int e = start; e < start + width; ++e)
      if (auto found = range.exponents().find(e); found != range.exponents().end())
        count += found->second;
    groups.emplace_back(start, count);
    fullest = std::max(fullest, count);
  }
  text += fmt::format("{:>16}{:>10}  {:<26}", "from", "share", "");
  for (const RangeCount &count : range.counts())
    text += fmt::format("{:>16}", nameOf(count));
  text += "\n";
  for (auto [start, count] : groups) {
    constexpr double longest = 24.0;
    std::string bar(static_cast<size_t>(std::ceil(longest * static_cast<double>(count) /
                                                  static_cast<double>(fullest))),
                    '#');
    text += fmt::format("{:>16}{:>10}  {:<26}", fmt::format("2^{}", start),
                        percent(range.share(count)), bar);
    for (const RangeCount &at : range.counts())
      text += fmt::format("{:>16}", fate(range, start, start + width - 1, at.scale));
    text += "\n";
  }
  for (const RangeCount &count : range.counts())
    text += fmt::format("{}: {} lost to zero, {} with fewer bits, {} overflow\n", nameOf(count),
                        percent(range.share(count.lost)), percent(range.share(count.subnormal)),
                        percent(range.share(count.overflowing)));
  return text;
}

std::string printPrecisionReport(const PrecisionReport &report) {
  bool isNarrow = !report.narrowType.empty();
  std::string text =
      fmt::format("{:<34}{:>12}{:>12}{:>12}", "error against double", "elements", "fp32", "recipe");
  text += isNarrow ? fmt::format("{:>16}\n", "all in " + report.narrowType) : "\n";
  text += line(report.loss, isNarrow) + "\n";
  for (const PrecisionErrors &errors : report.gradients)
    text += line(errors, isNarrow);
  if (report.range)
    text += printRange(*report.range, report);
  text += "\n";
  for (const std::string &sentence : report.advice)
    text += sentence + "\n";
  return text;
}

std::string precisionReportJson(const PrecisionReport &report) {
  using nlohmann::json;
  bool isNarrow = !report.narrowType.empty();
  // JSON has no infinity: what overflowed is null.
  auto finite = [](double value) { return std::isfinite(value) ? json(value) : json(); };
  auto errorsOf = [&](const PrecisionErrors &errors) {
    json entry{{"fp32", finite(errors.fp32)}, {"recipe", finite(errors.recipe)}};
    if (isNarrow)
      entry["cast_all"] = finite(errors.castAll);
    return entry;
  };
  json root{{"compute", report.compute},      {"loss_scale", report.lossScale},
            {"scale", report.scale},          {"skipped_steps", report.skipped},
            {"scale_used", report.scaleUsed}, {"loss", errorsOf(report.loss)},
            {"gradients", json::array()},     {"advice", report.advice}};
  if (isNarrow)
    root["narrow_type"] = report.narrowType;
  for (const PrecisionErrors &errors : report.gradients) {
    json entry = errorsOf(errors);
    entry["name"] = errors.name;
    entry["elements"] = errors.elements;
    root["gradients"].push_back(entry);
  }
  if (report.range) {
    const GradientRange &range = *report.range;
    json exponents = json::object(), counts = json::array();
    for (auto [exponent, count] : range.exponents())
      exponents[std::to_string(exponent)] = count;
    for (const RangeCount &count : range.counts())
      counts.push_back({{"scale", count.scale},
                        {"lost", count.lost},
                        {"subnormal", count.subnormal},
                        {"overflowing", count.overflowing}});
    root["range"] = {{"elements", range.elements()},
                     {"zeros", range.zeros()},
                     {"largest", range.largest()},
                     {"exponents", exponents},
                     {"at", counts},
                     {"recommended_scale", range.recommendedScale()}};
  }
  return root.dump(2) + "\n";
}

} // namespace descent
