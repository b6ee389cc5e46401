#include "run/archiver.h"

#include "base/error.h"

#include <utility>

namespace tokamak {

void Archiver::add(const std::filesystem::path& checkpoint) {
  try {
    ArchivedCheckpoint opened(checkpoint);
    std::lock_guard lock(mutex_);
    next_.emplace(std::move(opened));
    if (std::exchange(copies_, true)) return;
  } catch (const std::exception& error) {
    return warn(checkpoint, error.what());
  }
  tasks_.submit([this] { copy_all(); });
}

std::string Archiver::take_warning() {
  std::lock_guard lock(mutex_);
  return std::exchange(warning_, "");
}

std::optional<ArchivedCheckpoint> Archiver::take_next() {
  std::lock_guard lock(mutex_);
  copies_ = next_.has_value();
  return std::exchange(next_, std::nullopt);
}

void Archiver::copy_all() {
  while (std::optional<ArchivedCheckpoint> checkpoint = take_next()) {
    try {
      checkpoint->copy_to(archive_, keep_);
    } catch (const std::exception& error) {
      warn(checkpoint->path(), error.what());
    }
  }
}

void Archiver::warn(const std::filesystem::path& checkpoint, const std::string& why) {
  std::lock_guard lock(mutex_);
  warning_ = fmt::format("warning: {} is not in {}: {}", checkpoint.filename().string(), archive_.string(), why);
}

}  // namespace tokamak
