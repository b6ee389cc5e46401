// Files that are read whole, mapped, or written so that a crash never leaves a half-written one under its final name.
// Every failure is a UserError that names the path, the system's reason and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tokamak {

/// Owns a POSIX file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A file's whole content, mapped read-only. The file must not be cut short while it is mapped.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::filesystem::path& path() const { return path_; }

  /// Of these bytes, pages that have been read no longer count as memory of the process; touched again, they are read
  /// again.
  void release(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

/// A file that is read from any place, by several threads at once. Not mapped: pages that were touched once would count
/// as memory of the process, and a file cut short meanwhile would kill it.
class FileReader {
 public:
  explicit FileReader(const std::filesystem::path& path);

  int64_t size() const { return size_; }  // bytes, when it was opened
  const std::filesystem::path& path() const { return path_; }

  /// Fills `out` with the bytes from `offset` on; a UserError if the file ends before.
  void read(int64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  FileDescriptor fd_;
  int64_t size_ = 0;
};

/// A new file that appears under its name only when it is complete: bytes go to a temporary file beside it
/// (base/temporary_file.h), commit() syncs and renames. Without a commit the temporary file is removed and whatever was
/// at `path` stays as it was; what killed processes left of it is removed by the next one. Links are replaced, not
/// followed: it is for files of ours in folders of ours (base/output_file.h has those that users name). A device or a
/// pipe is no place for one: a UserError.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends bytes (unbuffered: hand over large pieces).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Overwrites bytes from `offset` on, inside what was written already (for headers that are known last).
  void write_at(size_t offset, std::span<const std::byte> bytes);

  /// Makes sure that everything written so far is on the disk, where a full one shows at the latest.
  void sync();

  /// Syncs the content to the disk, gives the file its name and syncs the folder.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary_path() const { return temporary_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor fd_;
};

/// The rule for what is read: regular files, pipes that this process has already (/dev/fd/63 of a shell's `<(...)`,
/// /dev/stdin), terminals, and /dev/null, which is empty. UserErrors: a pipe with a name, as nobody is waited for, and
/// devices, of which /dev/zero has no end.
FileDescriptor open_to_read(const std::filesystem::path& path);

/// UserError where an open descriptor is of a device that open_to_read() refuses; `name` is for messages.
void refuse_device(int fd, const std::filesystem::path& name);

/// More bytes than any file has that people write, such as a configuration; and than those have that grow with a run,
/// its data or its vocabulary.
inline constexpr int64_t kSmallFile = int64_t(1) << 26, kLargeFile = int64_t(1) << 32;

/// The whole content of what open_to_read() opens. UserError where it has more than `most` bytes, before memory is full
/// of them.
std::string read_file(const std::filesystem::path& path, int64_t most = kSmallFile);

/// Everything that is left to read on an open descriptor, by the same rules.
std::string read_all(int fd, std::string_view name, int64_t most = kLargeFile);

/// Writes all of it to an open descriptor; `name` is for messages.
void write_all(int fd, std::string_view bytes, const std::filesystem::path& name);

/// Writes a whole file as AtomicFile does.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// Writes a whole file that several processes may write at once, such as one of a cache: the last to finish
/// stays. Not synced: a power cut may leave a damaged file, which readers must notice.
void write_shared_file(const std::filesystem::path& path, std::string_view content);

/// Makes a folder with its parents, which survive a power cut; it is fine when it exists already.
void make_folder(const std::filesystem::path& path);

/// UserError where make_folder() would be refused: something on the way is no folder, or nothing may be made there.
void check_folder(const std::filesystem::path& path);

/// Makes renames and new files inside a folder survive a power cut.
void sync_folder(const std::filesystem::path& path);

/// Throws the UserError for a failed system call: "[file] cannot `action` `path`: reason; what to do".
[[noreturn]] void file_error(std::string_view action, const std::filesystem::path& path, int error_number);

}  // namespace tokamak
