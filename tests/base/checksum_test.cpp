#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tokamak {
namespace {

uint64_t checksum_of(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

std::string counting_text(size_t length) {
  std::string text(length, '\0');
  for (size_t i = 0; i < length; ++i) text[i] = char(i * 37 + i / 256);
  return text;
}

// The published values of XXH64 with seed 0.
TEST(Checksum, AgreesWithXxh64) {
  EXPECT_EQ(checksum_of(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(checksum_of("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(checksum_of("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(checksum_of("abcd"), 0xDE0327B0D25D92CCu);
  EXPECT_EQ(checksum_of("abcdefghijkl"), 0x4B09B7D3A233D4B3u);
  EXPECT_EQ(checksum_of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(Checksum, DoesNotDependOnHowTheDataIsCut) {
  std::string text = counting_text(1000);
  for (size_t piece : {1, 3, 31, 32, 33, 64, 999}) {
    Checksum sum;
    for (size_t at = 0; at < text.size(); at += piece)
      sum.update(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
    EXPECT_EQ(sum.digest(), checksum_of(text)) << "pieces of " << piece;
  }
}

TEST(Checksum, ChangesWithEveryBit) {
  std::string text = counting_text(77);
  uint64_t whole = checksum_of(text);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = char(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(checksum_of(damaged), whole) << "bit " << bit;
  }
}

TEST(Checksum, IsWrittenWithItsKind) { EXPECT_EQ(format_checksum(0xABCu), "xxh64:0000000000000abc"); }

}  // namespace
}  // namespace tokamak
