//===- MetricsTest.cpp - Lines of metrics and what is cut off on resuming -------------------===//
#include "runtime/trainer/Metrics.h"
#include "runtime/trainer/Progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include <unistd.h>

using namespace descent;

static std::string lineOf(const StepMetrics &metrics) {
  char buffer[1024];
  return std::string(buffer, formatMetrics(metrics, buffer, sizeof buffer));
}

static StepMetrics stepNumber(int64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = 2.5f;
  metrics.learningRate = 3e-4f;
  metrics.gradientNorm = 0.1f;
  metrics.stepMilliseconds = 1.25;
  metrics.itemsPerSecond = 1000;
  return metrics;
}

TEST(Metrics, OneObjectOnOneLine) {
  StepMetrics metrics = stepNumber(7);
  EXPECT_EQ(lineOf(metrics), "{\"step\":7,\"loss\":2.5,\"lr\":0.0003,\"grad_norm\":0.1,\"step_ms\":"
                             "1.250,\"samples_per_second\":1000.0}\n");
  Validation validation{1.5, 0.25};
  metrics.validation = &validation;
  metrics.itemsAreTokens = true;
  metrics.skipped = 2;
  EXPECT_EQ(lineOf(metrics),
            "{\"step\":7,\"loss\":2.5,\"lr\":0.0003,\"grad_norm\":0.1,\"step_ms\":1.250,\"tokens_"
            "per_second\":1000.0,"
            "\"skipped\":2,\"validation_loss\":1.5,\"validation_accuracy\":0.25}\n");
}

// With a loss scale, "no step was skipped" is news too.
TEST(Metrics, ScaledRunsSayScaleAndSkips) {
  StepMetrics metrics = stepNumber(7);
  metrics.lossScale = 65536.0f;
  EXPECT_NE(lineOf(metrics).find(",\"loss_scale\":65536,\"skipped\":0}"), std::string::npos)
      << lineOf(metrics);
  metrics.lossScale = 0.5f;
  metrics.skipped = 3;
  EXPECT_NE(lineOf(metrics).find(",\"loss_scale\":0.5,\"skipped\":3}"), std::string::npos);
}

// JSON has no NaN.
TEST(Metrics, NotANumberIsNull) {
  StepMetrics metrics = stepNumber(1);
  metrics.loss = NAN;
  metrics.gradientNorm = INFINITY;
  EXPECT_NE(lineOf(metrics).find("\"loss\":null"), std::string::npos);
  EXPECT_NE(lineOf(metrics).find("\"grad_norm\":null"), std::string::npos);
}

namespace {
class MetricsOnDisk : public ::testing::Test {
protected:
  void SetUp() override { path = ::testing::TempDir() + "metrics-" + std::to_string(getpid()); }
  void TearDown() override { ::unlink(path.c_str()); }
  std::string get() {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::string linesTo(int64_t last) {
    std::string text;
    for (int64_t step = 1; step <= last; ++step)
      text += lineOf(stepNumber(step));
    return text;
  }
  std::string path;
};
} // namespace

// More lines than the buffer that reads backwards holds, a torn last line, and a file that lags
// behind its checkpoint.
TEST_F(MetricsOnDisk, GoesOnAfterTheStep) {
  for (int64_t step : {0, 1, 50, 199, 200, 500}) {
    for (const char *torn : {"", "{\"step\":201,\"lo"}) {
      std::ofstream(path) << linesTo(200) << torn;
      MetricsFile file(path, step);
      EXPECT_EQ(get(), linesTo(std::min<int64_t>(step, 200))) << step << torn;
      file.write(stepNumber(step + 1));
      EXPECT_EQ(get(), linesTo(std::min<int64_t>(step, 200)) + lineOf(stepNumber(step + 1)));
    }
  }
}

TEST(Progress, FormatsDurations) {
  EXPECT_STREQ(formatDuration(0.4).text, "0 s");
  EXPECT_STREQ(formatDuration(59.4).text, "59 s");
  EXPECT_STREQ(formatDuration(185).text, "3 min 05 s");
  EXPECT_STREQ(formatDuration(7620).text, "2 h 07 min");
}
