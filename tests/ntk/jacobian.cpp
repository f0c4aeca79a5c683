#include "../../ntk/jacobian.h"

#include <doctest/doctest.h>

#include "../../core/threads.h"
#include "../../kernels/arithmetic.h"
#include "../bits.h"
#include "../gpu.h"
#include "explicit_jacobian.h"
#include "jacobian_helpers.h"

using namespace jacobian_helpers;
using explicit_jacobian::Explicit;

TEST_CASE("jacobian: the factored Gram matrix is J J' written out, to 1e-12") {
  for (const char* spec :
       {"dense(1)", "dense(2)", "dense(1) relu dense(1)", "dense(33) relu dense(17) silu dense(1)",
        kDeep, "dense(5) layernorm dense(2)", "dense(40) layernorm relu dense(130) dense(1)"})
    for (const auto parameterisation : {Parameterisation::standard, Parameterisation::ntk}) {
      CAPTURE(spec);
      const Net net(spec, 3, options(parameterisation));
      const Tensor x = inputs(35, 3, 1), x2 = inputs(18, 3, 2);
      const Explicit a = explicit_jacobian::of(net, x), b = explicit_jacobian::of(net, x2);
      const Jacobian j(net, x), j2(net, x2);
      CHECK(j.rows() == 35);
      CHECK(j.parameters() == net.parameters_per_member());
      CHECK(error_of(j.gram(j2), [&](auto i, auto k) { return a.trace(b, i, k); }) < 1e-12);
      CHECK(error_of(j2.gram(), [&](auto i, auto k) { return b.trace(b, i, k); }) < 1e-12);
      const Tensor diagonal = j.diag();
      CHECK(error_of(diagonal.reshape({1, 35}), [&](auto, auto k) { return a.trace(a, k, k); }) <
            1e-12);
    }
}

TEST_CASE("jacobian: any number of samples, on either side") {
  const Net net("dense(20) relu dense(20) dense(1)", 2, options(Parameterisation::ntk));
  for (const int64_t n : {0, 1, 2, 33, 130})
    for (const int64_t m : {0, 1, 33, 131}) {
      CAPTURE(n);
      CAPTURE(m);
      const Tensor x = inputs(n, 2, 1), x2 = inputs(m, 2, 2);
      const Explicit a = explicit_jacobian::of(net, x), b = explicit_jacobian::of(net, x2);
      const Tensor gram = Jacobian(net, x).gram(Jacobian(net, x2));
      CHECK(gram.shape() == Shape{n, m});
      CHECK(error_of(gram, [&](auto i, auto k) { return a.trace(b, i, k); }) < 1e-12);
    }
  const Jacobian none(net, inputs(0, 2, 1));
  CHECK(none.diag().shape() == Shape{0});
  CHECK(none.apply(net.flat()).shape() == Shape{0, 1});
  for (double v : none.apply_transpose(Tensor::zeros({0, 1}, DType::f64)).to_vector<double>())
    CHECK(v == 0);
}

TEST_CASE("jacobian: modes full, diag and trace keep the blocks they say") {
  const Net net(kDeep, 3, options(Parameterisation::standard));
  const Tensor x = inputs(19, 3, 1), x2 = inputs(34, 3, 2);
  const Explicit a = explicit_jacobian::of(net, x), b = explicit_jacobian::of(net, x2);
  const Jacobian j(net, x), j2(net, x2);
  const Tensor full = j.gram(j2, OutputMode::full), diag = j.gram(j2, OutputMode::diag);
  CHECK(full.shape() == Shape{19, 34, 3, 3});
  CHECK(diag.shape() == Shape{3, 19, 34});
  const auto blocks = full.to_vector<double>();
  const Tensor trace = j.gram(j2);
  for (int64_t c = 0; c < 3; ++c) {
    const Tensor kept = diag[c];
    CHECK(error_of(kept, [&](auto i, auto k) { return a.dot(b, i, c, k, c); }) < 1e-12);
    for (int64_t d = 0; d < 3; ++d) {
      std::vector<double> values;
      for (int64_t e = 0; e < 19 * 34; ++e) values.push_back(blocks[e * 9 + c * 3 + d]);
      const Tensor one = Tensor::from(values, {19, 34});
      CHECK(error_of(one, [&](auto i, auto k) { return a.dot(b, i, c, k, d); }) < 1e-12);
      if (c == d) CHECK(test::relative_difference(one, kept) < 1e-14);
    }
  }
  CHECK(error_of(trace, [&](auto i, auto k) { return a.trace(b, i, k); }) < 1e-12);
}

TEST_CASE("jacobian: mode full is the same for few samples, for many, and for itself") {
  for (const int64_t members : {1, 2}) {
    const Net net("dense(5) layernorm relu dense(3)", 3, options(Parameterisation::ntk, members));
    const Tensor x = inputs(350, 3, 1);  // 350 x 350 x 9 entries: pair by pair of outputs
    const Jacobian many(net, x), few(net, x.slice(100, 120));
    const Tensor whole = many.gram(OutputMode::full, true);
    const Tensor rows = few.gram(many, OutputMode::full, true);
    CHECK(test::relative_difference(rows, whole.slice(100, 120)) < 1e-14);
    const Tensor square = few.gram(OutputMode::full, true);
    Tensor cut = Tensor::empty({20, 20, 3, 3}, DType::f64);
    for (int64_t k = 0; k < 20; ++k) copy(cut[k], rows[k].slice(100, 120));
    CHECK(test::relative_difference(square, cut) < 1e-14);
    const auto values = square.to_vector<double>();
    const auto at = [&](int64_t k, int64_t l, int64_t c, int64_t d) {
      return values[((k * 20 + l) * 3 + c) * 3 + d];
    };
    int wrong = 0;
    for (int64_t e = 0; e < 20 * 20 * 9; ++e) {
      const int64_t k = e / 180, l = e / 9 % 20, c = e / 3 % 3, d = e % 3;
      wrong += at(k, l, c, d) != at(l, k, d, c);
    }
    CHECK(wrong == 0);
    const Tensor total = Tensor::zeros({20, 20, 3, 3}, DType::f64);
    for (const auto& block : few.blocks(few, OutputMode::full, true)) accumulate(total, block.gram);
    CHECK(test::relative_difference(total, square) < 1e-14);
  }
}

TEST_CASE("jacobian: each parameter's own block, which add up to the whole") {
  for (const auto parameterisation : {Parameterisation::standard, Parameterisation::ntk}) {
    const Net net(kDeep, 3, options(parameterisation));
    const Tensor x = inputs(21, 3, 1);
    const Explicit a = explicit_jacobian::of(net, x);
    const Jacobian j(net, x);
    const auto blocks = j.blocks(j);
    REQUIRE(blocks.size() == net.layout().entries().size());
    const Tensor total = Tensor::zeros({21, 21}, DType::f64);
    for (std::size_t p = 0; p < blocks.size(); ++p) {
      CAPTURE(p);
      CHECK(blocks[p].name == net.layout().entries()[p].name);
      CHECK(error_of(blocks[p].gram, [&](auto i, auto k) {
              return a.trace(a, i, k, static_cast<int>(p));
            }) < 1e-12);
      accumulate(total, blocks[p].gram);
    }
    CHECK(test::relative_difference(total, j.gram()) < 1e-14);
  }
}

TEST_CASE("jacobian: an ensemble is each member alone, and their mean") {
  for (const char* spec : {kDeep, "dense(4) relu layernorm dense(2)", "dense(2)"})
    for (const bool own : {false, true}) {
      CAPTURE(spec);
      CAPTURE(own);
      const Net net(spec, 3, options(Parameterisation::ntk, 3));
      const Tensor x = own ? normal({3, 20, 3}, {1, 0}, 1, DType::f64) : inputs(20, 3, 1);
      const Jacobian all(net, x);
      const Tensor gram = all.gram(), diag = all.diag(), by_output = all.gram(OutputMode::diag);
      CHECK(gram.shape() == Shape{3, 20, 20});
      CHECK(diag.shape() == Shape{3, 20});
      CHECK(by_output.shape() == Shape{3, net.output_width(), 20, 20});
      const Tensor total = Tensor::zeros({20, 20}, DType::f64),
                   diagonals = Tensor::zeros({20}, DType::f64),
                   full =
                       Tensor::zeros({20, 20, net.output_width(), net.output_width()}, DType::f64);
      for (int64_t s = 0; s < 3; ++s) {
        const Jacobian one(net.member(s), own ? x[s] : x);
        CHECK(same_bits(gram[s], one.gram()));
        CHECK(same_bits(diag[s], one.diag()));
        CHECK(same_bits(by_output[s], one.gram(OutputMode::diag)));
        accumulate(total, gram[s]);
        accumulate(diagonals, diag[s]);
        accumulate(full, one.gram(OutputMode::full));
      }
      const auto third = [](const Tensor& t) { return scale(Var(t), 1.0 / 3).value(); };
      CHECK(test::relative_difference(all.gram(OutputMode::trace, true), third(total)) < 1e-14);
      CHECK(test::relative_difference(all.gram(OutputMode::full, true), third(full)) < 1e-14);
      CHECK(test::relative_difference(all.diag(true), third(diagonals)) < 1e-14);
      const Tensor into = Tensor::empty({20, 20}, DType::f64);
      all.gram_into(all, into);
      CHECK(same_bits(into, all.gram(OutputMode::trace, true)));
    }
}

TEST_CASE("jacobian: the lower triangle has the bits of the whole, and leaves the rest alone") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t n : {1, 31, 33, 130, 300}) {
      CAPTURE(n);
      const Net net("dense(16) relu dense(2)", 2, options(Parameterisation::ntk, 2, dtype));
      const Jacobian j(net, inputs(n, 2, 1, dtype));
      const Tensor into = Tensor::full({n, n}, -7, dtype), all = Tensor::empty({n, n}, dtype);
      j.gram_into(j, all);
      CHECK(same_bits(j.gram(OutputMode::trace, true), all));
      const auto whole = all.to_vector<double>();
      j.gram_lower_into(into);
      const auto lower = into.to_vector<double>(), zeroed = j.gram_lower(true).to_vector<double>();
      int wrong = 0;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < n; ++k) {
          const double wanted = whole[i * n + k];
          wrong += wanted != whole[k * n + i];  // symmetric
          wrong += lower[i * n + k] != (k <= i ? wanted : -7);
          wrong += zeroed[i * n + k] != (k <= i ? wanted : 0);
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("jacobian: an entry has the same bits whatever it is computed along with") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Net net("dense(70) relu dense(50) relu dense(1)", 5,
                  options(Parameterisation::ntk, 1, dtype));
    const Tensor x = inputs(300, 5, 1, dtype);
    const Tensor whole = Jacobian(net, x).gram();
    for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 1}, {7, 8}, {13, 45}, {1, 300}, {32, 96}, {299, 300}}) {
      const Jacobian rows(net, x.slice(begin, end));
      const Tensor part = rows.gram(Jacobian(net, x));
      CHECK(same_bits(part, whole.slice(begin, end)));
    }
    for (const int threads : {1, 3, 5}) {
      const ThreadLimit limit(threads);
      CHECK(same_bits(Jacobian(net, x).gram(), whole));
    }
  }
}

TEST_CASE("jacobian: outputs that share a backward pass, or not, have the same bits") {
  // 1 row: three in a pass; 7000: two and one; 20,000: each alone.
  const Net net("dense(6) layernorm relu dense(5) silu dense(3)", 2,
                options(Parameterisation::ntk, 1, DType::f32));
  const Tensor x = inputs(20000, 2, 1, DType::f32);
  const Tensor all = Jacobian(net, x).diag(), v = net.flat();
  const Tensor applied = Jacobian(net, x).apply(v);
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {5, 7005}, {19999, 20000}}) {
    const Jacobian part(net, x.slice(begin, end));
    CHECK(same_bits(part.diag(), all.slice(begin, end)));
    CHECK(same_bits(part.apply(v), applied.slice(begin, end)));
  }
}

TEST_CASE("jacobian: CUDA agrees with the CPU") {
  if (!test::gpu_here("jacobian: CUDA agrees with the CPU")) return;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t n : {1, 33, test::gpu_is_emulated() ? 130 : 300}) {
      const Net net(kDeep, 3, options(Parameterisation::ntk, 2, dtype));
      NetOptions there = net.options();
      there.device = Device::cuda();
      const Net on_gpu(kDeep, 3, there);
      const Tensor x = inputs(n, 3, 1, dtype);
      const Jacobian j(net, x), g(on_gpu, x.to(Device::cuda()));
      const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-12;
      CHECK(test::relative_difference(g.gram(), j.gram()) < tolerance);
      CHECK(test::relative_difference(g.gram_lower(true), j.gram_lower(true)) < tolerance);
      CHECK(test::relative_difference(g.diag(), j.diag()) < tolerance);
      CHECK(test::relative_difference(g.gram(OutputMode::full, true),
                                      j.gram(OutputMode::full, true)) < tolerance);
      const Tensor v = normal({n, 2}, {4, 0}, 1, dtype);
      CHECK(test::relative_difference(g.product(v.to(Device::cuda())), j.product(v)) < tolerance);
    }
}
