// How help and messages write the names of options. Tests: tests/config/spelling_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// A key as it stands behind "--": keys of sections as in run files, model.tie_weights; others, which only commands
/// have, with hyphens, vocab-size. Both are read either way.
std::string option_spelling(std::string_view key);

}  // namespace tokamak
