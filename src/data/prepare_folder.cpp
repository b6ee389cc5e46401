#include "data/prepare_folder.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/error.h"
#include "data/prepare.h"
#include "data/shard_index.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockFile = "lock";
constexpr const char* kReplacedIndex = "replaced";  // a folder with the index of the data set that was replaced

/// Renames a file; nothing happens if it is not there (any more).
void move_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from)) return;
  fs::rename(from, to, error);
  if (error) file_error("write", to, error.value());
}

/// The names of a data set's shards; none if its index cannot be read.
std::set<std::string> shard_names(const fs::path& folder) {
  std::set<std::string> names;
  if (!fs::exists(folder / kIndexFile)) return names;
  try {
    ShardIndex index = read_shard_index(folder);
    for (const SplitIndex* split : {&index.train, &index.val})
      for (const ShardInfo& shard : split->shards)
        if (fs::path(shard.file).filename() == shard.file) names.insert(shard.file);
  } catch (const UserError&) {
    // A damaged index names nothing that could be removed safely.
  }
  return names;
}

bool is_shard_name(const std::string& name) {
  return ::fnmatch("train_[0-9]*.bin", name.c_str(), 0) == 0 || ::fnmatch("val_[0-9]*.bin", name.c_str(), 0) == 0;
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
  make_folder(path_);
  fs::path lock = path_ / kLockFile;
  lock_ = FileDescriptor(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_.is_open()) file_error("write", lock, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    user_error(
        "[prepare] expected {} for this run alone, but another `prepare` is working there; wait for it, or name "
        "another folder with --out",
        out.string());
}

void PrepareFolder::clear() {
  remove_journal(path_);  // first: it names the other files
  for (const auto& entry : fs::directory_iterator(path_)) {
    std::error_code error;
    if (entry.path().filename() != kLockFile) fs::remove_all(entry.path(), error);
    if (error) file_error("remove", entry.path(), error.value());
  }
}

void PrepareFolder::publish(const PrepareJournal& journal, const std::function<void()>& pause) {
  TOKAMAK_CHECK(!journal.moves.empty() && journal.moves.back().to == kIndexFile, "the index does not come last");
  // As long as the new index is here, the one in the output folder is the old one. It goes first: a folder with an
  // index is complete.
  if (fs::exists(path_ / journal.moves.back().from)) {
    make_folder(path_ / kReplacedIndex);
    pause();
    move_file(out_ / kIndexFile, path_ / kReplacedIndex / kIndexFile);
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
  if (!fs::exists(path_ / kReplacedIndex / kIndexFile)) return;
  std::set<std::string> unused = shard_names(path_ / kReplacedIndex);
  for (const std::string& name : tokenizer_file_names()) unused.insert(name);
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
