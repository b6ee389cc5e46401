// Shards: headers of all three kinds.
#include "tests/fuzz/fuzz_tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz_token_file(tokamak::FuzzFile(data, size).path(), "bin");
  return 0;
}
