// A learning rate and a warm-up to begin with, by the size of a model: what published trainings have used. Tests:
// tests/advise/recipe_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak {

struct Recipe {
  double lr = 0;             // AdamW's highest
  int64_t warmup_steps = 0;  // at least 1
};

/// The rate of GPT-3's model of so many parameters, between two of them by a power law and beyond the smallest and the
/// largest theirs, to two digits (Brown et al., arXiv 2005.14165, table 2.1; their batches are of 0.5M to 3.2M tokens).
/// Its warm-up of 375M tokens (appendix B), of a shorter training a twentieth of its steps.
Recipe recipe_of(double parameters, double step_tokens, double steps);

}  // namespace tokamak
