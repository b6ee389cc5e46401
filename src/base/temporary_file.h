// Names under which files grow until they are complete. Nobody can foresee them, and they are created exclusively, so
// nothing that is there already, such as a link, is opened or overwritten. Tests: tests/base/temporary_file_test.cpp.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/file.h"

namespace tokamak {

/// A new file of this very name below the open folder (AT_FDCWD: the working one), open for reading and writing.
/// Closed, with errno set, when it cannot be made or something has the name already, be it a link that leads nowhere.
FileDescriptor create_exclusively(int folder, const std::filesystem::path& name, unsigned mode);

/// A new empty file in the folder of `path`, named after it, open for reading and writing. It is locked as long as its
/// descriptor lives.
struct TemporaryFile {
  FileDescriptor fd;
  std::filesystem::path path;
};
TemporaryFile make_temporary(const std::filesystem::path& path);

/// A new random name beside `path`, named after it.
std::filesystem::path temporary_name(const std::filesystem::path& path);

/// Removes the temporary files of `path` that killed processes have left; those of living ones are locked.
void remove_dead_temporaries(const std::filesystem::path& path);

/// The name of what a temporary file, by its name, is to become; other names as they are.
std::string_view without_temporary_ending(std::string_view name);

}  // namespace tokamak
