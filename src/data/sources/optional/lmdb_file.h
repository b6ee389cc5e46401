// An LMDB file, open for reading by several threads, over the C library. Nothing is written, no lock is taken, so media
// that are read-only serve; nobody may write to the database meanwhile.
#pragma once

#include <lmdb.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct LmdbEntry {
  std::string_view key;
  std::string_view value;
};

/// Goes through the entries in the order of their keys. One thread at a time. What it gives stays valid as long as the
/// file is open.
class LmdbCursor {
 public:
  LmdbCursor(LmdbCursor&&) = default;
  LmdbCursor& operator=(LmdbCursor&&) = default;

  bool first(LmdbEntry& entry) { return get(entry, MDB_FIRST); }
  bool next(LmdbEntry& entry) { return get(entry, MDB_NEXT); }
  /// The entry of a key that exists.
  bool find(std::string_view key, LmdbEntry& entry);

 private:
  friend class LmdbFile;
  struct Abort {
    void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
  };
  struct Close {
    void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
  };

  LmdbCursor(MDB_env* env, const std::string& name);
  bool get(LmdbEntry& entry, MDB_cursor_op op);

  std::string name_;
  std::unique_ptr<MDB_txn, Abort> txn_;
  std::unique_ptr<MDB_cursor, Close> cursor_;
};

class LmdbFile {
 public:
  /// Opens a file, or the data.mdb of a folder. UserErrors: those of check_lmdb.
  explicit LmdbFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  int64_t bytes() const { return bytes_; }
  int64_t entries() const { return entries_; }

  LmdbCursor cursor() const;

  /// A cursor that somebody gave back, or a new one. For any thread.
  LmdbCursor borrow() const;
  void give_back(LmdbCursor cursor) const;

 private:
  struct Close {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };

  std::filesystem::path path_;
  int64_t bytes_ = 0;
  int64_t entries_ = 0;
  std::unique_ptr<MDB_env, Close> env_;
  mutable std::mutex mutex_;
  mutable std::vector<LmdbCursor> idle_;  // destroyed before env_
};

/// A key for messages: as it is if it is printable, else in hexadecimal digits.
std::string show_key(std::string_view key);

}  // namespace tokamak
