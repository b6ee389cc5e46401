#include <zstd.h>

#include "tests/data/sources/damage.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using ZstdTest = SourceTest;

/// One frame with a checksum.
std::string zstd_bytes(const std::string& bytes, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_outBuffer output = {out.data(), out.size(), 0};
  for (size_t at = 0, left = 1; left != 0;) {  // in pieces, so that the frame does not know its size
    ZSTD_inBuffer input = {bytes.data() + at, std::min(bytes.size() - at, size_t(1000)), 0};
    bool last = at + input.size == bytes.size();
    left = ZSTD_compressStream2(context, &output, &input, last ? ZSTD_e_end : ZSTD_e_continue);
    at += input.pos;
    if (!last) left = 1;
  }
  out.resize(output.pos);
  ZSTD_freeCCtx(context);
  return out;
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} ", i * 7919 % 10007);
  return text;
}

const std::string kSkipped("\x5a\x2a\x4d\x18\x03\0\0\0abc", 11);  // a frame with 3 bytes of someone's own

TEST_F(ZstdTest, ReadsTextAndJsonl) {
  EXPECT_EQ(read(write("a.md.zst", zstd_bytes("plain\n"))), Documents{"plain\n"});
  EXPECT_EQ(read(write("a.jsonl.zst", zstd_bytes("{\"text\": \"1\"}\n{\"text\": \"2\"}\n"))), (Documents{"1", "2"}));
}

TEST_F(ZstdTest, ReadsSeveralFramesAsOne) {
  std::string text = numbers(200'000);
  std::string bytes = kSkipped + zstd_bytes(text) + zstd_bytes("") + kSkipped + zstd_bytes("end", 27);
  EXPECT_EQ(read(write("a.txt.zst", bytes)), Documents{text + "end"});
  EXPECT_EQ(read(write("a.txt.zst", bytes), {.part_bytes = 999}), Documents{text + "end"});
}

TEST_F(ZstdTest, EveryDamageIsFound) {
  std::string text = numbers(25);
  std::string bytes = zstd_bytes(text);
  auto read_damaged = [&](const std::string& damaged) { return read(write("a.txt.zst", damaged)); };
  ASSERT_EQ(read_damaged(bytes), Documents{text});
  EXPECT_EQ(expect_no_silent_loss(bytes, Documents{text}, "a.txt.zst", read_damaged), int(bytes.size()));
  EXPECT_GT(expect_no_wrong_content(bytes, Documents{text}, "a.txt.zst", read_damaged), int(bytes.size() * 6));
}

TEST_F(ZstdTest, NamesThePlaceOfDamage) {
  std::string bytes = zstd_bytes(numbers(100'000));
  auto read_damaged = [&](const std::string& damaged) { return [&, damaged] { read(write("a.txt.zst", damaged)); }; };
  expect_user_error(read_damaged(bytes.substr(0, 5000)), {"a.txt.zst", "damage at byte 5000", "cut short", "again"});
  expect_user_error(read_damaged(bytes + "trailing"), {"a.txt.zst", "damage at byte"});
  expect_user_error(read_damaged("no zstd"), {"expected zstd data", "damage at byte 0", "does not begin"});
}

}  // namespace
}  // namespace tokamak
