// Text as part of a page. Tests: tests/pages/html_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// With the characters that mean something in HTML replaced, and those that no page may have (base/printable.h).
std::string escape_html(std::string_view text);

/// A command line that a narrow page breaks between its options, and only there.
std::string command_html(std::string_view command);

}  // namespace tokamak
