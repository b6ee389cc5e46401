// What other programs that train such models call the options of a run: the one table of it, for hints where such a
// name is typed, for `tokamak help names` and for docs/cli.md. Tests: tests/config/foreign_names_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// A row: several names of a program stand between commas, and where it has none the text is empty.
struct ForeignName {
  std::string_view ours;  // key of a run, or an option of `generate`
  std::string_view nanogpt = {}, llmc = {}, torchtitan = {}, megatron = {}, hugging_face = {};
  std::string_view others = {};  // habits of no one program
  std::string_view note = {};    // what is not the same here; empty: nothing
};

/// In the order of a run's keys.
std::span<const ForeignName> foreign_names();

/// "; that is 'train.batch' here: ..." for a name of the table whose option is among `known`, else "". A name counts
/// with and without its section. `typed` is as in a file or behind "--", or with its "-" as llm.c's.
std::string foreign_hint(std::string_view typed, const std::vector<std::string>& known);

/// The table for a terminal, at most 100 columns wide, and as Markdown.
std::string foreign_names_text();
std::string foreign_names_markdown();

}  // namespace tokamak
