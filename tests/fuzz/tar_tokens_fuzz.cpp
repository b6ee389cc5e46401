// WebDataset, its .npy members read by place. Its documents are read by libarchive, which takes some archives that the
// index refuses, so the two are not compared.
#include "tests/fuzz/fuzz_tar.h"
#include "tests/fuzz/fuzz_tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes = tokamak::mended_tar(data, size);
  tokamak::read_all_tokens(tokamak::FuzzFile(bytes.data(), size).path(), "webdataset");
  return 0;
}
