// Tables with a delimiter (CSV, TSV), told from prose by what they hold. Tests: tests/data/sources/content_test.cpp.
#pragma once

#include <string_view>

namespace tokamak {

/// Whether a beginning has rows of a table: at least four lines, each with the same number of fields, at least two,
/// between tabs, commas or semicolons. A comma or semicolon of prose has a blank behind it. Fields may be quoted.
bool has_table_rows(std::string_view begin);

}  // namespace tokamak
