#include "data/chat_template_parser.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "base/error.h"
#include "base/one_of.h"
#include "data/chat_template.h"

namespace tokamak {

namespace {

using Kind = TemplateExpression::Kind;

constexpr int kMostDepth = 64;  // of blocks and expressions inside each other

class Parser {
 public:
  Parser(std::vector<TemplatePiece> pieces, std::string_view name) : pieces_(std::move(pieces)), name_(name) {}

  std::vector<TemplateBlock> parse() {
    std::vector<TemplateBlock> blocks = parse_blocks({});
    if (at_ < pieces_.size()) refuse("no block to end here", shown());
    return blocks;
  }

 private:
  // Up to a statement that begins with one of these words, which is left.
  std::vector<TemplateBlock> parse_blocks(std::initializer_list<std::string_view> ends) {
    Deeper deeper(*this);
    std::vector<TemplateBlock> blocks;
    for (; at_ < pieces_.size(); ++at_) {
      word_ = 0;
      TemplatePiece& piece = pieces_[at_];
      if (piece.kind == TemplatePiece::Kind::kText) {
        blocks.push_back({TemplateBlock::Kind::kText, piece.line, std::move(piece.text), {}, {}});
      } else if (piece.kind == TemplatePiece::Kind::kPrint) {
        blocks.push_back({TemplateBlock::Kind::kPrint, piece.line, "", parse_expression(), {}});
        expect_end();
      } else {
        if (is_one_of(word().text, ends)) return blocks;
        if (word().text.starts_with("end") || is_one_of(word().text, {"else", "elif"})) return blocks;
        blocks.push_back(parse_statement());
      }
    }
    return blocks;
  }

  TemplateBlock parse_statement() {
    if (take("if")) return parse_if();
    if (take("for")) return parse_for();
    if (take("set")) return parse_set();
    if (take("generation")) {
      TemplateBlock block{TemplateBlock::Kind::kGeneration, line(), "", {}, {}};
      expect_end();
      block.branches.push_back({{}, parse_body("endgeneration")});
      return block;
    }
    refuse("if, for, set or generation", shown());
  }

  TemplateBlock parse_if() {
    TemplateBlock block{TemplateBlock::Kind::kIf, line(), "", {}, {}};
    block.branches.push_back({parse_expression(), {}});
    for (;;) {
      expect_end();
      ++at_;
      block.branches.back().body = parse_blocks({"elif", "else", "endif"});
      require_more("endif");
      if (take("endif")) break;
      if (take("elif")) {
        block.branches.push_back({parse_expression(), {}});
      } else if (take("else")) {
        block.branches.push_back({{.value = true}, {}});
      } else {
        refuse("elif, else or endif", shown());
      }
    }
    expect_end();
    return block;
  }

  TemplateBlock parse_for() {
    TemplateBlock block{TemplateBlock::Kind::kFor, line(), take_name(), {}, {}};
    if (!take("in")) refuse("one variable and `in`", shown());
    block.value = parse_expression();
    expect_end();
    block.branches.push_back({{}, parse_body("endfor")});
    return block;
  }

  TemplateBlock parse_set() {
    TemplateBlock block{TemplateBlock::Kind::kSet, line(), take_name(), {}, {}};
    if (!take_sign("=")) refuse("= behind the variable of set", shown());
    block.value = parse_expression();
    expect_end();
    return block;
  }

  std::vector<TemplateBlock> parse_body(std::string_view end) {
    ++at_;
    std::vector<TemplateBlock> body = parse_blocks({end});
    require_more(end);
    if (!take(end)) refuse(end, shown());
    expect_end();
    return body;
  }

  TemplateExpression parse_expression() {
    Deeper deeper(*this);
    TemplateExpression value = parse_or();
    if (!take("if")) return value;
    TemplateExpression condition = parse_or(), other{.value = ""};
    if (take("else")) other = parse_expression();
    return {Kind::kChoose, "", {}, {std::move(value), std::move(condition), std::move(other)}};
  }

  TemplateExpression parse_or() {
    TemplateExpression left = parse_and();
    while (take("or")) left = binary("or", std::move(left), parse_and());
    return left;
  }

  TemplateExpression parse_and() {
    TemplateExpression left = parse_not();
    while (take("and")) left = binary("and", std::move(left), parse_not());
    return left;
  }

  TemplateExpression parse_not() {
    Deeper deeper(*this);
    if (take("not")) return unary("not", parse_not());
    return parse_comparison();
  }

  TemplateExpression parse_comparison() {
    TemplateExpression left = parse_sum();
    for (;;) {
      std::string sign = word().text;
      if (word().kind == TemplateWord::Kind::kSign && is_one_of(sign, {"==", "!=", "<", "<=", ">", ">="})) {
        ++word_;
        left = binary(sign, std::move(left), parse_sum());
      } else if (take("in")) {
        left = binary("in", std::move(left), parse_sum());
      } else if (is_name("not") && word(1).text == "in") {
        word_ += 2;
        left = unary("not", binary("in", std::move(left), parse_sum()));
      } else {
        return left;
      }
    }
  }

  TemplateExpression parse_sum() {
    TemplateExpression left = parse_product();
    while (is_sign("+") || is_sign("-") || is_sign("~")) {
      std::string sign = pieces_[at_].words[word_++].text;
      left = binary(sign, std::move(left), parse_product());
    }
    return left;
  }

  TemplateExpression parse_product() {
    TemplateExpression left = parse_unary();
    while (is_sign("*") || is_sign("%")) {
      std::string sign = pieces_[at_].words[word_++].text;
      left = binary(sign, std::move(left), parse_unary());
    }
    return left;
  }

  TemplateExpression parse_unary() {
    Deeper deeper(*this);
    if (take_sign("-")) return unary("-", parse_unary());
    return parse_postfix(parse_value());
  }

  // Filters and tests bind as in Jinja: closer than any operator.
  TemplateExpression parse_postfix(TemplateExpression value) {
    for (;;) {
      if (take_sign(".")) {
        value = parse_attribute(std::move(value));
      } else if (take_sign("[")) {
        value = parse_subscript(std::move(value));
      } else if (take_sign("|")) {
        value = parse_filter(std::move(value));
      } else if (take("is")) {
        value = parse_test(std::move(value));
      } else {
        return value;
      }
    }
  }

  TemplateExpression parse_attribute(TemplateExpression value) {
    std::string name = take_name();
    bool is_loop = value.kind == Kind::kVariable && value.name == "loop";
    if (is_loop && !is_one_of(name, {"index", "index0", "first", "last", "length"}))
      refuse("index, index0, first, last or length of loop", fmt::format("'{}'", name));
    if (!take_sign("(")) return {Kind::kAttribute, name, {}, {std::move(value)}};
    if (!is_one_of(name, {"strip", "lstrip", "rstrip", "upper", "lower", "title", "startswith", "endswith"}))
      refuse("strip, lstrip, rstrip, upper, lower, startswith or endswith as method", fmt::format("'{}'", name));
    TemplateExpression call{Kind::kMethod, name, {}, {std::move(value)}};
    parse_arguments(call);
    bool takes_text = name == "startswith" || name == "endswith";
    if (call.operands.size() != (takes_text ? 2u : 1u))
      refuse(takes_text ? "one argument" : "no argument", fmt::format("another number for '{}'", name));
    return call;
  }

  TemplateExpression parse_subscript(TemplateExpression value) {
    TemplateExpression nothing, from = nothing, to = nothing;
    bool is_slice = false;
    if (!is_sign(":")) from = parse_expression();
    if (take_sign(":")) {
      is_slice = true;
      if (!is_sign("]")) to = parse_expression();
    }
    if (!take_sign("]")) refuse("] behind an index or a slice of two ends", shown());
    if (is_slice) return {Kind::kSlice, "", {}, {std::move(value), std::move(from), std::move(to)}};
    return {Kind::kIndex, "", {}, {std::move(value), std::move(from)}};
  }

  TemplateExpression parse_filter(TemplateExpression value) {
    std::string name = take_name();
    if (!is_one_of(name, {"trim", "upper", "lower", "length", "string"}))
      refuse("trim, upper, lower, length or string as filter", fmt::format("'{}'", name));
    if (is_sign("(")) refuse("a filter without arguments", shown());
    return {Kind::kFilter, name, {}, {std::move(value)}};
  }

  TemplateExpression parse_test(TemplateExpression value) {
    bool negated = take("not");
    std::string name = take_name();
    if (!is_one_of(name, {"defined", "undefined", "none", "string", "mapping", "iterable", "true", "false"}))
      refuse("defined, undefined, none, string, mapping, iterable, true or false behind `is`",
             fmt::format("'{}'", name));
    TemplateExpression test{Kind::kTest, name, {}, {std::move(value)}};
    return negated ? unary("not", std::move(test)) : test;
  }

  TemplateExpression parse_value() {
    TemplateWord first = word();
    if (first.kind == TemplateWord::Kind::kString) return parse_strings();
    if (first.kind == TemplateWord::Kind::kNumber) return parse_number();
    if (take_sign("(")) {
      TemplateExpression inner = parse_expression();
      if (!take_sign(")")) refuse(")", shown());
      return inner;
    }
    if (take_sign("[")) return parse_list();
    std::string name = take_name();
    if (is_one_of(name, {"true", "True"})) return {.value = true};
    if (is_one_of(name, {"false", "False"})) return {.value = false};
    if (is_one_of(name, {"none", "None"})) return {};
    if (!take_sign("(")) return {Kind::kVariable, name, {}, {}};
    if (name != "raise_exception") refuse("raise_exception as function", fmt::format("'{}'", name));
    TemplateExpression call{Kind::kCall, name, {}, {}};
    parse_arguments(call);
    if (call.operands.size() != 1) refuse("one argument", "another number for raise_exception");
    return call;
  }

  // Constants alone, as in `role in ['user', 'system']`.
  TemplateExpression parse_list() {
    TemplateExpression list{.value = nlohmann::json::array()};
    while (!take_sign("]")) {
      TemplateExpression item = parse_value();
      if (item.kind != Kind::kConstant) refuse("constants in a list", "something else");
      list.value.push_back(std::move(item.value));
      if (!take_sign(",") && !is_sign("]")) refuse(", or ] in a list", shown());
    }
    return list;
  }

  TemplateExpression parse_strings() {
    std::string text;
    while (word().kind == TemplateWord::Kind::kString) text += pieces_[at_].words[word_++].text;
    return {.value = text};
  }

  TemplateExpression parse_number() {
    const std::string text = pieces_[at_].words[word_++].text;
    int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number > 1'000'000'000)
      refuse("a whole number up to 1000000000", text);
    return {.value = number};
  }

  void parse_arguments(TemplateExpression& call) {
    while (!take_sign(")")) {
      call.operands.push_back(parse_expression());
      if (!take_sign(",") && !is_sign(")")) refuse(", or ) behind an argument", shown());
    }
  }

  static TemplateExpression unary(std::string name, TemplateExpression value) {
    return {Kind::kUnary, std::move(name), {}, {std::move(value)}};
  }
  static TemplateExpression binary(std::string name, TemplateExpression left, TemplateExpression right) {
    return {Kind::kBinary, std::move(name), {}, {std::move(left), std::move(right)}};
  }

  // Words of the statement or expression that is being read.
  const TemplateWord& word(size_t ahead = 0) const {
    const std::vector<TemplateWord>& words = pieces_[at_].words;
    return words[std::min(word_ + ahead, words.size() - 1)];
  }
  bool is_name(std::string_view name) const { return word().kind == TemplateWord::Kind::kName && word().text == name; }
  bool is_sign(std::string_view sign) const { return word().kind == TemplateWord::Kind::kSign && word().text == sign; }
  bool take(std::string_view name) { return is_name(name) && ++word_; }
  bool take_sign(std::string_view sign) { return is_sign(sign) && ++word_; }
  std::string take_name() {
    if (word().kind != TemplateWord::Kind::kName) refuse("a name", shown());
    return pieces_[at_].words[word_++].text;
  }
  void expect_end() const {
    if (word().kind != TemplateWord::Kind::kEnd) refuse("the end of the tag", shown());
  }
  void require_more(std::string_view end) {
    if (at_ >= pieces_.size())
      user_error("[chat] {}: expected {}, got the end of the template; {}", name_, end, kOtherTemplate);
    word_ = 0;
  }
  size_t line() const { return pieces_[at_].line; }
  std::string shown() const {
    return word().kind == TemplateWord::Kind::kEnd ? "the end of the tag" : fmt::format("'{}'", word().text);
  }
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    user_error("[chat] {} line {}: expected {}, got {}, which is not known here; {}", name_, line(), expected, got,
               kOtherTemplate);
  }

  struct Deeper {
    explicit Deeper(Parser& p) : parser(p) {
      if (++parser.depth_ > kMostDepth) parser.refuse("at most 64 levels", "more");
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };

  std::vector<TemplatePiece> pieces_;
  std::string_view name_;
  size_t at_ = 0, word_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<TemplateBlock> parse_chat_template(std::string_view source, std::string_view name) {
  return Parser(split_chat_template(source, name), name).parse();
}

}  // namespace tokamak
