#include "config/own_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {

std::vector<std::string> unread_options(std::string_view section, OwnOptions own, const std::vector<OwnOptions>& all) {
  std::vector<std::string> unread;
  for (OwnOptions options : all)
    for (std::string_view key : options) {
      std::string name = fmt::format("{}.{}", section, key);
      bool is_told = std::ranges::find(unread, name) != unread.end();
      if (!is_told && std::ranges::find(own, key) == own.end()) unread.push_back(name);
    }
  return unread;
}

}  // namespace tokamak
