#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "data/hub_folder.h"
#include "data/open_source.h"
#include "data/passed_over.h"
#include "data/sources/mds_index.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

using Files = std::vector<fs::path>;
using Entries = std::vector<fs::directory_entry>;

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != text.npos; }

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// A folder's entries, in any order. They know what they are without a further question to the system, but for links:
/// there may be millions of them.
Entries entries_of(const fs::path& folder) {
  Entries entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  if (error) file_error("read the folder", folder, error.value());
  return entries;
}

/// What an entry of a folder is, links followed; none for a link that leads nowhere or in circles.
fs::file_type type_of(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_regular_file(error)) return fs::file_type::regular;
  if (entry.is_directory(error)) return fs::file_type::directory;
  return entry.status(error).type();
}

/// Folders that lie in a folder; links are not followed, as they may lead in circles.
bool is_subfolder(const fs::directory_entry& entry) {
  return type_of(entry) == fs::file_type::directory && !entry.is_symlink();
}

/// Why an entry of a folder is no file and no folder to search; empty if it is one.
std::string why_passed_over(const fs::directory_entry& entry) {
  fs::file_type type = type_of(entry);
  if (is_hidden(entry)) return "hidden";
  if (type == fs::file_type::directory) return entry.is_symlink() ? "linked to a folder" : "";
  if (type == fs::file_type::regular) return entry.file_size() == 0 ? "empty" : "";
  return entry.is_symlink() ? "linked to nothing" : "of a special kind";
}

/// Appends all files below a folder whose names have a format; counts the others. Of MDS, which may have a shard
/// compressed and not, those are taken that its index names; of a repository in the hub's cache, one snapshot.
void search_folder(const fs::path& folder, Files& files, PassedOver& passed_over) {
  if (std::optional<HubSnapshot> snapshot = find_hub_snapshot(folder)) {
    for (size_t i = 0; i < snapshot->others.size(); ++i) passed_over.add("in another snapshot of the hub's cache");
    return search_folder(snapshot->folder, files, passed_over);
  }
  const fs::path index = folder / "index.json";
  std::optional<Files> shards = mds_shards(index);
  if (shards) files.insert(files.end(), shards->begin(), shards->end());
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (shards && entry.path() == index) continue;
    if (shards && is_mds_name(entry)) {
      if (!std::binary_search(shards->begin(), shards->end(), entry.path()))
        passed_over.add(".mds that index.json does not name, or as another file");
    } else if (std::string reason = why_passed_over(entry); !reason.empty())
      passed_over.add(reason);
    else if (is_subfolder(entry))
      search_folder(entry, files, passed_over);
    else if (is_dataset_card(entry))
      passed_over.add("README.md of a data set");
    else if (format_by_name(entry))
      files.push_back(entry);
    else
      passed_over.add_file(entry);
  }
}

/// Appends what exists of `base` followed by the parts of a path, each of which may be a pattern; "**" stands for any
/// number of folders, also none.
void expand(const fs::path& base, std::span<const fs::path> parts, Files& found, PassedOver& passed_over) {
  if (parts.empty()) return found.push_back(base);
  const std::string part = parts[0].string();
  auto rest = parts.subspan(1);
  fs::path folder = base.empty() ? "." : base;
  if (part == "**") {
    expand(base, rest, found, passed_over);
    for (const fs::directory_entry& entry : entries_of(folder)) {
      if (is_hidden(entry) || type_of(entry) != fs::file_type::directory) continue;
      if (is_subfolder(entry))
        expand(base / entry.path().filename(), parts, found, passed_over);
      else
        passed_over.add("linked to a folder");
    }
  } else if (!is_pattern(part)) {
    if (fs::exists(base / part)) expand(base / part, rest, found, passed_over);
  } else {
    for (const fs::directory_entry& entry : entries_of(folder))
      if (::fnmatch(part.c_str(), entry.path().filename().c_str(), FNM_PERIOD) == 0 &&
          (rest.empty() || type_of(entry) == fs::file_type::directory))
        expand(base / entry.path().filename(), rest, found, passed_over);
  }
}

Files expand_pattern(const std::string& pattern, PassedOver& passed_over) {
  fs::path path(pattern);
  Files parts, found;
  for (const fs::path& part : path.relative_path()) parts.push_back(part);
  expand(path.root_path(), parts, found, passed_over);
  if (found.empty())
    user_error("[data] expected files that match {}, got none; check the pattern, where ** stands for folders",
               pattern);
  return found;
}

/// The patterns of all formats' names, for a message.
std::string known_names() {
  std::string names;
  for (std::string_view name : format_file_names()) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return names;
}

void sort_without_repetitions(Files& files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
}

/// It would be waited for; see open_to_read().
void refuse_pipe(const fs::path& path) {
  if (fs::is_fifo(fs::symlink_status(path)))
    user_error(
        "[data] expected a file, got the pipe {}; name a file, or let `prepare` read what comes through it from "
        "standard input (-)",
        path.string());
}

/// It may have no end.
void refuse_endless(const fs::path& path) {
  if (fs::is_character_file(path) || fs::is_block_file(path)) open_to_read(path);
}

}  // namespace

Files find_files(const std::string& input, const SourceOptions&, PassedOver* told) {
  if (input == "-") return {"-"};
  if (input.empty()) user_error("[data] expected the path of a file, a folder or a pattern, got an empty one");
  bool exists = fs::exists(input);
  if (exists && !fs::is_directory(input)) {
    refuse_pipe(input);
    refuse_endless(input);
    if (fs::is_regular_file(input) && fs::file_size(input) == 0)
      user_error("[data] expected text or tokens in {}, got an empty file; name another file", input);
    return {input};
  }
  if (!exists && !is_pattern(input))
    user_error("[data] expected a file, a folder or a pattern, got {}, which does not exist; check the path", input);

  Files files, named;  // what a search finds is checked already
  PassedOver passed_over;
  for (const fs::path& path : exists ? Files{input} : expand_pattern(input, passed_over)) {
    if (fs::is_directory(path))
      search_folder(path, files, passed_over);
    else
      named.push_back(path);
  }
  sort_without_repetitions(named);
  for (const fs::path& path : named) {
    refuse_pipe(path);
    refuse_endless(path);
    bool is_empty = fs::is_regular_file(path) && fs::file_size(path) == 0;
    if (is_empty)
      passed_over.add("empty");
    else
      files.push_back(path);
  }
  sort_without_repetitions(files);
  if (files.empty())
    user_error(
        "[data] expected files of these names in {}: {} (or with .gz or .zst behind it), and none of them empty; got "
        "none{}; name another folder or the files themselves",
        input, known_names(), passed_over.total() == 0 ? "" : fmt::format(" ({})", passed_over.describe(input)));
  if (told) *told = passed_over;
  return files;
}

}  // namespace tokamak
