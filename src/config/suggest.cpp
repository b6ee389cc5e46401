#include "config/suggest.h"

#include <algorithm>
#include <numeric>

namespace tokamak {

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// Of a key, or of a command of two words.
std::string_view last_word(std::string_view key) { return key.substr(key.find_last_of(". ") + 1); }

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  // A third of the letters may be wrong, otherwise the guess would be noise.
  size_t best_distance = std::max<size_t>(1, (last_word(word).size() + 1) / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.empty()) continue;
    size_t distance = edit_distance(word, candidate);
    // The right name in the wrong section, or in none; ties go to the full key.
    if (last_word(word).size() > 2 || last_word(word) == last_word(candidate))
      distance = std::min(distance, edit_distance(last_word(word), last_word(candidate)));
    if (distance < best_distance ||
        (distance == best_distance && !best.empty() && edit_distance(word, candidate) < edit_distance(word, best))) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace tokamak
