#include "../../nn/spec.h"

#include <doctest/doctest.h>

#include <limits>

#include "../../core/error.h"
#include "../message_of.h"

using namespace keel;

TEST_CASE("spec: layers, options and blanks") {
  const Spec spec = parse_spec(
      "  dense(128) layernorm\trelu\n dense( 64 ) gelu silu "
      "layernorm( affine = 0 , eps=1e-3 ) dense(1) ");
  REQUIRE(spec.size() == 8);
  CHECK(spec[0] == LayerSpec{.kind = LayerKind::dense, .width = 128});
  CHECK(spec[1] == LayerSpec{.kind = LayerKind::layernorm});
  CHECK(spec[3].width == 64);
  CHECK(spec[6] == LayerSpec{.kind = LayerKind::layernorm, .affine = false, .eps = 1e-3});
}

TEST_CASE("spec: its text parses to itself") {
  for (const char* text :
       {"dense(1)", "dense(128) layernorm relu dense(128) relu dense(1)",
        "dense(3) layernorm(affine=0) silu dense(2)", "dense(3) layernorm(eps=0) gelu dense(2)",
        "dense(3) layernorm(affine=0, eps=0.001) dense(2)",
        "dense(3) rmsnorm relu rmsnorm(eps=1e-05) dense(2) rmsnorm(affine=0, eps=0) dense(2)",
        "identity dense(3) relu identity identity dense(2)",
        "dense(3) leakyrelu tanh dense(2) leakyrelu(slope=0.2) dense(2)",
        "dense(3) prelu dense(2) prelu(slope=0.01) dense(2) prelu(per_unit=1) dense(2) "
        "prelu(slope=0.5, per_unit=1) dense(2)",
        "dense(3) sigmoid dense(2) softplus dense(2) elu dense(1)",
        "dense(3) gelu(tanh=1) dense(2) silu(beta=1.702) dense(1)",
        "dense(3) elu(alpha=0.5) dense(2) selu dense(2) elu(alpha=0) dense(1)",
        "batchnorm dense(3) batchnorm(affine=0, eps=0.1) relu identity batchnorm dense(2)",
        "dense(3) residual(layernorm relu dense(3)) residual(identity dense(4) "
        "leakyrelu(slope=0.2) "
        "identity dense(3) identity) identity residual(relu) dense(2)"}) {
    CHECK(spec_text(parse_spec(text)) == text);
    CHECK(parse_spec(spec_text(parse_spec(text))) == parse_spec(text));
  }
  CHECK(spec_text(parse_spec("dense(3) leakyrelu(slope=0.01) dense(2)")) ==
        "dense(3) leakyrelu dense(2)");
  CHECK(spec_text(parse_spec("dense(3) prelu(per_unit=0, slope=0.25) dense(2)")) ==
        "dense(3) prelu dense(2)");
  CHECK(spec_text(parse_spec("dense(3) elu(alpha=1.0) dense(2)")) == "dense(3) elu dense(2)");
  CHECK(spec_text(parse_spec("dense(3) gelu(tanh=0) silu(beta=1) dense(2)")) ==
        "dense(3) gelu silu dense(2)");
  CHECK(spec_text(parse_spec("dense(3) layernorm(affine=1) dense(2)")) ==
        "dense(3) layernorm dense(2)");
}

TEST_CASE("spec: a norm's eps is PyTorch's where it does not say") {
  const Spec spec = parse_spec("dense(3) rmsnorm layernorm(affine=0) batchnorm dense(1)");
  CHECK(spec[1].eps == std::numeric_limits<float>::epsilon());
  CHECK(spec[2].eps == 1e-5);
  CHECK(spec[3].eps == 1e-5);
  CHECK(spec_text(parse_spec("dense(3) rmsnorm(eps=1.1920928955078125e-07) dense(1)")) ==
        "dense(3) rmsnorm dense(1)");
}

TEST_CASE("spec: identity only counts") {
  const Spec spec = parse_spec("identity dense(3) layernorm identity identity relu dense(2)");
  REQUIRE(spec.size() == 4);
  CHECK(word_of(spec, 0) == 2);
  CHECK(word_of(spec, 1) == 3);
  CHECK(word_of(spec, 2) == 6);
  CHECK(word_of(spec, 3) == 7);
  CHECK(message_of([&] { word_of(spec, 4); }) ==
        "spec: got layer 4, wanted one of the 4 there are");
  CHECK(spec[1] == LayerSpec{.kind = LayerKind::layernorm});
}

TEST_CASE("spec: a residual is where values are kept and where they are added") {
  const Spec spec = parse_spec(
      "dense(4) residual( layernorm\tdense(7) identity relu dense(4) identity ) relu "
      "residual(relu) identity dense(1)");
  REQUIRE(spec.size() == 12);
  CHECK(spec[1] == LayerSpec{.kind = LayerKind::residual});
  CHECK(spec[4] == LayerSpec{.kind = LayerKind::relu, .identities = 1});
  CHECK(spec[6] == LayerSpec{.kind = LayerKind::add, .identities = 1});
  CHECK(spec_text(spec) ==
        "dense(4) residual(layernorm dense(7) identity relu dense(4) identity) relu residual(relu) "
        "identity dense(1)");
  const std::vector<std::string> numbers = {"0", "1", "1.0", "1.1", "1.3", "1.4",
                                            "1", "2", "3",   "3.0", "3",   "5"};
  const std::vector<std::int64_t> words = {1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 11, 13};
  for (std::size_t i = 0; i < spec.size(); ++i) {
    CAPTURE(i);
    CHECK(number_of(spec, i) == numbers[i]);
    CHECK(word_of(spec, i) == words[i]);
    CHECK(joins(spec[i].kind) == (i == 1 || i == 6 || i == 8 || i == 10));
  }
  CHECK(std::string(name_of(LayerKind::residual)) == "residual");
  CHECK(message_of([&] { number_of(spec, 12); }) ==
        "spec: got layer 12, wanted one of the 12 there are");
  CHECK(spec_text(without_batch_norms(
            parse_spec("dense(4) residual(batchnorm dense(4) batchnorm) dense(1)"))) ==
        "dense(4) residual(identity dense(4) identity) dense(1)");
}

TEST_CASE("spec: residuals that are none") {
  const auto message = [](const char* text) { return message_of([&] { parse_spec(text); }); };
  CHECK(message("dense(4) residual(dense(3)) dense(1)") ==
        "spec: the residual at word 2 takes 4 units and gives 3, wanted as many");
  CHECK(message("dense(4) residual(relu residual(relu)) dense(1)") ==
        "spec: got 'residual(relu)' (word 4) within a residual, wanted other words there");
  for (const char* empty : {"residual", "residual()", "residual( )"})
    CHECK(message(fmt::format("dense(4) {} dense(1)", empty).c_str()) ==
          fmt::format("spec: got '{}' (word 2), wanted residual(words), as in residual(relu "
                      "dense(8))",
                      empty));
  CHECK(message("dense(4) residual(identity) dense(1)") ==
        "spec: the residual at word 2 has no layers, wanted some");
  CHECK(message("dense(4) residual(relu dense(4) dense(1)") ==
        "spec: got 'residual(relu dense(4) dense(1)' (word 2), wanted a closing ')'");
  CHECK(message("dense(4) residual(relu)x dense(1)") ==
        "spec: got 'x' after ')' in 'residual(relu)x' (word 2), wanted a blank");
  CHECK(message("residual(dense(4)) dense(1)") ==
        "spec: got 'residual(dense(4))' (word 1) as the first layer, wanted dense(width)");
  CHECK(message("batchnorm residual(batchnorm) dense(1)") ==
        "spec: got 'residual(batchnorm)' (word 2) as the first layer, wanted dense(width)");
  CHECK(message("dense(4) residual(dense(4))") ==
        "spec: got a residual, which ends with 'dense(4)' (word 3), as the last layer, wanted "
        "dense(k) for k outputs");
  CHECK(message("dense(4) residual(rulu) dense(1)")
            .starts_with("spec: unknown layer 'rulu' (word 3)"));
  const LayerSpec begin{.kind = LayerKind::residual}, end{.kind = LayerKind::add},
      dense{.kind = LayerKind::dense, .width = 2}, relu{};
  for (const Spec& wrong : std::vector<Spec>{{begin, relu, end, dense},
                                             {dense, begin, relu, begin, relu, end, end, dense},
                                             {dense, end, dense},
                                             {dense, begin, end, dense},
                                             {dense, begin, relu, dense}}) {
    CHECK(message_of([&] { check_residuals(wrong); }).starts_with("spec: "));
  }
}

TEST_CASE("spec: without its batchnorms, layers keep their places") {
  const Spec spec =
      parse_spec("batchnorm dense(3) identity batchnorm(eps=0) batchnorm relu dense(2)");
  REQUIRE(spec.size() == 6);
  CHECK(spec[2] == LayerSpec{.kind = LayerKind::batchnorm, .eps = 0, .identities = 1});
  const Spec plain = without_batch_norms(spec);
  CHECK(spec_text(plain) == "identity dense(3) identity identity identity relu dense(2)");
  CHECK(without_batch_norms(plain) == plain);
}

TEST_CASE("spec: errors quote the wrong word") {
  const auto message = [](const char* text) { return message_of([&] { parse_spec(text); }); };
  CHECK(message("dense(8) layernrom relu dense(1)") ==
        "spec: unknown layer 'layernrom' (word 2), wanted dense(width), relu, "
        "leakyrelu(slope=0.01), prelu(slope=0.25, per_unit=0), gelu(tanh=0), silu(beta=1), "
        "tanh, sigmoid, softplus, elu(alpha=1), selu, identity, batchnorm, rmsnorm, "
        "layernorm(affine=1, eps=1e-5) or residual(words)");
  for (const char* slope : {"-0.1", "1.5", "nan", "", "x"})
    CHECK(message(fmt::format("dense(8) leakyrelu(slope={}) dense(1)", slope).c_str()) ==
          fmt::format("spec: got slope '{0}' in 'leakyrelu(slope={0})' (word 2), wanted a number "
                      "from 0 to 1",
                      slope));
  CHECK(message("dense(8) layernorm(slope=0) dense(1)") ==
        "spec: unknown option 'slope=0' in 'layernorm(slope=0)' (word 2), wanted affine=0|1 or "
        "eps=value");
  for (const char* alpha : {"-0.1", "101", "nan", "inf", "", "x"})
    CHECK(message(fmt::format("dense(8) elu(alpha={}) dense(1)", alpha).c_str()) ==
          fmt::format("spec: got alpha '{0}' in 'elu(alpha={0})' (word 2), wanted a number from 0 "
                      "to 100",
                      alpha));
  for (const char* beta : {"0", "0.009", "101", "nan", "", "x"})
    CHECK(message(fmt::format("dense(8) silu(beta={}) dense(1)", beta).c_str()) ==
          fmt::format("spec: got beta '{0}' in 'silu(beta={0})' (word 2), wanted a number from "
                      "0.01 to 100",
                      beta));
  CHECK(message("dense(8) gelu(tanh=2) dense(1)") ==
        "spec: got tanh '2' in 'gelu(tanh=2)' (word 2), wanted tanh=0 or tanh=1");
  CHECK(message("dense(8) silu(tanh=1) dense(1)") ==
        "spec: unknown option 'tanh=1' in 'silu(tanh=1)' (word 2), wanted beta=value");
  CHECK(message("dense(8) gelu(beta=1) dense(1)") ==
        "spec: unknown option 'beta=1' in 'gelu(beta=1)' (word 2), wanted tanh=0|1");
  for (const char* option : {"affine=0", "eps=0", "alpha=1", "per_unit"})
    CHECK(message(fmt::format("dense(8) leakyrelu({}) dense(1)", option).c_str()) ==
          fmt::format("spec: unknown option '{0}' in 'leakyrelu({0})' (word 2), wanted slope=value",
                      option));
  for (const char* option : {"affine=0", "eps=0", "alpha=1"})
    CHECK(message(fmt::format("dense(8) prelu({}) dense(1)", option).c_str()) ==
          fmt::format("spec: unknown option '{0}' in 'prelu({0})' (word 2), wanted slope=value or "
                      "per_unit=0|1",
                      option));
  for (const char* value : {"", "2", "true"})
    CHECK(message(fmt::format("dense(8) prelu(per_unit={}) dense(1)", value).c_str()) ==
          fmt::format("spec: got per_unit '{0}' in 'prelu(per_unit={0})' (word 2), wanted "
                      "per_unit=0 or per_unit=1",
                      value));
  CHECK(message("dense(8) prelu(slope=2) dense(1)") ==
        "spec: got slope '2' in 'prelu(slope=2)' (word 2), wanted a number from 0 to 1");
  for (const char* option : {"affine=0", "eps=0", "slope=0"})
    CHECK(message(fmt::format("dense(8) elu({}) dense(1)", option).c_str()) ==
          fmt::format("spec: unknown option '{0}' in 'elu({0})' (word 2), wanted alpha=value",
                      option));
  CHECK(message("dense(8) elu(alpha=2, alpha=2) dense(1)") ==
        "spec: got alpha twice in 'elu(alpha=2, alpha=2)' (word 2), wanted it once");
  CHECK(message("dense(8) selu(alpha=1) dense(1)") ==
        "spec: got 'selu(alpha=1)' (word 2), wanted selu without parentheses");
  CHECK(message("dense(8) tanh(1) dense(1)") ==
        "spec: got 'tanh(1)' (word 2), wanted tanh without parentheses");
  CHECK(message("dense relu dense(1)") ==
        "spec: got 'dense' (word 1), wanted dense(width) with a width from 1 to 2147483647");
  for (const char* width : {"dense()", "dense(0)", "dense(-3)", "dense(1.5)", "dense(1,2)",
                            "dense(4294967296)", "dense(12345678901234567890)"})
    CHECK(message(width) ==
          fmt::format("spec: got '{}' (word 1), wanted dense(width) with a width from 1 to "
                      "2147483647",
                      width));
  CHECK(message("dense(8) relu(3) dense(1)") ==
        "spec: got 'relu(3)' (word 2), wanted relu without parentheses");
  CHECK(message("dense(8) layernorm(gain=0) dense(1)") ==
        "spec: unknown option 'gain=0' in 'layernorm(gain=0)' (word 2), wanted affine=0|1 or "
        "eps=value");
  CHECK(message("dense(8) layernorm() dense(1)") ==
        "spec: unknown option '' in 'layernorm()' (word 2), wanted affine=0|1 or eps=value");
  CHECK(message("dense(8) layernorm(affine=2) dense(1)") ==
        "spec: got affine '2' in 'layernorm(affine=2)' (word 2), wanted affine=0 or affine=1");
  for (const char* eps : {"", "-1", "abc", "1e-3x", "nan", "inf"})
    CHECK(message(fmt::format("dense(8) layernorm(eps={}) dense(1)", eps).c_str()) ==
          fmt::format("spec: got eps '{}' in 'layernorm(eps={})' (word 2), wanted a number >= 0",
                      eps, eps));
  CHECK(message("dense(8) layernorm(eps=1, eps=2) dense(1)") ==
        "spec: got eps twice in 'layernorm(eps=1, eps=2)' (word 2), wanted it once");
  CHECK(message("dense(8)x relu dense(1)") ==
        "spec: got 'x' after ')' in 'dense(8)x' (word 1), wanted a blank");
  CHECK(message("dense(8)relu dense(1)") ==
        "spec: got 'relu' after ')' in 'dense(8)relu' (word 1), wanted a blank");
  CHECK(message("dense(8 relu dense(1)") ==
        "spec: got 'dense(8 relu dense(1)' (word 1), wanted dense(width) with a width from 1 to "
        "2147483647");
  CHECK(message("dense(1) dense(8") == "spec: got 'dense(8' (word 2), wanted a closing ')'");
  CHECK(message("dense)8(") == "spec: got '8(' after ')' in 'dense)8(' (word 1), wanted a blank");
  CHECK(message("dense(8) relu) dense(1)") ==
        "spec: got 'relu)' (word 2), wanted no ')' without '('");
  for (const char* empty : {"", "  \n\t"})
    CHECK(message(empty) == "spec: got no layers, wanted some, as in \"dense(128) relu dense(1)\"");
  CHECK(message("dense(8) identity(1) dense(1)") ==
        "spec: got 'identity(1)' (word 2), wanted identity without parentheses");
  CHECK(message("batchnorm relu dense(1)") ==
        "spec: got 'relu' (word 2) as the first layer, wanted dense(width)");
  for (const char* last : {"batchnorm", "dense(1) batchnorm"})
    CHECK(message(last).ends_with("as the last layer, wanted dense(k) for k outputs"));
  CHECK(message("dense(8) batchnorm(momentum=1) dense(1)") ==
        "spec: unknown option 'momentum=1' in 'batchnorm(momentum=1)' (word 2), wanted affine=0|1 "
        "or eps=value");
  CHECK(message("rmsnorm dense(1)") ==
        "spec: got 'rmsnorm' (word 1) as the first layer, wanted dense(width)");
  CHECK(message("dense(8) rmsnorm(bias=0) dense(1)") ==
        "spec: unknown option 'bias=0' in 'rmsnorm(bias=0)' (word 2), wanted affine=0|1 or "
        "eps=value");
  CHECK(message("identity relu dense(1)") ==
        "spec: got 'relu' (word 2) as the first layer, wanted dense(width)");
  for (const char* last : {"identity", "dense(1) identity"})
    CHECK(message(last).ends_with("as the last layer, wanted dense(k) for k outputs"));
  CHECK(message("relu dense(1)") ==
        "spec: got 'relu' (word 1) as the first layer, wanted dense(width)");
  CHECK(message("dense(8) relu") ==
        "spec: got 'relu' (word 2) as the last layer, wanted dense(k) for k outputs");
  CHECK(message("dense(8) layernorm(\n) dense(1)") ==
        "spec: unknown option '' in 'layernorm(?)' (word 2), wanted affine=0|1 or eps=value");
  CHECK(message(("dense(" + std::string(100000, '1') + ")").c_str()).size() < 300);
}

TEST_CASE("spec: the end of a larger net may begin with what a net may not") {
  for (const char* text :
       {"layernorm dense(1)", "rmsnorm(affine=0) gelu dense(3) tanh dense(2)",
        "identity relu identity layernorm dense(1)", "batchnorm tanh dense(1)",
        "dense(8) layernorm dense(1)", "layernorm dense(8) residual(relu dense(8)) dense(1)"})
    CHECK(spec_text(parse_tail(text)) == text);
  CHECK(parse_tail("relu dense(1)")[0].kind == LayerKind::relu);
  const auto message = [](const char* text) { return message_of([&] { parse_tail(text); }); };
  CHECK(message(" ").starts_with("spec: got no layers"));
  CHECK(message("layernorm") ==
        "spec: got 'layernorm' (word 1) as the last layer, wanted dense(k) for k outputs");
  CHECK(message("layernorm residual(dense(8)) dense(1)") ==
        "spec: got a residual at word 2, wanted it behind a dense layer and in no other residual");
}
