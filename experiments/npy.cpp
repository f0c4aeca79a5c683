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

// What stands between `before` and `after` behind 'key' in {'descr': '<f4', ...}.
std::string_view entry(const std::string& path, std::string_view header, std::string_view key,
                       char before, char after) {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  const std::size_t begin = at == header.npos ? at : header.find(before, at + key.size() + 3);
  const std::size_t end = begin == header.npos ? begin : header.find(after, begin + 1);
  if (end == header.npos) refuse(path, "the .npy header has no readable '{}'", key);
  return header.substr(begin + 1, end - begin - 1);
}

DType parse_dtype(const std::string& path, std::string_view header) {
  const std::string_view descr = entry(path, header, "descr", '\'', '\'');
  if (descr == "<f4") return DType::f32;
  if (descr == "<f8") return DType::f64;
  refuse(path, "got dtype '{}', wanted '<f4' (float32) or '<f8' (float64)", descr);
}

// "(3, 4)" without its brackets, or "3,", or nothing for a scalar.
Shape parse_shape(const std::string& path, std::string_view header) {
  const std::string_view text = entry(path, header, "shape", '(', ')');
  Shape shape;
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) return shape;
    std::int64_t size = 0;
    const auto [stop, problem] = std::from_chars(at, end, size);
    if (problem != std::errc() || size < 0) refuse(path, "got shape ({})", text);
    if (shape.rank() == Shape::kMaxRank)
      refuse(path, "got shape ({}), wanted at most {} axes", text, Shape::kMaxRank);
    shape.push_back(size);
    at = stop;
  }
}

template <class T>
void check_finite(const std::string& path, const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(values[i]))
      refuse(path, "element {} of {} (from 0, in C order) is {}, wanted finite numbers", i, count,
             values[i]);
}

}  // namespace

Tensor read_npy(const std::string& path) {
  const std::string bytes = read_file(path);
  const std::string_view view = bytes;
  if (!view.starts_with(kMagic))
    refuse(path, "got no .npy file (it does not start with \\x93NUMPY)");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(view[i]); };
  const int version = view.size() > 6 ? byte(6) : 0;
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (view.size() < 8 + length_bytes) refuse(path, "the .npy header is cut short");
  if (version < 1 || version > 3) refuse(path, "got .npy version {}, wanted 1, 2 or 3", version);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::size_t{byte(8 + i)} << (8 * i);
  const std::size_t start = 8 + length_bytes + length;
  if (view.size() < start) refuse(path, "the .npy header is cut short");

  const std::string_view header = view.substr(8 + length_bytes, length);
  const DType dtype = parse_dtype(path, header);
  if (entry(path, header, "fortran_order", ' ', ',') != "False")
    refuse(path, "got Fortran order, wanted C order (numpy.ascontiguousarray)");
  const Shape shape = parse_shape(path, header);
  const auto count = static_cast<std::uint64_t>(shape.elements());
  const std::size_t held = (view.size() - start) / size_of(dtype);
  if (held < count)
    refuse(path, "shape {} needs {} elements, the file is cut short after {}", shape, count, held);
  const std::size_t more = view.size() - start - count * size_of(dtype);
  if (more > 0)
    refuse(path, "got {} bytes more than shape {} needs: wanted one array", more, shape);

  const Tensor tensor = Tensor::empty(shape, dtype);
  dispatch(dtype, [&](auto t) {
    using T = decltype(t);
    if (count > 0) std::memcpy(tensor.data<T>(), bytes.data() + start, tensor.bytes());
    check_finite(path, tensor.data<T>(), shape.elements());
  });
  return tensor;
}

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
