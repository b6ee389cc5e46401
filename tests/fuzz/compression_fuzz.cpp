// gzip, Zstandard, xz and bzip2.
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string all;
  tokamak::read_all_documents(tokamak::FuzzFile(data, size).path(), {.format = "text", .part_bytes = 4096}, all);
  return 0;
}
