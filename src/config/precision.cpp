#include "config/precision.h"

#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {

Precision parse_precision(std::string_view name) {
  auto found = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name);
  if (found == kPrecisionNames.end())
    user_error("[precision] expected {}, got '{}'", fmt::join(kPrecisionNames, ", "), name);
  return Precision(found - kPrecisionNames.begin());
}

}  // namespace tokamak
