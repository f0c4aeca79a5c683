// frozen: a net with Batch Norms, once it is trained. With statistics of the training rows, kept, a
// batchnorm maps each unit by itself, x -> gain (x - mean) + bias, and is folded into a layer
// beside it. In training its statistics are the batch's (kernels/batch_norm.h), and the net is no
// function of one input. Ioffe and Szegedy, Batch Normalization (2015), section 3.1.
#pragma once

#include "net.h"

namespace keel {

/// The net in evaluation: one of without_batch_norms(net.spec()) whose weights took the batchnorms
/// in. Their statistics are those of the rows of x [n, d], or [S, n, d], n > 1, as they reach the
/// batchnorm when the net sees all of them at once: mean, and variance by n - 1 (Algorithm 2;
/// PyTorch keeps a running average of the last batches' instead). A unit that never changes is 0
/// ahead of gain and bias where eps is 0, as in training. In float64, whatever the net has: where a
/// mean is large beside its deviation, W x + b cancels, as W (x - mean) did not. Of a net without
/// batchnorms, a copy. Throws keel::Error where a batchnorm has no layer beside it to go into
/// (batch_norm_folds) or that layer's bias no effect (fold_into), where a statistic is not finite,
/// and ShapeError.
Net frozen(const Net& net, const Tensor& x);

}  // namespace keel
