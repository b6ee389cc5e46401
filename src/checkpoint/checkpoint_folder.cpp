#include "checkpoint/checkpoint_folder.h"

#include "base/error.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>  // renameat2
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step_";
constexpr std::string_view kTemporary = ".tmp";

// What does not tell its kind is not left out: opening it tells why.
bool may_be_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_directory(error) || error;
}

fs::path temporary_name(const fs::path& path) { return path.string() + std::string(kTemporary); }

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) file_error("write", to, errno);
}

// Afterwards `staged` is the old folder.
void replace_folder(const fs::path& staged, const fs::path& path) {
  if (::renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) file_error("write", path, errno);
  // A file system that cannot exchange: for a moment there is no folder of that name.
  fs::path aside = path.string() + ".old" + std::string(kTemporary);
  rename_path(path, aside);
  rename_path(staged, path);
  rename_path(aside, staged);
}

// Makes the link beside the checkpoint point to it, in one step, where the file system has links.
void point_link(const std::string& name, const fs::path& checkpoint) {
  fs::path link = checkpoint.parent_path() / name, fresh = temporary_name(link);
  ::unlink(fresh.c_str());
  if (::symlink(checkpoint.filename().c_str(), fresh.c_str()) != 0) {
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) return;
    file_error("write", link, errno);
  }
  rename_path(fresh, link);
  sync_folder(checkpoint.parent_path());
}

}  // namespace

fs::path checkpoints_folder(const fs::path& out) { return out / "checkpoints"; }

std::optional<fs::path> run_with_checkpoints(const fs::path& named) {
  fs::path folder = named.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  fs::path around = folder.has_parent_path() ? folder.parent_path() : ".";
  std::error_code absent;
  if (fs::is_directory(checkpoints_folder(named), absent)) return named;
  bool is_it = folder == checkpoints_folder(around).lexically_normal() && fs::is_directory(named, absent);
  return is_it ? std::optional(around) : std::nullopt;
}

std::string checkpoint_name(int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

bool is_checkpoint_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || name.size() == kStepPrefix.size()) return false;
  name.remove_prefix(kStepPrefix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int64_t step_of_checkpoint(const fs::path& checkpoint) {
  std::string digits = checkpoint.filename().string().substr(kStepPrefix.size());
  int64_t step = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return step;
}

std::vector<fs::path> list_checkpoints(const fs::path& checkpoints) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(checkpoints, error), end; !error && at != end; at.increment(error))
    if (is_checkpoint_name(at->path().filename().string()) && may_be_folder(*at)) found.push_back(at->path());
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    file_error("read the folder", checkpoints, error.value());
  std::sort(found.begin(), found.end());
  return found;
}

void give_name(const fs::path& staged, const fs::path& path) {
  sync_folder(staged);
  if (::rename(staged.c_str(), path.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) file_error("write", path, errno);
    replace_folder(staged, path);
  }
  sync_folder(path.parent_path());
}

StagedFolder::StagedFolder(fs::path path) : path_(std::move(path)), staged_(temporary_name(path_)) {
  remove_quietly(staged_);
  make_folder(staged_);
}

StagedFolder::~StagedFolder() { remove_quietly(staged_); }

void StagedFolder::commit() { give_name(staged_, path_); }

void point_latest(const fs::path& checkpoint) { point_link("latest", checkpoint); }

void point_best(const fs::path& checkpoints, int64_t step) {
  fs::path link = checkpoints / "best", target = checkpoint_name(step);
  std::error_code error;
  if (step == 0 && fs::is_symlink(link, error)) ::unlink(link.c_str());
  if (step == 0 || (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target)) return;
  point_link("best", checkpoints / target);
}

void remove_checkpoint(const fs::path& checkpoint) {
  fs::path doomed = temporary_name(checkpoint);
  if (::rename(checkpoint.c_str(), doomed.c_str()) == 0) remove_quietly(doomed);
}

std::vector<fs::path> list_unfinished(const fs::path& checkpoints) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(checkpoints, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().ends_with(kTemporary)) found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

void remove_leftovers(const fs::path& checkpoints) {
  for (const fs::path& path : list_unfinished(checkpoints)) remove_quietly(path);
}

}  // namespace tokamak
