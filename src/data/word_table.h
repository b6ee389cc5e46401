// Words that are one token, looked up by their bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tokamak {

class WordTable {
 public:
  /// `expected`: about how many words will come.
  explicit WordTable(size_t expected = 0) { ids_.reserve(expected); }

  /// Adds a word; of equal ones the first stays.
  void add(const std::string& word, int32_t id) { ids_.emplace(word, id); }

  /// The id of a word, -1 if it is not here.
  int32_t find(std::string_view word) const {
    auto found = ids_.find(word);
    return found == ids_.end() ? -1 : found->second;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace tokamak
