#include "../../core/error.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "../../core/device.h"
#include "../../core/shape.h"

using namespace keel;

// Counts how often it is turned into text.
struct Spy {
  int* formatted;
};
template <>
struct fmt::formatter<Spy> : fmt::formatter<int> {
  template <class Context>
  auto format(const Spy& spy, Context& context) const {
    return fmt::formatter<int>::format(++*spy.formatted, context);
  }
};

TEST_CASE("an error reads tag, got, wanted") {
  CHECK_THROWS_WITH_AS(fail("layer_norm", "got {} columns, wanted {}", 3, 4),
                       "layer_norm: got 3 columns, wanted 4", Error);
  CHECK_THROWS_WITH_AS(check(false, "adam", "got lr {}, wanted lr >= 0", -0.5),
                       "adam: got lr -0.5, wanted lr >= 0", Error);
  try {
    fail("dense", "no");
  } catch (const Error& error) {
    CHECK(error.tag() == "dense");
    CHECK(std::string(error.what()) == "dense: no");
  }
}

TEST_CASE("an error is one line, whatever the text in it") {
  CHECK_THROWS_WITH_AS(fail("a\nb.csv", "got '{}'", "x\x1b[2J\x7f"), "a?b.csv: got 'x?[2J?'",
                       Error);
  try {
    fail("a\nb.csv", "{}", std::string(100000, 'x'));
  } catch (const Error& error) {
    CHECK(error.tag() == "a\nb.csv");
    CHECK(std::string(error.what()).size() < 9000);
  }
  CHECK(shown("12345", 5) == "12345");
  CHECK(shown("123456", 5) == "12345...");
  CHECK(shown("123\xC3\xA9\xC3\xA9", 6) == "123\xC3\xA9...");  // no half of a character
}

TEST_CASE("braces inside a formatted part stay as they are") {
  CHECK_THROWS_WITH_AS(fail("data", "got '{}'", "{0}"), "data: got '{0}'", Error);
}

TEST_CASE("a check that holds throws nothing and formats nothing") {
  int formatted = 0;
  CHECK_NOTHROW(check(true, "op", "got {}", Spy{&formatted}));
  CHECK(formatted == 0);
  CHECK_THROWS_WITH_AS(check(false, "op", "got {}", Spy{&formatted}), "op: got 1", Error);
}

TEST_CASE("each kind of error is caught as itself, as Error and as a standard exception") {
  CHECK_THROWS_AS(fail<ShapeError>("op", "no"), ShapeError);
  CHECK_THROWS_AS(fail<ShapeError>("op", "no"), Error);
  CHECK_THROWS_AS(fail<DeviceError>("op", "no"), DeviceError);
  CHECK_THROWS_AS(fail<DeviceError>("op", "no"), std::runtime_error);
  CHECK_THROWS_AS(check<DeviceError>(false, "op", "no"), DeviceError);

  const auto kind_of = [](auto thrower) -> std::string {
    try {
      thrower();
    } catch (const ShapeError&) {
      return "shape";
    } catch (const DeviceError&) {
      return "device";
    } catch (const OutOfMemory&) {
      return "memory";
    } catch (const Error&) {
      return "plain";
    }
    return "none";
  };
  CHECK(kind_of([] { fail("op", "no"); }) == "plain");
  CHECK(kind_of([] { fail<ShapeError>("op", "no"); }) == "shape");
  CHECK(kind_of([] { fail<DeviceError>("op", "no"); }) == "device");
  CHECK(kind_of([] { throw OutOfMemory("op", "no", 2, 1); }) == "memory");
}

TEST_CASE("OutOfMemory carries its numbers") {
  const OutOfMemory error("memory", "needs 200, 100 free", 200, 100);
  CHECK(error.needed() == 200);
  CHECK(error.free() == 100);
  CHECK(error.tag() == "memory");
  CHECK(std::string(error.what()) == "memory: needs 200, 100 free");
}

TEST_CASE("NotPositiveDefinite carries its pivot and the repeated rows") {
  const NotPositiveDefinite error("regression", "is singular", 3, {{3, 1}, {7, 0}});
  CHECK(error.pivot() == 3);
  CHECK(error.repeated_rows() == NotPositiveDefinite::Pairs{{3, 1}, {7, 0}});
  CHECK(error.tag() == "regression");
  CHECK(std::string(error.what()) == "regression: is singular");
  CHECK(NotPositiveDefinite("regression", "no", -1).repeated_rows().empty());
}

TEST_CASE("shapes and devices format themselves") {
  CHECK(fmt::format("{}", Shape{4096, 768}) == "[4096, 768]");
  CHECK(fmt::format("{}", Shape{7}) == "[7]");
  CHECK(fmt::format("{}", Shape{}) == "[]");
  CHECK(fmt::format("{}", Shape{1, 0, 3, 4}) == "[1, 0, 3, 4]");
  CHECK(fmt::format("{:>8}|", Shape{2}) == "     [2]|");
  CHECK(fmt::format("{}", Device::cpu()) == "cpu");
}

TEST_CASE("bytes are written for people") {
  constexpr std::size_t kOne = 1;
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1) == "1 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.0 KiB");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(5 * (kOne << 20)) == "5.0 MiB");
  CHECK(human_bytes(24 * (kOne << 30)) == "24.0 GiB");
  CHECK(human_bytes(kOne << 40) == "1.0 TiB");
  CHECK(human_bytes(kOne << 50) == "1.0 PiB");
  CHECK(human_bytes(~std::size_t{0}) == "16.0 EiB");
}
