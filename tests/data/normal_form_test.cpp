// What is in Unicode's form NFC already; tests/data/sources/optional/nfc_test.cpp has the rest.
#include "data/normal_form.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(NormalForm, LeavesTextBelowTheFirstMarkWhereItIs) {
  for (std::string_view text : {std::string_view("plain ASCII\n"), std::string_view("caf\u00e9 \u00c9\u00df\u02ff"),
                                std::string_view("a\0b", 3), std::string_view("\x80\xc3"), std::string_view()}) {
    std::string buffer;
    EXPECT_EQ(to_nfc(text, buffer), text);
    EXPECT_EQ(to_nfc(text, buffer).data(), text.data());
  }
}

}  // namespace
}  // namespace tokamak
