// Words of any text: they follow each other without gaps, whether they are found quickly or slowly, and begin at a
// space after a printable ASCII character whatever stands before.
#include "data/scan_words.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

std::vector<size_t> quick_ends(Pretokenizer pretokenizer, std::string_view text) {
  std::vector<size_t> ends;
  size_t at = 0;
  scan_words(pretokenizer, text, 0, text.size(), [&](std::string_view word, WordBlock key) {
    if (word.empty() || word.data() != text.data() + at) fuzz_failure("a gap between words");
    if (key_length(key) != (word.size() <= kMaxKeyBytes ? word.size() : 0)) fuzz_failure("a key of another length");
    ends.push_back(at += word.size());
  });
  return ends;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const PretokenizerInfo& info : pretokenizers()) {
    std::vector<size_t> slow, cut;
    for (size_t at = 0; at < text.size();) slow.push_back(at = info.word_end(text, at));
    if (slow != quick_ends(info.id, text)) fuzz_failure("other words when found quickly");
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin + 1;
      while (end < text.size() && !(text[end] == ' ' && text[end - 1] > ' ' && text[end - 1] < 0x7F)) ++end;
      for (size_t at : quick_ends(info.id, text.substr(begin, end - begin))) cut.push_back(begin + at);
      begin = end;
    }
    if (slow != cut) fuzz_failure("other words of the parts of a text");
  }
  return 0;
}
