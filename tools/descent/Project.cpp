//===- Project.cpp - Where a model and a recipe come from -----------------===//

#include "compiler/Pipelines/Register.h"
#include "tools/descent/Commands.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

namespace descent::tool {

int fail(const std::string &message) {
  llvm::errs() << "descent: error: " << message << "\n";
  return 1;
}

void ProjectArguments::add(CLI::App &command) {
  command.add_option("folder", folder, "folder with recipe.toml and the model it names");
  command.add_option("--model", model, "model file (.mlir); instead of the one the recipe names");
  command.add_option("--recipe", recipe, "recipe file; instead of folder/recipe.toml");
  command.add_option("--set", overrides, "override a key of the recipe: --set batch.size=64")
      ->allow_extra_args(false);
  command.add_option("--target", target,
                     "what to compile for: cpu, cuda:sm_80, cuda:sm_86, cuda:sm_89, cuda:sm_90, "
                     "cuda:sm_100, or cuda-emulated, which runs the device's code on the CPU");
  command
      .add_option("--cpu", cpu,
                  "CPU to generate code for: native, or a name LLVM knows (haswell, "
                  "skylake-avx512, znver4)")
      ->capture_default_str();
}

std::optional<CompileOptions> ProjectArguments::resolve() const {
  auto refuse = [](const std::string &message) {
    fail(message);
    return std::nullopt;
  };
  if (folder.empty() && recipe.empty())
    return refuse(
        "nothing to compile; name a folder with a recipe.toml, or give --model FILE --recipe FILE");
  if (!folder.empty() && !llvm::sys::fs::is_directory(folder))
    return refuse("'" + folder + "' is no folder; `descent new gpt " + folder +
                  "` makes one with a model and a recipe");

  std::string recipePath = recipe;
  if (recipePath.empty()) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, "recipe.toml");
    recipePath = std::string(path);
  }
  std::vector<std::string> settings = overrides;
  if (!target.empty())
    settings.push_back("run.target=" + target);
  std::vector<RecipeError> errors;
  std::optional<Recipe> parsed = parseRecipe(recipePath, settings, errors);
  for (const RecipeError &error : errors)
    llvm::errs() << error.text() << "\n";
  if (!parsed)
    return std::nullopt;

  llvm::Expected<CpuTarget> machine = CpuTarget::named(cpu);
  if (!machine)
    return refuse(llvm::toString(machine.takeError()));
  CompileOptions options;
  if (CudaTarget::isCuda(parsed->run.target)) {
    llvm::Expected<CudaTarget> cuda = CudaTarget::named(parsed->run.target);
    if (!cuda)
      return refuse(llvm::toString(cuda.takeError()));
    options.cuda = std::move(*cuda);
  }
  options.modelPath = model.empty() ? parsed->model.file : model;
  options.recipe = std::move(*parsed);
  options.cpu = std::move(*machine);
  return options;
}

struct Session::Impl {
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  llvm::SourceMgr sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> handler;
};

Session::Session() : impl(std::make_unique<Impl>()) {
  registerAllDialects(impl->registry);
  impl->context = std::make_unique<mlir::MLIRContext>(impl->registry);
  impl->handler = std::make_unique<mlir::SourceMgrDiagnosticHandler>(
      impl->sources, impl->context.get(), llvm::errs());
}
Session::~Session() = default;

mlir::MLIRContext &Session::context() { return *impl->context; }

} // namespace descent::tool
