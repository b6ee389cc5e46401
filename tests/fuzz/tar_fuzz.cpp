// WebDataset, as documents.
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/fuzz_tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes = tokamak::mended_tar(data, size);
  std::string all;
  tokamak::read_all_documents(tokamak::FuzzFile(bytes.data(), size).path(), {.format = "webdataset", .part_bytes = 64},
                              all);
  return 0;
}
