// tokenizer.json: what is accepted makes a tokenizer that gives any bytes back, finds added tokens as a slow search
// does, and is written so that it comes back.
#include "data/added_tokens.h"
#include "data/hugging_face_vocabulary.h"
#include "data/tokenizer.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

/// The slow, obvious twin of LongestMatch.
LongestMatch::Match find_slowly(const std::vector<std::string>& texts, std::string_view in, size_t from) {
  for (size_t at = from; at < in.size(); ++at) {
    LongestMatch::Match best{at, at, -1};
    for (size_t i = 0; i < texts.size(); ++i)
      if (in.substr(at).starts_with(texts[i]) && at + texts[i].size() > best.end)
        best = {at, at + texts[i].size(), int32_t(i)};
    if (best.value >= 0) return best;
  }
  return {in.size(), in.size(), -1};
}

void check_search(const Vocabulary& vocabulary, std::string_view text) {
  LongestMatch among;
  std::vector<std::string> texts;
  for (const AddedToken& token : vocabulary.added) {
    among.add(vocabulary.tokens[size_t(token.id)], int32_t(texts.size()));
    texts.push_back(vocabulary.tokens[size_t(token.id)]);
  }
  for (size_t from = 0; from < text.size();) {
    LongestMatch::Match fast = among.find(text, from), slow = find_slowly(texts, text, from);
    if (fast.value != slow.value || fast.begin != slow.begin || fast.end != slow.end) fuzz_failure("another match");
    from = fast.end;
  }
}

bool strips(const Vocabulary& vocabulary) {
  for (const AddedToken& token : vocabulary.added)
    if (token.lstrip || token.rstrip) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    Tokenizer tokenizer(parse_hugging_face_vocabulary(text, "tokenizer.json"));
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    // Some text in which there are added tokens.
    std::string sample(text.substr(0, 300));
    for (const AddedToken& token : vocabulary.added)
      if (sample.size() < 1000) sample += vocabulary.tokens[size_t(token.id)].substr(0, 100) + " ";
    for (bool special : {false, true})
      if (!strips(vocabulary) && tokenizer.decode(tokenizer.encode(sample, special)) != sample)
        fuzz_failure("decoding does not give the text back");
    check_search(vocabulary, sample);
    Tokenizer again(parse_hugging_face_vocabulary(format_hugging_face_vocabulary(vocabulary), "written"));
    for (bool special : {false, true})
      if (tokenizer.encode(sample, special) != again.encode(sample, special))
        fuzz_failure("other ids when it comes back");
  } catch (const UserError&) {
  }
  return 0;
}
