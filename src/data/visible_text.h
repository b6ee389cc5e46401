// Text of tokens that a model has chosen. Tests: tests/data/visible_text_test.cpp.
#pragma once

#include "data/tokenizer.h"

#include <cstdint>
#include <span>
#include <string>

namespace tokamak {

/// As Tokenizer::decode, but a model with more tokens than the tokenizer (model.vocab may be rounded up) can choose ids
/// that have none: those are shown as "<|id 50300|>".
std::string visible_text(const Tokenizer& tokenizer, std::span<const int32_t> ids);

}  // namespace tokamak
