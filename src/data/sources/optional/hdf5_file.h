// One dataset of an HDF5 file, over the C library. The library keeps state for the whole process and is mostly built
// without support for threads, so everything here holds one lock while it calls it.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace tokamak {

/// Holds the library's lock, which one thread may take several times, and keeps it from printing.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;
};

/// What the library says of its last failure, the innermost cause.
std::string hdf5_reason();

/// Owns one of the library's objects.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle();

  hid_t id() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// A dataset with one dimension, open for reading. Copies of its numbers are the caller's to lock.
class Hdf5Dataset {
 public:
  /// Opens the dataset `field` of a file, or the only one that the file has. UserErrors: no HDF5 file, damage, no
  /// such dataset, several of other names, another number of dimensions, a
  /// filter that the library lacks.
  Hdf5Dataset(const std::filesystem::path& path, const std::string& field);

  const std::filesystem::path& path() const { return path_; }
  /// The file and the dataset, for messages.
  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }  // elements
  hid_t id() const { return dataset_.id(); }
  /// The type of its elements as it is stored.
  Hdf5Handle type() const;

  /// Reads elements `begin` to `begin + count` as `type` into `out`, which has room for them. A UserError for damage.
  void read(int64_t begin, int64_t count, hid_t type, void* out) const;

  /// A data space in memory of `count` elements, one after the other.
  static Hdf5Handle memory_space(int64_t count);

 private:
  Hdf5Handle open_dataset(const std::string& field) const;
  Hdf5Handle open_for_access(const std::string& dataset) const;

  std::filesystem::path path_;
  std::string name_;
  Hdf5Handle file_;
  Hdf5Handle dataset_;
  int64_t size_ = 0;
};

}  // namespace tokamak
