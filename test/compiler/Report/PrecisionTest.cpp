//===- PrecisionTest.cpp - What the precision report advises --------------===//
//
// The numbers are made up, so that each sentence has its case; test/train/precision-verify.sh has
// real ones.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Precision.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace descent;

namespace {

const nn::FloatFormat half{10, -14, 65504.0, true};

PrecisionReport reportOf(const std::string &compute, const std::string &lossScale, double scale) {
  PrecisionReport report;
  report.compute = compute;
  report.narrowType = compute == "fp8" ? "bf16" : compute == "fp32" ? "" : compute;
  report.lossScale = lossScale;
  report.scale = report.scaleUsed = scale;
  report.gradients = {{"w", 4, 1e-7, 1e-3, 2e-3}, {"b", 2, 1e-7, 5e-3, 2e-3}};
  return report;
}

void addRange(PrecisionReport &report, const std::vector<double> &gradients) {
  std::vector<double> scales{1.0};
  for (double scale : {report.scaleUsed, report.scale})
    if (scale != scales.back())
      scales.push_back(scale);
  report.range.emplace(half, scales);
  report.range->add(gradients);
}

bool says(const std::vector<std::string> &advice, const std::string &part) {
  for (const std::string &sentence : advice)
    if (sentence.find(part) != std::string::npos)
      return true;
  for (const std::string &sentence : advice)
    ADD_FAILURE() << "'" << part << "' is not in: " << sentence;
  return false;
}

TEST(PrecisionAdvice, Fp16WithoutAScaleThatLoses) {
  PrecisionReport report = reportOf("fp16", "none", 4.0);
  addRange(report, {1e-9, 1e-9, 1e-3, 1e-2});
  auto advice = advisePrecision(report);
  EXPECT_TRUE(says(advice, "as a scale of 4 does, and loses 50.0 % of gradient elements to zero"));
  EXPECT_TRUE(says(advice, "set precision.loss_scale = \"dynamic\", or 262144"));
  EXPECT_TRUE(says(advice, "that of 'b': 5.0e-03 off"));
}

TEST(PrecisionAdvice, Fp16WithoutAScaleThatKeepsOrOverflows) {
  PrecisionReport report = reportOf("fp16", "none", 4.0);
  addRange(report, {1e-3, 1e-2});
  EXPECT_TRUE(says(advisePrecision(report), "little on these inputs"));
  addRange(report, {1e-3, 1e5});
  EXPECT_TRUE(says(advisePrecision(report), "overflows 50.0 % of gradient elements"));
}

TEST(PrecisionAdvice, StaticScales) {
  PrecisionReport fits = reportOf("fp16", "1024", 1024.0);
  addRange(fits, {1e-5, 1e-2});
  EXPECT_TRUE(says(advisePrecision(fits), "The loss scale 1024 fits"));
  PrecisionReport overflows = reportOf("fp16", "1048576", 1048576.0);
  addRange(overflows, {1e-5, 1.0});
  EXPECT_TRUE(says(advisePrecision(overflows), "overflows 50.0 %"));
  EXPECT_TRUE(says(advisePrecision(overflows), "to 2048 or less"));
  PrecisionReport tooSmall = reportOf("fp16", "2", 2.0);
  addRange(tooSmall, {1e-9, 1e-2});
  EXPECT_TRUE(says(advisePrecision(tooSmall), "262144 would lose 0 %"));
}

TEST(PrecisionAdvice, DynamicScales) {
  PrecisionReport report = reportOf("fp16", "dynamic", 65536.0);
  addRange(report, {1e-9, 1e-2});
  EXPECT_TRUE(says(advisePrecision(report), "fits where it starts, at 65536"));
  report.skipped = 2;
  report.scaleUsed = 16384.0;
  addRange(report, {1e-9, 3.0});
  EXPECT_TRUE(says(advisePrecision(report), "skips 2 steps until it fits, at 16384"));
}

TEST(PrecisionAdvice, TypesThatNeedNoScale) {
  EXPECT_TRUE(says(advisePrecision(reportOf("bf16", "none", 1.0)),
                   "bf16 has the exponent range of fp32: no loss scale is needed."));
  EXPECT_TRUE(says(advisePrecision(reportOf("bf16", "8", 8.0)), "can be removed"));
  EXPECT_TRUE(says(advisePrecision(reportOf("fp8", "none", 1.0)), "a scale of its own"));
  EXPECT_TRUE(says(advisePrecision(reportOf("fp32", "none", 1.0)), "nothing is narrowed"));
}

TEST(PrecisionAdvice, InaccurateAndOverflowingGradientsAreNamed) {
  PrecisionReport report = reportOf("bf16", "none", 1.0);
  report.gradients[0].recipe = 0.3;
  EXPECT_TRUE(says(advisePrecision(report), "that of 'w': 3.0e-01 off; [[precision.override]]"));
  report.gradients[1].recipe = INFINITY;
  EXPECT_TRUE(says(advisePrecision(report), "The gradient of 'b' overflows"));
}

TEST(PrecisionText, OverflowIsAWordAndNullInJson) {
  PrecisionReport report = reportOf("fp16", "1024", 1024.0);
  addRange(report, {1e-9, 1e-2});
  report.gradients[0].castAll = INFINITY;
  EXPECT_NE(printPrecisionReport(report).find("overflow"), std::string::npos);
  std::string json = precisionReportJson(report);
  EXPECT_NE(json.find("\"cast_all\": null"), std::string::npos) << json;
  EXPECT_NE(json.find("\"recommended_scale\": 262144.0"), std::string::npos) << json;
}

} // namespace
