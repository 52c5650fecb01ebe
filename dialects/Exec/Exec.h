//===- Exec.h - Kernels, launches, buffers --------------------------------===//

#ifndef DESCENT_DIALECTS_EXEC_EXEC_H
#define DESCENT_DIALECTS_EXEC_EXEC_H

#include "dialects/NN/NN.h"

#include "dialects/Exec/ExecDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.h.inc"

#endif // DESCENT_DIALECTS_EXEC_EXEC_H
