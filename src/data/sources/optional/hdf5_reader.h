// One dataset of an HDF5 file, read by a child process: the library crashes or hangs on some damaged files, keeps state
// for the whole process, and is mostly built without support for threads.
#pragma once

#include <filesystem>
#include <string>

#include "base/child_process.h"
#include "data/sources/optional/hdf5_facts.h"

namespace tokamak {

/// For any thread, one at a time.
class Hdf5Reader {
 public:
  /// Opens the dataset `field` of a file, or the only one that the file has. UserErrors, here and later: those of
  /// Hdf5Dataset, and a file on which the library crashes or hangs.
  Hdf5Reader(std::filesystem::path path, const std::string& field);

  const std::filesystem::path& path() const { return path_; }
  /// The file and the dataset, for messages.
  const std::string& name() const { return name_; }
  const Hdf5Facts& facts() const { return facts_; }

  /// Integers `begin` to `begin + count` in this machine's byte order.
  std::string integers(int64_t begin, int64_t count) const;

  /// Texts `begin` to `begin + count`, each behind its length as a uint64.
  std::string texts(int64_t begin, int64_t count) const;

 private:
  std::filesystem::path path_;
  std::string name_;
  Hdf5Facts facts_;
  mutable ChildProcess child_;
};

}  // namespace tokamak
