// model.from: training that begins with the weights of another model. Tests: tests/e2e/model_from_test.cpp.
#pragma once

#include "config/command_line.h"

#include <memory>

namespace tokamak {

class Tokenizer;
struct RunConfig;

/// The configuration with the sizes of the model that model.from names; as it is where that is empty. UserErrors are
/// those of open_checkpoint; one for a size that the user chose and that is another; those of validate(), by the
/// model's sizes.
RunConfig with_initial_model(RunConfig config, const GivenOptions& given);

/// The tokenizer to train that model with: `tokenizer`, the data's, or where that is null the model's own; null: there
/// is none. UserError when both are there and differ.
std::shared_ptr<const Tokenizer> tokenizer_for_model(const RunConfig& config,
                                                     std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace tokamak
