// A small file system of its own for one test, to meet full disks and read-only folders. Where mounting is not allowed
// mounted() is false, and the test skips.
#pragma once

#include <sys/mount.h>

#include <string>

#include "tests/support/temporary_folder.h"

namespace tokamak {

class MountedFolder {
 public:
  /// `options` as for mount -o, such as "size=200k".
  explicit MountedFolder(const std::string& options)
      : mounted_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options.c_str()) == 0) {}
  MountedFolder(const MountedFolder&) = delete;
  MountedFolder& operator=(const MountedFolder&) = delete;
  ~MountedFolder() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }

  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return folder_.path(); }

  /// From now on nothing can be written.
  bool make_read_only() {
    return ::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  TemporaryFolder folder_;
  bool mounted_;
};

}  // namespace tokamak
