// MDS: a shard's texts are those that its offsets and sizes say, or an error; an index.json names files inside its
// folder.
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/sources/compression.h"
#include "data/sources/mds_index.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

uint64_t number_at(std::string_view shard, uint64_t place) {
  uint32_t number = 0;
  if (place + 4 > shard.size()) fuzz_failure("a shard that is too short is taken");
  std::memcpy(&number, shard.data() + place, 4);
  return number;
}

/// The slow, obvious twin, of a shard that was taken: the values of the column "text", each found from the beginning.
std::string texts_of(std::string_view shard) {
  uint64_t samples = number_at(shard, 0), config = 4 * (samples + 2);
  auto columns = nlohmann::json::parse(shard.substr(config, number_at(shard, 4) - config));
  std::string all;
  for (uint64_t i = 0; i < samples; ++i) {
    uint64_t sizes = number_at(shard, 4 * (i + 1)), value = sizes;
    for (const auto& size : columns["column_sizes"]) value += size.is_null() || size == 0 ? 4 : 0;
    for (size_t c = 0;; ++c) {
      const auto& fixed = columns["column_sizes"][c];
      bool varies = fixed.is_null() || fixed == 0;
      uint64_t size = varies ? number_at(shard, sizes) : fixed.get<uint64_t>();
      if (columns["column_names"][c] == "text") {
        std::string encoding = columns["column_encodings"][c];
        if (encoding.starts_with("str") || encoding == "bytes") all += shard.substr(value, size);
        break;
      }
      sizes += varies ? 4 : 0;
      value += size;
    }
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FuzzFile file(data, size);
  if (bytes.starts_with('{')) {
    try {
      mds_shards(file.path());
    } catch (const UserError&) {
    }
    return 0;
  }
  std::string all;
  bool good = read_all_documents(file.path(), {.format = "mds"}, all);
  if (good && !is_compressed(bytes) && bytes.find("int") == bytes.npos && all != texts_of(bytes))
    fuzz_failure("another text than the twin's");
  return 0;
}
