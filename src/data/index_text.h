// The text of a folder's index, which may name millions of files that only people ask for: its seal without a tree of
// all its parts, and the text without the lists of those files. Tests: tests/data/index_text_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

struct IndexText {
  std::string given;  // the seal that stands there; empty: none, or something is odd
  std::string seal;   // what it should be (data/json_fields.h: seal_json())
  std::string rest;   // the JSON text with empty lists in place of "sources" of the splits
};

/// Of JSON that seal_json() wrote. Of other text `rest` may be no JSON, and the seals then differ.
IndexText scan_index(std::string_view text);

}  // namespace tokamak
