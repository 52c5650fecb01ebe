//===- Convert.h - Element types of data files to those of the program ----===//

#ifndef DESCENT_RUNTIME_DATA_CONVERT_H
#define DESCENT_RUNTIME_DATA_CONVERT_H

#include <cstdint>
#include <string>

namespace descent::data {

/// Element types that data files have.
enum class Element { Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64 };

int64_t elementBytes(Element type);
const char *elementName(Element type); ///< NumPy's name: "float32".

int64_t dtypeBytes(int32_t dtype);     ///< of an enum descent_dtype
const char *dtypeName(int32_t dtype);  ///< MLIR's name: "f32"
const char *dtypeArray(int32_t dtype); ///< NumPy's name of it, for advice: "float32"

/// True if every value of `from` is a value of `dtype`, so that no check is needed.
bool alwaysExact(Element from, int32_t dtype);

/// Position of the first of `count` elements at `in` that is not a value of `dtype`, or -1. NaN is
/// a value of every float type.
int64_t firstInexact(Element from, bool bigEndian, const unsigned char *in, int64_t count,
                     int32_t dtype);

/// The element as text, for errors.
std::string elementText(Element from, bool bigEndian, const unsigned char *in);

/// Converts `count` elements at `in` (any alignment) to `dtype` at `out`. With scale 1 this is
/// exact where firstInexact says -1; any other scale multiplies in double precision and rounds
/// once.
void convert(Element from, bool bigEndian, const unsigned char *in, int64_t count, int32_t dtype,
             double scale, void *out);

} // namespace descent::data

#endif // DESCENT_RUNTIME_DATA_CONVERT_H
