//===- ReadModel.cpp - A model file into memory ---------------------------===//
//
// What the parser would say about a folder, an empty file or a picture does not help anyone, so
// these are told apart first.
//
//===----------------------------------------------------------------------===//

#include "compiler/Import/ReadModel.h"
#include "dialects/NN/NN.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace descent;

/// Text that the parser could read: no control characters but white space. Bytecode is refused with
/// the rest; a model file is for people.
static bool isText(StringRef bytes) {
  return llvm::none_of(bytes, [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f';
  });
}

OwningOpRef<ModuleOp> descent::readModel(StringRef path, MLIRContext &context) {
  Location place = FileLineColLoc::get(&context, path, 1, 1);
  if (llvm::sys::fs::is_directory(path)) {
    emitError(place) << "is a folder; a model is a file such as model.mlir in it";
    return nullptr;
  }
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false);
  if (!file) {
    emitError(place) << "cannot read the model: " << file.getError().message();
    return nullptr;
  }
  StringRef text = (*file)->getBuffer();
  if (text.trim().empty()) {
    emitError(place) << "is empty; a model file holds one nn.model (descent new writes examples)";
    return nullptr;
  }
  if (!isText(text)) {
    emitError(place) << "is not text; a model file is written in MLIR's textual form";
    return nullptr;
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return nullptr;

  auto models = llvm::to_vector(module->getOps<nn::ModelOp>());
  if (models.empty()) {
    emitError(place) << "holds no nn.model; it is what training starts from";
    return nullptr;
  }
  if (models.size() > 1) {
    InFlightDiagnostic error = models[1].emitError()
                               << "a second nn.model, @" << models[1].getSymName()
                               << "; a file holds one, its parts are nn.module ops";
    error.attachNote(models[0].getLoc()) << "the first, @" << models[0].getSymName() << ", is here";
    error.report();
    return nullptr;
  }
  return module;
}
