// Expectations under a bivariate normal distribution, in closed form, of activations that are a sum
// of (w + v |u|) exp(-p u^2 / 2) on either side of 0: elu, selu and gelu's form by tanh, within the
// errors stated here. Derivations: docs/kernels.md.
#pragma once

#include <array>
#include <cmath>

#include "gaussian_moments.h"

namespace keel {

/// phi(u) = sum_t exp(-p u^2 / 2) (even(|u|) + sign(u) odd(|u|)), phi(0) = 0, p of the first 0;
/// phi' the same of `slope_even` and `slope_odd`.
struct GaussianSum {
  static constexpr int kMost = 13;

  /// w + v x of x = |u|.
  struct Line {
    double w = 0, v = 0;
  };

  struct Term {
    double p = 0;
    Line even{}, odd{}, slope_even{}, slope_odd{};
  };

  int terms = 0;
  Term term[kMost]{};
  double at_zero = 1;  ///< phi'(0), as the finite nets have it, over the mean of its two sides

  /// What is known of phi beside its sum, for who encloses kernels made of it (ntk/).
  struct Known {
    double cross_slope = 0;  ///< sup|phi'| (sup|phi'| + sup|u phi''|)
    /// E[phi'^2] of a variance q varies by no more than near |d sqrt(q)| and far |d 1/sqrt(q)|; 0:
    /// it falls.
    double near = 0, far = 0;
    // Divided by the slope far above 0: the jump of phi' at 0; an error c of a cosine moves
    // E[phi' phi'] by at most bend q c and turn times what it moves relu's by, beside the jump's;
    // and E[phi phi'] by 1 + min(sqrt(q), stretch) times c, all of them relatively.
    double jump = 0, bend = 0, turn = 0, stretch = 0;
  } known;
};

namespace detail {

struct BellFit {
  double p, w, v;
};

/// exp(-x), x >= 0, within 2.2e-8, and x exp(-x) within 3.4e-7 (docs/gaussian_sums.py).
inline constexpr std::array<BellFit, 12> kExpFit{{
    {0.080619998428653666, 0.0067863087255954496, -0.00018655422775661068},
    {0.11818872400517483, 0.35770791391351453, -0.030156659516399967},
    {0.17186049795740146, 2.4155017503437546, -0.3305274045031058},
    {0.24800862723871503, 5.2294935924004244, -1.2286225084716962},
    {0.35536295241428106, 2.0559685239042138, -1.75306175791004},
    {0.50584339788326538, -6.4353530729613428, -0.058319207685350156},
    {0.71568602339799015, -6.4542503609618933, 2.1158052104119989},
    {1.0069674598719629, 1.5050535147835171, 1.1876413851379501},
    {1.409674115635547, 2.732464380599271, -0.62187061868751425},
    {1.9645194806000175, -0.17141866578336473, -0.35682162603548589},
    {2.7267932939221446, -0.25927096002799738, 0.06635502707911474},
    {3.771640541902527, 0.017317075064305298, 0.009764714408286454},
}};

struct TailFit {
  double p, w, v, slope_w, slope_v;
};

/// psi(x) = gelu(x) - x of x >= 0, gelu the form by tanh, within 2.3e-8; psi' within 2.4e-8 and x
/// psi' within 1.4e-7.
inline constexpr std::array<TailFit, 8> kGeluTailFit{{
    {0.74274904040368517, 1.178249419301826, -0.1505263975178539, 1.5688752446522596,
     -0.22172076309769168},
    {0.89340079728329258, 8.7562689813072634, -2.0740813278644423, -5.2063957323339025,
     0.10569572473907227},
    {1.0813812425461391, -8.700052978224269, -0.87048642741273496, -6.6295453428976217,
     5.1068992152295163},
    {1.3323774408493683, -6.3549779004853812, 3.5131811703851494, 18.358564221719227,
     -5.6283961486421621},
    {1.6903604938936125, 5.2704871482401439, -0.4392021524096229, -9.6197475860053867,
     0.97111951295563281},
    {2.2336889930287174, 0.068602417853760894, -0.50731605549760006, 0.82486380619648803,
     0.56856808923616642},
    {3.1098902530648855, -0.2165482590528858, 0.020623161434883297, 0.21631540665999949,
     -0.10013295937866726},
    {4.6146003375536244, -0.0020288289404565008, 0.0078080288822173216, -0.012930017991061415,
     -0.0041472929759001371},
}};

}  // namespace detail

/// scale u above 0, scale alpha (exp(u) - 1) below: elu, and selu. alpha from 0 to 100.
constexpr GaussianSum elu_sum(double alpha, double scale = 1) {
  GaussianSum sum;
  sum.terms = 1 + static_cast<int>(detail::kExpFit.size());
  const double half = 0.5 * scale, below = half * alpha;
  // Above 0: u, of slope 1; below: alpha E - alpha, of slope alpha E.
  sum.term[0].even.v = sum.term[0].odd.v = half;
  sum.term[0].slope_even.w = sum.term[0].slope_odd.w = half;
  double weights = 0;
  for (int t = 1; t < sum.terms; ++t) {
    const detail::BellFit& fit = detail::kExpFit[static_cast<std::size_t>(t - 1)];
    sum.term[t].p = fit.p;
    sum.term[t].even = sum.term[t].slope_even = {below * fit.w, below * fit.v};
    sum.term[t].odd = sum.term[t].slope_odd = {-below * fit.w, -below * fit.v};
    weights += below * fit.w;
  }
  sum.term[0].even.w = -weights;
  sum.term[0].odd.w = weights;
  sum.at_zero = 2 * alpha / (1 + alpha);
  // Below 0 phi'' is alpha exp(u), |u phi''| at most alpha / e.
  const double steepest = alpha > 1 ? alpha : 1;
  sum.known = {.cross_slope = scale * scale * steepest * (steepest + 0.368 * alpha),
               .jump = alpha > 1 ? alpha - 1 : 1 - alpha,
               .bend = alpha * alpha,
               .turn = alpha * alpha,
               .stretch = 0.4 * alpha};
  return sum;
}

/// u sigma(g(u)), g(u) = sqrt(8 / pi) (u + 0.044715 u^3).
inline constexpr GaussianSum kGeluByTanhSum = [] {
  GaussianSum sum;
  sum.terms = 1 + static_cast<int>(detail::kGeluTailFit.size());
  // |u| above 0 and nothing below, and psi(|u|) on either side.
  sum.term[0].even.v = sum.term[0].odd.v = sum.term[0].slope_even.w = sum.term[0].slope_odd.w = 0.5;
  for (int t = 1; t < sum.terms; ++t) {
    const detail::TailFit& fit = detail::kGeluTailFit[static_cast<std::size_t>(t - 1)];
    sum.term[t].p = fit.p;
    sum.term[t].even = {fit.w, fit.v};
    sum.term[t].slope_odd = {fit.slope_w, fit.slope_v};
    sum.term[0].even.w -= fit.w;
  }
  // sup|phi'| 1.129, |u phi''| 0.331, |phi''| 0.798; the rest as docs/kernels.md has it.
  sum.known = {
      .cross_slope = 1.65, .near = 0.372, .far = 0.467, .bend = 2.6, .turn = 2, .stretch = 0.15};
  return sum;
}();

/// Two inputs' values: variances q1 <= q2 and covariance k, by which phi(u) phi(u') is symmetric;
/// det = q1 q2 - k^2, and roots.
struct GaussianPair {
  double q1, q2, k, det, root_q1, root_q2, root_det;
};

KEEL_HD KEEL_INLINE GaussianPair gaussian_pair(double qa, double qb, double k) {
  const bool swapped = qb < qa;
  const double q1 = swapped ? qb : qa, q2 = swapped ? qa : qb, det = determinant(q1, q2, k);
  return {q1, q2, k, det, std::sqrt(q1), std::sqrt(q2), std::sqrt(det)};
}

namespace detail {
inline constexpr double kTinyRoot = 1e-140;  // beside it 0 / 0 is 0
}

/// The pair where phi(u') is weighed by exp(-p u'^2 / 2) and phi(u) by nothing: d0 = 1 + q2 p is
/// the weight's mean to the power -2, x / d0 the variance of u, and `angle`, from -pi/2 to pi/2,
/// has the correlation as its sine.
struct GaussianWeight {
  double root_d0, over_d0, root_x, over_x, over_xq, angle;
};

KEEL_HD KEEL_INLINE GaussianWeight gaussian_weight(const GaussianPair& pair, double p) {
  const double root_d0 = std::sqrt(1 + pair.q2 * p);
  const double root_x = std::sqrt(pair.q1 + pair.det * p);
  const double size = pair.k < 0 ? -pair.k : pair.k;
  const double angle = upper_angle(size, pair.root_det * root_d0);
  return {root_d0,
          1 / root_d0,
          root_x,
          1 / (root_x + detail::kTinyRoot),
          1 / (root_x + pair.root_q1 + detail::kTinyRoot),
          pair.k < 0 ? -angle : angle};
}

/// What a term of phi(u) and another of phi(u') add to the moments, `weight` that of the other's p
/// and at_zero from the sum. By value: what a loop's stores may have changed is read again each
/// time, and makes no vectors. As sum w = 0, what has a w is taken less its value without that
/// term's exp(-p u^2 / 2), of a product of two the one of smaller variance: of small ones nothing
/// cancels. Quotients share divisions, which take longest.
template <bool kCross>
KEEL_HD KEEL_INLINE Moments gaussian_moments(GaussianSum::Term one, GaussianSum::Term other,
                                             double at_zero, const GaussianPair& pair,
                                             const GaussianWeight& weight) {
  constexpr double kRoot = 2 * detail::kOverRootTwoPi, kTurn = 4 * detail::kOverTwoPi;
  const double p1 = one.p, p2 = other.p, k = pair.k;
  // Weighed by both terms, (u, u') is normal with variances x / d and y / d and covariance k / d,
  // and the weight's mean is 1 / sqrt(d); d0, d1: by the other, by the one alone.
  const double d0 = 1 + pair.q2 * p2, d1 = 1 + pair.q1 * p1;
  const double x = pair.q1 + pair.det * p2, y = pair.q2 + pair.det * p1;
  const double less = p1 * x;
  const double root_d = std::sqrt(d0 + less), root_x = weight.root_x, root_y = std::sqrt(y);
  const double roots = weight.root_d0 + root_d, of_roots = 1 / (root_d * roots);
  const double over = roots * of_roots, share = less * (root_d * of_roots), over2 = over * over;
  const double some_y = root_y + detail::kTinyRoot, some_yq = some_y + pair.root_q2;
  const double of_ys = 1 / (some_y * some_yq * d1), over_d1 = some_y * some_yq * of_ys;
  const double over_y = some_yq * d1 * of_ys, over_yq = some_y * d1 * of_ys;
  const double over0 = weight.over_d0, over02 = over0 * over0;
  const double size = k < 0 ? -k : k;
  const double back = upper_angle(size * pair.root_det * (share * over),
                                  pair.det * weight.root_d0 + size * over * size);
  const double moved = k < 0 ? back : -back, full = weight.angle + moved;
  const double s1 = root_x * over, s2 = root_y * over, cov = k * over2;
  const double cov1 = k * over * weight.over_x, cov2 = k * over * over_y;  // cov / s
  const double area = pair.root_det * over;  // the square root of x y - k^2, over d

  // E[.] of 1, |u'|, |u|, |u u'|, and `o` the same times sign(u) sign(u').
  const double e10 = kRoot * s1 * over, e11 = kTurn * (cov * full + area) * over;
  const double o10 = kRoot * cov2 * over, o11 = cov * over;
  const double less_e00 = -share * over * over0;
  const double less_e01 =
      kRoot * p1 * ((pair.det * d0 * over_yq - pair.root_q2 * x) * over2) * over02;
  const double less_o00 = kTurn * (full * less_e00 + moved * over0);
  const double less_e10 =
      kRoot * p2 * ((pair.det * d1 * weight.over_xq - pair.root_q1 * y) * over2) * over_d1;
  const double less_o01 = -kRoot * cov * (p1 * root_x * over02);
  const double less_o10 = -kRoot * cov * (p2 * root_y * over_d1);

  const GaussianSum::Line ei = one.even, ej = other.even, oi = one.odd, oj = other.odd;
  Moments m;
  m.value = ei.w * (ej.w * less_e00 + ej.v * less_e01) + ei.v * (ej.w * less_e10 + ej.v * e11) +
            oi.w * (oj.w * less_o00 + oj.v * less_o01) + oi.v * (oj.w * less_o10 + oj.v * o11);

  const GaussianSum::Line ai = one.slope_even, aj = other.slope_even;
  const GaussianSum::Line bi = one.slope_odd, bj = other.slope_odd;
  const double e01 = kRoot * s2 * over, o01 = kRoot * cov1 * over;
  const double o00 = kTurn * full * over;
  m.slope = ai.w * (aj.w * over + aj.v * e01) + ai.v * (aj.w * e10 + aj.v * e11) +
            bi.w * (bj.w * o00 + bj.v * o01) + bi.v * (bj.w * o10 + bj.v * o11);
  m.slope *= (pair.q1 == 0 ? at_zero : 1) * (pair.q2 == 0 ? at_zero : 1);

  m.cross = 0;
  if constexpr (kCross) {
    // u phi' is |u| (odd + sign(u) even) of phi'.
    const double v1 = s1 * s1, v2 = s2 * s2, both = v1 * v2 + 2 * cov * cov;
    const double e12 = kRoot * (s1 * v2 + cov1 * cov) * over;
    const double e21 = kRoot * (s2 * v1 + cov2 * cov) * over;
    const double o12 = 2 * kRoot * cov * s2 * over, o21 = 2 * kRoot * cov * s1 * over;
    const double o22 = kTurn * (full * both + 3 * cov * area) * over;
    m.cross = bi.w * (bj.w * e11 + bj.v * e12) + bi.v * (bj.w * e21 + bj.v * (both * over)) +
              ai.w * (aj.w * o11 + aj.v * o12) + ai.v * (aj.w * o21 + aj.v * o22);
  }
  return m;
}

/// E[phi(u)], u of variance q.
KEEL_HD inline double gaussian_mean(const GaussianSum& f, double q) {
  double mean = 0;
  for (int t = 0; t < f.terms; ++t) {
    const GaussianSum::Term& term = f.term[t];
    const double d = 1 + q * term.p, root_d = std::sqrt(d);
    mean += term.even.w * (-q * term.p / (root_d * (1 + root_d))) +
            term.even.v * (2 * detail::kOverRootTwoPi * std::sqrt(q) / d);
  }
  return mean;
}

/// All terms: the moments of phi itself.
template <bool kCross>
KEEL_HD inline Moments gaussian_moments(const GaussianSum& f, double q1, double q2, double k) {
  const GaussianPair pair = gaussian_pair(q1, q2, k);
  Moments sum{0, 0, 0};
  for (int j = 0; j < f.terms; ++j) {
    const GaussianWeight weight = gaussian_weight(pair, f.term[j].p);
    for (int i = 0; i < f.terms; ++i) {
      const Moments m = gaussian_moments<kCross>(f.term[i], f.term[j], f.at_zero, pair, weight);
      sum.value += m.value;
      sum.slope += m.slope;
      sum.cross += m.cross;
    }
  }
  return sum;
}

}  // namespace keel
