// Pieces of manual pages, in the macros of man(7). Tests: tests/config/manual_page_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/option_words.h"

namespace tokamak {

/// Text that roff shows as it is, with its line breaks: no escapes, no requests, hyphens that can be copied.
std::string roff_escaped(std::string_view text);

/// Paragraphs as --help has them: lines that begin with two spaces stay lines, those with "- " are a list.
std::string roff_paragraphs(std::string_view text);

/// Arguments, then options under the headings of their sections, all as lists of terms.
std::string roff_options(std::span<const OptionWords> options);

}  // namespace tokamak
