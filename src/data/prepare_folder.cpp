#include "data/prepare_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "data/prepare_names.h"
#include "data/token_shard_index.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// Renames a file; nothing happens if it is not there (any more).
void move_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from)) return;
  fs::rename(from, to, error);
  if (error) file_error("write", to, error.value());
}

/// The index in a folder; a damaged one is none: what it names could not be removed safely.
std::optional<TokenShardIndex> find_index(const fs::path& folder) {
  if (!fs::exists(folder / kIndexFile)) return std::nullopt;
  try {
    return read_token_shard_index(folder);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// The names of a data set's shards and of its tokenizer's files; none if its index cannot be read.
std::set<std::string> data_names(const fs::path& folder) {
  std::set<std::string> names;
  std::optional<TokenShardIndex> index = find_index(folder);
  if (!index) return names;
  for (const SplitIndex* split : {&index->train, &index->val})
    for (const TokenShardInfo& shard : split->shards)
      if (is_shard_name(shard.file)) names.insert(shard.file);
  for (const std::string& name : tokenizer_file_names())
    if (!index->sealed || std::ranges::count(index->tokenizer, name, &FileChecksum::file) > 0) names.insert(name);
  return names;
}

/// Whether the index is one of ours, be it damaged.
bool is_own_index(const fs::path& index) {
  return fs::is_regular_file(index) && read_file(index, kLargeFile).find(kIndexFormat) != std::string::npos;
}

/// Whether a file is in its place as the finished index says, which still waits for its own.
bool is_moved(const fs::path& file, const std::optional<TokenShardIndex>& index) {
  if (!index) return false;
  std::vector<FileChecksum> files = index->tokenizer;
  for (const SplitIndex* split : {&index->train, &index->val})
    for (const TokenShardInfo& shard : split->shards) files.push_back({shard.file, shard.checksum});
  return std::ranges::any_of(files, [&](const FileChecksum& f) {
    return f.file == file.filename() && has_checksum(file, f.checksum, kMostShardBytes);
  });
}

/// A UserError if the output folder has files that finished ones would replace, and no data set of ours.
void refuse_foreign_files(const fs::path& out, const fs::path& unfinished_folder) {
  if (is_own_index(out / kIndexFile) || is_own_index(unfinished_folder / unfinished::kReplaced / kIndexFile)) return;
  // Half of a first data set may be there already.
  if (auto journal = read_journal(unfinished_folder); journal && !journal->moves.empty()) return;
  if (!fs::is_directory(out)) return;
  std::optional<TokenShardIndex> waiting = find_index(unfinished_folder);  // where the journal is damaged
  std::set<fs::path> foreign;
  for (const auto& entry : fs::directory_iterator(out))
    if (is_data_name(entry.path().filename().string()) && !is_moved(entry.path(), waiting))
      foreign.insert(entry.path());
  if (!foreign.empty())
    user_error(
        "[prepare] expected in {} no files but those of an earlier `prepare`, which this run would replace, got {}; "
        "move it away, or name another folder with --out",
        out.string(), foreign.begin()->string());
}

FileDescriptor open_lock(const fs::path& path) {
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!lock.is_open()) file_error("write", path, errno);
  return lock;
}

}  // namespace

bool is_output_of_prepare(const fs::path& file, const fs::path& out) {
  bool unfinished = std::find(file.begin(), file.end(), kUnfinishedFolder) != file.end();
  if (!unfinished && !is_shard_name(file.filename().string())) return false;
  fs::path inside = fs::weakly_canonical(file).lexically_relative(fs::weakly_canonical(out));
  return !inside.empty() && (inside == inside.filename() || *inside.begin() == kUnfinishedFolder);
}

PrepareFolder::PrepareFolder(const fs::path& out)
    : out_(out), path_(out / kUnfinishedFolder), made_out_(!fs::exists(out)) {
  if (fs::is_symlink(path_))
    user_error(
        "[prepare] expected a folder at {}, which this run would clear, got a link to {}; remove the link, or name "
        "another folder with --out",
        path_.string(), fs::read_symlink(path_).string());
  refuse_foreign_files(out_, path_);
  make_folder(path_);
  lock_ = open_lock(path_ / unfinished::kLock);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    user_error(
        "[prepare] expected {} for this run alone, but another `prepare` is working there; wait for it, or name "
        "another folder with --out",
        out.string());
  check_content();
}

void PrepareFolder::check_content() const {
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    const fs::path& path = entry.path();
    bool is_own = !entry.is_symlink() && (entry.is_regular_file() || entry.is_directory());
    if (is_own && is_unfinished_name(path.lexically_relative(path_))) continue;
    user_error(
        "[prepare] expected in {}, which this run would clear, only what `prepare` makes, got {}; move it away, or "
        "name "
        "another folder with --out",
        path_.string(), path.string());
  }
}

void PrepareFolder::clear() {
  remove_journal(path_);  // first: it names the other files
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(path_)) entries.push_back(entry.path());
  for (const fs::path& path : entries) {
    if (path.filename() == unfinished::kLock || path.filename() == unfinished::kReplaced) continue;
    std::error_code error;
    fs::remove_all(path, error);
    if (error) file_error("remove", path, error.value());
  }
}

fs::path PrepareFolder::find_damage(const PrepareJournal& journal, const std::function<void()>& pause) const {
  for (const PrepareJournal::Move& move : journal.moves) {
    pause();
    fs::path file = path_ / move.from;
    if (!fs::exists(file)) file = out_ / move.to;
    if (!has_checksum(file, move.checksum, kMostShardBytes)) return file;
  }
  return {};
}

void PrepareFolder::publish(const PrepareJournal& journal, const std::function<void()>& pause) {
  TOKAMAK_CHECK(!journal.moves.empty() && journal.moves.back().to == kIndexFile, "the index does not come last");
  // As long as the new index is here, the one in the output folder is the old one. It goes first: a folder with an
  // index is complete.
  if (fs::exists(path_ / journal.moves.back().from)) {
    make_folder(path_ / unfinished::kReplaced);
    pause();
    move_file(out_ / kIndexFile, path_ / unfinished::kReplaced / kIndexFile);
    sync_folder(out_);
    for (const PrepareJournal::Move& move : journal.moves) {
      pause();
      if (move.to == kIndexFile) sync_folder(out_);
      move_file(path_ / move.from, out_ / move.to);
    }
    sync_folder(out_);
  }
  pause();
  remove_replaced_files(journal);
}

void PrepareFolder::remove_replaced_files(const PrepareJournal& journal) {
  fs::path replaced = path_ / unfinished::kReplaced;
  if (!fs::exists(replaced / kIndexFile)) return;
  std::set<std::string> unused = data_names(replaced);
  for (const PrepareJournal::Move& move : journal.moves) unused.erase(move.to);
  std::error_code error;  // failing costs only space
  for (const std::string& name : unused) fs::remove(out_ / name, error);
}

void PrepareFolder::remove() {
  clear();
  std::error_code error;
  fs::remove_all(path_, error);
  if (made_out_) fs::remove(out_, error);  // does nothing unless it is empty
}

}  // namespace tokamak
