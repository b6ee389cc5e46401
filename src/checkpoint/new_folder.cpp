#include "checkpoint/new_folder.h"

#include "base/error.h"
#include "base/temporary_file.h"
#include "checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <vector>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// Names that this program, or Transformers, gives to files of a model.
bool is_of_model(std::string_view name) {
  constexpr std::string_view kNames[] = {"config.json",
                                         "generation_config.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "chat_template.jinja",
                                         "model.safetensors.index.json"};
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  return name.starts_with("model") && name.ends_with(".safetensors");
}

void require_replaceable(const fs::path& path, bool replace) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return;
  if (!fs::is_directory(path, error))
    user_error("[export] expected a folder or nothing at {}, got a file; name another folder", path.string());
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!replace)
      user_error(
          "[export] expected an empty folder or nothing at {}, got one with {} in it; name another folder, or take "
          "--replace to have a model's files there replaced",
          path.string(), name);
    if (!is_of_model(name) || at->is_directory())
      user_error("[export] expected only a model's files in {}, which --replace replaces, got also {}; move it away",
                 path.string(), name);
  }
  if (error) file_error("read the folder", path, error.value());
}

bool take_lock(const FileDescriptor& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

FileDescriptor open_folder(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Those of living processes are locked.
void remove_dead(const fs::path& path) {
  std::error_code error;  // leftovers cost only space
  std::vector<fs::path> found;
  for (fs::directory_iterator at(path.parent_path(), error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name != path.filename() && without_temporary_ending(name) == path.filename()) found.push_back(at->path());
  }
  for (const fs::path& leftover : found)
    if (FileDescriptor folder = open_folder(leftover); folder.is_open() && take_lock(folder))
      fs::remove_all(leftover, error);
}

// Without a separator at its end, and what a link stands for.
fs::path plain_path(const fs::path& path) {
  std::error_code error;
  fs::path plain = fs::weakly_canonical(fs::absolute(path), error);
  if (error) file_error("look at", path, error.value());
  return plain.has_filename() ? plain : plain.parent_path();
}

}  // namespace

NewFolder::NewFolder(const fs::path& path, bool replace) : path_(plain_path(path)), replace_(replace) {
  require_replaceable(path_, replace);
  make_folder(path_.parent_path());
  remove_dead(path_);
  growing_ = temporary_name(path_);
  make_folder(growing_);
  lock_ = open_folder(growing_);
  if (lock_.is_open()) take_lock(lock_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  fs::remove_all(growing_, ignored);
}

void NewFolder::commit() {
  require_replaceable(path_, replace_);
  give_name(growing_, path_);
}

}  // namespace tokamak
