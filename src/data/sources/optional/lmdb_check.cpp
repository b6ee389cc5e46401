#include "data/sources/optional/lmdb_check.h"

#include <lmdb.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "data/sources/optional/lmdb_file.h"

namespace tokamak {

namespace {

// Version 1 of the format, which every 0.9 of the library writes: mdb.c, "Page Format", on 64-bit little-endian
// machines.
static_assert(sizeof(size_t) == 8 && std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr uint16_t kBranchPage = 0x01, kLeafPage = 0x02, kMetaPage = 0x08;
constexpr uint16_t kBigValue = 0x01, kNamedDatabase = 0x02;
constexpr size_t kPageHeader = 16, kNodeHeader = 8;
constexpr int kMaxDepth = 32;  // of the library's cursors
constexpr uint64_t kNoPage = ~uint64_t(0);

struct PageHeader {
  uint64_t number;
  uint16_t pad, flags, lower, upper;  // the list of nodes ends at lower, the nodes begin at upper
};

struct Database {
  uint32_t page_bytes;
  uint16_t flags, depth;
  uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct Meta {
  PageHeader header;
  uint32_t magic, version;
  uint64_t address, map_bytes;
  Database free, main;
  uint64_t last_page, transaction;
};

struct Node {
  uint16_t low, high, flags, key_bytes;

  uint64_t value_bytes() const { return low | uint64_t(high) << 16; }
  uint64_t page() const { return value_bytes() | uint64_t(flags) << 32; }  // of a branch
};

class Checker {
 public:
  explicit Checker(const MappedFile& file) : name_(file.path().string()), text_(file.text()) {}

  int64_t run() {
    meta_ = newest();
    page_bytes_ = meta_.free.page_bytes;
    uint64_t held = text_.size() / page_bytes_;
    if (meta_.last_page >= held)
      user_error(
          "[lmdb] {}: expected {} pages of {} bytes after the first, got a file of {} bytes; it is cut short: copy it "
          "again (if it is whole, mdb_copy -c makes one without unused pages)",
          name_, meta_.last_page, page_bytes_, text_.size());
    if (meta_.main.flags & MDB_DUPSORT)
      user_error(
          "[lmdb] {}: expected one value for each key, got a database with several (MDB_DUPSORT); copy them into "
          "one with a key for each",
          name_);
    used_.assign(meta_.last_page + 1, false);
    if (meta_.main.depth > kMaxDepth) refuse("its tree is too deep");
    if (meta_.main.root != kNoPage) check_page(meta_.main.root, 1);
    if (entries_ != meta_.main.entries) refuse("it has another number of entries than it says");
    return int64_t(entries_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    user_error(
        "[lmdb] {}: expected an LMDB database, got one that the library cannot read ({}); it is another file, or "
        "damaged: copy it again",
        name_, what);
  }

  template <typename Plain>
  Plain read(uint64_t offset) const {
    if (offset > text_.size() || text_.size() - offset < sizeof(Plain)) refuse("it is cut short");
    Plain value;
    std::memcpy(&value, text_.data() + offset, sizeof value);
    return value;
  }

  Meta meta_at(uint64_t offset) const {
    auto meta = read<Meta>(offset);
    bool sized =
        std::has_single_bit(meta.free.page_bytes) && meta.free.page_bytes >= 512 && meta.free.page_bytes <= 32768;
    if (!(meta.header.flags & kMetaPage) || meta.magic != kMagic || meta.version != kVersion || !sized)
      refuse("it does not begin like one of version 1");
    return meta;
  }

  /// The one of the two that the library goes by.
  Meta newest() const {
    Meta first = meta_at(0), second = meta_at(first.free.page_bytes);
    if (first.free.page_bytes != second.free.page_bytes) refuse("it has two sizes of pages");
    return first.transaction < second.transaction ? second : first;
  }

  void use(uint64_t page) {
    if (page > meta_.last_page) refuse(fmt::format("it has no page {}", page));
    if (used_[page]) refuse(fmt::format("page {} is used twice", page));
    used_[page] = true;
  }

  void check_page(uint64_t page, int depth) {
    use(page);
    auto header = read<PageHeader>(page * page_bytes_);
    bool is_leaf = depth == meta_.main.depth;
    uint64_t nodes = (std::max<uint64_t>(header.lower, kPageHeader) - kPageHeader) / 2;
    if (header.number != page || header.flags != (is_leaf ? kLeafPage : kBranchPage) || nodes < (is_leaf ? 1 : 2) ||
        header.lower > header.upper || header.upper > page_bytes_)
      refuse(fmt::format("page {} is damaged", page));
    for (uint64_t i = 0; i < nodes; ++i) {
      uint64_t at = read<uint16_t>(page * page_bytes_ + kPageHeader + 2 * i);
      if (at < header.upper || at + kNodeHeader > page_bytes_) refuse(fmt::format("page {} is damaged", page));
      auto node = read<Node>(page * page_bytes_ + at);
      uint64_t left = page_bytes_ - at - kNodeHeader;  // for key and value
      if (node.key_bytes > left) refuse(fmt::format("page {} is damaged", page));
      if (is_leaf) check_leaf(page, at, node, left - node.key_bytes);
      if (!is_leaf) check_page(node.page(), depth + 1);
    }
  }

  /// An entry; its value may take `left` bytes of the page.
  void check_leaf(uint64_t page, uint64_t at, const Node& node, uint64_t left) {
    ++entries_;
    bool is_big = node.flags == kBigValue, is_named = node.flags == kNamedDatabase;
    if ((node.flags && !is_big && !is_named) || (is_big ? sizeof(uint64_t) : node.value_bytes()) > left ||
        ((meta_.main.flags & MDB_INTEGERKEY) && node.key_bytes != 4 && node.key_bytes != 8))
      refuse(fmt::format("page {} is damaged", page));
    uint64_t key = page * page_bytes_ + at + kNodeHeader;
    if (is_named)
      user_error(
          "[lmdb] {}: expected values in the main database, got named databases in it, the first being {}; copy one "
          "into a file of its own",
          name_, show_key(text_.substr(key, node.key_bytes)));
    if (!is_big) return;
    auto first = read<uint64_t>(key + node.key_bytes);
    uint64_t pages = (kPageHeader + node.value_bytes() + page_bytes_ - 1) / page_bytes_;
    for (uint64_t i = 0; i < pages; ++i) use(first + i);
  }

  std::string name_;
  std::string_view text_;
  Meta meta_ = {};
  uint64_t page_bytes_ = 0;
  std::vector<bool> used_;  // by page
  uint64_t entries_ = 0;
};

}  // namespace

int64_t check_lmdb(const MappedFile& file) { return Checker(file).run(); }

}  // namespace tokamak
