// WebDataset: a tar archive, read by libarchive. The archive may be compressed. Its members are read in their order by
// the readers of their own formats; members of other names (images, labels) are passed over.
#include <archive.h>
#include <archive_entry.h>
#include <fnmatch.h>

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "data/source_notes.h"
#include "data/sources/compression.h"
#include "data/sources/content.h"
#include "data/sources/jsonl.h"
#include "data/sources/npy.h"
#include "data/sources/sample_members.h"
#include "data/sources/source_format.h"
#include "data/sources/text.h"

namespace tokamak {

namespace {

/// A tar archive that is gone through once.
class TarReader {
 public:
  explicit TarReader(std::unique_ptr<ByteStream> stream)
      : stream_(std::move(stream)), block_(size_t(64) << 10), archive_(archive_read_new()) {
    TOKAMAK_CHECK(archive_ != nullptr, "libarchive cannot begin");
    archive_read_support_format_tar(archive_.get());
    // What follows an archive's end is read as another one, not left out silently.
    check(archive_read_set_format_option(archive_.get(), "tar", "read_concatenated_archives", "1"));
    check(archive_read_open(archive_.get(), this, nullptr, read_block, nullptr));
  }

  /// Goes to the next member that is a file; false at the end.
  bool next() {
    while (!ended_) {
      if (!member_.empty()) check(archive_read_data_skip(archive_.get()));
      int64_t before = archive_filter_bytes(archive_.get(), 0);
      archive_entry* entry = nullptr;
      if (check(archive_read_next_header(archive_.get(), &entry)) == ARCHIVE_EOF) {
        // libarchive takes an archive without the zeros that mark its end; it may as well be cut between two members.
        if (archive_filter_bytes(archive_.get(), 0) == before)
          damaged("the mark of the end is missing, so members may be, too");
        ended_ = true;
        break;
      }
      const char* path = archive_entry_pathname(entry);
      if (!path) path = archive_entry_pathname_utf8(entry);
      member_ = path ? path : "(without a name)";
      left_ = {};
      member_bytes_ = 0;
      if (archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry)) return true;
    }
    return false;
  }

  /// The next bytes of the member; 0 at its end. archive_read_data is not used, as it fills holes with zeros: a header
  /// of a few bytes can ask for petabytes of them.
  size_t read(std::span<char> out) {
    while (left_.empty()) {
      const void* data = nullptr;
      size_t bytes = 0;
      la_int64_t offset = member_bytes_;
      bool ended = check(archive_read_data_block(archive_.get(), &data, &bytes, &offset)) == ARCHIVE_EOF;
      if (offset != member_bytes_)
        user_error("[tar] {}: expected plain files, got the sparse one {}; pack it without --sparse", stream_->name(),
                   member_);
      if (ended) return 0;
      left_ = {static_cast<const char*>(data), bytes};
      member_bytes_ += int64_t(bytes);
    }
    size_t count = left_.copy(out.data(), out.size());
    left_.remove_prefix(count);
    return count;
  }

  const std::string& member() const { return member_; }
  const ByteStream& stream() const { return *stream_; }

 private:
  struct Free {
    void operator()(archive* one) const { archive_read_free(one); }
  };

  /// What libarchive calls for more bytes. Exceptions must not pass through it, so they are kept for check().
  static la_ssize_t read_block(archive*, void* self, const void** block) {
    auto& reader = *static_cast<TarReader*>(self);
    *block = reader.block_.data();
    try {
      return la_ssize_t(reader.stream_->read(reader.block_));
    } catch (...) {
      reader.failure_ = std::current_exception();
      return -1;
    }
  }

  /// Throws for a status that says damage; gives it back otherwise. Warnings are about names in other encodings.
  int check(int status) {
    if (status != ARCHIVE_OK && status != ARCHIVE_EOF && status != ARCHIVE_WARN) fail();
    return status;
  }

  [[noreturn]] void fail() const {
    if (failure_) std::rethrow_exception(failure_);
    damaged(archive_error_string(archive_.get()));
  }

  [[noreturn]] void damaged(const char* reason) const {
    std::string place = member_.empty() ? "at its beginning" : fmt::format("in or behind member {}", member_);
    user_error("[data] {}: expected a whole tar archive, got damage {}: {}; copy or download the file again",
               stream_->name(), place, reason ? reason : "unknown");
  }

  std::unique_ptr<ByteStream> stream_;
  std::vector<char> block_;
  std::exception_ptr failure_;
  std::unique_ptr<archive, Free> archive_;
  std::string member_;
  std::string_view left_;     // of the member's last block, which is libarchive's
  int64_t member_bytes_ = 0;  // in the blocks so far
  bool ended_ = false;
};

/// The bytes of the reader's member.
class MemberBytes : public ByteStream {
 public:
  explicit MemberBytes(TarReader& reader)
      : reader_(reader), name_(fmt::format("{} member {}", reader.stream().name(), reader.member())) {}

  size_t read(std::span<char> out) override { return reader_.read(out); }
  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override { return reader_.stream().bytes_read(); }
  int64_t total_bytes() const override { return reader_.stream().total_bytes(); }

 private:
  TarReader& reader_;
  std::string name_;
};

class WebDatasetSource : public Source {
 public:
  WebDatasetSource(std::unique_ptr<ByteStream> stream, const SourceOptions& options)
      : reader_(std::move(stream)), options_(options) {}

  bool next(Document& document) override {
    while (!member_ || !member_->next(document)) {
      member_ = nullptr;
      if (!reader_.next()) return false;
      if (is_wanted(reader_.member())) {
        note_sample();
        member_ = open_member();
      } else if (options_.notes) {
        options_.notes->pass_over(reader_.member());
      }
    }
    return true;
  }

  const std::string& name() const override { return reader_.stream().name(); }
  int64_t bytes_read() const override { return reader_.stream().bytes_read(); }
  int64_t total_bytes() const override { return reader_.stream().total_bytes(); }

 private:
  /// Names are compared without their folders; those that begin with a dot are notes of file systems.
  bool is_wanted(const std::string& member) const {
    std::string name = std::filesystem::path(member).filename().string();
    if (name.starts_with('.')) return false;
    name = without_compression_ending(name);
    return std::any_of(options_.members.begin(), options_.members.end(),
                       [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
  }

  /// A text and its description, say, may be the same text twice.
  void note_sample() {
    std::string earlier = samples_.add(reader_.member());
    if (earlier.empty()) return;
    note(options_, "samples of several members",
         fmt::format("warning: {}: the members {} and {} of one sample are a document each; if one of them is enough, "
                     "name its kind, such as --members='*{}'",
                     name(), earlier, reader_.member(), std::filesystem::path(earlier).extension().string()));
  }

  std::unique_ptr<Source> open_member() {
    std::unique_ptr<ByteStream> bytes = decompress(std::make_unique<MemberBytes>(reader_));
    std::string_view name = without_compression_ending(reader_.member());
    if (name.ends_with(".npy")) return read_npy(std::move(bytes), options_);
    if (name.ends_with(".json")) return open_json(std::move(bytes));
    if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return read_jsonl(std::move(bytes), options_);
    return read_text(std::move(bytes), options_);
  }

  /// One object, or an object a line.
  std::unique_ptr<Source> open_json(std::unique_ptr<ByteStream> bytes) {
    ByteBuffer buffer(std::move(bytes));
    bool lines = look_at(buffer).form == Content::Form::kJsonLines;
    return (lines ? read_jsonl : read_json)(rest_of(std::move(buffer)), options_);
  }

  TarReader reader_;
  SourceOptions options_;
  SampleMembers samples_;
  std::unique_ptr<Source> member_;  // reads from reader_
};

std::unique_ptr<Source> open(const std::filesystem::path& path, const SourceOptions& options) {
  return std::make_unique<WebDatasetSource>(open_bytes(path, options), options);
}

}  // namespace

const DocumentReader webdataset_documents = {.open = open, .streams = true, .looks = true};

}  // namespace tokamak
