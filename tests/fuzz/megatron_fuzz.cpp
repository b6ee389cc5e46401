// Megatron's index: whatever opens has documents that add up.
#include "data/sources/megatron.h"

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokamak;
  FuzzFile file(data, size);
  try {
    MegatronIndex index = open_megatron_index(file.path());
    if (index.end_offset() != int64_t(size) || index.tokens < 0) fuzz_failure("counts do not fit the file");
  } catch (const UserError&) {
  }
  return 0;
}
