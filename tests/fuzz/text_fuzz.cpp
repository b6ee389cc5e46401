// Text, in small parts: the parts are the text behind a byte order mark; with a separator, that without separators and
// breaks behind them.
#include <string_view>

#include "data/sources/compression.h"
#include "data/sources/content.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

/// The slow, obvious twin of reading with a separator.
std::string without_separators(std::string_view text, std::string_view separator) {
  std::string left;
  for (size_t at = 0; at < text.size();) {
    if (!text.substr(at).starts_with(separator)) {
      left += text[at++];
      continue;
    }
    at += separator.size();
    if (text.substr(at).starts_with("\r\n"))
      at += 2;
    else if (text.substr(at).starts_with('\n'))
      at += 1;
  }
  return left;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size == 0 || is_compressed(text)) return 0;
  FuzzFile file(data, size);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (const char* separator : {"", "<|>"})
    for (int64_t part_bytes : {1, 7, 8 << 20}) {
      std::string all;
      SourceOptions options = {.format = "text", .separator = separator, .part_bytes = part_bytes};
      if (!read_all_documents(file.path(), options, all)) fuzz_failure("text is refused");
      if (all != (*separator ? without_separators(text, separator) : text)) fuzz_failure("text is changed");
    }
  return 0;
}
