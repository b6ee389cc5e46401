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

TEST(TokenType, HasNames) {
  EXPECT_EQ(type_name(kUint16), "uint16");
  EXPECT_EQ(type_name({8, true}), "int64");
  EXPECT_EQ(parse_token_type("uint32"), kUint32);
  expect_user_error([] { parse_token_type("int3"); }, {"uint16 or uint32", "int3"});
}

}  // namespace
}  // namespace tokamak
