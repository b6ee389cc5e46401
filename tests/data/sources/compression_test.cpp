#include "data/sources/compression.h"

#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using CompressionTest = SourceTest;

TEST_F(CompressionTest, EndingsDoNotCount) {
  EXPECT_EQ(without_compression_ending("a.txt.gz"), "a.txt");
  EXPECT_EQ(without_compression_ending("a.txt.zst"), "a.txt");
  EXPECT_EQ(without_compression_ending("a.txt.xz"), "a.txt");
  EXPECT_EQ(without_compression_ending("a.txt.bz2"), "a.txt");
  EXPECT_EQ(without_compression_ending("a.txt"), "a.txt");
}

TEST_F(CompressionTest, ShortFilesAreReadAsTheyAre) {
  for (const char* bytes : {"\x1f", "\x28\xb5", "\x28\xb5\x2f", "ab", "abcd", "abcde", "BZh9", "BZh91AY&S",
                            "\xfd"
                            "7zXZ"})
    EXPECT_EQ(read(write("a.txt", bytes)), Documents{bytes});
}

TEST_F(CompressionTest, NamesThePackageOfAnAbsentLibrary) {
  if (gzip_decompressor.open && zstd_decompressor.open && xz_decompressor.open && bzip2_decompressor.open)
    GTEST_SKIP() << "all of them are built in";
  if (!bzip2_decompressor.open)
    expect_user_error([&] { read(write("a.txt.bz2", "BZh91AY&SY")); }, {"reads bzip2", "install libbz2-dev"});
  if (!xz_decompressor.open)
    expect_user_error(
        [&] {
          read(write("a.txt.xz", std::string("\xfd"
                                             "7zXZ\0",
                                             6)));
        },
        {"reads xz", "install liblzma-dev"});
  if (!gzip_decompressor.open)
    expect_user_error([&] { read(write("a.txt.gz", "\x1f\x8b\x08")); },
                      {"a.txt.gz", "reads gzip", "install zlib1g-dev"});
  if (!zstd_decompressor.open)
    expect_user_error([&] { read(write("a.txt.zst", "\x28\xb5\x2f\xfd")); }, {"reads zstd", "install libzstd-dev"});
}

}  // namespace
}  // namespace tokamak
