#include "base/error.h"
#include "data/unicode_forms.h"

namespace tokamak {

void append_nfc(std::string_view, std::string&) {
  user_error(
      "[tokenizer] expected a build with {} for a vocabulary that normalizes text (NFC), got one without it; install "
      "that package and build again",
      TOKAMAK_PACKAGE);
}

}  // namespace tokamak
