// Rows of the table of op cases for what sequences are made of.
#pragma once

#include <algorithm>

#include "op_case.h"
#include "sanitized.h"

namespace keel::test {

// Where 32 threads meet for every row, and a sanitizer watches them, sequences are short. Emulated
// GPUs are built with its calls too, and run every length: each has a kernel.
#ifdef KEEL_CPU_GROUP_HEADER
inline constexpr std::int64_t kLongestHere = kSanitized ? 131 : kLongestSequence;
#else
inline constexpr std::int64_t kLongestHere = kLongestSequence;
#endif

/// d where attention takes it, else something small.
inline std::int64_t length_or_width(std::int64_t d) { return d <= kLongestHere ? d : d % 97; }

inline std::vector<OpCase> sequence_cases() {
  using S = std::vector<Shape>;
  using V = std::span<const Var>;
  using A = oracle::Arrays;
  using I = std::int64_t;
  return {
      {.name = "attention, heads of every width that a group has",
       .inputs =
           [](I n, I d) {
             return S{{3 * n, 3 * 2 * length_or_width(d)}};
           },
       .op = [](V v) { return attention(v[0], 3, 2); },
       .expected = [](const A& a) { return oracle::attention(a[0], 3, 2); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             attention(zeros({58, 100}), 29, 4);
           },
       .complaint = "attention: got qkv [58, 100], wanted a multiple of 29 rows and of 3 * 4 "
                    "columns, heads at most 1024 wide, with or without members"},
      {.name = "attention, sequences of every length that a group has",
       .inputs =
           [](I n, I d) {
             return S{{n == 0 ? 0 : length_or_width(d), 3 * 2}};
           },
       .op = [](V v) { return attention(v[0], std::max<I>(v[0].shape()[0], 1), 2); },
       .expected =
           [](const A& a) { return oracle::attention(a[0], std::max<I>(a[0].shape[0], 1), 2); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             attention(zeros({1025, 3}), 1025, 1);
           },
       .complaint = "attention: got sequences of 1025, wanted 1 to 1024"},
      {.name = "attention, members",
       .inputs =
           [](I n, I d) {
             return S{{2, 2 * n, 3 * length_or_width(d)}};
           },
       .op = [](V v) { return attention(v[0], 2, 1); },
       .expected = [](const A& a) { return oracle::attention(a[0], 2, 1); },
       .tolerance = 3e-6,
       .bad_call =
           [] {
             attention(zeros({4, 12}), 2, 0);
           },
       .complaint = "attention: got 0 heads, wanted at least 1"},
      {.name = "add_bias",
       .inputs =
           [](I n, I d) {
             return S{{n, d}, {d}};
           },
       .op = [](V v) { return add_bias(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::add_bias(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             add_bias(zeros({4, 3}), zeros({4}));
           },
       .complaint = "add_bias: got bias [4], x [4, 3] needs [3]"},
      {.name = "add_bias, members",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {3, d}};
           },
       .op = [](V v) { return add_bias(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::add_bias(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call =
           [] {
             add_bias(zeros({2, 4, 3}), zeros({4, 3}));
           },
       .complaint = "add_bias: got bias [4, 3], x [2, 4, 3] needs [3]"},
      {.name = "add_bias, members sharing it",
       .inputs =
           [](I n, I d) {
             return S{{3, n, d}, {d}};
           },
       .op = [](V v) { return add_bias(v[0], v[1]); },
       .expected = [](const A& a) { return oracle::add_bias(a[0], a[1]); },
       .tolerance = 1e-7,
       .bad_call = [] { add_bias(zeros({3}), zeros({3})); },
       .complaint = "add_bias: got x [3], wanted [n, p] or [S, n, p]"},
      {.name = "reshape",
       .inputs =
           [](I n, I d) {
             return S{{2 * n, d}};
           },
       .op =
           [](V v) {
             return reshape(v[0], {v[0].shape()[0] / 2, 2 * v[0].shape()[1]});
           },
       .expected =
           [](const A& a) {
             oracle::Array y(Shape{a[0].shape[0] / 2, 2 * a[0].shape[1]});
             y.v = a[0].v;
             return y;
           },
       .tolerance = 0,
       .bad_call =
           [] {
             reshape(zeros({2, 3}), {4, 2});
           },
       .complaint = "reshape: got [4, 2] for [2, 3]: 8 elements, wanted 6"},
  };
}

}  // namespace keel::test
