// Scaling laws as they are published: which size of a model, trained on how many tokens, has the least loss that a
// budget of compute can buy. Units: compute in FLOPs, 6 for each parameter and token; losses in nats a token.
//
//   Kaplan et al., "Scaling Laws for Neural Language Models" (2020), arXiv 2001.08361: tables 5 and 6.
//   Hoffmann et al., "Training Compute-Optimal Large Language Models" (2022), arXiv 2203.15556, known as Chinchilla:
//     approaches 1 and 2 as tables 3 and A3 have them, approach 3 with the constants of its section D.2.
//   Besiroglu et al., "Chinchilla Scaling: A replication attempt" (2024), arXiv 2404.10102: approach 3 fitted again,
//     and the constants of Hoffmann's approach 3 with the digits that the paper rounds off.
//
// Tests: tests/scaling/published_laws_test.cpp, against the tables of these papers.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace tokamak {

/// FLOPs of a training step for each parameter and token: 2 forward, 4 backward. Kaplan et al., section 2.1.
inline constexpr double kFlopsPerParameterToken = 6;

/// A size, and how long it is trained.
struct ModelAndData {
  double parameters = 0, tokens = 0;
  double flops() const { return kFlopsPerParameterToken * parameters * tokens; }
};

/// L(N, D) = E + A / N^alpha + B / D^beta: equation 2 of Hoffmann et al.
struct ParametricLaw {
  double E = 0, A = 0, B = 0, alpha = 0, beta = 0;

  double loss(const ModelAndData& at) const;
  /// N_opt goes with C to this power, D_opt with C to 1 minus it.
  double size_exponent() const { return beta / (alpha + beta); }
  /// Where 6 N D = flops and the loss is least: equation 4.
  ModelAndData best(double flops) const;
};

inline constexpr ParametricLaw kHoffmann3 = {1.6934, 406.4, 410.7, 0.3392, 0.2849};
inline constexpr ParametricLaw kBesiroglu = {1.8172, 482.01, 2085.43, 0.3478, 0.3658};

struct PublishedLaw {
  std::string_view name;    // "Chinchilla 1"
  std::string_view source;  // one line
  bool counts_embeddings = true;
  ModelAndData (*best)(double flops) = nullptr;
  /// Of its own, on its own data; null: the source has none.
  double (*loss)(double flops) = nullptr;
};

/// From the oldest on. The last one, kBesiroglu, agrees with approaches 1 and 2, and tells a loss for any size.
std::span<const PublishedLaw> published_laws();

}  // namespace tokamak
