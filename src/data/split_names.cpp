#include "data/split_names.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "base/error.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

struct SplitWord {
  std::string_view word, split;
};

constexpr SplitWord kWords[] = {
    {"train", "train"},           {"training", "train"}, {"val", "validation"},  {"valid", "validation"},
    {"validation", "validation"}, {"dev", "validation"}, {"eval", "validation"}, {"test", "test"},
};

std::string split_of_word(std::string_view word) {
  for (const SplitWord& one : kWords)
    if (one.word == word) return std::string(one.split);
  return "";
}

/// By its first word that says one.
std::string split_of_name(const std::string& name) {
  std::string word;
  for (char c : name + ".") {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += char(std::tolower(static_cast<unsigned char>(c)));
    } else {
      if (std::string split = split_of_word(word); !split.empty()) return split;
      word.clear();
    }
  }
  return "";
}

/// The parts of a folder's path that all files have.
fs::path common_folder(const std::vector<fs::path>& files) {
  fs::path common = files.front().parent_path();
  for (const fs::path& file : files)
    while (!common.empty() &&
           std::mismatch(common.begin(), common.end(), file.begin(), file.end()).first != common.end())
      common = common == common.parent_path() ? fs::path() : common.parent_path();
  return common;
}

}  // namespace

std::string split_of(const fs::path& path) {
  if (std::string split = split_of_name(path.filename().string()); !split.empty()) return split;
  std::string found;
  for (const fs::path& folder : path.parent_path())
    if (std::string split = split_of_name(folder.string()); !split.empty()) found = split;
  return found;
}

size_t keep_split(std::vector<fs::path>& files, const std::string& split, const std::string& input) {
  std::map<std::string, size_t> counts;
  auto split_below = [&](const fs::path& file) {
    return split_of(fs::is_directory(input) ? file.lexically_relative(input) : file);
  };
  for (const fs::path& file : files) ++counts[split_below(file)];
  if (!counts.contains(split)) {
    std::string list;
    for (const auto& [name, count] : counts)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, name.empty() ? "without a split" : "of " + name);
    user_error("[prepare] expected files in {} whose names say {}, got {}; name another --split, or leave it out",
               input, split, list);
  }
  size_t all = files.size();
  std::erase_if(files, [&](const fs::path& file) { return split_below(file) != split; });
  return all - files.size();
}

std::string pooled_splits_warning(const std::vector<fs::path>& files) {
  if (files.empty()) return "";
  struct Split {
    int64_t files = 0;
    fs::path example;
  };
  fs::path common = common_folder(files);
  std::map<std::string, Split> splits;
  for (const fs::path& file : files) {
    std::string split = split_of(common.empty() ? file : file.lexically_relative(common));
    if (!split.empty() && splits[split].files++ == 0) splits[split].example = file;
  }
  if (splits.size() < 2) return "";
  std::string list;
  for (const auto& [split, found] : splits)
    list += fmt::format("{}{} of {} ({}{})", list.empty() ? "" : ", ", found.files, split, found.example.string(),
                        found.files > 1 ? ", ..." : "");
  return fmt::format(
      "warning: files whose names say that they are of different splits are taken together: {}; take those of one "
      "split "
      "alone (`prepare --split=train`), and the others as data.val_path (after `prepare` with another --out)",
      list);
}

}  // namespace tokamak
