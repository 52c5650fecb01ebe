//===- Main.cpp - A training binary starts here ---------------------------------------------===//
//
// This object refers to the compiled program by its symbol and to nothing else that is outside the
// runtime. It is alone in its archive member, so that a program with a main of its own can link the
// runtime without a compiled model.
//
// It also sees to how long idle threads spin between steps. libgomp lets them spin for several
// milliseconds, which is nothing on an idle machine; on a shared one they burn time slices that
// others need, this program's first thread among them. libgomp reads the limit from the environment
// before any of our code runs and offers no call for it, so the process sets the variable and
// starts itself again, once.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/trainer/Run.h"

#include "descent/abi.h"

#include <climits>
#include <cstdlib>

#include <unistd.h>

extern "C" const descent_program compiledProgram __asm__(DESCENT_PROGRAM_SYMBOL);

/// About 50 microseconds: the usual time between two steps, and far shorter than a time slice.
static constexpr char spinCount[] = "2000";

static void limitSpinning(char **argv) {
  // Whoever sets one of these knows better.
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY"))
    return;
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0 || setenv("GOMP_SPINCOUNT", spinCount, 1) != 0)
    return;
  self[length] = 0;
  execv(self,
        argv); // Returns only if it failed; then everything works, only slower on a shared machine.
}

int main(int argc, char **argv) {
  limitSpinning(argv);
  return descent::run(compiledProgram, argc, argv);
}
