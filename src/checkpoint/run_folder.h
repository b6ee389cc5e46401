// The folder of a training run, which one process at a time writes to; others may read it. It holds what is needed to
// go on, to evaluate and to generate from anywhere. Tests: tests/e2e/lock_test.cpp, tests/e2e/run_folder_test.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/file_lock.h"
#include "data/tokenizer.h"

namespace tokamak {

struct DataConfig;
struct RunConfig;

/// Where a run's folder keeps its tokenizer.
inline constexpr const char* kTokenizerFolder = "tokenizer";

class RunFolder {
 public:
  /// Makes the folder and locks it; a UserError names the process that trains there already.
  explicit RunFolder(std::filesystem::path path);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  /// Gives the lock back, and removes the folder if it was made here and nothing came into it.
  ~RunFolder();

  /// Writes config.json, the run file that `tokamak train FOLDER` goes on with.
  void keep_config(const RunConfig& config) const;
  /// Keeps the tokenizer of the run's data; null: there is none.
  void keep_tokenizer(const Tokenizer* tokenizer) const;

 private:
  std::filesystem::path path_;
  bool made_;
  std::optional<FileLock> lock_;
};

/// The lock of a run's folder that is there, for what changes its checkpoints; UserError, when a process trains in it.
std::unique_ptr<FileLock> lock_run(const std::filesystem::path& run);

/// UserError, as RunFolder's, when a process trains in the folder now. Changes nothing there.
void require_unlocked(const std::filesystem::path& run);

/// The configuration as it is kept: the same whatever folder is the working one, for a run that goes on.
RunConfig as_kept(RunConfig config);

/// The folder of the run that a checkpoint is of.
std::filesystem::path run_folder_of(const std::filesystem::path& checkpoint);

/// The same for the path of a run's folder, of one of its checkpoints or of a link to one.
std::filesystem::path run_folder_around(const std::filesystem::path& run_or_checkpoint);

/// The tokenizer kept in a run's folder; null: there is none.
std::shared_ptr<const Tokenizer> load_kept_tokenizer(const std::filesystem::path& run);

/// The same, else that of its data; null: there is none.
std::shared_ptr<const Tokenizer> load_run_tokenizer(const std::filesystem::path& run, const DataConfig& data);

/// That of a run, of one of its checkpoints or of a model in Hugging Face's form; null: there is none.
std::shared_ptr<const Tokenizer> load_model_tokenizer(const std::filesystem::path& model);

}  // namespace tokamak
