#include "npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "output.h"
#include "table.h"

namespace keel {
namespace {

static_assert(std::endian::native == std::endian::little, "'<f4' is copied as it lies in memory");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kSlice = std::size_t{1} << 24;  // bytes written between two words on progress

template <class... Parts>
[[noreturn]] void refuse(const std::string& path, fmt::format_string<Parts...> format,
                         Parts&&... parts) {
  throw DataError(path, fmt::format(format, std::forward<Parts>(parts)...));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Cuts off what stands before the first `end`, or a closing bracket, outside quotes and brackets.
std::string_view take(std::string_view& rest, char end) {
  std::size_t at = 0;
  char quote = 0;
  for (int depth = 0; at < rest.size(); ++at) {
    const char c = rest[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (depth == 0 && (c == end || c == ')' || c == ']' || c == '}')) {
      break;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
  }
  const std::string_view found = trimmed(rest.substr(0, at));
  rest = trimmed(rest.substr(at));
  return found;
}

// The values of {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }, as they are written.
struct Header {
  std::string_view descr, fortran_order, shape;
};

Header parse_header(const std::string& path, std::string_view text) {
  Header header;
  const auto named = [&](std::string_view key) -> std::string_view* {
    if (key == "'descr'") return &header.descr;
    if (key == "'fortran_order'") return &header.fortran_order;
    return key == "'shape'" ? &header.shape : nullptr;
  };
  std::string_view rest = trimmed(text);
  bool sound = rest.starts_with('{');
  if (sound) rest = trimmed(rest.substr(1));
  while (sound && !rest.empty() && rest[0] != '}') {
    std::string_view* value = named(take(rest, ':'));
    sound = value && value->empty() && rest.starts_with(':');
    if (!sound) break;
    rest.remove_prefix(1);
    *value = take(rest, ',');
    sound = !value->empty() && (rest.starts_with(',') || rest.starts_with('}'));
    if (sound && rest[0] == ',') rest = trimmed(rest.substr(1));
  }
  for (std::string_view key : {"'descr'", "'fortran_order'", "'shape'"})
    if (named(key)->empty()) refuse(path, "the .npy header has no readable {}", key);
  if (!sound || rest != "}")
    refuse(path, "got .npy header {}, wanted descr, fortran_order and shape", shown(text));
  return header;
}

// How elements lie in the file, and the dtype of the tensor that they become.
struct Stored {
  char kind;  // f, i, u, or b for bool
  int bytes;
  DType dtype;
};

Stored parse_dtype(const std::string& path, std::string_view descr) {
  constexpr std::pair<std::string_view, Stored> kKnown[] = {
      {"'<f4'", {'f', 4, DType::f32}}, {"'<f8'", {'f', 8, DType::f64}},
      {"'|b1'", {'b', 1, DType::f64}}, {"'|i1'", {'i', 1, DType::f64}},
      {"'|u1'", {'u', 1, DType::f64}}, {"'<i2'", {'i', 2, DType::f64}},
      {"'<u2'", {'u', 2, DType::f64}}, {"'<i4'", {'i', 4, DType::f64}},
      {"'<u4'", {'u', 4, DType::f64}}, {"'<i8'", {'i', 8, DType::f64}},
      {"'<u8'", {'u', 8, DType::f64}}};
  for (const auto& [name, stored] : kKnown)
    if (descr == name) return stored;
  if (descr.starts_with('['))
    refuse(path,
           "got the structured dtype {}, wanted '<f4' (float32) or '<f8' (float64): "
           "numpy.lib.recfunctions.structured_to_unstructured makes columns of its fields",
           shown(descr));
  refuse(path, "got dtype {}, wanted '<f4' (float32), '<f8' (float64) or whole numbers",
         shown(descr));
}

// The element at `from`, as double: whole numbers up to 2^53 exactly.
double element_at(const std::string& path, const char* from, Stored stored) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(stored.bytes));
  if (stored.kind == 'b') return bits != 0;
  if (stored.kind == 'f')
    return stored.bytes == 8 ? std::bit_cast<double>(bits)
                             : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const int unused = 64 - 8 * stored.bytes;
  const bool negative = stored.kind == 'i' && (bits << unused) >> 63 != 0;
  const auto whole = static_cast<std::int64_t>(bits << unused) >> unused;
  const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(whole) : bits;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 53;
  if (size > kLargest)
    refuse(path, "got the whole number {}{}, wanted up to 2^53, as float64 holds them",
           negative ? "-" : "", size);
  return negative ? -static_cast<double>(size) : static_cast<double>(size);
}

// Where the element of that place in C order lies in Fortran order.
std::int64_t fortran_place(const Shape& shape, std::int64_t place) {
  std::int64_t at = 0, stride = shape.elements();
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    stride /= shape[axis];
    at += place % shape[axis] * stride;
    place /= shape[axis];
  }
  return at;
}

// "(3, 4)", "(3,)", or "()" for a scalar.
Shape parse_shape(const std::string& path, std::string_view text) {
  const auto refuse_shape = [&](std::string_view wanted) {
    refuse(path, "got shape {}, wanted {}", shown(text), wanted);
  };
  constexpr std::string_view kWanted = "whole numbers as in (2, 3) or (2,)";
  if (!text.starts_with('(') || !text.ends_with(')')) refuse_shape(kWanted);
  Shape shape;
  bool comma = false;
  for (std::string_view rest = trimmed(text.substr(1, text.size() - 2)); !rest.empty();) {
    std::int64_t size = 0;
    const auto [stop, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    const auto digits = static_cast<std::size_t>(stop - rest.data());
    if (problem != std::errc() || size < 0 || (rest[0] == '0' && digits > 1) || rest[0] == '-')
      refuse_shape(kWanted);
    if (shape.rank() == Shape::kMaxRank)
      refuse_shape(fmt::format("at most {} axes", int{Shape::kMaxRank}));
    try {
      shape.push_back(size);
    } catch (const ShapeError&) {
      refuse_shape("fewer elements than 2^63");
    }
    rest = trimmed(rest.substr(digits));
    comma = rest.starts_with(',');
    if (!comma && !rest.empty()) refuse_shape(kWanted);
    if (comma) rest = trimmed(rest.substr(1));
  }
  if (shape.rank() == 1 && !comma) refuse_shape(kWanted);  // Python's (2) is no tuple
  return shape;
}

template <class T>
void check_finite(const std::string& path, const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(values[i]))
      refuse(path, "element {} of {} (from 0, in C order) is {}, wanted finite numbers", i, count,
             values[i]);
}

}  // namespace

Tensor parse_npy(std::string_view view, const std::string& path) {
  if (!view.starts_with(kMagic))
    refuse(path, "got no .npy file (it does not start with \\x93NUMPY)");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(view[i]); };
  const int version = view.size() > 6 ? byte(6) : 0;
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (view.size() < 8 + length_bytes) refuse(path, "the .npy header is cut short");
  if (version < 1 || version > 3) refuse(path, "got .npy version {}, wanted 1, 2 or 3", version);
  if (byte(7) != 0) refuse(path, "got .npy version {}.{}, wanted {}.0", version, byte(7), version);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::size_t{byte(8 + i)} << (8 * i);
  const std::size_t start = 8 + length_bytes + length;
  if (view.size() < start) refuse(path, "the .npy header is cut short");

  const Header header = parse_header(path, view.substr(8 + length_bytes, length));
  const Stored stored = parse_dtype(path, header.descr);
  const bool fortran = header.fortran_order == "True";
  if (!fortran && header.fortran_order != "False")
    refuse(path, "got fortran_order {}, wanted True or False", shown(header.fortran_order));
  const Shape shape = parse_shape(path, header.shape);
  const auto count = static_cast<std::uint64_t>(shape.elements());
  const auto bytes = static_cast<std::size_t>(stored.bytes);
  const std::size_t held = (view.size() - start) / bytes;
  if (held < count)
    refuse(path, "shape {} needs {} elements, the file is cut short after {}", shape, count, held);
  const std::size_t more = view.size() - start - count * bytes;
  if (more > 0)
    refuse(path, "got {} bytes more than shape {} needs: wanted one array", more, shape);

  const Tensor tensor = Tensor::empty(shape, stored.dtype);
  dispatch(stored.dtype, [&](auto t) {
    using T = decltype(t);
    if (count > 0 && !fortran && stored.kind == 'f')
      std::memcpy(tensor.data<T>(), view.data() + start, tensor.bytes());
    else
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        const auto at = static_cast<std::size_t>(fortran ? fortran_place(shape, i) : i);
        tensor.data<T>()[i] =
            static_cast<T>(element_at(path, view.data() + start + at * bytes, stored));
      }
    check_finite(path, tensor.data<T>(), shape.elements());
  });
  return tensor;
}

Tensor read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

void write_npy(const std::string& path, const Tensor& tensor, const WorkProgress& progress) {
  std::string sizes;
  for (int i = 0; i < tensor.rank(); ++i) sizes += fmt::format("{}, ", tensor.size(i));
  if (tensor.rank() > 1) sizes.resize(sizes.size() - 2);  // only (3,) keeps its comma
  if (tensor.rank() == 1) sizes.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   tensor.dtype() == DType::f32 ? "<f4" : "<f8", sizes);
  // The elements start at a multiple of 64, so that they can be memory-mapped.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
            static_cast<char>(header.size() >> 8)};
  OutputFile file(path);
  file.write(start + header);
  dispatch(tensor.dtype(), [&](auto t) {
    using T = decltype(t);
    const Tensor host = tensor.to(Device::cpu());
    const std::string_view bytes(reinterpret_cast<const char*>(host.data<T>()), host.bytes());
    for (std::size_t at = 0; at < bytes.size(); at += kSlice) {
      file.write(bytes.substr(at, kSlice));
      if (progress)
        progress(
            std::min(1.0, static_cast<double>(at + kSlice) / static_cast<double>(bytes.size())));
    }
  });
  file.commit();
}

}  // namespace keel
