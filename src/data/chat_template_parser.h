// A chat template as a tree. A part of data/chat_template.h.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "data/chat_template_lexer.h"

namespace tokamak {

struct TemplateExpression {
  enum class Kind {
    kConstant,   // value
    kVariable,   // name
    kAttribute,  // operands[0].name
    kIndex,      // operands[0][operands[1]]
    kSlice,      // operands[0][operands[1]:operands[2]]; a null constant where nothing stands
    kUnary,      // name: not, -
    kBinary,     // name: + - * % ~ == != < <= > >= and or in; `not in` is a unary of it
    kFilter,     // operands[0] | name
    kTest,       // operands[0] is name
    kChoose,     // operands[0] if operands[1] else operands[2]
    kCall,       // name(operands): raise_exception
    kMethod,     // operands[0].name(operands[1...])
  };

  Kind kind = Kind::kConstant;
  std::string name;
  nlohmann::json value;
  std::vector<TemplateExpression> operands;
};

struct TemplateBlock {
  enum class Kind { kText, kPrint, kIf, kFor, kSet, kGeneration };
  struct Branch {
    TemplateExpression condition;
    std::vector<TemplateBlock> body;
  };

  Kind kind = Kind::kText;
  size_t line = 1;
  std::string text;              // of kText; the variable of kFor and kSet
  TemplateExpression value;      // of kPrint, kFor and kSet
  std::vector<Branch> branches;  // of kIf, `else` with the condition true; of kFor and kGeneration one
};

/// UserErrors begin with `name` and the line.
std::vector<TemplateBlock> parse_chat_template(std::string_view source, std::string_view name);

}  // namespace tokamak
