#include "data/sources/tar_members.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/divide.h"
#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kMaxExtensionBytes = 1 << 20;  // of a long name or pax records

using Block = std::array<char, kBlock>;

std::string_view field(const Block& block, size_t at, size_t bytes) {
  std::string_view text(block.data() + at, bytes);
  return text.substr(0, text.find('\0'));
}

/// A number in octal digits with blanks around them, or, with the top bit set, in base 256. Nothing if it is neither.
std::optional<int64_t> parse_number(const Block& block, size_t at, size_t bytes) {
  if (block[at] & '\x80') {
    if (block[at] != '\x80') return {};  // negative or huge
    uint64_t value = 0;
    for (size_t i = 1; i < bytes; ++i) {
      if (value >> 54 != 0) return {};
      value = value << 8 | uint8_t(block[at + i]);
    }
    return int64_t(value);
  }
  std::string_view digits = field(block, at, bytes);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return {};
  return value;
}

bool checksum_fits(const Block& block) {
  int64_t sum = 0, signed_sum = 0;  // some old programs added signed bytes
  for (size_t i = 0; i < block.size(); ++i) {
    char c = i >= 148 && i < 156 ? ' ' : block[i];  // its own field counts as blanks
    sum += uint8_t(c);
    signed_sum += int8_t(c);
  }
  std::optional<int64_t> stored = parse_number(block, 148, 8);
  return stored && (*stored == sum || *stored == signed_sum);
}

/// What the headers before a member say of it.
struct Extension {
  std::string name;
  std::optional<int64_t> bytes;
};

class TarReader {
 public:
  explicit TarReader(const FileReader& file) : file_(file), name_(file.path().string()) {}

  void for_each(const std::function<void(const TarMember&)>& use) {
    Extension extension;
    for (Block block; read_header(block);) {
      int64_t content = at_;
      char type = block[156];
      bool extends = type == 'x' || type == 'L' || type == 'g' || type == 'K';
      int64_t bytes = content_bytes(block, extends ? Extension() : extension);
      if (type == 'S')
        user_error("[tar] {}: expected plain files, got a sparse one at byte {}; pack it without --sparse", name_,
                   content - kBlock);
      if (type == 'x') read_pax(content, bytes, extension);
      if (type == 'L') extension.name = field_text(read_text(content, bytes));
      if (!extends) {
        bool regular = type == '0' || type == '\0' || type == '7';
        if (regular) use({member_name(block, extension), content, bytes});
        extension = {};
      }
      at_ = content + round_up(bytes, kBlock);
    }
  }

 private:
  /// Reads the header at at_; false at the end of the file behind an end marker, which is two blocks of zeros. Another
  /// archive may follow it.
  bool read_header(Block& block) {
    read_block(block);
    if (is_zero(block)) {
      read_block(block);
      if (!is_zero(block))
        user_error(
            "[tar] {}: expected the second block of zeros of the end marker at byte {}, got something else; it "
            "is damaged",
            name_, at_ - kBlock);
      while (is_zero(block)) {
        if (at_ > file_.size() - kBlock) return false;
        read_block(block);
      }
    }
    if (!checksum_fits(block))
      user_error(
          "[tar] {}: expected the header of a member at byte {}, got something else; this is not a tar archive, "
          "or it is damaged",
          name_, at_ - kBlock);
    return true;
  }

  void read_block(Block& block) {
    if (at_ > file_.size() - kBlock)
      user_error(
          "[tar] {}: expected a header or the end marker at byte {}, got the end of the file; it is cut short: "
          "copy it again",
          name_, at_);
    file_.read(at_, std::as_writable_bytes(std::span(block)));
    at_ += kBlock;
  }

  static bool is_zero(const Block& block) {
    return std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
  }

  int64_t content_bytes(const Block& block, const Extension& extension) const {
    // Links, devices, folders and pipes have no content.
    if (block[156] >= '1' && block[156] <= '6') return 0;
    std::optional<int64_t> bytes = extension.bytes ? extension.bytes : parse_number(block, 124, 12);
    if (!bytes)
      user_error("[tar] {}: expected the size of a member in the header at byte {}, got no number; it is damaged",
                 name_, at_ - kBlock);
    if (*bytes > file_.size() - at_)
      user_error(
          "[tar] {}: expected {} bytes of member {} from byte {} on, got a file of {} bytes; it is cut short: "
          "copy it again",
          name_, *bytes, member_name(block, extension), at_, file_.size());
    return *bytes;
  }

  std::string read_text(int64_t offset, int64_t bytes) const {
    if (bytes > kMaxExtensionBytes)
      user_error("[tar] {}: expected an extended header of at most {} bytes at byte {}, got one of {}; it is damaged",
                 name_, kMaxExtensionBytes, offset - kBlock, bytes);
    std::string text(size_t(bytes), '\0');
    file_.read(offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  static std::string field_text(const std::string& text) { return text.substr(0, text.find('\0')); }

  /// pax records: "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
  void read_pax(int64_t offset, int64_t bytes, Extension& extension) const {
    std::string text = read_text(offset, bytes);
    for (std::string_view rest = text; !rest.empty();) {
      size_t length = 0;
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      size_t digits = size_t(end - rest.data());
      if (error != std::errc() || length > rest.size() || length < digits + 3 || rest[digits] != ' ' ||
          rest[length - 1] != '\n')
        refuse_pax(offset);
      std::string_view record = rest.substr(digits + 1, length - digits - 2);
      rest.remove_prefix(length);
      size_t equals = record.find('=');
      if (equals == std::string_view::npos) refuse_pax(offset);
      use_pax(record.substr(0, equals), record.substr(equals + 1), offset, extension);
    }
  }

  void use_pax(std::string_view key, std::string_view value, int64_t offset, Extension& extension) const {
    if (key.starts_with("GNU.sparse."))
      user_error("[tar] {}: expected plain files, got a sparse one at byte {}; pack it without --sparse", name_,
                 offset - kBlock);
    if (key == "path") extension.name = value;
    if (key != "size") return;
    int64_t bytes = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
    if (error != std::errc() || end != value.data() + value.size() || bytes < 0) refuse_pax(offset);
    extension.bytes = bytes;
  }

  [[noreturn]] void refuse_pax(int64_t offset) const {
    user_error("[tar] {}: expected pax records in the extended header at byte {}, got something else; it is damaged",
               name_, offset - kBlock);
  }

  static std::string member_name(const Block& block, const Extension& extension) {
    if (!extension.name.empty()) return extension.name;
    std::string name(field(block, 0, 100));
    bool ustar = std::string_view(block.data() + 257, 6) == std::string_view("ustar\0", 6);
    std::string_view prefix = ustar ? field(block, 345, 155) : std::string_view();
    return prefix.empty() ? name : std::string(prefix) + "/" + name;
  }

  const FileReader& file_;
  std::string name_;
  int64_t at_ = 0;
};

}  // namespace

void for_each_tar_member(const FileReader& file, const std::function<void(const TarMember&)>& use) {
  TarReader(file).for_each(use);
}

}  // namespace tokamak
