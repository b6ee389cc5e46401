#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

class FingerprintTest : public testing::Test {
 protected:
  std::string of(const std::string& content) {
    write_file_quickly(folder_ / "a", content);
    return fingerprint_file(folder_ / "a").checksum;
  }
  TemporaryFolder folder_;
};

TEST_F(FingerprintTest, TellsSmallFilesApartByEveryByte) {
  std::string content(1000, 'x');
  std::string whole = of(content);
  EXPECT_EQ(of(content), whole);
  for (size_t i = 0; i < content.size(); i += 111) {
    content[i] = 'y';
    EXPECT_NE(of(content), whole) << i;
    content[i] = 'x';
  }
  EXPECT_NE(of(content + '\0'), whole);
  EXPECT_NE(of(""), of(std::string(1, '\0')));
}

TEST_F(FingerprintTest, LooksIntoLargeFiles) {
  std::string content(4 << 20, 'x');
  std::string whole = of(content);
  auto changes = [&](size_t from, size_t to) {
    std::string other = content;
    std::fill(other.begin() + long(from), other.begin() + long(to), 'y');
    return of(other) != whole;
  };
  EXPECT_TRUE(changes(0, 1));
  EXPECT_TRUE(changes(content.size() - 1, content.size()));
  // Whatever is as long as a sixteenth of the file has one of its pages.
  for (size_t part = 0; part < 16; ++part)
    EXPECT_TRUE(changes(content.size() / 16 * part, content.size() / 16 * (part + 1))) << part;
  EXPECT_TRUE(of(content + 'x') != whole);
}

TEST_F(FingerprintTest, ReadsLittleOfAHugeFile) {
  write_file_quickly(folder_ / "a", "beginning");
  std::filesystem::resize_file(folder_ / "a", int64_t(200) << 30);  // sparse
  FileFingerprint huge = fingerprint_file(folder_ / "a");
  EXPECT_EQ(huge.bytes, int64_t(200) << 30);
  EXPECT_EQ(huge.path, (folder_ / "a").string());
  EXPECT_EQ(huge.checksum.substr(0, 6), "xxh64:");
}

TEST_F(FingerprintTest, NeedsTheFile) {
  expect_user_error([&] { fingerprint_file(folder_ / "none"); }, {"none", "No such file"});
}

}  // namespace
}  // namespace tokamak
