#include "config/spelling.h"

#include <algorithm>

namespace tokamak {

std::string option_spelling(std::string_view key) {
  std::string name(key);
  if (name.find('.') == std::string::npos) std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace tokamak
