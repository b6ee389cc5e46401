#include "scaling/published_laws.h"

#include <cmath>

namespace tokamak {
namespace {

// Through two rows of a paper's table of optimal trainings; the rows between lie on it as far as they are rounded.
ModelAndData between_rows(double flops, double flops_a, double size_a, double flops_b, double size_b) {
  double exponent = std::log(size_b / size_a) / std::log(flops_b / flops_a);
  double size = size_a * std::pow(flops / flops_a, exponent);
  return {size, flops / (kFlopsPerParameterToken * size)};
}

constexpr double kPetaflopDay = 1e15 * 24 * 3600;  // FLOPs

// Table 6 is of C_min, what would be enough with small batches. A run takes the critical batch, and twice as much (its
// section 5.3): so the paper's own D_opt comes out, and the 4.68e9 parameters that Hoffmann et al. (D.4) read off at
// 1e21 FLOPs.
double kaplan_least_compute(double flops) { return flops / 2 / kPetaflopDay; }

ModelAndData kaplan_best(double flops) {
  double size = 1.3e9 * std::pow(kaplan_least_compute(flops), 0.73);
  return {size, flops / (kFlopsPerParameterToken * size)};
}
double kaplan_loss(double flops) { return std::pow(3.1e8 / kaplan_least_compute(flops), 0.050); }

// The first and the last row of table 3, and of table A3 for approach 2.
ModelAndData hoffmann1_best(double flops) { return between_rows(flops, 1.92e19, 400e6, 1.30e28, 10e12); }
ModelAndData hoffmann2_best(double flops) { return between_rows(flops, 1.84e19, 400e6, 1.75e28, 10e12); }

template <const ParametricLaw& law>
ModelAndData best_of(double flops) {
  return law.best(flops);
}
template <const ParametricLaw& law>
double least_loss(double flops) {
  return law.loss(law.best(flops));
}

constexpr PublishedLaw kLaws[] = {
    {"Kaplan", "Kaplan et al. 2020, arXiv 2001.08361, tables 5 and 6; without embeddings", false, kaplan_best,
     kaplan_loss},
    {"Chinchilla 1", "Hoffmann et al. 2022, arXiv 2203.15556, approach 1 (training curves), table 3", true,
     hoffmann1_best},
    {"Chinchilla 2", "the same, approach 2 (IsoFLOP profiles), table A3", true, hoffmann2_best},
    {"Chinchilla 3", "the same, approach 3 (a parametric loss), section D.2", true, best_of<kHoffmann3>,
     least_loss<kHoffmann3>},
    {"Chinchilla 3, refit", "Besiroglu et al. 2024, arXiv 2404.10102: approach 3 fitted again", true,
     best_of<kBesiroglu>, least_loss<kBesiroglu>},
};

}  // namespace

double ParametricLaw::loss(const ModelAndData& at) const {
  return E + A * std::pow(at.parameters, -alpha) + B * std::pow(at.tokens, -beta);
}

ModelAndData ParametricLaw::best(double flops) const {
  double g = std::pow(alpha * A / (beta * B), 1 / (alpha + beta));
  double size = g * std::pow(flops / kFlopsPerParameterToken, size_exponent());
  return {size, flops / (kFlopsPerParameterToken * size)};
}

std::span<const PublishedLaw> published_laws() { return kLaws; }

}  // namespace tokamak
