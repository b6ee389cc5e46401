// What tests of sources share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/open_source.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {

using Documents = std::vector<std::string>;

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
