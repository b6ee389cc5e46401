// NumPy arrays, read by place and as a stream.
#include "tests/fuzz/fuzz_tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz_token_file(tokamak::FuzzFile(data, size).path(), "npy");
  return 0;
}
