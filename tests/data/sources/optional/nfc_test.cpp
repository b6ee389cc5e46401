// Unicode's form NFC.
#include <gtest/gtest.h>

#include "data/normal_form.h"

namespace tokamak {
namespace {

std::string nfc(std::string_view text) {
  std::string buffer;
  return std::string(to_nfc(text, buffer));
}

TEST(Nfc, PutsLettersAndMarksTogether) {
  EXPECT_EQ(nfc("cafe\u0301"), "caf\u00e9");
  EXPECT_EQ(nfc("s\u0307\u0323"), "\u1e69") << "marks are ordered first";
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(nfc("\u212b"), "\u00c5");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c") << "is not put together again";
  EXPECT_EQ(nfc("\u1e9b\u0323"), "\u1e9b\u0323");
}

// A mark of Unicode 14, before which no other one is put; and a pair of Unicode 13.
TEST(Nfc, KnowsNoMoreThanHuggingFacesLibrary) {
  EXPECT_EQ(nfc("a\u1ac3\u0334"), "a\u1ac3\u0334");
  EXPECT_EQ(nfc("e\u0301\u1ac3e\u0301"), "\u00e9\u1ac3\u00e9");
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(nfc("a\u0345\u0334"), "a\u0334\u0345") << "others change places";
}

TEST(Nfc, TreatsEachPieceBetweenBytesThatAreNoText) {
  EXPECT_EQ(nfc("e\u0301\xff"
                "e\u0301\xed\xa0\x80\u0301x\xf0\x9f"),
            "\u00e9\xff\u00e9\xed\xa0\x80\u0301x\xf0\x9f");
  EXPECT_EQ(nfc("\xcc"
                "e\u0301"),
            "\xcc\u00e9");
  EXPECT_EQ(nfc("\xcc"), "\xcc");
}

}  // namespace
}  // namespace tokamak
