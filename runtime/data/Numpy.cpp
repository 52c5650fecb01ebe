//===- Numpy.cpp - .npy and .npz files ------------------------------------===//
//
// An .npz is a zip archive of NAME.npy members; format "npy" is a folder of such files, or one file
// where one input is all there is. Arrays are found by the recipe's names (data.inputs,
// data.targets: one name for each input of that role, in the model's order), or by the names of the
// model's inputs.
//
// An .npy is a magic, a version, and a Python dictionary literal with descr, fortran_order and
// shape, then the elements.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/data/Loaders.h"
#include "runtime/data/Zip.h"

#include <filesystem>
#include <optional>

namespace descent::data {

namespace {

/// Reads the header's dictionary literal. Positions are offsets in the .npy for error messages.
class HeaderParser {
public:
  HeaderParser(const std::string &what, const unsigned char *bytes, uint64_t from, uint64_t to)
      : what(what), bytes(bytes), at(from), end(to) {}

  void parse(Array &array) {
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr") {
        seen[0] = true;
        descr(array);
      } else if (key == "fortran_order") {
        seen[1] = true;
        fortranOrder();
      } else if (key == "shape") {
        seen[2] = true;
        shape(array);
      } else {
        fail("unknown key " + quote(key));
      }
      if (!accept(',') && peek() != '}')
        fail("expected ',' or '}'");
    }
    if (!seen[0] || !seen[1] || !seen[2])
      fail("descr, fortran_order and shape are needed");
  }

private:
  [[noreturn]] void fail(const std::string &reason) {
    throw Error(what + ": bad .npy header at byte " + std::to_string(at) + ": " + reason);
  }
  char peek() {
    while (at < end && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\t'))
      ++at;
    return at < end ? static_cast<char>(bytes[at]) : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted)
      return false;
    ++at;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted))
      fail(std::string("expected '") + wanted + "'");
  }
  std::string string() {
    char mark = peek();
    if (mark != '\'' && mark != '"')
      fail("expected a string");
    std::string text;
    for (++at; at < end && bytes[at] != static_cast<unsigned char>(mark); ++at)
      text += static_cast<char>(bytes[at]);
    if (at == end)
      fail("unterminated string");
    ++at;
    return text;
  }
  void descr(Array &array) {
    if (peek() == '[')
      fail("a structured type; save each of its fields as an array of its own");
    std::string text = string();
    static constexpr std::pair<const char *, Element> types[] = {
        {"b1", Element::Bool}, {"i1", Element::I8},  {"u1", Element::U8},  {"i2", Element::I16},
        {"u2", Element::U16},  {"i4", Element::I32}, {"u4", Element::U32}, {"i8", Element::I64},
        {"u8", Element::U64},  {"f2", Element::F16}, {"f4", Element::F32}, {"f8", Element::F64}};
    std::string order = text.substr(0, 1), name = text.size() > 1 ? text.substr(1) : "";
    for (auto [known, element] : types)
      if (name == known && (order == "<" || order == ">" || order == "=" || order == "|")) {
        array.element = element;
        array.bigEndian = order == ">";
        return;
      }
    fail("element type " + quote(text) +
         " is not supported; expected a bool, integer or float type such as '<f4'");
  }
  void fortranOrder() {
    peek();
    std::string word;
    while (at < end && bytes[at] >= 'A' && bytes[at] <= 'z')
      word += static_cast<char>(bytes[at++]);
    if (word == "True")
      fail("the array is in Fortran order; save numpy.ascontiguousarray(array)");
    if (word != "False")
      fail("fortran_order is " + quote(word) + ", expected True or False");
  }
  void shape(Array &array) {
    expect('(');
    array.shape.clear();
    while (!accept(')')) {
      peek();
      uint64_t extent = 0, first = at;
      for (; at < end && bytes[at] >= '0' && bytes[at] <= '9'; ++at) {
        extent = extent * 10 + (bytes[at] - '0');
        if (extent > (uint64_t(1) << 48))
          fail("a dimension beyond 2^48");
      }
      if (at == first)
        fail("expected a dimension");
      array.shape.push_back(static_cast<int64_t>(extent));
      if (!accept(',') && peek() != ')')
        fail("expected ',' or ')'");
    }
  }

  const std::string &what;
  const unsigned char *bytes;
  uint64_t at, end;
};

} // namespace

Array parseNpy(const Bytes &file, const std::string &what) {
  static constexpr unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (file.size < 10 || std::memcmp(file.data, magic, sizeof magic) != 0)
    throw Error(what + ": is no .npy file: it does not begin with \\x93NUMPY and a version");
  int major = file.data[6];
  if (major < 1 || major > 3 || (major > 1 && file.size < 12))
    throw Error(what + ": .npy version " + std::to_string(major) +
                " at byte 6, expected 1, 2 or 3");
  uint64_t start = major == 1 ? 10 : 12;
  uint64_t length =
      major == 1 ? loadLittle<uint16_t>(file.data + 8) : loadLittle<uint32_t>(file.data + 8);
  if (length > file.size - start)
    throw Error(what + ": the .npy header says it is " + std::to_string(length) +
                " bytes long, but only " + std::to_string(file.size - start) +
                " follow; the file is cut off");
  Array array;
  array.what = what;
  HeaderParser(what, file.data, start, start + length).parse(array);
  uint64_t present = file.size - start - length;
  auto needed = static_cast<unsigned __int128>(elementBytes(array.element));
  for (int64_t extent : array.shape) {
    needed *= static_cast<uint64_t>(extent);
    if (extent != 0 && needed > (static_cast<unsigned __int128>(1) << 64))
      break; // Larger than any file: the comparison below refuses it.
  }
  if (needed != present)
    throw Error(what + ": shape " + shapeText(array.shape) + " of " + elementName(array.element) +
                " needs " +
                (needed >> 64 ? "over 2^64" : std::to_string(static_cast<uint64_t>(needed))) +
                " bytes, but the file holds " + std::to_string(present) + " after its header");
  array.bytes = file.slice(start + length, present);
  return array;
}

namespace {

/// The array's name for each field.
std::vector<std::string> arrayNames(const OpenRequest &request) {
  std::vector<std::string> names(request.fields.size());
  for (bool target : {false, true}) {
    std::string key = target ? "data.targets" : "data.inputs";
    std::vector<std::string> given = settingNames(request, key);
    size_t used = 0, wanted = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      if (request.isTarget[i] != target)
        continue;
      ++wanted;
      names[i] = given.empty() ? request.fields[i].name : used < given.size() ? given[used++] : "";
    }
    if (!given.empty() && given.size() != wanted)
      throw Error(request.path + ": " + key + " names " + std::to_string(given.size()) +
                  " arrays, but the model has " + std::to_string(wanted) +
                  (target ? " targets" : " data inputs"));
  }
  return names;
}

std::string namedBy(const OpenRequest &request, size_t field) {
  std::string key = request.isTarget[field] ? "data.targets" : "data.inputs";
  return setting(request, key).empty()
             ? "named after the model's input; set " + key + " to another name"
             : "named by " + key;
}

std::vector<Array> readArchive(const OpenRequest &request, const Bytes &file,
                               const std::vector<std::string> &names) {
  std::vector<ZipMember> members = readZipDirectory(file, request.path);
  std::vector<Array> arrays;
  for (size_t i = 0; i < names.size(); ++i) {
    const ZipMember *found = nullptr;
    std::string held;
    for (const ZipMember &member : members) {
      std::string name = member.name;
      if (name.ends_with(".npy"))
        name.resize(name.size() - 4);
      held += (held.empty() ? "" : ", ") + quote(name);
      if (name == names[i])
        found = &member;
    }
    if (!found)
      throw Error(request.path + ": no array " + quote(names[i]) + " (" + namedBy(request, i) +
                  "); the file holds " + (held.empty() ? "no arrays" : held));
    std::string what = request.path + ": array " + quote(names[i]);
    arrays.push_back(parseNpy(readZipMember(file, *found, what), what));
  }
  return arrays;
}

} // namespace

std::unique_ptr<Dataset> openNumpy(const OpenRequest &request) {
  std::vector<std::string> names = arrayNames(request);
  std::vector<double> scales = fieldScales(request, 1.0);
  std::vector<Array> arrays;
  std::error_code ignored;
  if (request.format == "npy" && std::filesystem::is_directory(request.path, ignored)) {
    for (size_t i = 0; i < names.size(); ++i) {
      std::string path = (std::filesystem::path(request.path) / (names[i] + ".npy")).string();
      if (!std::filesystem::exists(path, ignored))
        throw Error(path + ": no such file (" + namedBy(request, i) + ")");
      arrays.push_back(parseNpy(mapFile(path), path));
    }
    return makeArrayDataset(request, std::move(arrays), std::move(scales));
  }
  Bytes file = mapFile(request.path);
  bool isNpy = file.size > 6 && std::memcmp(file.data + 1, "NUMPY", 5) == 0;
  if (request.format == "npz") {
    if (isNpy)
      throw Error(request.path + ": is an .npy file; set data.format = \"npy\"");
    arrays = readArchive(request, file, names);
  } else {
    if (names.size() != 1)
      throw Error(request.path + ": one .npy file cannot feed the model's " +
                  std::to_string(names.size()) +
                  " inputs; give a folder with one NAME.npy for each, or an .npz");
    arrays.push_back(parseNpy(file, request.path));
  }
  return makeArrayDataset(request, std::move(arrays), std::move(scales));
}

} // namespace descent::data
