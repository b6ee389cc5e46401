// The index.json of a folder of MosaicML's streaming format (MDS): which shards there are, and how many bytes each has.
// Tests: tests/data/sources/mds_test.cpp.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace tokamak {

/// The shards that an index.json names, in the order of their paths; of those that are there compressed and not, the
/// latter. Nothing where the file is no index of MDS. UserErrors for a shard that is not there, has another size than
/// the index says, lies outside of the folder or is compressed in a way that is not read.
std::optional<std::vector<std::filesystem::path>> mds_shards(const std::filesystem::path& index);

/// The list of shards in such a file; an empty one where it is no index of MDS, or not there.
nlohmann::json mds_index_entries(const std::filesystem::path& index);

/// Whether a file's name is that of a shard.
bool is_mds_name(const std::filesystem::path& path);

}  // namespace tokamak
