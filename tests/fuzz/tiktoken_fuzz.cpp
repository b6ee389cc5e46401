// .tiktoken files: random lines behind those of the 256 bytes. What is accepted gives any bytes back, and the same ids
// after it was saved as tokenizer.json.
#include <fmt/format.h>

#include "data/hugging_face_vocabulary.h"
#include "data/pretokenizer.h"
#include "data/tiktoken_vocabulary.h"
#include "data/tokenizer.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

std::string lines_of_bytes() {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string lines;
  for (int byte = 0; byte < 256; ++byte)
    lines += fmt::format("{}{}== {}\n", kDigits[byte >> 2], kDigits[(byte & 3) << 4], byte);
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string kBytes = lines_of_bytes();
  if (size == 0) return 0;
  auto patterns = pretokenizers();
  std::string_view name = patterns[data[0] % patterns.size()].name;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    Tokenizer tokenizer(parse_tiktoken_vocabulary(kBytes + text, "x", tiktoken_encoding(name, "x")));
    auto ids = tokenizer.encode(text);
    if (tokenizer.decode(ids) != text) fuzz_failure("decoding does not give the text back");
    std::string saved = format_hugging_face_vocabulary(tokenizer.vocabulary());
    if (Tokenizer(parse_hugging_face_vocabulary(saved, "y")).encode(text) != ids)
      fuzz_failure("other ids after saving");
  } catch (const UserError&) {
  }
  return 0;
}
