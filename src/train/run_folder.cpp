#include "train/run_folder.h"

#include "base/error.h"

namespace tokamak {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path path) : path_(std::move(path)), made_(!fs::exists(path_)) {
  make_folder(path_);
  lock_.emplace(path_ / "lock");
  if (!lock_->is_held())
    user_error(
        "[train] expected {} for this run alone, but {} trains there; wait until it ends, or name another folder with "
        "--train.out",
        path_.string(), lock_->holder());
}

RunFolder::~RunFolder() {
  lock_.reset();
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
}

}  // namespace tokamak
