#include "data/sources/mds_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/json_fields.h"
#include "data/sources/byte_stream.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostIndexBytes = int64_t(1) << 28;
constexpr size_t kBegin = 256;  // MDS's list comes first, or behind the version
constexpr const char* kRemedy = "copy or download the folder again";

/// By its beginning: the index of another program may be too large to be read for nothing.
bool may_be_mds(const fs::path& index) {
  ByteBuffer buffer(open_bytes(index, {}));
  buffer.hold(kBegin);
  return buffer.view().substr(0, kBegin).find("\"shards\"") != std::string_view::npos;
}

/// The list of shards; null where it is none of MDS: of another program an index.json may be anything.
nlohmann::json shards_of(const std::string& text) {
  if (text.find("\"shards\"") == text.npos || text.find("\"mds\"") == text.npos) return nullptr;
  nlohmann::json index = parse_json(text);
  if (!index.is_object() || !index.contains("shards") || !index["shards"].is_array()) return nullptr;
  bool is_mds = std::any_of(index["shards"].begin(), index["shards"].end(), [](const nlohmann::json& shard) {
    return shard.is_object() && shard.contains("format") && shard["format"] == "mds";
  });
  return is_mds ? index["shards"] : nlohmann::json(nullptr);
}

/// A shard's file: its path in `folder`. Anything else would read what the folder does not have.
fs::path path_of(const fs::path& folder, const JsonFields& file) {
  fs::path name = fs::path(file.text("basename")).lexically_normal();
  bool leaves = name.empty() || !name.is_relative() ||
                std::any_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
  if (leaves) file.refuse("basename", "the name of a file inside the folder");
  return folder / name;
}

/// Whether a shard's file is there, which then must have the size that the index says.
bool is_there(const fs::path& path, const JsonFields& file) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  int64_t expected = file.number("bytes"), got = int64_t(fs::file_size(path));
  if (expected != got)
    user_error("[mds] {}: expected {} bytes, as its index says, got {}; copy or download it again", path.string(),
               expected, got);
  return true;
}

fs::path shard_of(const fs::path& folder, const JsonFields& shard, bool may_be_compressed) {
  if (shard.text("format") != "mds") shard.refuse("format", "mds, as other shards have,");
  shard.number("version", 2);
  JsonFields raw = shard.object("raw_data");
  fs::path path = path_of(folder, raw);
  if (is_there(path, raw)) return path;
  if (may_be_compressed) {
    JsonFields zip = shard.object("zip_data");
    fs::path compressed = path_of(folder, zip);
    if (is_there(compressed, zip)) {
      if (is_named_compressed(compressed)) return compressed;
      user_error("[mds] {}: expected a shard that is compressed with zstd or gz, or not at all, got {}; unpack it",
                 compressed.string(), compressed.extension().string());
    }
  }
  user_error("[mds] {}: expected this shard, which the folder's index.json names, got nothing; download it, too",
             path.string());
}

}  // namespace

std::optional<std::vector<fs::path>> mds_shards(const fs::path& index) {
  std::error_code error;
  if (!fs::is_regular_file(index, error)) return std::nullopt;
  if (!may_be_mds(index)) return std::nullopt;
  std::string text = read_file(index, kMostIndexBytes);
  nlohmann::json list = shards_of(text);
  if (list.is_null()) return std::nullopt;
  std::vector<fs::path> shards;
  for (const JsonFields& shard : JsonFields(text, index.string(), kRemedy).objects("shards")) {
    const nlohmann::json& one = list[shards.size()];
    shards.push_back(shard_of(index.parent_path(), shard, one.contains("zip_data") && !one["zip_data"].is_null()));
  }
  std::sort(shards.begin(), shards.end());
  return shards;
}

nlohmann::json mds_index_entries(const fs::path& index) {
  std::error_code error;
  if (!fs::is_regular_file(index, error) || !may_be_mds(index)) return nlohmann::json::array();
  nlohmann::json list = shards_of(read_file(index, kMostIndexBytes));
  return list.is_null() ? nlohmann::json::array() : list;
}

bool is_mds_name(const fs::path& path) {
  return fs::path(without_compression_ending(path.filename().string())).extension() == ".mds";
}

}  // namespace tokamak
