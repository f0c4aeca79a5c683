// attention: causal self-attention of several heads.
#pragma once

#include "../core/tape.h"

namespace keel {

/// The longest sequence, and the widest head, that attention() takes.
inline constexpr std::int64_t kLongestSequence = 1024;

/// qkv [n length, 3 heads w] or [S, n length, 3 heads w] -> [n length, heads w], or with members.
/// Rows are sequences of `length` one after another. Columns are queries, then keys, then values,
/// each heads w wide, head after head. Row t of a sequence becomes, for each head,
///   sum over j <= t of p_j v_j,  p = softmax of q_t . k_j / sqrt(w)
/// (Vaswani et al., Attention Is All You Need (2017), eq. 1, with the mask of section 3.2.3).
/// Finite where q and k are: scores beyond the number range, of 1e30 say, leave the largest alone.
/// Keeps all p, n length heads length numbers, and a copy of qkv for its pullback. Throws
/// keel::Error in a backward pass that keeps rows apart, as these are not.
Var attention(const Var& qkv, std::int64_t length, std::int64_t heads);

}  // namespace keel
