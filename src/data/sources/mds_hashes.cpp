#include "data/sources/mds_hashes.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/open_source.h"
#include "data/sources/mds_index.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// A member of an object; null where it is none, or has no such member.
json member(const json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object[key] : json(nullptr);
}

Hashes hashes_of(const json& file, const std::string& index) {
  Hashes hashes;
  json named = member(file, "hashes");
  if (named.is_null() || (named.is_array() && named.empty())) return hashes;
  if (!named.is_object())
    user_error("[mds] {}: expected an object of hashes for each shard, got {}; copy or download it again", index,
               named.type_name());
  for (const auto& [name, hex] : named.items()) {
    if (!hex.is_string())
      user_error("[mds] {}: expected hexadecimal digits as the {} of a shard, got {}; copy or download it again", index,
                 name, hex.type_name());
    hashes[name] = hex.get<std::string>();
  }
  return hashes;
}

}  // namespace

std::shared_ptr<MdsHashes> make_mds_hashes() { return std::make_shared<MdsHashes>(); }

Hashes MdsHashes::of(const fs::path& shard) {
  fs::path path = shard.parent_path() / "index.json";
  std::lock_guard lock(mutex_);
  auto [at, is_new] = indexes_.try_emplace(path.string());
  Index& index = at->second;
  if (is_new)
    for (const json& entry : mds_index_entries(path)) {
      Hashes hashes = hashes_of(member(entry, "raw_data"), path.string());
      for (const char* file : {"raw_data", "zip_data"})
        if (json name = member(member(entry, file), "basename"); name.is_string()) index[name] = hashes;
    }
  auto found = index.find(shard.filename().string());
  return found == index.end() ? Hashes() : found->second;
}

}  // namespace tokamak
