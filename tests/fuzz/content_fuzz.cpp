// What a stream is by its content: what is no text is refused, and text comes out as it is, be it odd.
#include <string_view>

#include "data/sources/compression.h"
#include "data/sources/content.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

/// The slow, obvious twin of is_utf8().
bool is_utf8_by_bytes(std::string_view text) {
  int following = 0;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool follows = (byte & 0xC0) == 0x80;
    if (follows != (following > 0) || byte >= 0xF8) return false;
    following = follows ? following - 1 : byte < 0xC0 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  }
  return following == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size == 0 || is_compressed(text)) return 0;
  if (is_utf8(text) != is_utf8_by_bytes(text)) fuzz_failure("UTF-8 or not");
  Content content = look_at(text, "a");
  std::string all;
  bool read = read_all_documents(FuzzFile(data, size).path(), {}, all);
  if (content.form == Content::Form::kJsonLines) return 0;
  if (read != (content.form != Content::Form::kOther)) fuzz_failure("refused or not");
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (read && all != text) fuzz_failure("text is changed");
  return 0;
}
