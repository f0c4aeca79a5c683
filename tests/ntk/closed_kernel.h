// A kernel by the plainest loops, for tests of what is built upon kernels.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "../../core/random.h"
#include "../../ntk/kernel.h"

namespace keel::test {

/// scale exp(-|x - x'|^2 / (2 length^2)), times off_diagonal between different rows.
class ClosedKernel : public Kernel {
 public:
  ClosedKernel(std::int64_t width, double length, double scale = 1)
      : width_(width), length_(length), scale_(scale) {}

  double off_diagonal = 1;
  bool cheap = false;

  double entry(const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) const {
    double squared = 0;
    for (std::int64_t c = 0; c < width_; ++c) {
      const double d = a.data<double>()[i * width_ + c] - b.data<double>()[j * width_ + c];
      squared += d * d;
    }
    return scale_ * std::exp(-squared / (2 * length_ * length_)) * (squared > 0 ? off_diagonal : 1);
  }

  std::int64_t input_width() const override { return width_; }
  Device device() const override { return {}; }
  bool cheap_product() const override { return cheap; }

  std::shared_ptr<const Points> points(const Tensor& x) const override {
    return std::make_shared<Rows>(x.clone());
  }

  void gram(const Points& a, const Points& b, const Tensor& into,
            const WorkProgress& = {}) const override {
    for (std::int64_t i = 0; i < a.rows(); ++i)
      for (std::int64_t j = 0; j < b.rows(); ++j) put(into, i * b.rows() + j, a, i, b, j);
  }

  void gram_lower(const Points& a, const Tensor& into,
                  const WorkProgress& progress = {}) const override {
    const auto rows = static_cast<double>(a.rows());
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      for (std::int64_t j = 0; j <= i; ++j) put(into, i * a.rows() + j, a, i, a, j);
      if (progress) progress(static_cast<double>(i + 1) / rows);
    }
  }

  Tensor diag(const Points& a) const override {
    return Tensor::full({a.rows()}, scale_, DType::f64);
  }

  Tensor product(const Points& a, const Tensor& v) const override {
    const std::int64_t k = v.size(1);
    const Tensor into = Tensor::zeros({a.rows(), k}, DType::f64);
    for (std::int64_t i = 0; i < a.rows(); ++i)
      for (std::int64_t j = 0; j < a.rows(); ++j) {
        const double theta = entry(x_of(a), i, x_of(a), j);
        for (std::int64_t c = 0; c < k; ++c)
          into.data<double>()[i * k + c] += theta * v.data<double>()[j * k + c];
      }
    return into;
  }

 private:
  struct Rows : Points {
    explicit Rows(Tensor values) : x(std::move(values)) {}
    std::int64_t rows() const override { return x.size(0); }
    Tensor x;
  };

  static const Tensor& x_of(const Points& p) { return static_cast<const Rows&>(p).x; }

  void put(const Tensor& into, std::int64_t at, const Points& a, std::int64_t i, const Points& b,
           std::int64_t j) const {
    const double value = entry(x_of(a), i, x_of(b), j);
    if (into.dtype() == DType::f32)
      into.data<float>()[at] = static_cast<float>(value);
    else
      into.data<double>()[at] = value;
  }

  std::int64_t width_;
  double length_, scale_;
};

inline std::shared_ptr<ClosedKernel> kernel_of(std::int64_t width, double length,
                                               double scale = 1) {
  return std::make_shared<ClosedKernel>(width, length, scale);
}

inline Tensor draw_points(std::int64_t n, std::int64_t d, std::uint64_t stream) {
  return normal({n, d}, {.seed = 11, .stream = stream}, 1, DType::f64);
}

inline Tensor column(const std::vector<double>& v) {
  return Tensor::from(v, {static_cast<std::int64_t>(v.size()), 1});
}

}  // namespace keel::test
