// What is asked of every form of compression with checksums whose library's streams may follow each other.
#pragma once

#include "tests/data/sources/damage.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {

/// Text that compresses, of so many numbers.
inline std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} ", i * 7919 % 10007);
  return text;
}

class CompressedTest : public SourceTest {
 protected:
  using Compress = std::string (*)(const std::string& bytes);

  void expect_text_and_jsonl(const std::string& ending, Compress compressed) {
    EXPECT_EQ(read(write("a.md" + ending, compressed("plain\n"))), Documents{"plain\n"});
    EXPECT_EQ(read(write("a.jsonl" + ending, compressed("{\"text\": \"1\"}\n{\"text\": \"2\"}\n"))),
              (Documents{"1", "2"}));
    EXPECT_EQ(read(write("no_ending", compressed("plain\n"))), Documents{"plain\n"});
  }

  /// Of several streams that `bytes` consist of.
  void expect_one_text(const std::string& ending, const std::string& bytes, const std::string& text) {
    EXPECT_EQ(read(write("a.txt" + ending, bytes)), Documents{text});
    EXPECT_EQ(read(write("a.txt" + ending, bytes), {.part_bytes = 999}), Documents{text});
  }

  void expect_damage_is_found(const std::string& ending, Compress compressed) {
    std::string text = numbers(25), bytes = compressed(text), file = "a.txt" + ending;
    auto read_damaged = [&](const std::string& damaged) { return read(write(file, damaged)); };
    ASSERT_EQ(read_damaged(bytes), Documents{text});
    EXPECT_EQ(expect_no_silent_loss(bytes, Documents{text}, file, read_damaged), int(bytes.size()));
    EXPECT_GT(expect_no_wrong_content(bytes, Documents{text}, file, read_damaged), int(bytes.size() * 6));
  }

  void expect_place_of_damage(const std::string& form, const std::string& ending, Compress compressed) {
    std::string bytes = compressed(numbers(100'000)), file = "a.txt" + ending;
    auto read_damaged = [&](const std::string& damaged) { return [&, damaged] { read(write(file, damaged)); }; };
    expect_user_error(read_damaged(bytes.substr(0, 5000)), {file, "damage at byte 5000", "cut short", "again"});
    expect_user_error(read_damaged(bytes + "trailing"), {file, "damage at byte"});
    expect_user_error(read_damaged("no " + form), {"expected " + form + " data", "damage at byte 0", "does not begin"});
  }
};

}  // namespace tokamak
