//===- ProductChoices.h - Which algorithm each product takes ----------------------------------===//
//
// Algorithms differ in the order of their sums, and which is the fastest is decided by a
// measurement, which is never the same twice. So that equal runs have equal bits, a choice is made
// once and kept in a file.
//
//===------------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CUDA_PRODUCTCHOICES_H
#define DESCENT_RUNTIME_CUDA_PRODUCTCHOICES_H

#include "runtime/cuda/Cuda.h"

#include <map>
#include <string>
#include <vector>

namespace descent::cuda {

/// ${XDG_CACHE_HOME:-$HOME/.cache}/descent/products; empty if neither variable is set.
std::string defaultProductsFile();

struct ProductChoice {
  cublasLtMatmulAlgo_t algorithm;
  float microseconds = 0; ///< as measured; 0 if nothing was
};

/// By a text of one line that says all the choice depends on.
using ProductChoices = std::map<std::string, ProductChoice>;

/// What the file holds. One that is not there holds nothing; so does a broken one, and then a note
/// says so.
ProductChoices readChoices(const std::string &path, std::vector<std::string> &notes);

/// Adds `choices` to the file, making its folder if there is none. What the file has got meanwhile
/// stays and is taken over into `choices`: who came first decides, so that programs that start at
/// the same time agree. A file that cannot be written leaves a note.
void mergeChoices(const std::string &path, ProductChoices &choices,
                  std::vector<std::string> &notes);

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_PRODUCTCHOICES_H
