//===- Idx.cpp - The format of MNIST and its successors -------------------===//
//
// An idx file is two zero bytes, an element type, a rank, big-endian dimensions and big-endian
// elements. Images and labels are two files; the path is a folder with MNIST's own names, or the
// images file, whose name gives the labels' name ("images-idx3" becomes "labels-idx1"). Either may
// be gzipped. Pixels of type u8 are scaled by 1/255 to [0, 1] unless data.scale says otherwise.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/data/Loaders.h"

#include <filesystem>

namespace descent::data {

namespace fs = std::filesystem;

namespace {

Array parseIdx(const std::string &path) {
  Array array;
  array.what = path;
  array.bigEndian = true;
  Bytes file = gunzipIfNeeded(mapFile(path), path);
  const unsigned char *bytes = file.data;
  if (file.size < 4 || bytes[0] != 0 || bytes[1] != 0)
    throw Error(path +
                ": is no idx file: it does not begin with two zero bytes, a type and a rank");
  switch (bytes[2]) {
  case 0x08:
    array.element = Element::U8;
    break;
  case 0x09:
    array.element = Element::I8;
    break;
  case 0x0b:
    array.element = Element::I16;
    break;
  case 0x0c:
    array.element = Element::I32;
    break;
  case 0x0d:
    array.element = Element::F32;
    break;
  case 0x0e:
    array.element = Element::F64;
    break;
  default:
    throw Error(path + ": idx element type " + std::to_string(bytes[2]) +
                " at byte 2, expected 8, 9, 11, 12, 13 or 14");
  }
  uint64_t rank = bytes[3], start = 4 + 4 * rank;
  if (rank < 1 || rank > 8 || file.size < start)
    throw Error(path + ": idx rank " + std::to_string(rank) + " at byte 3 in a file of " +
                std::to_string(file.size) + " bytes; expected 1 to 8 and 4 bytes for each");
  auto needed = static_cast<unsigned __int128>(elementBytes(array.element));
  for (uint64_t i = 0; i < rank; ++i) {
    array.shape.push_back(loadBig32(bytes + 4 + 4 * i));
    needed *= static_cast<uint64_t>(array.shape.back());
    if (needed >> 64)
      throw Error(path + ": idx shape " + shapeText(array.shape) + "... is beyond 2^64 bytes");
  }
  if (needed != file.size - start)
    throw Error(path + ": idx shape " + shapeText(array.shape) + " of " +
                elementName(array.element) + " needs " +
                std::to_string(static_cast<uint64_t>(needed)) + " bytes after byte " +
                std::to_string(start) + ", but " + std::to_string(file.size - start) + " follow");
  array.bytes = file.slice(start, file.size - start);
  return array;
}

/// The first of `names`, with and without .gz, that is a file in `folder`.
std::string findIn(const fs::path &folder, const std::vector<std::string> &names) {
  std::error_code ignored;
  for (const std::string &name : names)
    for (const char *ending : {"", ".gz"})
      if (fs::is_regular_file(folder / (name + ending), ignored))
        return (folder / (name + ending)).string();
  throw Error(folder.string() + ": the folder has neither " + names[0] + " nor " + names[0] +
              ".gz; give the images file itself as the path");
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  if (size_t at = text.rfind(from); at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

/// The labels that belong to an images file, by name.
std::string labelsBeside(const std::string &images) {
  fs::path path(images);
  std::string name = path.filename().string();
  if (name.ends_with(".gz"))
    name.resize(name.size() - 3);
  std::string labels = replaced(replaced(name, "images", "labels"), "idx3", "idx1");
  if (labels == name)
    throw Error(images + ": cannot tell the labels' file from this name: it has neither 'images' "
                         "nor 'idx3' in it; rename the files after MNIST's "
                         "(train-images-idx3-ubyte, train-labels-idx1-ubyte)");
  return findIn(path.has_parent_path() ? path.parent_path() : fs::path("."), {labels});
}

} // namespace

std::unique_ptr<Dataset> openIdx(const OpenRequest &request) {
  std::string images = request.path;
  std::error_code ignored;
  if (fs::is_directory(images, ignored)) {
    // A folder given for validation alone means MNIST's test files.
    bool test = request.validationPart && request.validation == 0.0;
    std::string stem = test ? "t10k" : "train";
    images = findIn(images, {stem + "-images-idx3-ubyte", stem + "-images.idx3-ubyte"});
  }
  std::vector<double> scales = fieldScales(request, 1.0 / 255.0);
  std::vector<Array> arrays;
  int dataInputs = 0, targets = 0;
  for (size_t i = 0; i < request.fields.size(); ++i) {
    ++(request.isTarget[i] ? targets : dataInputs);
    arrays.push_back(parseIdx(request.isTarget[i] ? labelsBeside(images) : images));
    // The default factor is for pixels; an idx file of floats holds what its writer meant.
    if (arrays.back().element != Element::U8 && setting(request, "data.scale").empty())
      scales[i] = 1.0;
  }
  if (dataInputs != 1 || targets > 1)
    throw Error(request.path +
                ": data.format 'idx' feeds one data input and at most one target, "
                "but the model has " +
                std::to_string(dataInputs) + " and " + std::to_string(targets));
  return makeArrayDataset(request, std::move(arrays), std::move(scales));
}

} // namespace descent::data
