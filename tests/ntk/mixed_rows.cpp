// What is said of one input at a time refuses a net whose batchnorms take statistics of many.
#include <doctest/doctest.h>

#include "../../core/random.h"
#include "../../nn/frozen.h"
#include "../../ntk/empirical_kernel.h"
#include "../../ntk/jacobian.h"
#include "../../ntk/net_bound.h"
#include "../../ntk/precise_net.h"
#include "../message_of.h"

using namespace keel;

TEST_CASE("nets that mix rows are refused, and taken once they are frozen") {
  const char* spec = "dense(4) layernorm batchnorm relu dense(1)";
  const Net net(spec, 3, {.seed = 1, .dtype = DType::f64});
  const Tensor x = normal({9, 3}, {1, 0}, 1, DType::f64);
  const std::string wanted =
      ": got 'dense(4) layernorm batchnorm relu dense(1)', wanted a net of one row at a time: in "
      "training a batchnorm takes statistics of all rows (frozen() makes a net that keeps them)";
  CHECK(message_of([&] { Jacobian(net, x); }) == "jacobian" + wanted);
  CHECK(message_of([&] { EmpiricalKernel(net.clone()); }) == "empirical_kernel" + wanted);
  CHECK(message_of([&] { bound_net(net); }) == "net_bound" + wanted);
  CHECK(message_of([&] { evaluate_precisely(net, {1, 2, 3}); }) == "evaluate_precisely" + wanted);

  const Net plain = frozen(net, x);
  const Interval range = bound_net(plain).outputs[0];
  for (double value :
       plain.predict(normal({500, 3}, {2, 0}, 1e3, DType::f64)).to_vector<double>()) {
    CHECK(value > range.low);
    CHECK(value < range.high);
  }
  CHECK(evaluate_precisely(plain, x.slice(0, 1).to_vector<double>())[0] ==
        doctest::Approx(plain.predict(x.slice(0, 1)).item()).epsilon(1e-12));
  CHECK(EmpiricalKernel(plain.clone()).net().spec().size() == 4);
}
