// Where links lead, and which of them stand for what this process has open already.
// Tests: tests/base/path_links_test.cpp.
#pragma once

#include <filesystem>
#include <optional>

namespace tokamak {

struct PathEnd {
  std::filesystem::path path;     // no link any more, but for one to an open file
  std::optional<int> descriptor;  // of this process, where the path is a name of it: /dev/stdout, /dev/fd/63
};

/// Follows a link, and those that it leads to. Nothing has to exist at the end. After too many links the last one.
PathEnd follow_links(std::filesystem::path path);

/// Whether a folder has an entry of this name: also a link that leads nowhere or to itself, of which opening it tells.
bool is_named(const std::filesystem::path& path);

}  // namespace tokamak
