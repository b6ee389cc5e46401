#include "data/prepare_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/one_of.h"
#include "base/temporary_file.h"
#include "data/token_shard_index.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kShardEnding = ".bin";

bool all_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == text.npos;
}

bool is_shard_of(std::string_view split, std::string_view name) {
  if (!name.starts_with(split) || !name.ends_with(kShardEnding)) return false;
  name.remove_prefix(split.size());
  if (name.size() <= 1 + kShardEnding.size() || name[0] != '_') return false;
  return all_of(name.substr(1, name.size() - 1 - kShardEnding.size()), "0123456789");
}

bool is_tokenizer_name(std::string_view name) {
  std::vector<std::string> names = tokenizer_file_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string shard_name(std::string_view split, size_t number) {
  return fmt::format("{}_{:06}{}", split, number, kShardEnding);
}

bool is_shard_name(std::string_view name) { return is_shard_of("train", name) || is_shard_of("val", name); }

bool is_data_name(std::string_view name) {
  return name == kIndexFile || is_shard_name(name) || is_tokenizer_name(name);
}

bool is_unfinished_name(const fs::path& path) {
  using namespace unfinished;
  std::string first = path.begin()->string(), last = path.filename().string();
  std::string_view name = without_temporary_ending(last);
  // Earlier versions wrote under the name itself with this ending.
  if (constexpr std::string_view kTemporary = ".tmp"; name.ends_with(kTemporary)) name.remove_suffix(kTemporary.size());
  switch (std::distance(path.begin(), path.end())) {
    case 1:
      return is_one_of(name, {kLock, kPlan, kJournal, kDocuments, kFiles, kTokenizer, kPipes, kReplaced, kIndexFile}) ||
             is_shard_of(kTokens, name) || is_shard_name(name);
    case 2:
      return (first == kTokenizer && is_tokenizer_name(name)) || (first == kReplaced && name == kIndexFile) ||
             (first == kPipes && all_of(name, "0123456789"));
    case 3: return first == kPipes;  // the copy has the name of the pipe
    default: return false;
  }
}

bool may_move(const fs::path& path, std::string_view to) {
  if (path == kIndexFile) return to == kIndexFile;
  if (path == fs::path(unfinished::kTokenizer) / to) return is_tokenizer_name(to);
  std::string name = path.string();
  return is_shard_name(to) && (is_shard_of(unfinished::kTokens, name) || name == to);
}

}  // namespace tokamak
