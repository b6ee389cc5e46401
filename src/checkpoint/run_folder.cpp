#include "checkpoint/run_folder.h"

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"
#include "config/config.h"
#include "config/json.h"
#include "data/data_tokenizer.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLock = "lock";

[[noreturn]] void refuse(const fs::path& run, const std::string& holder) {
  user_error(
      "[train] expected {} for this run alone, but {} trains there; wait until it ends, or name another folder with "
      "--train.out",
      run.string(), holder);
}

// Also of an entry with a weight or a pattern.
void make_absolute(std::string& path) {
  if (!path.empty()) path = fs::absolute(path).lexically_normal().string();
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)), made_(!fs::exists(path_)) {
  make_folder(path_);
  lock_.emplace(path_ / kLock);
  if (!lock_->is_held()) refuse(path_, lock_->holder());
}

RunFolder::~RunFolder() {
  lock_.reset();
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
}

void RunFolder::keep_config(const RunConfig& config) const {
  write_file_atomic(path_ / "config.json", to_json(as_kept(config)));
}

void RunFolder::keep_tokenizer(const Tokenizer* tokenizer) const {
  fs::path folder = path_ / kTokenizerFolder;
  std::error_code absent;
  fs::remove_all(folder, absent);
  if (!tokenizer) return;
  make_folder(folder);
  save_tokenizer(tokenizer->vocabulary(), folder);
}

std::unique_ptr<FileLock> lock_run(const fs::path& run) {
  auto lock = std::make_unique<FileLock>(run / kLock);
  if (!lock->is_held())
    user_error("[checkpoint] expected {} for this command alone, but {} trains there; wait until it ends", run.string(),
               lock->holder());
  return lock;
}

void require_unlocked(const fs::path& run) {
  if (std::string holder = lock_holder(run / kLock); !holder.empty()) refuse(run, holder);
}

RunConfig as_kept(RunConfig config) {
  for (std::vector<std::string>* paths : {&config.data.path, &config.data.val_path})
    for (std::string& path : *paths) make_absolute(path);
  for (std::string& task : config.train.tasks) {  // KIND:FILE
    std::string file = task.substr(std::min(task.find(':'), task.size() - 1) + 1);
    task.resize(task.size() - file.size());
    make_absolute(file);
    task += file;
  }
  make_absolute(config.data.tokenizer);
  make_absolute(config.model.from);
  make_absolute(config.train.out);
  make_absolute(config.train.archive);
  config.train.resume = true;
  return config;
}

fs::path run_folder_of(const fs::path& checkpoint) { return fs::absolute(checkpoint).parent_path().parent_path(); }

fs::path run_folder_around(const fs::path& run_or_checkpoint) {
  std::error_code absent;
  return fs::is_directory(checkpoints_folder(run_or_checkpoint), absent) ? fs::absolute(run_or_checkpoint)
                                                                         : run_folder_of(run_or_checkpoint);
}

std::shared_ptr<const Tokenizer> load_kept_tokenizer(const fs::path& run) {
  fs::path kept = run / kTokenizerFolder;
  return has_tokenizer(kept) ? std::make_shared<const Tokenizer>(load_tokenizer(kept)) : nullptr;
}

std::shared_ptr<const Tokenizer> load_run_tokenizer(const fs::path& run, const DataConfig& data) {
  std::shared_ptr<const Tokenizer> kept = load_kept_tokenizer(run);
  return kept ? kept : load_data_tokenizer(data);
}

std::shared_ptr<const Tokenizer> load_model_tokenizer(const fs::path& model) {
  if (fs::is_directory(model) && has_tokenizer(model)) return std::make_shared<const Tokenizer>(load_tokenizer(model));
  return load_kept_tokenizer(run_folder_around(model));
}

}  // namespace tokamak
