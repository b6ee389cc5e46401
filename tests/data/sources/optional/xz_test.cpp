#include <lzma.h>

#include "tests/data/sources/damage.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using XzTest = SourceTest;

std::string xz_bytes(const std::string& bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  lzma_ret status =
      lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(bytes.data()),
                              bytes.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size());
  EXPECT_EQ(status, LZMA_OK);
  out.resize(size);
  return out;
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} ", i * 7919 % 10007);
  return text;
}

TEST_F(XzTest, ReadsTextAndJsonl) {
  EXPECT_EQ(read(write("a.md.xz", xz_bytes("plain\n"))), Documents{"plain\n"});
  EXPECT_EQ(read(write("a.jsonl.xz", xz_bytes("{\"text\": \"1\"}\n{\"text\": \"2\"}\n"))), (Documents{"1", "2"}));
  EXPECT_EQ(read(write("no_ending", xz_bytes("plain\n"))), Documents{"plain\n"});
}

TEST_F(XzTest, ReadsSeveralStreamsAsOne) {
  std::string text = numbers(200'000);
  std::string bytes = xz_bytes(text) + xz_bytes("") + xz_bytes("end");
  EXPECT_EQ(read(write("a.txt.xz", bytes)), Documents{text + "end"});
  EXPECT_EQ(read(write("a.txt.xz", bytes), {.part_bytes = 999}), Documents{text + "end"});
  EXPECT_EQ(read(write("a.txt.xz", xz_bytes("") + xz_bytes("end"))), Documents{"end"});
}

TEST_F(XzTest, EveryDamageIsFound) {
  std::string text = numbers(25);
  std::string bytes = xz_bytes(text);
  auto read_damaged = [&](const std::string& damaged) { return read(write("a.txt.xz", damaged)); };
  ASSERT_EQ(read_damaged(bytes), Documents{text});
  EXPECT_EQ(expect_no_silent_loss(bytes, Documents{text}, "a.txt.xz", read_damaged), int(bytes.size()));
  EXPECT_GT(expect_no_wrong_content(bytes, Documents{text}, "a.txt.xz", read_damaged), int(bytes.size() * 6));
}

TEST_F(XzTest, NamesThePlaceOfDamage) {
  std::string bytes = xz_bytes(numbers(100'000));
  auto read_damaged = [&](const std::string& damaged) { return [&, damaged] { read(write("a.txt.xz", damaged)); }; };
  expect_user_error(read_damaged(bytes.substr(0, 5000)), {"a.txt.xz", "damage at byte 5000", "cut short", "again"});
  expect_user_error(read_damaged(bytes + "trailing"), {"a.txt.xz", "damage at byte"});
  expect_user_error(read_damaged("no xz"), {"expected xz data", "damage at byte 0", "does not begin"});
}

}  // namespace
}  // namespace tokamak
