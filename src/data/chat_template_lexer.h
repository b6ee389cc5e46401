// A chat template's text as pieces: text, and the words of {{ ... }} and {% ... %}. A part of data/chat_template.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct TemplateWord {
  enum class Kind { kName, kString, kNumber, kSign, kEnd };

  Kind kind = Kind::kEnd;
  std::string text;  // of a string what it means
};

struct TemplatePiece {
  enum class Kind { kText, kPrint, kStatement };

  Kind kind = Kind::kText;
  std::string text;                 // of kText
  std::vector<TemplateWord> words;  // of the others, with kEnd at the end
  size_t line = 1;
};

/// Comments are gone, and so is the white space that "-" and the rules of trim_blocks and lstrip_blocks take.
/// UserErrors begin with `name` and the line.
std::vector<TemplatePiece> split_chat_template(std::string_view source, std::string_view name);

}  // namespace tokamak
