// Files that are written in parts, in any order.
#include "base/placed_file.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(PlacedFile, PartsComeTogether) {
  TemporaryFolder folder;
  PlacedFile::make(folder / "file", 9);
  PlacedFile first(folder / "file"), second(folder / "file");
  second.write(6, bytes_of("ghi"));
  first.write(0, bytes_of("abc"));
  second.write(3, bytes_of("def"));
  first.sync();
  second.sync();
  EXPECT_EQ(read_file(folder / "file"), "abcdefghi");
}

TEST(PlacedFile, OneThatIsThereIsNotMadeAgain) {
  TemporaryFolder folder;
  PlacedFile::make(folder / "file", 3);
  expect_user_error([&] { PlacedFile::make(folder / "file", 3); }, {"cannot write"});
  expect_user_error([&] { PlacedFile(folder / "other"); }, {"cannot write", "other"});
}

// What was opened is written to, whatever becomes of its name: a save that was given up cannot disturb the next one.
TEST(PlacedFile, StaysTheFileThatWasOpened) {
  TemporaryFolder folder;
  PlacedFile::make(folder / "file", 3);
  PlacedFile old(folder / "file");
  std::filesystem::remove(folder / "file");
  PlacedFile::make(folder / "file", 3);
  old.write(0, bytes_of("old"));
  EXPECT_EQ(read_file(folder / "file"), std::string(3, '\0'));
}

}  // namespace
}  // namespace tokamak
