// What tests of sources share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/open_source.h"
#include "data/sources/byte_stream.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {

using Documents = std::vector<std::string>;

/// Bytes that come a few at a time, as from a slow pipe.
class DrippingBytes : public ByteStream {
 public:
  DrippingBytes(std::string bytes, size_t at_once) : bytes_(std::move(bytes)), at_once_(at_once) {}

  size_t read(std::span<char> out) override {
    size_t count = std::min({out.size(), at_once_, bytes_.size() - at_});
    bytes_.copy(out.data(), count, at_);
    at_ += count;
    return count;
  }
  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override { return int64_t(at_); }
  int64_t total_bytes() const override { return 0; }

 private:
  std::string name_ = "drops";
  std::string bytes_;
  size_t at_once_, at_ = 0;
};

class SourceTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::filesystem::remove(folder_ / name);  // some file systems sync a file that is overwritten
    write_file_quickly(folder_ / name, content);
    return (folder_ / name).string();
  }

  /// All documents of a source, each with its parts joined.
  static Documents documents_of(Source& source) {
    Documents documents;
    bool continues = false;
    for (Document document; source.next(document); continues = document.continues) {
      EXPECT_FALSE(document.text.empty());
      if (!continues) documents.emplace_back();
      documents.back() += document.text;
    }
    EXPECT_FALSE(continues) << "the last part says that another one follows";
    Document document;
    EXPECT_FALSE(source.next(document)) << "after the end";
    return documents;
  }

  static Documents read(const std::string& path, const SourceOptions& options = {}) {
    return documents_of(*open_source(path, options));
  }

  TemporaryFolder folder_;
};

}  // namespace tokamak
