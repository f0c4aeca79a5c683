#include "../../experiments/npy.h"

#include "../../experiments/table.h"
#include "helpers.h"

namespace keel {
namespace {

// A version 1 or 2 file with this header text, padded as NumPy does.
std::string npy_bytes(std::string header, const std::string& elements, int version = 1) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  header.resize((prefix + header.size() + 64) / 64 * 64 - prefix - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY", 6);
  bytes += {static_cast<char>(version), '\0', static_cast<char>(header.size()), '\0'};
  if (version > 1) bytes += {'\0', '\0'};
  return bytes + header + elements;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

constexpr const char* kMatrix = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
const std::vector<double> kSix = {1, 2, 3, 4, 5, 6.5};

TEST_CASE("npy: what NumPy writes is read") {
  const TemporaryFolder folder;
  for (int version : {1, 2}) {
    const Tensor m = read_npy(folder.file("m.npy", npy_bytes(kMatrix, raw(kSix), version)));
    CHECK(m.shape() == Shape{2, 3});
    CHECK(m.dtype() == DType::f64);
    CHECK(m.to_vector<double>() == kSix);
  }
  const Tensor other = read_npy(  // by another hand than NumPy's
      folder.file("o.npy",
                  npy_bytes("{'shape':(2,3,),\n 'descr':'<f8','fortran_order':False}", raw(kSix))));
  CHECK(other.shape() == Shape{2, 3});
  CHECK(other.to_vector<double>() == kSix);
  const Tensor v = read_npy(
      folder.file("v.npy", npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                                     raw(std::vector<float>{1, 2, 3}))));
  CHECK(v.shape() == Shape{3});
  CHECK(v.dtype() == DType::f32);
}

TEST_CASE("npy: what is written is read back bit for bit, and lies at a multiple of 64") {
  const TemporaryFolder folder;
  const std::string path = folder / "deeper/t.npy";
  for (const Shape& shape :
       {Shape{}, Shape{6}, Shape{2, 3}, Shape{1, 2, 3}, Shape{3, 1, 2, 1}, Shape{0, 4}}) {
    const auto count = static_cast<std::size_t>(shape.elements());
    const std::vector<double> values(kSix.begin(), kSix.begin() + static_cast<long>(count));
    for (DType dtype : {DType::f32, DType::f64}) {
      write_npy(path, Tensor::from(values, shape).to(dtype));
      const Tensor back = read_npy(path);
      CHECK(back.shape() == shape);
      CHECK(back.dtype() == dtype);
      CHECK(back.to_vector<double>() == values);
      CHECK((content_of(path).size() - count * size_of(dtype)) % 64 == 0);
    }
  }
  write_npy(path, Tensor::from(kSix, {2, 3}));
  CHECK(content_of(path) == npy_bytes(kMatrix, raw(kSix)));
}

TEST_CASE("npy: Fortran order, whole numbers and bools, as NumPy writes those of data frames") {
  const auto read = [](const char* dtype, const char* order, const char* shape,
                       const std::string& elements) {
    return parse_npy(npy_bytes(fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}",
                                           dtype, order, shape),
                               elements),
                     "a.npy");
  };
  const Tensor by_columns = read("<f8", "True", "(3, 2)", raw(kSix));
  CHECK(by_columns.shape() == Shape{3, 2});
  CHECK(by_columns.to_vector<double>() == std::vector<double>{1, 4, 2, 5, 3, 6.5});
  const Tensor deep = read("<f4", "True", "(1, 3, 2)", raw(std::vector<float>{1, 2, 3, 4, 5, 6}));
  CHECK(deep.dtype() == DType::f32);
  CHECK(deep.to_vector<double>() == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(read("<f8", "True", "(6,)", raw(kSix)).to_vector<double>() == kSix);
  CHECK(read("<f8", "True", "(0, 3)", "").shape() == Shape{0, 3});
  CHECK(read("<f8", "True", "()", raw(std::vector<double>{7})).item() == 7);

  using Values = std::vector<double>;
  constexpr std::int64_t kLargest = std::int64_t{1} << 53;
  const Tensor whole =
      read("<i8", "True", "(2, 2)", raw(std::vector<std::int64_t>{-1, kLargest, -kLargest, 0}));
  CHECK(whole.dtype() == DType::f64);
  CHECK(whole.to_vector<double>() == Values{-1, -0x1p53, 0x1p53, 0});
  CHECK(read("<u8", "False", "(2,)", raw(std::vector<std::uint64_t>{3, 1u << 31}))
            .to_vector<double>() == Values{3, 0x1p31});
  CHECK(read("<i4", "False", "(2,)", raw(std::vector<std::int32_t>{-5, INT32_MIN}))
            .to_vector<double>() == Values{-5, -0x1p31});
  CHECK(read("<u4", "False", "(1,)", raw(std::vector<std::uint32_t>{UINT32_MAX})).item() ==
        0x1p32 - 1);
  CHECK(read("<i2", "False", "(2,)", raw(std::vector<std::int16_t>{-2, 300})).to_vector<double>() ==
        Values{-2, 300});
  CHECK(read("<u2", "False", "(1,)", raw(std::vector<std::uint16_t>{65535})).item() == 65535);
  CHECK(read("|i1", "False", "(2,)", "\xff\x05").to_vector<double>() == Values{-1, 5});
  CHECK(read("|u1", "False", "(1,)", "\xff").item() == 255);
  CHECK(read("|b1", "False", "(3,)", std::string("\x01\x00\x01", 3)).to_vector<double>() ==
        Values{1, 0, 1});
}

TEST_CASE("npy: what cannot be used is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  const auto refused = [&](const std::string& bytes) {
    folder.file("a.npy", bytes);
    const std::string message = message_of<DataError>([&] { read_npy(path); });
    REQUIRE(message.starts_with(path + ": "));
    return message.substr(path.size() + 2);
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string header = kMatrix;
    header.replace(header.find(from), from.size(), to);
    return npy_bytes(header, raw(kSix));
  };
  CHECK(refused("1,2,3\n") == "got no .npy file (it does not start with \\x93NUMPY)");
  for (const char* dtype : {"<f2", ">f8", ">i4", "<c16", "|S8"})
    CHECK(refused(with("<f8", dtype)) ==
          fmt::format("got dtype '{}', wanted '<f4' (float32), '<f8' (float64) or whole numbers",
                      dtype));
  CHECK(refused(with("<f8", "<u8")) ==  // 1.0, bit by bit
        "got the whole number 4607182418800017408, wanted up to 2^53, as float64 holds them");
  CHECK(refused(with("(2, 3)", "(1, 1, 1, 2, 3)")) ==
        "got shape (1, 1, 1, 2, 3), wanted at most 4 axes");
  CHECK(refused(with("(2, 3)", "(2, 4)")) ==
        "shape [2, 4] needs 8 elements, the file is cut short after 6");
  CHECK(refused(npy_bytes(kMatrix, raw(kSix)) + "more") ==
        "got 4 bytes more than shape [2, 3] needs: wanted one array");
  CHECK(refused(with("(2, 3)", "(-2, 3)")) ==
        "got shape (-2, 3), wanted whole numbers as in (2, 3) or (2,)");
  for (const char* no_tuple : {"(6)", "(2 3)", "(2,,3)", "(,)", "(02, 3)", "(2L, 3L)", "6", "[6,]"})
    CHECK(refused(with("(2, 3)", no_tuple)) ==
          fmt::format("got shape {}, wanted whole numbers as in (2, 3) or (2,)", no_tuple));
  CHECK(refused(with("(2, 3)", "(4611686018427387904, 4611686018427387904)")) ==
        "got shape (4611686018427387904, 4611686018427387904), wanted fewer elements than 2^63");
  CHECK(refused(with("'<f8'", "[('<f8', '<f4'), ('b', '<f4')]")) ==
        "got the structured dtype [('<f8', '<f4'), ('b', '<f4')], wanted '<f4' (float32) or '<f8' "
        "(float64): numpy.lib.recfunctions.structured_to_unstructured makes columns of its fields");
  CHECK(refused(with("False", "0")) == "got fortran_order 0, wanted True or False");
  CHECK(refused(with("'descr'", "'x': 1, 'descr'")) == "the .npy header has no readable 'descr'");
  CHECK(refused(with(", }", ", 'shape': (6,)}")).starts_with("got .npy header {'descr': '<f8', "));
  CHECK(refused(with("<f8", "<\nf8")) ==
        "got dtype '<?f8', wanted '<f4' (float32), '<f8' (float64) or whole numbers");
  std::string minor = npy_bytes(kMatrix, raw(kSix));
  minor[7] = 2;
  CHECK(refused(minor) == "got .npy version 1.2, wanted 1.0");
  CHECK(refused(with("'shape'", "'form'")) == "the .npy header has no readable 'shape'");
  CHECK(refused(npy_bytes(kMatrix, raw(kSix)).substr(0, 60)) == "the .npy header is cut short");
  CHECK(refused(npy_bytes(kMatrix, raw(kSix)).substr(0, 7)) == "the .npy header is cut short");
  CHECK(refused(npy_bytes(kMatrix, raw(kSix), 9)) == "got .npy version 9, wanted 1, 2 or 3");
  std::vector<double> broken = kSix;
  broken[4] = std::nan("");
  CHECK(refused(npy_bytes(kMatrix, raw(broken))) ==
        "element 4 of 6 (from 0, in C order) is nan, wanted finite numbers");
  CHECK(message_of<DataError>([&] { read_npy(folder / "none.npy"); }) ==
        folder / "none.npy" + ": there is no such file");
}

}  // namespace
}  // namespace keel
