#include "data/file_checksum.h"

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

TEST(FileChecksum, IsThatOfAllBytes) {
  TemporaryFolder folder;
  for (size_t size : {0u, 5u, 1u << 20, 2'500'000u}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; i += 7) bytes[i] = char(i);
    write_file_quickly(folder / "a", bytes);
    EXPECT_EQ(checksum_file(folder / "a"), format_checksum(checksum(std::as_bytes(std::span(bytes)))));
  }
}

TEST(FileChecksum, NamesTheDamagedFile) {
  TemporaryFolder folder;
  write_file_quickly(folder / "a", "abc");
  std::string good = checksum_file(folder / "a");
  verify_file(FileReader(folder / "a"), good, "shard");
  write_file_quickly(folder / "a", "abd");
  expect_user_error([&] { verify_file(FileReader(folder / "a"), good, "shard"); },
                    {"[shard]", "/a: expected the checksum", good});
  expect_user_error([&] { verify_file(FileReader(folder / "a"), checksum_file(folder / "a"), "tokenizer", 2); },
                    {"[tokenizer]", "got one of a file that is too large"});
}

TEST(FileChecksum, OfAFileThatIsTooLargeIsNotAskedFor) {
  TemporaryFolder folder;
  write_file_quickly(folder / "a", "abc");
  std::string good = checksum_file(folder / "a");
  EXPECT_TRUE(has_checksum(folder / "a", good, 3));
  EXPECT_FALSE(has_checksum(folder / "a", good, 2));
  EXPECT_FALSE(has_checksum(folder / "b", good, 3));
}

}  // namespace
}  // namespace tokamak
