#include "base/error.h"
#include "profile/gzip.h"

namespace tokamak {

bool has_gzip() { return false; }

std::string gzip(std::string_view) {
  user_error("[--trace] expected a name that ends in .json, got .gz, and this program was built without zlib");
}

}  // namespace tokamak
