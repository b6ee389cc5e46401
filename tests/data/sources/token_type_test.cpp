#include "data/sources/token_type.h"

#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

template <typename Stored>
void expect_widened(bool is_signed) {
  TokenType type = {sizeof(Stored), is_signed};
  std::vector<Stored> stored;
  for (int i = 0; i < 100; ++i) stored.push_back(Stored(i));
  Ids out(100), expected(stored.begin(), stored.end());
  auto from = std::as_bytes(std::span(stored));
  EXPECT_EQ(widen_tokens(type, from.data(), out), 100u) << type_name(type);
  EXPECT_EQ(out, expected) << type_name(type);
  if (!is_signed && sizeof(Stored) < 4) return;  // all values are tokens
  stored[63] = Stored(-1);
  EXPECT_EQ(widen_tokens(type, from.data(), out), 63u) << type_name(type);
}

TEST(TokenType, WidensEveryType) {
  expect_widened<uint8_t>(false);
  expect_widened<int8_t>(true);
  expect_widened<uint16_t>(false);
  expect_widened<int16_t>(true);
  expect_widened<uint32_t>(false);
  expect_widened<int32_t>(true);
  expect_widened<uint64_t>(false);
  expect_widened<int64_t>(true);
}

TEST(TokenType, TokensReachTo31Bits) {
  std::vector<int64_t> stored = {0x7fffffff, 0x80000000};
  Ids out(2);
  EXPECT_EQ(widen_tokens({8, true}, std::as_bytes(std::span(stored)).data(), out), 1u);
  EXPECT_EQ(out[0], 0x7fffffff);
  expect_user_error(
      [&] {
        widen_checked({8, true}, std::as_bytes(std::span(stored)).data(), out, "file.npy", 40);
      },
      {"file.npy", "got 2147483648 as token 41", "int64"});
}

// Of ids that are read as those of another type than they were written as.
TEST(TokenType, NoticesAnotherType) {
  auto warning = [](TokenType read_as, auto written, int64_t vocab, size_t count = 1000) {
    std::vector<decltype(written)> stored;
    for (uint64_t i = 0; stored.size() < count; ++i)
      stored.push_back(decltype(written)(i * 2654435761u % uint64_t(vocab)));
    return type_warning(read_as, std::as_bytes(std::span(stored)), "t.bin");
  };
  for (int64_t vocab : {65, 500, 50'257, 128'256, 262'144}) {
    EXPECT_NE(warning(kUint16, uint32_t(), vocab).find("data.token_type=uint32"), std::string::npos) << vocab;
    EXPECT_EQ(warning(kUint32, uint32_t(), vocab), "") << vocab;
  }
  for (int64_t vocab : {2, 65, 500, 50'257}) {
    EXPECT_EQ(warning(kUint16, uint16_t(), vocab), "") << vocab;
    EXPECT_NE(warning(kUint32, uint64_t(), vocab).find("64-bit"), std::string::npos) << vocab;
  }
  for (int64_t vocab : {65, 500, 50'257})
    EXPECT_NE(warning(kUint32, uint16_t(), vocab).find("data.token_type=uint16"), std::string::npos) << vocab;
  EXPECT_EQ(warning(kUint16, uint32_t(), 500, 10), "") << "too few to tell";
}

TEST(TokenType, HasNames) {
  EXPECT_EQ(type_name(kUint16), "uint16");
  EXPECT_EQ(type_name({8, true}), "int64");
  EXPECT_EQ(parse_token_type("uint32"), kUint32);
  expect_user_error([] { parse_token_type("int3"); }, {"uint16 or uint32", "int3"});
}

}  // namespace
}  // namespace tokamak
