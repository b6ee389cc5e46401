// Tokens of which some are read but not learned, as the questions of a conversation: these have a mark, the sign bit of
// an int32 and the top bit of a uint32 in a file. Loader and loss make a target that does not count of them
// (kNoTarget). Tests: tests/data/marked_tokens_test.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace tokamak {

/// A token's id, without its mark.
inline int32_t id_of(int32_t token) { return token & std::numeric_limits<int32_t>::max(); }

inline int32_t with_mark(int32_t id) { return id | std::numeric_limits<int32_t>::min(); }

/// Whether it counts as a target.
inline bool is_learned(int32_t token) { return token >= 0; }

inline void remove_marks(std::span<int32_t> tokens) {
  for (int32_t& token : tokens) token = id_of(token);
}

}  // namespace tokamak
