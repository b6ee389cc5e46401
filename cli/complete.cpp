// `tokamak complete -- WORDS`: what the last word of a command line could become, a line each: the word, a tab and what
// it means. The shells' scripts of `tokamak completions` ask it. No line: names of files.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cli/commands.h"

namespace tokamak {

namespace {

struct CompleteOptions {
  std::vector<std::string> words;
};

void visit(FieldList& v, CompleteOptions& c) {
  v.positional("words", c.words, "the words after the program's name; the last one may be empty");
}

/// First words of commands, or second words of those of a group.
std::vector<Candidate> command_names(const std::string& group) {
  std::vector<Candidate> names;
  std::set<std::string> seen;
  std::string begin = group.empty() ? "" : group + " ";
  for (const Command& command : all_commands()) {
    if (command.hidden || !command.name.starts_with(begin)) continue;
    std::string name = command.name.substr(begin.size());
    size_t space = name.find(' ');
    std::string word = name.substr(0, space);
    if (seen.insert(word).second)
      names.push_back({word, space == name.npos ? command.summary : "commands: tokamak " + word + " --help"});
  }
  return names;
}

std::vector<Candidate> first_words() {
  std::vector<Candidate> names = command_names("");
  names.push_back({"help", "a command's options"});
  names.push_back({"--help", "list the commands"});
  names.push_back({"--version", "print the version"});
  return names;
}

std::vector<Candidate> beginning_with(std::vector<Candidate> all, std::string_view word) {
  std::erase_if(all, [&](const Candidate& candidate) { return !candidate.word.starts_with(word); });
  return all;
}

std::vector<Candidate> option_candidates(const Command& command, std::span<const std::string> words) {
  std::vector<OptionWords> options = command.options();
  const std::string& last = words.back();
  if (!last.starts_with("-")) {
    bool behind_option = words.size() > 1 && words[words.size() - 2].starts_with("--");
    return behind_option ? complete_value(options, words[words.size() - 2], last) : std::vector<Candidate>();
  }
  std::vector<Candidate> found = complete_option(options, last);
  std::vector<Candidate> always = {{"--help", "print the options"}};
  if (command.print_config) always.push_back({"--print-config", "print the configuration as a file"});
  std::ranges::copy(beginning_with(always, last), std::back_inserter(found));
  return found;
}

std::vector<Candidate> candidates(std::span<const std::string> words) {
  if (words.size() > 1 && words[0] == "help") words = words.subspan(1);
  if (words.size() == 1) return beginning_with(first_words(), words[0]);
  if (words.size() == 2 && !group_help(words[0]).empty()) return beginning_with(command_names(words[0]), words[1]);
  for (const Command& command : all_commands()) {
    if (command.name == words[0]) return option_candidates(command, words.subspan(1));
    if (command.name == words[0] + " " + words[1] && words.size() > 2)
      return option_candidates(command, words.subspan(2));
  }
  return {};
}

int run_complete(const CompleteOptions& options) {
  for (const Candidate& candidate : candidates(options.words)) fmt::print("{}\t{}\n", candidate.word, candidate.help);
  return 0;
}

}  // namespace

Command complete_command() {
  Command command = make_command<CompleteOptions>("complete", "what a word could become", "", run_complete);
  command.hidden = true;
  return command;
}

}  // namespace tokamak
