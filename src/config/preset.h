// Named model sizes: a small one for a few megabytes of text, and those of GPT-2 (Radford et al., "Language Models are
// Unsupervised Multitask Learners", table 2).
#pragma once

#include <string>
#include <vector>

namespace tokamak {

struct ModelConfig;

/// What model.preset accepts: the names, and "" for no preset.
std::vector<std::string> preset_choices();

/// Sets layers, heads, width, context, vocab, bias and tying to those of `model.preset`; does nothing when that is
/// empty. An unknown name is a UserError.
void apply_preset(ModelConfig& model);

}  // namespace tokamak
