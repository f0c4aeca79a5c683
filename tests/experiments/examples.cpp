#include "../../experiments/standardiser.h"

#include "helpers.h"

namespace keel {
namespace {

using Values = std::vector<double>;

const Table kTraining = parse_table("a,y,b\n1,10,5\n3,20,5\n", "train.csv");

TEST_CASE("examples: every column but the target is a feature") {
  const Examples examples = training_examples(kTraining, "y");
  CHECK(examples.rows == 2);
  CHECK(examples.features == 2);
  CHECK(examples.x == Values{1, 5, 3, 5});
  CHECK(examples.y == Values{10, 20});
  CHECK(examples.names == std::vector<std::string>{"a", "b"});
  CHECK(message_of<DataError>([] { training_examples(parse_table("1\n2", "d"), "0"); }) ==
        "d: got 1 column, wanted the target and at least one feature");
}

TEST_CASE("examples: a deviation below the smallest number divides nothing") {
  const Examples examples = training_examples(parse_table("0,1\n5e-324,2\n", "d"), "1");
  CHECK(Standardiser(Standardise::x, examples).x(examples) == Values{0, 5e-324});
}

TEST_CASE("examples: a test table by name, by place, with and without the target") {
  const auto test = [](const char* text) {
    return test_examples(parse_table(text, "test.csv"), kTraining, "y");
  };
  const Examples shuffled = test("b,more,y,a\n7,0,30,8\n");
  CHECK(shuffled.x == Values{8, 7});
  CHECK(shuffled.y == Values{30});
  CHECK(test("b,a\n7,8\n").x == Values{8, 7});
  CHECK(test("b,a\n7,8\n").y.empty());
  CHECK(test("8,30,7").x == Values{8, 7});
  CHECK(test("8,30,7").y == Values{30});
  CHECK(test("8 7").x == Values{8, 7});
  CHECK(test("8 7").y.empty());
  CHECK(message_of<DataError>([&] { test("a,y\n1,2\n"); }) ==
        "test.csv: line 1: there is no column 'b', which train.csv has");
  CHECK(message_of<DataError>([&] { test("1,2,3,4"); }) ==
        "test.csv: got 4 columns, wanted the 3 of train.csv, with or without the target");
}

TEST_CASE("examples: names that repeat are no names, but have to be the same") {
  const auto test = [](const char* training, const char* text) {
    return test_examples(parse_table(text, "test.csv"), parse_table(training, "train.csv"), "y");
  };
  CHECK(test("a,a,y\n1,2,3\n", "a,a,y\n4,5,6\n").x == Values{4, 5});
  CHECK(test("a,a,y\n1,2,3\n", "a,a\n4,5\n").x == Values{4, 5});
  CHECK(test("a,a,y\n1,2,3\n", "4,5,6\n").x == Values{4, 5});
  const std::pair<const char*, const char*> pairs[] = {
      {"a,a,y", "y,a,a"}, {"a,a,y", "p,q,z"}, {"a,b,y", "y,a,a"}, {"a,a,y", "b,b"}};
  for (const auto& pair : pairs) {
    const std::string training = std::string(pair.first) + "\n1,2,3\n";
    std::string text = std::string(pair.second) + "\n4,5,6\n";
    if (text.starts_with("b,b")) text = "b,b\n4,5\n";
    CHECK(message_of<DataError>([&] { test(training.c_str(), text.c_str()); }) ==
          "test.csv: line 1: names repeat here or in train.csv: wanted the same ones in the same "
          "order, with or without the target");
  }
}

TEST_CASE("examples: standardised by the training rows' mean and population deviation") {
  const Examples examples = training_examples(kTraining, "y");
  const Examples far = test_examples(parse_table("5 40 6", "t"), kTraining, "y");
  const Standardiser none(Standardise::none, examples), x(Standardise::x, examples),
      xy(Standardise::xy, examples);
  CHECK(none.x(far) == Values{5, 6});
  CHECK(none.y(far) == Values{40});
  CHECK(x.x(examples) == Values{-1, 0, 1, 0});
  CHECK(x.x(far) == Values{3, 1});
  CHECK(x.y(far) == Values{40});
  CHECK(x.y_in_own_units(2) == 2);
  CHECK(xy.x(far) == Values{3, 1});
  CHECK(xy.y(far) == Values{5});
  CHECK(xy.y_in_own_units(5) == 40);
  for (const Standardiser& any : {none, x, xy})
    CHECK(any.constant_features() == std::vector<std::int64_t>{1});
  // Its mean is not 0.1 in doubles, yet nothing changes here.
  const Standardiser constant(Standardise::xy,
                              training_examples(parse_table("0.1 2\n0.1 2\n0.1 2\n", "d"), "1"));
  CHECK(constant.x(training_examples(parse_table("0.1 2", "d"), "1")) == Values{0});
  CHECK(constant.y_in_own_units(0) == 2);
  // Neither do squares overflow, nor do they vanish.
  for (const char* text : {"1e300 1\n3e300 2\n", "1e-300 1\n3e-300 2\n"}) {
    const Examples extreme = training_examples(parse_table(text, "d"), "1");
    const Values standardised = Standardiser(Standardise::x, extreme).x(extreme);
    CHECK(standardised[0] == doctest::Approx(-1).epsilon(1e-12));
    CHECK(standardised[1] == doctest::Approx(1).epsilon(1e-12));
  }
  CHECK(parse_standardise("xy") == Standardise::xy);
  CHECK_THROWS_WITH_AS(parse_standardise("yes"), "standardise: got 'yes', wanted none, x or xy",
                       Error);
}

TEST_CASE("ignored columns may hold anything, and are no features, in both tables") {
  const auto parsed = [](const char* text, const char* file, std::vector<std::string> columns) {
    return parse_table(text, file, 1, ignored_columns(std::move(columns)));
  };
  const Table training =
      parsed("id,a,day,y,b\nx1,1,mon,10,5\nx2,3,,20,6\n", "train.csv", {"id", "2"});
  const Examples examples = training_examples(training, "y");
  CHECK(examples.names == std::vector<std::string>{"a", "b"});
  CHECK(examples.x == Values{1, 5, 3, 6});
  CHECK(examples.y == Values{10, 20});
  CHECK(training_examples(training, "-2").x == examples.x);  // numbers are those of the file

  const auto tested = [&](const char* text) {
    return test_examples(parse_table(text, "test.csv", 1, ignored_as_in(training, "y")), training,
                         "y");
  };
  for (const char* text : {"id,a,day,y,b\nq,7,tue,1,8\n", "b,a\n8,7\n", "b,day,y,a\n8,wed,1,7\n",
                           "q,7,tue,1,8\n", "q,7,tue,8\n"}) {
    CAPTURE(text);
    CHECK(tested(text).x == Values{7, 8});
  }
  // Columns that training has not may hold anything, too.
  CHECK(tested("b,more,a\n8,text,7\n").x == Values{7, 8});
  CHECK(message_of<DataError>([&] { tested("7,8\n"); }) ==
        "test.csv: got 2 columns, wanted the 5 of train.csv, with or without the target");
}

}  // namespace
}  // namespace keel
