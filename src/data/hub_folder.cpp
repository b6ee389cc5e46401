#include "data/hub_folder.h"

#include <algorithm>

#include "base/error.h"
#include "data/open_source.h"
#include "data/sources/byte_stream.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kMostHead = size_t(64) << 10;

/// The beginning of a file, as it is.
std::string beginning_of(const fs::path& file) {
  ByteBuffer buffer(open_bytes(file, {}));
  buffer.hold(kMostHead);
  return std::string(buffer.view().substr(0, kMostHead));
}

std::string commit_in(const fs::path& reference) {
  std::string text = beginning_of(reference);
  size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  std::string name = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  bool is_name = !name.empty() && fs::path(name).filename() == name && !name.starts_with('.');
  if (!is_name)
    user_error("[data] {}: expected the name of a snapshot, got another text; name a folder in {} instead",
               reference.string(), (reference.parent_path().parent_path() / "snapshots").string());
  return name;
}

}  // namespace

std::optional<HubSnapshot> find_hub_snapshot(const fs::path& folder) {
  const fs::path snapshots = folder / "snapshots", main = folder / "refs" / "main";
  if (!fs::is_directory(snapshots) || !fs::is_directory(folder / "blobs")) return std::nullopt;
  HubSnapshot found;
  for (const auto& entry : fs::directory_iterator(snapshots))
    if (entry.is_directory()) found.others.push_back(entry.path());
  std::sort(found.others.begin(), found.others.end());
  if (fs::is_regular_file(main))
    found.folder = snapshots / commit_in(main);
  else if (found.others.size() == 1)
    found.folder = found.others[0];
  else
    user_error("[data] {}: expected one snapshot, or a file refs/main that names one, got {}; name one of them",
               snapshots.string(), found.others.size());
  auto own = std::find(found.others.begin(), found.others.end(), found.folder);
  if (own == found.others.end())
    user_error(
        "[data] expected the snapshot {}, which refs/main names, got no such folder; download it again, or name "
        "another",
        found.folder.string());
  found.others.erase(own);
  return found;
}

bool is_dataset_card(const fs::path& file) {
  if (file.filename() != "README.md") return false;
  std::string text = beginning_of(file);
  if (!text.starts_with("---\n")) return false;
  std::string_view head = std::string_view(text).substr(0, text.find("\n---", 3));
  constexpr std::string_view kFields[] = {
      "dataset_info:", "configs:", "task_categories:", "size_categories:", "source_datasets:"};
  return std::any_of(std::begin(kFields), std::end(kFields),
                     [&](std::string_view field) { return head.find(fmt::format("\n{}", field)) != head.npos; });
}

}  // namespace tokamak
