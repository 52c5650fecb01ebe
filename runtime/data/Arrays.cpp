//===- Arrays.cpp - Datasets made of arrays -------------------------------===//
//
// NumPy archives and idx files come down to the same thing: arrays whose leading dimension counts
// samples. Reading a sample is one conversion from the mapped file into the arena. Narrowing
// conversions are checked for every element at open, since an exact failure there beats a rounded
// label in epoch three.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/data/Loaders.h"

namespace descent::data {

namespace {

class ArrayDataset final : public Dataset {
public:
  struct Column {
    Array array;
    int64_t sampleElements, sampleBytes; // sampleBytes in the file
    int32_t dtype;
    double scale;
  };

  ArrayDataset(std::vector<Column> columns, Range part) : columns(std::move(columns)), part(part) {}

  int64_t size() const override { return part.count; }

  void read(int64_t index, int field, void *out) const override {
    const Column &column = columns[field];
    const unsigned char *at = column.array.bytes.data + (part.first + index) * column.sampleBytes;
    convert(column.array.element, column.array.bigEndian, at, column.sampleElements, column.dtype,
            column.scale, out);
  }

private:
  std::vector<Column> columns;
  Range part;
};

int64_t product(const std::vector<int64_t> &shape, size_t from) {
  int64_t count = 1;
  for (size_t i = from; i < shape.size(); ++i)
    count *= shape[i];
  return count;
}

std::vector<int64_t> withoutOnes(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

void checkShape(const Array &array, const Field &field) {
  std::vector<int64_t> found(array.shape.begin() + 1, array.shape.end());
  bool flattened = field.sampleShape.size() == 1 && product(found, 0) == field.sampleShape[0];
  if (flattened || withoutOnes(found) == withoutOnes(field.sampleShape))
    return;
  std::vector<int64_t> expected = field.sampleShape;
  expected.insert(expected.begin(), array.shape[0]);
  throw Error(array.what + ": has shape " + shapeText(array.shape) + ", but input " +
              quote(field.name) + " of the model needs " + shapeText(expected) +
              "; reshape the array or change the model's input");
}

void checkValues(const Array &array, const Field &field) {
  int64_t count = product(array.shape, 0);
  int64_t bad = firstInexact(array.element, array.bigEndian, array.bytes.data, count, field.dtype);
  if (bad < 0)
    return;
  const unsigned char *at = array.bytes.data + bad * elementBytes(array.element);
  int64_t sample = bad / std::max<int64_t>(1, product(array.shape, 1));
  throw Error(array.what + ": " + elementName(array.element) + " value " +
              elementText(array.element, array.bigEndian, at) + " of sample " +
              std::to_string(sample) + " (element " + std::to_string(bad) +
              ") is not a value of type " + dtypeName(field.dtype) + ", which input " +
              quote(field.name) + " of the model has; save the array as " +
              dtypeArray(field.dtype) + ", or change the input's type");
}

} // namespace

std::unique_ptr<Dataset> makeArrayDataset(const OpenRequest &request, std::vector<Array> arrays,
                                          std::vector<double> scales) {
  for (const Array &array : arrays)
    if (array.shape.empty() || array.shape[0] < 1)
      throw Error(array.what + ": has shape " + shapeText(array.shape) +
                  " and so no samples; the leading dimension counts them");
  for (const Array &array : arrays)
    if (array.shape[0] != arrays[0].shape[0])
      throw Error(array.what + ": holds " + std::to_string(array.shape[0]) + " samples, but " +
                  arrays[0].what + " holds " + std::to_string(arrays[0].shape[0]) +
                  "; leading dimensions must be equal");
  std::vector<ArrayDataset::Column> columns;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Field &field = request.fields[i];
    Array &array = arrays[i];
    checkShape(array, field);
    if (scales[i] == 1.0)
      checkValues(array, field);
    int64_t elements = product(array.shape, 1);
    int64_t bytes = elements * elementBytes(array.element);
    columns.push_back({std::move(array), elements, bytes, field.dtype, scales[i]});
  }
  int64_t total = columns[0].array.shape[0];
  return std::make_unique<ArrayDataset>(std::move(columns), selectPart(request, total, "samples"));
}

} // namespace descent::data
