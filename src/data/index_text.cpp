#include "data/index_text.h"

#include <span>
#include <utility>

#include "base/checksum.h"
#include "data/json_fields.h"

namespace tokamak {

namespace {

class IndexScan {
 public:
  explicit IndexScan(std::string_view text) : text_(text) {}

  IndexText run() {
    while (at_ < text_.size()) step();
    flush();
    out_.seal = format_checksum(checksum_.digest());
    return std::move(out_);
  }

 private:
  static constexpr size_t kBuffer = size_t(1) << 16;

  void step() {
    char c = text_[at_];
    switch (c) {
      case ' ':
      case '\n':
      case '\t':
      case '\r': ++at_; return;
      case '"': return take_string();
      case '{':
      case '[': ++depth_; break;
      case '}':
      case ']':
        if (--depth_ == sources_) sources_ = kNone;  // behind the list, whose brackets stay
        break;
      case ',':
        if (depth_ == 1) return void(++at_);  // it comes back before the next member, see take_string()
        break;
      default: break;
    }
    emit(text_.substr(at_++, 1));
    if (c == '[' && begins_sources_) sources_ = depth_ - 1;
    if (c != ':') begins_sources_ = false;
  }

  void take_string() {
    size_t end = end_of_string(at_);
    std::string_view string = text_.substr(at_, end - at_);
    size_t behind = text_.find_first_not_of(" \n\t\r", end);
    bool is_key = behind != text_.npos && text_[behind] == ':';
    if (is_key && depth_ == 1 && string == "\"checksum\"") return take_seal(behind + 1);
    if (is_key && depth_ == 1 && std::exchange(has_member_, true)) emit(",");
    begins_sources_ = is_key && depth_ == 2 && string == "\"sources\"";
    emit(string);
    at_ = end;
  }

  void take_seal(size_t at) {
    at_ = text_.find_first_not_of(" \n\t\r", at);
    if (at_ == text_.npos || text_[at_] != '"') return void(at_ = text_.size());
    size_t end = end_of_string(at_);
    out_.given = text_.substr(at_ + 1, end - at_ - 2);
    at_ = end;
  }

  /// Behind the closing quote, or the end of the text.
  size_t end_of_string(size_t begin) const {
    for (size_t i = begin + 1; i < text_.size(); ++i) {
      if (text_[i] == '"') return i + 1;
      if (text_[i] == '\\') ++i;
    }
    return text_.size();
  }

  void emit(std::string_view piece) {
    buffer_ += piece;
    if (buffer_.size() >= kBuffer) flush();
    if (sources_ == kNone) out_.rest += piece;
  }

  void flush() {
    checksum_.update(std::as_bytes(std::span(buffer_)));
    buffer_.clear();
  }

  static constexpr int kNone = -1;

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  int sources_ = kNone;          // the depth outside of the list that is left out
  bool begins_sources_ = false;  // behind the key of such a list
  bool has_member_ = false;      // of the outermost object
  std::string buffer_;           // what is hashed next
  Checksum checksum_;
  IndexText out_;
};

}  // namespace

IndexText scan_index(std::string_view text) { return IndexScan(text).run(); }

}  // namespace tokamak
