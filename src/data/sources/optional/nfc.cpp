#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "data/unicode_forms.h"

namespace tokamak {

void append_nfc(std::string_view text, std::string& out) {
  utf8proc_uint8_t* bytes = nullptr;
  utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), utf8proc_ssize_t(text.size()), &bytes,
                   utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  TOKAMAK_CHECK(length >= 0, "utf8proc: {}", utf8proc_errmsg(length));
  out.append(reinterpret_cast<const char*>(bytes), size_t(length));
}

}  // namespace tokamak
