#include "base/error.h"
#include "graph/builder.h"
#include "graph/text.h"

#include <charconv>
#include <unordered_map>
#include <utility>

namespace tokamak {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpLookup& lookup) : text_(text), lookup_(lookup) {}

  Graph parse_all() {
    Graph graph = parse();
    skip_space();
    if (at_ < text_.size()) fail("the end of the text");
    return graph;
  }

 private:
  using Numbers = std::unordered_map<int64_t, ValueId>;  // number in the text -> value

  Graph parse() {
    expect("graph");
    Graph graph{word()};
    GraphBuilder builder(graph);
    Numbers numbers;
    expect("{");
    while (!accept("}")) parse_statement(graph, builder, numbers);
    return graph;
  }

  void parse_statement(Graph& graph, GraphBuilder& builder, Numbers& numbers) {
    skip_space();
    if (peek() == '%') return parse_node(graph, builder, numbers);
    std::string keyword = word();
    if (keyword == "input") return parse_argument(graph, Argument::Kind::kInput, numbers);
    if (keyword == "param") return parse_argument(graph, Argument::Kind::kParameter, numbers);
    if (keyword == "state") return parse_argument(graph, Argument::Kind::kState, numbers);
    if (keyword == "result") {
      std::string name = word();
      expect("=");
      return graph.add_result(std::move(name), value(numbers));
    }
    if (keyword == "update") {
      ValueId target = value(numbers);
      expect("=");
      return graph.add_update(target, value(numbers));
    }
    fail("input, param, state, result, update, a value or }", keyword);
  }

  void parse_argument(Graph& graph, Argument::Kind kind, Numbers& numbers) {
    std::string name = word();
    expect("=");
    int64_t number = value_number();
    Attrs attrs = accept("{") ? attributes() : Attrs{};
    expect(":");
    ValueType of_argument = type();
    ArgumentSpec given_spec = read_spec(attrs, default_spec(kind, of_argument));
    define(numbers, number, graph.add_argument(kind, std::move(name), std::move(of_argument), std::move(given_spec)));
  }

  ArgumentSpec read_spec(const Attrs& attrs, ArgumentSpec spec) const {
    for (const auto& [name, value] : attrs) {
      const auto* text = std::get_if<std::string>(&value);
      std::optional<Role> role = text ? find_role(*text) : std::nullopt;
      if (name == "role" && role)
        spec.role = *role;
      else if (name == "of" && text)
        spec.of = *text;
      else if (name == "global" && std::holds_alternative<std::vector<int64_t>>(value))
        spec.global = std::get<std::vector<int64_t>>(value);
      else if (name == "blocks" && std::holds_alternative<int64_t>(value))
        spec.blocks = std::get<int64_t>(value);
      else if (name == "transposed" && std::holds_alternative<bool>(value))
        spec.transposed = std::get<bool>(value);
      else if (name == "unit" && std::holds_alternative<int64_t>(value))
        spec.unit = std::get<int64_t>(value);
      else if (name == "padding" && text && parse_padding(*text))
        spec.padding = *parse_padding(*text);
      else if (name == "cuts" && text && parse_cuts(*text))
        spec.cuts = *parse_cuts(*text);
      else
        fail(
            "role=\"...\" (graph/argument_spec.h), of=\"...\", global=[...], blocks=N, transposed=true, unit=N, "
            "padding=\"...\" or cuts=\"...\"",
            fmt::format("{}={}", name, to_string(value)));
    }
    return spec;
  }

  void parse_node(Graph& graph, GraphBuilder& builder, Numbers& numbers) {
    size_t start = at_;
    std::vector<int64_t> outputs{value_number()};
    while (accept(",")) outputs.push_back(value_number());
    expect("=");
    std::string name = word();
    const OpDef* op = lookup_(name);
    if (!op) fail("the name of an op", name);
    ValueIds inputs = operands(numbers);
    Attrs attrs = accept("{") ? attributes() : Attrs{};
    builder.append_like(marks());
    expect(":");
    ValueTypes types{type()};
    while (accept(",")) types.push_back(type());
    std::shared_ptr<const Graph> body;
    if (accept("{")) {
      body = std::make_shared<Graph>(parse());
      expect("}");
    }
    size_t end = std::exchange(at_, start);  // errors from here on are the node's
    ValueIds values = append(builder, *op, std::move(inputs), std::move(attrs), std::move(body));
    if (values.size() != outputs.size())
      fail(fmt::format("{} outputs of {}", values.size(), name), std::to_string(outputs.size()));
    if (values.size() != types.size())
      fail(fmt::format("{} types after {}", values.size(), name), std::to_string(types.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (graph.type(values[i]) != types[i])
        fail(fmt::format("output {} of {} to be {}", i, name, to_string(graph.type(values[i]))), to_string(types[i]));
      define(numbers, outputs[i], values[i]);
    }
    at_ = end;
  }

  // A node that has only a phase and what passes have decided.
  Node marks() {
    Node node;
    while (accept("#")) {
      std::string mark = word();
      if (mark == "backward")
        node.phase = Phase::kBackward;
      else if (mark == "update")
        node.phase = Phase::kUpdate;
      else if (mark == "keep_whole")
        node.keep_whole = true;
      else if (mark == "recompute")
        node.recompute = true;
      else
        fail("#backward, #update, #keep_whole or #recompute", mark);
    }
    return node;
  }

  // What the op's shape rule refuses gets its line as well.
  ValueIds append(GraphBuilder& builder, const OpDef& op, ValueIds inputs, Attrs attrs,
                  std::shared_ptr<const Graph> body) const {
    try {
      return builder.add(op, std::move(inputs), std::move(attrs), std::move(body));
    } catch (const UserError& error) {
      user_error("[graph text] line {}: {}", line(), error.what());
    }
  }

  ValueIds operands(Numbers& numbers) {
    ValueIds inputs;
    expect("(");
    if (accept(")")) return inputs;
    do inputs.push_back(value(numbers));
    while (accept(","));
    expect(")");
    return inputs;
  }

  Attrs attributes() {
    Attrs attrs;
    do {
      std::string name = word();
      expect("=");
      attrs.set(name, attribute());
    } while (accept(","));
    expect("}");
    return attrs;
  }

  Attr attribute() {
    skip_space();
    if (peek() == '"') return quoted();
    if (accept("[")) return ints();
    std::string token = word();
    if (token == "true" || token == "false") return token == "true";
    if (token.find_first_of(".en") != std::string::npos) {
      double d = 0;
      auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), d);
      if (error != std::errc() || end != token.data() + token.size()) fail("a number", token);
      return d;
    }
    return integer(token);
  }

  std::vector<int64_t> ints() {
    std::vector<int64_t> list;
    if (accept("]")) return list;
    do list.push_back(integer(word()));
    while (accept(","));
    expect("]");
    return list;
  }

  std::string quoted() {
    std::string out;
    for (++at_; peek() != '"'; ++at_) {
      if (peek() == '\0') fail("a closing quote");
      if (peek() == '\\') ++at_;
      out += peek();
    }
    ++at_;
    return out;
  }

  ValueType type() {
    ValueType type;
    std::string name = word();
    type.dtype = parse_dtype(name);
    expect("[");
    type.shape = ints();
    return type;
  }

  int64_t value_number() {
    expect("%");
    return integer(word());
  }

  ValueId value(const Numbers& numbers) {
    int64_t number = value_number();
    auto found = numbers.find(number);
    if (found == numbers.end()) fail("a value defined above", fmt::format("%{}", number));
    return found->second;
  }

  void define(Numbers& numbers, int64_t number, ValueId value) {
    if (!numbers.emplace(number, value).second) fail("a value not defined yet", fmt::format("%{}", number));
  }

  int64_t integer(const std::string& token) {
    int64_t i = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), i);
    if (error != std::errc() || end != token.data() + token.size() || token.empty()) fail("an integer", token);
    return i;
  }

  // Letters, digits and the marks that stand in names and numbers.
  std::string word() {
    skip_space();
    size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(uint8_t(text_[at_])) || std::string_view("_.-+/").find(text_[at_]) != std::string_view::npos))
      ++at_;
    if (at_ == begin) fail("a word");
    return std::string(text_.substr(begin, at_ - begin));
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(uint8_t(text_[at_]))) ++at_;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}'", token));
  }

  int line() const {
    int line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    return line;
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view got = {}) const {
    std::string_view rest = got.empty() ? text_.substr(std::min(at_, text_.size()), 20) : got;
    user_error("[graph text] line {}: expected {}, got '{}'", line(), expected, rest.substr(0, rest.find('\n')));
  }

  std::string_view text_;
  size_t at_ = 0;
  const OpLookup& lookup_;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpLookup& lookup) {
  Graph graph = Parser(text, lookup).parse_all();
  verify(graph);
  return graph;
}

}  // namespace tokamak
