#include "data/sources/optional/lmdb_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "data/sources/optional/lmdb_check.h"

namespace tokamak {

namespace {

[[noreturn]] void refuse(std::string_view name, int status) {
  user_error(
      "[lmdb] {}: expected an LMDB database, got one that the library cannot read ({}); it is another file, or "
      "damaged or cut short: copy it again",
      name, mdb_strerror(status));
}

MDB_val as_value(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string_view as_text(const MDB_val& value) { return {static_cast<const char*>(value.mv_data), value.mv_size}; }

}  // namespace

std::string show_key(std::string_view key) {
  if (std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; })) return std::string(key);
  std::string digits = "0x";
  for (char c : key.substr(0, 32)) digits += fmt::format("{:02x}", uint8_t(c));
  return digits;
}

LmdbCursor::LmdbCursor(MDB_env* env, const std::string& name) : name_(name) {
  MDB_txn* txn = nullptr;
  if (int status = mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn)) refuse(name_, status);
  txn_.reset(txn);
  MDB_dbi database = 0;
  MDB_cursor* cursor = nullptr;
  int status = mdb_dbi_open(txn, nullptr, 0, &database);
  if (status == 0) status = mdb_cursor_open(txn, database, &cursor);
  if (status != 0) refuse(name_, status);
  cursor_.reset(cursor);
}

bool LmdbCursor::get(LmdbEntry& entry, MDB_cursor_op op) {
  MDB_val key = as_value(entry.key), value = {};
  int status = mdb_cursor_get(cursor_.get(), &key, &value, op);
  if (status == MDB_NOTFOUND) return false;
  if (status != 0) refuse(name_, status);
  entry = {as_text(key), as_text(value)};
  return true;
}

bool LmdbCursor::find(std::string_view key, LmdbEntry& entry) {
  entry.key = key;
  return get(entry, MDB_SET_KEY);
}

LmdbFile::LmdbFile(const std::filesystem::path& path)
    : path_(std::filesystem::is_directory(path) ? path / "data.mdb" : path), bytes_(FileReader(path_).size()),
      entries_(check_lmdb(MappedFile(path_))) {
  MDB_env* env = nullptr;
  if (int status = mdb_env_create(&env)) refuse(path_.string(), status);
  env_.reset(env);
  // Shuffled reads gain nothing from what lies behind them, so no reading ahead.
  unsigned flags = MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD;
  if (int status = mdb_env_open(env, path_.c_str(), flags, 0)) refuse(path_.string(), status);
}

LmdbCursor LmdbFile::cursor() const { return LmdbCursor(env_.get(), path_.string()); }

LmdbCursor LmdbFile::borrow() const {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return cursor();
  LmdbCursor one = std::move(idle_.back());
  idle_.pop_back();
  return one;
}

void LmdbFile::give_back(LmdbCursor cursor) const {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(cursor));
}

}  // namespace tokamak
