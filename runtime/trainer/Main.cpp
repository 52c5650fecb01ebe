//===- Main.cpp - A training binary starts here ---------------------------------------------===//
//
// This object refers to the compiled program by its symbol and to nothing else that is outside the runtime. It is alone in its
// archive member, so that a program with a main of its own can link the runtime without a compiled model.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/trainer/Run.h"

#include "descent/abi.h"

extern "C" const descent_program compiledProgram __asm__(DESCENT_PROGRAM_SYMBOL);

int main(int argc, char **argv) { return descent::run(compiledProgram, argc, argv); }
