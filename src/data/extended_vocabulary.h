// Vocabularies that have all that another one has, with added tokens behind it. Tests:
// tests/data/extended_vocabulary_test.cpp.
#pragma once

#include "data/vocabulary.h"

#include <string>

namespace tokamak {

/// Why texts that `less` can encode get other ids with `more`, or have tokens that it has not in other places: the
/// first reason, to stand behind a message; empty where `more` only adds tokens that are found whole in a text.
std::string not_extended(const Vocabulary& more, const Vocabulary& less);

}  // namespace tokamak
