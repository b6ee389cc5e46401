// tokenizer.json: what is accepted makes a tokenizer that gives any bytes back.
#include "data/hugging_face_vocabulary.h"
#include "data/tokenizer.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    Tokenizer tokenizer(parse_hugging_face_vocabulary(text, "tokenizer.json"));
    std::string sample(text.substr(0, 300));
    if (tokenizer.decode(tokenizer.encode(sample)) != sample) fuzz_failure("decoding does not give the text back");
  } catch (const UserError&) {
  }
  return 0;
}
