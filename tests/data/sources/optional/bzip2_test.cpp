#include <bzlib.h>

#include "tests/data/sources/damage.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using Bzip2Test = SourceTest;

std::string bzip2_bytes(const std::string& bytes) {
  std::string out(bytes.size() + bytes.size() / 100 + 600, '\0');
  auto size = unsigned(out.size());
  EXPECT_EQ(
      BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(bytes.data()), unsigned(bytes.size()), 1, 0, 0),
      BZ_OK);
  out.resize(size);
  return out;
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} ", i * 7919 % 10007);
  return text;
}

TEST_F(Bzip2Test, ReadsTextAndJsonl) {
  EXPECT_EQ(read(write("a.md.bz2", bzip2_bytes("plain\n"))), Documents{"plain\n"});
  EXPECT_EQ(read(write("a.jsonl.bz2", bzip2_bytes("{\"text\": \"1\"}\n{\"text\": \"2\"}\n"))), (Documents{"1", "2"}));
  EXPECT_EQ(read(write("no_ending", bzip2_bytes("plain\n"))), Documents{"plain\n"});
}

TEST_F(Bzip2Test, ReadsSeveralStreamsAsOne) {
  std::string text = numbers(200'000);
  std::string bytes = bzip2_bytes(text) + bzip2_bytes("") + bzip2_bytes("end");
  EXPECT_EQ(read(write("a.txt.bz2", bytes)), Documents{text + "end"});
  EXPECT_EQ(read(write("a.txt.bz2", bytes), {.part_bytes = 999}), Documents{text + "end"});
  EXPECT_EQ(read(write("a.txt.bz2", bzip2_bytes("") + bzip2_bytes("end"))), Documents{"end"});
}

TEST_F(Bzip2Test, EveryDamageIsFound) {
  std::string text = numbers(25);
  std::string bytes = bzip2_bytes(text);
  auto read_damaged = [&](const std::string& damaged) { return read(write("a.txt.bz2", damaged)); };
  ASSERT_EQ(read_damaged(bytes), Documents{text});
  EXPECT_EQ(expect_no_silent_loss(bytes, Documents{text}, "a.txt.bz2", read_damaged), int(bytes.size()));
  EXPECT_GT(expect_no_wrong_content(bytes, Documents{text}, "a.txt.bz2", read_damaged), int(bytes.size() * 6));
}

TEST_F(Bzip2Test, NamesThePlaceOfDamage) {
  std::string bytes = bzip2_bytes(numbers(100'000));
  auto read_damaged = [&](const std::string& damaged) { return [&, damaged] { read(write("a.txt.bz2", damaged)); }; };
  expect_user_error(read_damaged(bytes.substr(0, 5000)), {"a.txt.bz2", "damage at byte 5000", "cut short", "again"});
  expect_user_error(read_damaged(bytes + "trailing"), {"a.txt.bz2", "damage at byte"});
  expect_user_error(read_damaged("no bzip2"), {"expected bzip2 data", "damage at byte 0", "does not begin"});
}

}  // namespace
}  // namespace tokamak
