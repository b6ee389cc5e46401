// Folders of data sets as Hugging Face's hub lays them out: repositories, and the cache of its Python library.
// Tests: tests/data/hub_folder_test.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace tokamak {

/// What to read of a repository in the cache (datasets--OWNER--NAME, with blobs, refs and snapshots).
struct HubSnapshot {
  std::filesystem::path folder;                 // the snapshot that refs/main names, else the only one
  std::vector<std::filesystem::path> others{};  // which hold much of the same data once more
};

/// Nothing where the folder is no such repository. UserError where it does not say which snapshot is meant, or lacks
/// it.
std::optional<HubSnapshot> find_hub_snapshot(const std::filesystem::path& folder);

/// Whether a file is the README.md of a data set's repository, which describes the data: its head, in YAML, has fields
/// that only such a one has.
bool is_dataset_card(const std::filesystem::path& file);

}  // namespace tokamak
