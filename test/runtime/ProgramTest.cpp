//===- ProgramTest.cpp - Compiled programs: what is accepted and what is refused ------------===//
//
// Every refusal starts from the specimen, changes one thing and looks for the name of what was
// changed.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Program.h"
#include "runtime/core/Error.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

using namespace descent;

extern "C" const descent_program specimen __asm__(DESCENT_PROGRAM_SYMBOL);

namespace {

/// A copy of the specimen whose tables may be changed.
struct Editable {
  descent_program program = specimen;
  std::vector<descent_parameter> parameters{specimen.parameters,
                                            specimen.parameters + specimen.parameter_count};
  std::vector<descent_state> states{specimen.states, specimen.states + specimen.state_count};
  std::vector<descent_input> inputs{specimen.inputs, specimen.inputs + specimen.input_count};
  std::vector<descent_kernel> kernels{specimen.kernels, specimen.kernels + specimen.kernel_count};
  std::vector<std::vector<descent_site>> sites;
  std::vector<descent_function> functions{specimen.functions,
                                          specimen.functions + specimen.function_count};

  Editable() {
    program.parameters = parameters.data();
    program.states = states.data();
    program.inputs = inputs.data();
    program.kernels = kernels.data();
    program.functions = functions.data();
    // Sites point into the table of kernels, which is a copy now.
    for (descent_function &function : functions) {
      sites.emplace_back(function.sites, function.sites + function.site_count);
      for (descent_site &site : sites.back())
        site.kernel = kernels.data() + (site.kernel - specimen.kernels);
      function.sites = sites.back().data();
    }
  }
};

void expectRefused(const std::string &text, const std::function<void(Editable &)> &edit) {
  Editable editable;
  edit(editable);
  try {
    checkProgram(editable.program);
    FAIL() << "accepted, expected: " << text;
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    EXPECT_EQ(error.exitStatus(), ExitFailed);
  }
}

} // namespace

TEST(Program, AcceptsTheSpecimen) {
  EXPECT_NO_THROW(checkProgram(specimen));
  EXPECT_EQ(batchSize(specimen), 8);
}

TEST(Program, RefusesAnotherVersionAndReadsNothingElse) {
  descent_program other = {};
  other.abi_version = DESCENT_ABI_VERSION + 1;
  try {
    checkProgram(other);
    FAIL();
  } catch (const Error &error) {
    std::string expected = "compiled for version " + std::to_string(DESCENT_ABI_VERSION + 1) +
                           " of the runtime interface, this runtime has version " +
                           std::to_string(DESCENT_ABI_VERSION);
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
  other.abi_version = DESCENT_ABI_VERSION;
  other.struct_bytes = sizeof(descent_program) + 8;
  EXPECT_THROW(checkProgram(other), Error);
}

TEST(Program, RefusesDamagedTables) {
  expectRefused("parameter 'w' is f32 [3, 1], which is 12 bytes, and says 13",
                [](Editable &e) { e.parameters[0].tensor.bytes = 13; });
  expectRefused("parameter 'w' lies at offset 4",
                [](Editable &e) { e.parameters[0].tensor.offset = 4; });
  expectRefused("parameter 'b' ends behind the arena",
                [](Editable &e) { e.parameters[1].tensor.offset = 1 << 20; });
  expectRefused("parameter 'w' is larger than memory",
                [](Editable &e) { e.parameters[0].tensor.shape[0] = INT64_MAX; });
  expectRefused("two parameters named 'w'", [](Editable &e) { e.parameters[1].tensor.name = "w"; });
  expectRefused("parameter 'b' is trainable and has no gradient",
                [](Editable &e) { e.parameters[1].gradient_offset = DESCENT_NO_OFFSET; });
  expectRefused("unknown initializer 7", [](Editable &e) { e.parameters[1].initializer = 7; });
  expectRefused("unknown element type 9", [](Editable &e) { e.inputs[0].tensor.dtype = 9; });
  expectRefused("belongs to parameter 2 of 2", [](Editable &e) { e.states[0].parameter = 2; });
  expectRefused("input 'y' has a batch of 4, the inputs before it 8", [](Editable &e) {
    e.inputs[1].tensor.shape[0] = 4;
    e.inputs[1].tensor.bytes = 16;
  });
  expectRefused("input 'x' has bounds and no integer type",
                [](Editable &e) { e.inputs[0].bounded = 1; });
  expectRefused("kernel 'loss_8' has no function",
                [](Editable &e) { e.kernels[1].function = nullptr; });
  expectRefused("kernel 'loss_8' has 0 tasks", [](Editable &e) { e.kernels[1].tasks = 0; });
  expectRefused("kernel 'gradient_8x3' needs 65 bytes of scratch",
                [](Editable &e) { e.kernels[2].scratch_bytes = 65; });
  expectRefused("there is no function 'evaluate'",
                [](Editable &e) { e.program.function_count = 1; });
  expectRefused("launch 1 of 'step' is of no kernel",
                [](Editable &e) { e.sites[0][1].kernel = e.kernels.data() + e.kernels.size(); });
  expectRefused("the gradients of 'step' are ready at launch 5 of 5",
                [](Editable &e) { e.functions[0].gradients_ready = 5; });
  expectRefused("kernel 'loss_8' has 5 operands, 5 of them inputs",
                [](Editable &e) { e.kernels[1].input_count = 5; });
  expectRefused("operand 0 of kernel 'loss_8' has the unknown element type 8", [](Editable &e) {
    static const descent_operand operand = {8, 0, {0}};
    e.kernels[1].operands = &operand;
    e.kernels[1].operand_count = 1;
    e.kernels[1].input_count = 0;
  });
  expectRefused("state 'loss_scale' is i32 [] and should be one f32",
                [](Editable &e) { e.states[3].tensor.dtype = DESCENT_I32; });
  expectRefused("parameter 'w' is neither f32 nor bf16",
                [](Editable &e) { e.parameters[0].tensor.dtype = DESCENT_I32; });
  expectRefused("function 'step' has no output 'committed'",
                [](Editable &e) { e.functions[0].output_count = 4; });
}

// Names that the table of Cpu.cpp lacks are tuning hints; a feature marked '-' is one the program
// does without.
TEST(Program, AsksTheCpuForWhatIsNeeded) {
  EXPECT_EQ(missingCpuFeature(""), "");
  EXPECT_EQ(missingCpuFeature("sse3,+sse4.2,fast-shld-rotate,-amx-fp8"), "");
#if defined(__x86_64__)
  // No CPU has both of AMD's and Intel's dead ends.
  EXPECT_NE(missingCpuFeature("sse3,xop,avx512vp2intersect"), "");
  descent_program program = specimen;
  program.cpu = "imaginary";
  program.cpu_features = "avx2,xop,avx512vp2intersect";
  EXPECT_THROW(checkCpu(program), Error);
#endif
}

TEST(Settings, ParsesAndNamesWhatItCannotParse) {
  static const descent_setting list[] = {
      {"a.n", "1_000"}, {"a.x", "3e-4"}, {"a.b", "true"}, {"a.bad", "12x"}, {"a.empty", ""}};
  descent_program program = specimen;
  program.settings = list;
  program.setting_count = 5;
  Settings settings(program);
  EXPECT_EQ(settings.integer("a.n", 0), 1000);
  EXPECT_EQ(settings.real("a.x", 0), 3e-4);
  EXPECT_TRUE(settings.flag("a.b", false));
  EXPECT_EQ(settings.integer("a.absent", 7), 7);
  EXPECT_THROW(settings.integer("a.bad", 0), Error);
  EXPECT_THROW(settings.integer("a.empty", 0), Error);
  EXPECT_THROW(settings.flag("a.n", false), Error);
}
