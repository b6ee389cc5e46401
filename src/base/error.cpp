#include "base/error.h"

namespace tokamak {

void internal_error(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold: {}", file, line, condition, message));
}

}  // namespace tokamak
