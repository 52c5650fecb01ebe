//===- Loaders.h - What the loaders share ---------------------------------===//

#ifndef DESCENT_RUNTIME_DATA_LOADERS_H
#define DESCENT_RUNTIME_DATA_LOADERS_H

#include "runtime/data/Bytes.h"
#include "runtime/data/Convert.h"
#include "runtime/data/Dataset.h"

namespace descent::data {

std::unique_ptr<Dataset> openText(const OpenRequest &request);
std::unique_ptr<Dataset> openTokens(const OpenRequest &request);
std::unique_ptr<Dataset> openNumpy(const OpenRequest &request);
std::unique_ptr<Dataset> openIdx(const OpenRequest &request);

/// The part of `total` items that the request asks for.
struct Range {
  int64_t first, count;
};

/// Cuts off the last llround(validation * total) items as the validation part. Throws if the part
/// asked for is empty; `items` names what is counted ("samples").
Range selectPart(const OpenRequest &request, int64_t total, const std::string &items);

/// The setting's value, or `fallback`.
std::string setting(const OpenRequest &request, const std::string &key,
                    const std::string &fallback = {});

/// A setting that holds one name or a TOML array of names.
std::vector<std::string> settingNames(const OpenRequest &request, const std::string &key);

std::string shapeText(const std::vector<int64_t> &shape); ///< "[64, 8]"
std::string quote(const std::string &text);               ///< 'text'

/// An array of a data file, samples along its leading dimension, and the field it feeds.
struct Array {
  std::string what; ///< for errors: "digits.npz: array 'images'"
  Bytes bytes;      ///< exactly its elements, row-major
  Element element;
  bool bigEndian = false;
  std::vector<int64_t> shape;
};

/// The array of an .npy file. Throws Error; `what` names the file in messages.
Array parseNpy(const Bytes &file, const std::string &what);

/// Makes a dataset of one array a field. Checks that all hold the same number of samples, that
/// sample shapes fit their fields (equal up to dimensions of size 1, or flattened into a field of
/// rank 1), and that every element is a value of its field's type. `scales` has one factor a field.
std::unique_ptr<Dataset> makeArrayDataset(const OpenRequest &request, std::vector<Array> arrays,
                                          std::vector<double> scales);

/// data.scale for fields that hold data of a float type, 1 for all others.
std::vector<double> fieldScales(const OpenRequest &request, double fallback);

} // namespace descent::data

#endif // DESCENT_RUNTIME_DATA_LOADERS_H
