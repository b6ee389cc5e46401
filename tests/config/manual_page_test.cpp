#include "config/manual_page.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(ManualPage, TextIsShownAsItIs) {
  EXPECT_EQ(roff_escaped("a-b 'c' \\n"), "a\\-b \\(aqc\\(aq \\en");
  // What begins so would be a request of roff.
  EXPECT_EQ(roff_escaped(".br\n'x"), "\\&.br\n\\&\\(aqx");
}

TEST(ManualPage, ParagraphsListsAndExamples) {
  EXPECT_EQ(
      roff_paragraphs("    run it\n    again\n\nIt runs\non.\n\n- one\n- two\n  more\nend"),
      ".PP\n.EX\n    run it\n    again\n.EE\n.PP\nIt runs\non.\n.IP \\(bu 2\none\n.IP \\(bu 2\ntwo\n.PP\n.EX\n  more\n"
      ".EE\n.PP\nend\n");
}

TEST(ManualPage, TheSecondLineOfAnItemIsStillOfIt) {
  EXPECT_EQ(roff_paragraphs("- one\ngoes on\nand on"), ".IP \\(bu 2\none\ngoes on\nand on\n");
}

TEST(ManualPage, OptionsAreUnderTheirSections) {
  std::vector<OptionWords> options(3);
  options[0] = {.name = "INPUT", .help = "what is read", .kind = FieldKind::kPositional};
  options[1] = {.name = "--out", .placeholder = "=TEXT", .help = "where to", .present = "x"};
  options[2] = {.name = "--a.b",
                .placeholder = "=N",
                .help = "how",
                .section = "a",
                .section_help = "of a",
                .choices = {"1", "2"},
                .present = ""};
  EXPECT_EQ(roff_options(options),
            ".SH ARGUMENTS\n.TP\n\\fBINPUT\\fR\nwhat is read\n.SH OPTIONS\n.TP\n\\fB\\-\\-out\\fR=\\fITEXT\\fR\nwhere "
            "to\n.br\n"
            "Default: x\n.SS a: of a\n.TP\n\\fB\\-\\-a.b\\fR=\\fIN\\fR\nhow\n.br\nOne of 1, 2.\n.br\nDefault: none\n");
}

}  // namespace
}  // namespace tokamak
