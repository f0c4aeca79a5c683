#include "../../core/tensor.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <numeric>

using namespace keel;

// Says so by the test's name.
static bool no_gpu() {
  if (cuda_device_count() == 0) MESSAGE("skipped: no GPU is visible");
  return cuda_device_count() == 0;
}

// 0, 1, 2, ... in float32.
static Tensor counting(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(values, shape);
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST_CASE("a tensor is created filled, empty, or from values") {
  const Tensor full = Tensor::full({2, 3}, 1.5, DType::f64);
  CHECK(full.shape() == Shape{2, 3});
  CHECK(full.rank() == 2);
  CHECK(full.size(0) == 2);
  CHECK(full.size(-1) == 3);
  CHECK(full.elements() == 6);
  CHECK(full.bytes() == 48);
  CHECK(full.dtype() == DType::f64);
  CHECK(full.device() == Device::cpu());
  CHECK(full.to_vector<double>() == Doubles(6, 1.5));

  CHECK(Tensor::zeros({3}).to_vector<float>() == Floats(3, 0.0f));
  CHECK(Tensor::zeros({3}).dtype() == DType::f32);
  CHECK(Tensor::empty({4, 5}).bytes() == 80);

  const Doubles values = {1, 2, 3, 4, 5, 6};
  const Tensor from = Tensor::from(values, {3, 2});
  CHECK(from.dtype() == DType::f64);
  CHECK(from.to_vector<double>() == values);
  CHECK(from[1].to_vector<double>() == Doubles{3, 4});  // row-major
}

TEST_CASE("values that do not fill the shape are refused") {
  const Floats values(5);
  CHECK_THROWS_WITH_AS(Tensor::from(values, {2, 3}), "tensor: got 5 values, wanted 6 for [2, 3]",
                       ShapeError);
  CHECK_THROWS_AS(Tensor::from(Floats(), {}), ShapeError);
}

TEST_CASE("a tensor of more bytes than 64 bits count, or than there are, is refused") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  CHECK_THROWS_WITH_AS(Tensor::empty({kHuge}, DType::f64),
                       "tensor: [2305843009213693952] of float64 has more bytes than 64 bits can "
                       "count",
                       ShapeError);
  CHECK_THROWS_AS(Tensor::empty({kHuge}, DType::f32), OutOfMemory);
  CHECK_THROWS_AS(Tensor::zeros({std::int64_t{1} << 40, 1024}, DType::f64), OutOfMemory);
}

TEST_CASE("float64 becomes float32 by rounding, and float32 becomes float64 exactly") {
  const Doubles values = {0.1, -1e-300, 1e300, 16777217.0};
  const Tensor narrow = Tensor::from(values, {4}).to(DType::f32);
  CHECK(narrow.dtype() == DType::f32);
  CHECK(narrow.to_vector<float>() ==
        Floats{0.1f, -0.0f, std::numeric_limits<float>::infinity(), 16777216.0f});
  CHECK(narrow.to(DType::f64).to_vector<double>()[0] == static_cast<double>(0.1f));
  CHECK(Tensor::from(values, {4}).to_vector<float>() == narrow.to_vector<float>());
  CHECK(narrow.to_vector<double>()[0] == static_cast<double>(0.1f));
  CHECK(narrow.to(DType::f32).shares_storage(narrow));  // nothing to do
  CHECK(narrow.to(Device::cpu()).shares_storage(narrow));
  CHECK_FALSE(narrow.to(DType::f64).shares_storage(narrow));
}

TEST_CASE("slices, indices and reshapes share storage") {
  const Tensor x = counting({4, 3});
  const Tensor middle = x.slice(1, 3);
  CHECK(middle.shape() == Shape{2, 3});
  CHECK(middle.to_vector<float>() == Floats{3, 4, 5, 6, 7, 8});
  CHECK(middle.shares_storage(x));
  CHECK(middle[1].shape() == Shape{3});
  CHECK(middle[1].to_vector<float>() == Floats{6, 7, 8});
  CHECK(middle[1][2].shape() == Shape{});
  CHECK(middle[1][2].item() == 8);
  CHECK(middle.slice(1, 2).to_vector<float>() == Floats{6, 7, 8});
  CHECK(x.reshape({2, 6})[1].to_vector<float>() == Floats{6, 7, 8, 9, 10, 11});
  CHECK(middle.reshape({3, 2}).to_vector<float>() == middle.to_vector<float>());

  fill(middle[0], -1);  // a write through any of them is seen by all
  CHECK(x.to_vector<float>() == Floats{0, 1, 2, -1, -1, -1, 6, 7, 8, 9, 10, 11});
  fill(x.reshape({12}).slice(0, 1), 7);
  CHECK(x[0][0].item() == 7);
  const Tensor handle = x;
  fill(handle, 2);
  CHECK(x.to_vector<float>() == Floats(12, 2.0f));

  const Tensor cube = counting({2, 2, 2});
  CHECK(cube[1].shape() == Shape{2, 2});
  CHECK(cube[1].to_vector<float>() == Floats{4, 5, 6, 7});
  CHECK(counting({2, 1, 2, 2})[1].shape() == Shape{1, 2, 2});
  const Tensor wide = Tensor::from(Doubles{1, 2, 3, 4}, {2, 2});
  CHECK(wide[1].to_vector<double>() == Doubles{3, 4});  // offsets count bytes of the dtype
}

TEST_CASE("a clone shares nothing") {
  const Tensor x = counting({2, 3});
  const Tensor copied = x.slice(1, 2).clone();
  CHECK_FALSE(copied.shares_storage(x));
  CHECK(copied.shape() == Shape{1, 3});
  fill(copied, 9);
  CHECK(x.to_vector<float>() == Floats{0, 1, 2, 3, 4, 5});
  fill(x, 0);
  CHECK(copied.to_vector<float>() == Floats{9, 9, 9});
}

TEST_CASE("a tensor knows whether its storage is its alone") {
  Tensor x = counting({4, 3});
  CHECK(x.sole_owner());
  {
    const Tensor row = x[0];
    CHECK_FALSE(x.sole_owner());
    CHECK_FALSE(row.sole_owner());
  }
  CHECK(x.sole_owner());
  const Tensor moved = std::move(x);
  CHECK(moved.sole_owner());
  CHECK_FALSE(Tensor().sole_owner());
}

TEST_CASE("slices and indices outside the tensor are refused") {
  const Tensor x = counting({4, 3});
  CHECK_THROWS_WITH_AS(x.slice(2, 5), "tensor: got slice 2 to 5, wanted one within [4, 3]",
                       ShapeError);
  CHECK_THROWS_AS(x.slice(3, 2), ShapeError);
  CHECK_THROWS_AS(x.slice(-1, 2), ShapeError);
  CHECK_THROWS_WITH_AS(x[4], "tensor: got index 4, wanted one in [4, 3]", ShapeError);
  CHECK_THROWS_WITH_AS(x[-1], "tensor: got index -1, wanted one in [4, 3]", ShapeError);
  const Tensor scalar = Tensor::zeros({});
  CHECK_THROWS_WITH_AS(scalar[0], "tensor: got index 0, wanted one in []", ShapeError);
  CHECK_THROWS_WITH_AS(scalar.slice(0, 0), "tensor: got slice 0 to 0, wanted one within []",
                       ShapeError);
  CHECK_THROWS_WITH_AS(x.size(2), "shape: [4, 3] has no axis 2", ShapeError);
  CHECK_THROWS_WITH_AS(x.reshape({5, 2}), "reshape: got [5, 2] for [4, 3]: 10 elements, wanted 12",
                       ShapeError);
}

TEST_CASE("a tensor that was moved from, or never filled, says so whatever it is asked") {
  Tensor gone = counting({2});
  const Tensor there = std::move(gone);
  CHECK(there.defined());
  const Tensor never;
  for (const Tensor& x : {std::cref(gone), std::cref(never)}) {
    CHECK_FALSE(x.defined());
    const std::vector<std::function<void()>> uses = {
        [&] { x.shape(); },
        [&] { x.rank(); },
        [&] { x.size(0); },
        [&] { x.elements(); },
        [&] { x.dtype(); },
        [&] { x.device(); },
        [&] { x.bytes(); },
        [&] { x.data<float>(); },
        [&] { x.slice(0, 0); },
        [&] { x[0]; },
        [&] { x.reshape({2}); },
        [&] { x.clone(); },
        [&] { x.to(DType::f64); },
        [&] { x.to(Device::cpu()); },
        [&] { x.to_vector<float>(); },
        [&] { x.item(); },
        [&] { fill(x, 0); },
        [&] { copy(x, there); },
        [&] { copy(there, x); },
        [&] { accumulate(x, there); },
        [&] { accumulate(there, x); },
        [&] { check_same_kind("op", "a", there, "b", x); }};
    for (std::size_t i = 0; i < uses.size(); ++i) {
      CAPTURE(i);
      CHECK_THROWS_WITH_AS(uses[i](),
                           "tensor: used after it was moved from, or before it was filled", Error);
    }
  }
  gone = there;  // and may be used again once filled
  CHECK(gone.shares_storage(there));
}

TEST_CASE("elements of another type than the tensor's are refused") {
  CHECK_THROWS_WITH_AS(Tensor::zeros({2}).data<double>(),
                       "tensor: got float32 elements, wanted float64", ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::zeros({2}, DType::f64).data<float>(),
                       "tensor: got float64 elements, wanted float32", ShapeError);
}

TEST_CASE("item reads one element and refuses more or fewer") {
  CHECK(Tensor::full({}, 2.5).item() == 2.5);
  CHECK(Tensor::full({1, 1, 1}, 0.1, DType::f64).item() == 0.1);
  CHECK_THROWS_WITH_AS(Tensor::zeros({2, 3}).item(),
                       "item: got [2, 3] with 6 elements, wanted one element", ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::zeros({0}).item(),
                       "item: got [0] with 0 elements, wanted one element", ShapeError);
}

TEST_CASE("tensors without elements go through every function") {
  for (DType dtype : {DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 3}}) {
      CAPTURE(shape.str());
      const Tensor x = Tensor::zeros(shape, dtype), y = Tensor::full(shape, 1, dtype);
      CHECK(x.defined());
      CHECK(x.bytes() == 0);
      CHECK(x.to_vector<float>().empty());
      CHECK(x.to_vector<double>().empty());
      CHECK(x.clone().shape() == shape);
      CHECK(x.to(DType::f32).shape() == shape);
      CHECK(x.to(DType::f64).dtype() == DType::f64);
      CHECK(x.reshape({0, 7}).shape() == Shape{0, 7});
      CHECK(x.slice(0, 0).elements() == 0);
      CHECK_NOTHROW(fill(x, 3));
      CHECK_NOTHROW(accumulate(x, y));
      CHECK_NOTHROW(copy(x, y));
      CHECK_NOTHROW(copy(x, y.to(dtype == DType::f32 ? DType::f64 : DType::f32)));
      CHECK_THROWS_AS(x.item(), ShapeError);
    }
  }
  CHECK(Tensor::from(Floats(), {0, 3}).shape() == Shape{0, 3});
  CHECK_THROWS_AS((Tensor::zeros({0, 3})[0]), ShapeError);
  CHECK((Tensor::zeros({3, 0})[2].shape() == Shape{0}));
  CHECK(counting({4, 3}).slice(4, 4).shape() == Shape{0, 3});
}

TEST_CASE("fill, copy and accumulate do what they say") {
  for (DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = counting({2, 2}).to(dtype), into = Tensor::empty({2, 2}, dtype);
    fill(into, 0.5);
    CHECK(into.to_vector<double>() == Doubles(4, 0.5));
    accumulate(into, x);
    CHECK(into.to_vector<double>() == Doubles{0.5, 1.5, 2.5, 3.5});
    accumulate(into, into);
    CHECK(into.to_vector<double>() == Doubles{1, 3, 5, 7});
    copy(into, x.reshape({4}));  // shapes may differ, counts may not
    CHECK(into.to_vector<double>() == Doubles{0, 1, 2, 3});
    copy(into, Tensor::full({2, 2}, 0.25, dtype == DType::f32 ? DType::f64 : DType::f32));
    CHECK(into.to_vector<double>() == Doubles(4, 0.25));
    CHECK(into.dtype() == dtype);
  }
  const Tensor x = counting({5});
  copy(x.slice(1, 5), x.slice(0, 4));  // within one storage, overlapping
  CHECK(x.to_vector<float>() == Floats{0, 0, 1, 2, 3});
}

TEST_CASE("tensors that do not fit together are refused by what would combine them") {
  const Tensor narrow = Tensor::zeros({2}), wide = Tensor::zeros({2}, DType::f64);
  CHECK_THROWS_WITH_AS(accumulate(narrow, wide),
                       "accumulate: into is float32, x is float64: wanted one dtype", ShapeError);
  CHECK_THROWS_WITH_AS(accumulate(narrow, Tensor::zeros({3})), "accumulate: got x [3], wanted [2]",
                       ShapeError);
  CHECK_THROWS_AS(accumulate(narrow, Tensor::zeros({2, 1})), ShapeError);
  CHECK_THROWS_WITH_AS(copy(narrow, Tensor::zeros({3})), "copy: got [3] into [2]", ShapeError);
  CHECK_THROWS_WITH_AS(check_same_kind("op", "a", wide, "b", narrow),
                       "op: a is float64, b is float32: wanted one dtype", ShapeError);
  CHECK_NOTHROW(check_same_kind("op", "a", narrow, "b", Tensor::zeros({7})));
}

TEST_CASE("a GPU's tensors hold what the CPU's do, and the two are never mixed in silence") {
  if (no_gpu()) return;
  const Tensor host = counting({4, 3}), there = host.to(Device::cuda());
  CHECK(there.device() == Device::cuda());
  CHECK(there.to_vector<float>() == host.to_vector<float>());
  CHECK(there.to(DType::f64).to_vector<float>() == host.to_vector<float>());
  CHECK(there[2].to_vector<double>() == Doubles{6, 7, 8});
  accumulate(there, there.clone());
  CHECK(there[1].to_vector<float>() == Floats{6, 8, 10});
  copy(host, there);
  CHECK(host[1].to_vector<float>() == Floats{6, 8, 10});
  CHECK_THROWS_WITH_AS(accumulate(host, there),
                       "accumulate: into is on cpu, x on cuda:0: wanted one device", DeviceError);
}
