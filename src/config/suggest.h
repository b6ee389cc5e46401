// The nearest known word for a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// The known word that needs the fewest edits (Levenshtein; a missing section counts nothing, so "layers" finds
/// "model.layers", and "inspect" finds "data inspect"), or "" when none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// "; did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace tokamak
