// Reads .safetensors files; safetensors_writer.cpp writes them.
#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

namespace keel {
namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr const char *kTag = "safetensors", *kMetadata = "__metadata__";
constexpr std::uint64_t kLargestHeader = 100'000'000;  // as the reference implementation allows

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::uint64_t size_of_file(std::FILE* file, const std::string& path) {
  std::error_code unknown;
  check(!std::filesystem::is_directory(path, unknown), kTag, "{}: got a folder, wanted a file",
        path);
  check(std::fseek(file, 0, SEEK_END) == 0, kTag, "{}: cannot seek: {}", path,
        std::strerror(errno));
  const long size = std::ftell(file);
  check(size >= 0 && std::fseek(file, 0, SEEK_SET) == 0, kTag, "{}: cannot seek: {}", path,
        std::strerror(errno));
  return static_cast<std::uint64_t>(size);
}

void read_exactly(std::FILE* file, void* into, std::size_t bytes, const std::string& path) {
  check(std::fread(into, 1, bytes, file) == bytes, kTag, "{}: cannot read: {}", path,
        std::ferror(file) ? std::strerror(errno) : "the file ended early");
}

// IEEE 754's binary16: 5 bits of exponent, 10 of mantissa.
float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float size = 0;
  if (exponent == 31)
    size = mantissa == 0 ? std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  else
    size = std::ldexp(static_cast<float>(exponent == 0 ? mantissa : mantissa + 1024),
                      std::max(exponent, 1) - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

constexpr std::string_view kIntegers = "I64";  // counts, as Batch Norm's num_batches_tracked

// How a file may hold numbers, and what they become.
struct Format {
  std::string_view name;
  DType dtype;
  std::uint64_t bytes;            // an element, in the file
  float (*widen)(std::uint16_t);  // of two bytes; else null
};

constexpr Format kFormats[] = {{"F32", DType::f32, 4, nullptr},
                               {"F64", DType::f64, 8, nullptr},
                               {"F16", DType::f32, 2, from_half},
                               {"BF16", DType::f32, 2, from_bfloat},
                               {kIntegers, DType::f64, 8, nullptr}};

struct Entry {
  std::string name;
  const Format* format;  // null of what is not wanted
  Shape shape;
  std::uint64_t begin, end;
};

// How deep brackets nest, but those in "texts".
int depth_of(const std::string& text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) {
      i += text[i] == '\\';
    } else {
      depth += (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']');
      deepest = std::max(deepest, depth);
    }
  }
  return deepest;
}

// No deeper than any header needs to be: JSON is shown by recursion. Looked at first, as the parser
// that asks about each value looks through all before it.
json parse_header(const std::string& text) {
  constexpr int kDeepest = 8;
  if (text.find('\0') != text.npos) return {};  // where the parser would take it for the end
  if (depth_of(text) > kDeepest) return {};
  return json::parse(text, nullptr, false);
}

Entry parse_entry(const std::string& path, const std::string& key, const json& value, bool wanted) {
  const std::string name = shown(key);
  const auto dtype = value.is_object() ? value.find("dtype") : value.end();
  const auto shape = value.is_object() ? value.find("shape") : value.end();
  const auto offsets = value.is_object() ? value.find("data_offsets") : value.end();
  const auto all_counts = [](const json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& item) {
             return item.is_number_unsigned();
           });
  };
  const bool sound = dtype != value.end() && dtype->is_string() && shape != value.end() &&
                     all_counts(*shape) && offsets != value.end() && all_counts(*offsets) &&
                     offsets->size() == 2;
  if (!sound)
    fail(kTag, "{}: the header describes '{}' as {}, wanted dtype, shape and two data_offsets",
         path, name, shown(value.dump(), 200));

  Entry entry{key, nullptr, {}, (*offsets)[0], (*offsets)[1]};
  if (!wanted) return entry;
  const std::string kind = dtype->get<std::string>();
  const Format* format =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const Format& candidate) { return candidate.name == kind; });
  check(format != std::end(kFormats), kTag,
        "{}: '{}' has dtype {}, wanted F32, F64, F16, BF16 or I64", path, name, shown(kind));
  check(shape->size() <= Shape::kMaxRank, kTag, "{}: '{}' has {} axes, wanted at most {}", path,
        name, shape->size(), int{Shape::kMaxRank});
  entry.format = format;
  for (const json& size : *shape) {
    const auto elements = size.get<std::uint64_t>();
    check(elements < (std::uint64_t{1} << 62), kTag,
          "{}: '{}' has an axis of {}, wanted less than 2^62", path, name, elements);
    try {
      entry.shape.push_back(static_cast<std::int64_t>(elements));
    } catch (const ShapeError& error) {
      fail<ShapeError>(kTag, "{}: '{}': {}", path, name, error.what());
    }
  }
  return entry;
}

// Tensors must fill the file without gaps or overlaps: anything else is damage.
void check_offsets(const std::string& path, const std::vector<Entry>& entries,
                   std::uint64_t bytes) {
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    check(e.begin == at && e.begin <= e.end, kTag,
          "{}: '{}' lies at bytes {} to {}, wanted from {}", path, shown(e.name), e.begin, e.end,
          at);
    at = e.end;
    if (!e.format) continue;
    const std::uint64_t elements = (e.end - e.begin) / e.format->bytes;
    check(elements == static_cast<std::uint64_t>(e.shape.elements()) &&
              elements * e.format->bytes == e.end - e.begin,
          kTag, "{}: '{}' {} of {} has {} bytes, wanted {} elements of {}", path, shown(e.name),
          e.shape, e.format->name, e.end - e.begin, e.shape.elements(), e.format->bytes);
  }
  check(at == bytes, kTag, "{}: truncated or damaged: the tensors need {} bytes, the file has {}",
        path, at, bytes);
}

void* bytes_of(const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&](auto t) -> void* { return tensor.data<decltype(t)>(); });
}

// Of the bits of 64-bit integers.
void become_doubles(const Tensor& tensor, const std::string& path, const std::string& name) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 53;  // of which doubles hold every one
  double* values = tensor.data<double>();
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const auto value = std::bit_cast<std::int64_t>(values[i]);
    check(value >= -kLargest && value <= kLargest, kTag,
          "{}: element {} of '{}' is {}, wanted integers from -2^53 to 2^53", path, i, shown(name),
          value);
    values[i] = static_cast<double>(value);
  }
}

// What begins with these eight bytes, or their first four, instead.
const char* other_format(std::uint64_t bytes) {
  const auto begins = [&](const char* text) { return std::memcmp(&bytes, text, 4) == 0; };
  if (begins("PK\3\4"))
    return " (a zip, as torch.save, numpy.savez and Keras's save write, not save_file of "
           "safetensors)";
  return begins("\x89HDF") ? " (HDF5, as Keras's save_weights writes, not save_file of safetensors)"
                           : "";
}

Tensor read_tensor(std::FILE* file, const Entry& entry, const std::string& path) {
  Tensor tensor = Tensor::empty(entry.shape, entry.format->dtype);
  if (!entry.format->widen) {
    read_exactly(file, bytes_of(tensor), tensor.bytes(), path);
    if (entry.format->name == kIntegers) become_doubles(tensor, path, entry.name);
    return tensor;
  }
  std::vector<std::uint16_t> stored(static_cast<std::size_t>(tensor.elements()));
  read_exactly(file, stored.data(), stored.size() * sizeof(stored[0]), path);
  std::transform(stored.begin(), stored.end(), tensor.data<float>(), entry.format->widen);
  return tensor;
}

}  // namespace

const Tensor* SafeTensors::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

std::set<std::string> SafeTensors::names() const {
  std::set<std::string> result;
  for (const auto& [name, tensor] : tensors) result.insert(name);
  return result;
}

SafeTensors read_safetensors(const std::string& path,
                             const std::function<bool(const std::string& name)>& wanted) {
  const File file(std::fopen(path.c_str(), "rb"));
  check(file != nullptr, kTag, "{}: cannot open: {}", path, std::strerror(errno));
  const std::uint64_t size = size_of_file(file.get(), path);
  check(size >= 8, kTag, "{}: got {} bytes, wanted at least the 8 of a header's length", path,
        size);
  std::uint64_t length = 0;
  read_exactly(file.get(), &length, 8, path);
  check(length <= std::min(size - 8, kLargestHeader), kTag,
        "{}: truncated or no safetensors file{}: says its header has {} bytes, the file has {}",
        path, other_format(length), length, size);
  std::string text(length, '\0');
  read_exactly(file.get(), text.data(), length, path);
  const json header = parse_header(text);
  check(header.is_object(), kTag, "{}: the header is no JSON object", path);

  SafeTensors content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != kMetadata) {
      entries.push_back(parse_entry(path, name, value, !wanted || wanted(name)));
      continue;
    }
    check(value.is_object(), kTag, "{}: __metadata__ is no JSON object", path);
    for (const auto& [key, item] : value.items()) {
      check(item.is_string(), kTag, "{}: __metadata__ has '{}', which is no text", path,
            shown(key));
      content.metadata[key] = item.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_offsets(path, entries, size - 8 - length);
  for (const Entry& entry : entries) {
    if (entry.format) {
      content.tensors.emplace_back(entry.name, read_tensor(file.get(), entry, path));
      continue;
    }
    check(std::fseek(file.get(), static_cast<long>(entry.end - entry.begin), SEEK_CUR) == 0, kTag,
          "{}: cannot seek: {}", path, std::strerror(errno));
    content.left_out.insert(entry.name);
  }
  return content;
}

}  // namespace keel
