#include "data/chat_template.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "data/chat_template_parser.h"

namespace tokamak {

using nlohmann::json;

namespace {

using Expression = TemplateExpression;
using Block = TemplateBlock;

constexpr size_t kMostText = size_t(1) << 28;      // bytes, also of all values that are made on the way
constexpr int64_t kMostTemplateSteps = 2'000'000;  // blocks and operators

/// A value of its own, or one that lies elsewhere as long as the template is rendered. Jinja's undefined is
/// `discarded`.
class Value {
 public:
  Value(json own) : own_(std::move(own)) {}
  static Value of(const json& other) {
    Value value{json()};
    value.other_ = &other;
    return value;
  }
  static Value undefined() { return json(json::value_t::discarded); }

  const json& operator*() const { return other_ ? *other_ : own_; }
  const json* operator->() const { return &**this; }
  bool is_undefined() const { return (**this).is_discarded(); }
  bool is_elsewhere() const { return other_ != nullptr; }

 private:
  json own_;
  const json* other_ = nullptr;
};

bool is_true(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.is_null() && !value.is_discarded() && !value.empty();
}

std::string kind_of(const json& value) { return value.is_discarded() ? "nothing" : value.type_name(); }

std::string trimmed(std::string text, bool left, bool right) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  if (right) text.erase(text.find_last_not_of(kSpace) + 1);
  if (left) text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  return text;
}

// Of ASCII: what Python does with other letters is a table.
std::string with_case(std::string text, bool upper) {
  for (char& c : text)
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = char(c ^ 0x20);
  return text;
}

class Renderer {
 public:
  Renderer(const std::string& name, std::map<std::string, Value> variables) : name_(name) {
    scopes_.push_back(std::move(variables));
  }

  RenderedChat render(const std::vector<Block>& blocks) {
    run(blocks);
    return std::move(out_);
  }

 private:
  void run(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      line_ = block.line;
      step();
      switch (block.kind) {
        case Block::Kind::kText: append(block.text); break;
        case Block::Kind::kPrint: append(as_text(*evaluate(block.value))); break;
        case Block::Kind::kIf: run_if(block); break;
        case Block::Kind::kFor: run_for(block); break;
        case Block::Kind::kSet: run_set(block); break;
        case Block::Kind::kGeneration: run_generation(block); break;
      }
    }
  }

  void run_if(const Block& block) {
    for (const Block::Branch& branch : block.branches)
      if (is_true(*evaluate(branch.condition))) return run(branch.body);
  }

  void run_for(const Block& block) {
    Value list = evaluate(block.value);
    if (!list->is_array()) refuse("a list to go through", kind_of(*list));
    auto size = int64_t(list->size());
    for (int64_t i = 0; i < size; ++i) {
      json loop = {{"index", i + 1}, {"index0", i}, {"first", i == 0}, {"last", i + 1 == size}, {"length", size}};
      scopes_.emplace_back();
      scopes_.back().emplace("loop", std::move(loop));
      scopes_.back().emplace(block.text, Value::of((*list)[size_t(i)]));
      run(block.branches[0].body);
      scopes_.pop_back();
    }
  }

  void run_set(const Block& block) {
    json value = *evaluate(block.value);
    count(value);
    scopes_.back().insert_or_assign(block.text, std::move(value));
  }

  void run_generation(const Block& block) {
    size_t begin = out_.text.size();
    run(block.branches[0].body);
    if (out_.text.size() > begin) out_.generated.push_back({begin, out_.text.size()});
  }

  Value evaluate(const Expression& e) {
    step();
    switch (e.kind) {
      case Expression::Kind::kConstant: return Value::of(e.value);
      case Expression::Kind::kVariable: return variable(e.name);
      case Expression::Kind::kAttribute: return attribute(evaluate(e.operands[0]), e.name);
      case Expression::Kind::kIndex: return index(evaluate(e.operands[0]), *evaluate(e.operands[1]));
      case Expression::Kind::kSlice: return slice(e);
      case Expression::Kind::kUnary: return unary(e);
      case Expression::Kind::kBinary: return binary(e);
      case Expression::Kind::kFilter: return filter(e.name, *evaluate(e.operands[0]));
      case Expression::Kind::kTest: return test(e.name, *evaluate(e.operands[0]));
      case Expression::Kind::kChoose: return evaluate(e.operands[is_true(*evaluate(e.operands[1])) ? 0 : 2]);
      case Expression::Kind::kMethod: return method(e);
      case Expression::Kind::kCall:
        user_error("[chat] {} line {}: the template refuses the messages: {}", name_, line_,
                   as_text(*evaluate(e.operands[0])));
    }
    TOKAMAK_CHECK(false, "a kind of expression without a meaning");
  }

  Value variable(const std::string& name) const {
    for (size_t i = scopes_.size(); i-- > 0;)
      if (auto at = scopes_[i].find(name); at != scopes_[i].end()) return Value::of(*at->second);
    return Value::undefined();
  }

  Value attribute(const Value& of, const std::string& name) {
    if (of.is_undefined()) refuse(fmt::format("a value whose '{}' is asked for", name), "nothing");
    if (!of->is_object() || !of->contains(name)) return Value::undefined();
    return part(of, (*of)[name]);
  }

  Value index(const Value& of, const json& at) {
    if (at.is_string()) return attribute(of, at.get_ref<const std::string&>());
    if (!of->is_array() || !at.is_number_integer()) refuse("a list and a number", kind_of(*of) + " and " + kind_of(at));
    auto size = int64_t(of->size()), place = at.get<int64_t>();
    if (place < 0) place += size;
    if (place < 0 || place >= size) return Value::undefined();
    return part(of, (*of)[size_t(place)]);
  }

  // What lies in a value of its own goes with it.
  Value part(const Value& of, const json& part) {
    if (of.is_elsewhere()) return Value::of(part);
    count(part);
    return json(part);
  }

  Value slice(const Expression& e) {
    Value of = evaluate(e.operands[0]);
    if (!of->is_array()) refuse("a list to take a part of", kind_of(*of));
    auto size = int64_t(of->size());
    auto place = [&](const Expression& end, int64_t otherwise) {
      Value at = evaluate(end);
      if (at->is_null()) return otherwise;
      if (!at->is_number_integer()) refuse("a number as the end of a slice", kind_of(*at));
      auto number = at->get<int64_t>();
      return std::clamp<int64_t>(number < 0 ? number + size : number, 0, size);
    };
    int64_t begin = place(e.operands[1], 0), end = place(e.operands[2], size);
    json part = json::array();
    for (int64_t i = begin; i < end; ++i) part.push_back((*of)[size_t(i)]);
    count(part);
    return part;
  }

  Value unary(const Expression& e) {
    Value value = evaluate(e.operands[0]);
    if (e.name == "not") return json(!is_true(*value));
    return json(-number(*value));
  }

  Value binary(const Expression& e) {
    Value left = evaluate(e.operands[0]);
    if (e.name == "and") return is_true(*left) ? evaluate(e.operands[1]) : left;
    if (e.name == "or") return is_true(*left) ? left : evaluate(e.operands[1]);
    Value right = evaluate(e.operands[1]);
    if (e.name == "==") return json(is_equal(*left, *right));
    if (e.name == "!=") return json(!is_equal(*left, *right));
    if (e.name == "in") return json(is_in(*left, *right));
    if (e.name == "~") return made(as_text(*left) + as_text(*right));
    if (e.name == "+" && left->is_string() && right->is_string()) return made(text(*left) + text(*right));
    return of_numbers(e.name, number(*left), number(*right));
  }

  Value of_numbers(const std::string& name, int64_t a, int64_t b) {
    if (name == "<") return json(a < b);
    if (name == "<=") return json(a <= b);
    if (name == ">") return json(a > b);
    if (name == ">=") return json(a >= b);
    int64_t result = 0;
    bool fits = true;
    if (name == "+") fits = !__builtin_add_overflow(a, b, &result);
    if (name == "-") fits = !__builtin_sub_overflow(a, b, &result);
    if (name == "*") fits = !__builtin_mul_overflow(a, b, &result);
    if (name == "%") fits = b > 0;
    if (!fits) refuse("numbers that can be counted with", fmt::format("{} {} {}", a, name, b));
    if (name == "%") result = (a % b + b) % b;
    return json(result);
  }

  static bool is_equal(const json& a, const json& b) {
    return a.is_discarded() || b.is_discarded() ? a.is_discarded() && b.is_discarded() : a == b;
  }

  bool is_in(const json& what, const json& where) const {
    if (where.is_string()) return text(where).find(text(what)) != std::string::npos;
    if (where.is_object()) return where.contains(text(what));
    if (!where.is_array()) refuse("a text, a list or an object behind `in`", kind_of(where));
    return std::any_of(where.begin(), where.end(), [&](const json& item) { return is_equal(item, what); });
  }

  Value filter(const std::string& name, const json& value) {
    if (name == "length") {
      if (value.is_string()) refuse("a list, as `length` takes it here", "string");
      if (!value.is_array() && !value.is_object()) refuse("a list", kind_of(value));
      return json(int64_t(value.size()));
    }
    if (name == "string") return made(as_text(value));
    if (name == "trim") return made(trimmed(as_text(value), true, true));
    return made(with_case(as_text(value), name == "upper"));
  }

  static Value test(const std::string& name, const json& value) {
    if (name == "defined") return json(!value.is_discarded());
    if (name == "undefined") return json(value.is_discarded());
    if (name == "none") return json(value.is_null());
    if (name == "string") return json(value.is_string());
    if (name == "mapping") return json(value.is_object());
    if (name == "iterable") return json(value.is_array() || value.is_object() || value.is_string());
    return json(value.is_boolean() && value.get<bool>() == (name == "true"));
  }

  Value method(const Expression& e) {
    Value of = evaluate(e.operands[0]);
    std::string value = text(*of);
    if (e.name == "startswith") return json(value.starts_with(text(*evaluate(e.operands[1]))));
    if (e.name == "endswith") return json(value.ends_with(text(*evaluate(e.operands[1]))));
    if (e.name == "upper" || e.name == "lower") return made(with_case(value, e.name == "upper"));
    return made(trimmed(value, e.name != "rstrip", e.name != "lstrip"));
  }

  std::string text(const json& value) const {
    if (!value.is_string()) refuse("a text", kind_of(value));
    return value.get<std::string>();
  }
  int64_t number(const json& value) const {
    if (!value.is_number_integer() && !value.is_boolean()) refuse("two texts, or whole numbers", kind_of(value));
    return value.is_boolean() ? int64_t(value.get<bool>()) : value.get<int64_t>();
  }
  // As Python prints it.
  std::string as_text(const json& value) const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_discarded()) return "";
    if (value.is_null()) return "None";
    if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
    if (!value.is_number_integer()) refuse("a text or a whole number to print", kind_of(value));
    return std::to_string(value.get<int64_t>());
  }

  Value made(std::string text) {
    take(text.size());
    return json(std::move(text));
  }
  void append(std::string_view text) {
    take(text.size());
    out_.text += text;
  }
  // What a copy of it takes, about.
  void count(const json& value) {
    take(sizeof(json));
    if (value.is_string()) take(value.get_ref<const std::string&>().size());
    if (value.is_structured())
      for (const json& item : value) count(item);
  }
  void take(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMostText) refuse("a text of at most 256 MiB", "more");
  }
  void step() {
    if (++steps_ > kMostTemplateSteps) refuse("a template that ends", "one of too many steps");
  }
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    user_error("[chat] {} line {}: expected {}, got {}; {}", name_, line_, expected, got, kOtherTemplate);
  }

  const std::string& name_;
  std::vector<std::map<std::string, Value>> scopes_;
  RenderedChat out_;
  size_t line_ = 1, bytes_ = 0;
  int64_t steps_ = 0;
};

bool has_generation(const std::vector<Block>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](const Block& block) {
    if (block.kind == Block::Kind::kGeneration) return true;
    return std::any_of(block.branches.begin(), block.branches.end(),
                       [](const Block::Branch& branch) { return has_generation(branch.body); });
  });
}

// Jinja's line breaks, and without the last one.
std::string plain(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    bool is_break = source[i] == '\r';
    if (is_break && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += is_break ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string name, std::string bos, std::string eos)
    : name_(std::move(name)), bos_(std::move(bos)), eos_(std::move(eos)) {
  blocks_ = std::make_shared<const std::vector<Block>>(parse_chat_template(plain(source), name_));
  marks_answers_ = has_generation(*blocks_);
}

RenderedChat ChatTemplate::render(const json& messages, bool add_generation_prompt) const {
  std::map<std::string, Value> variables;
  variables.emplace("messages", Value::of(messages));
  variables.emplace("add_generation_prompt", json(add_generation_prompt));
  for (const char* nothing : {"tools", "documents"}) variables.emplace(nothing, json());
  variables.emplace("bos_token", json(bos_));
  variables.emplace("eos_token", json(eos_));
  return Renderer(name_, std::move(variables)).render(*blocks_);
}

std::string_view named_chat_template(std::string_view name) {
  if (name == "chatml")
    return "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  if (name == "llama3")
    return "<|begin_of_text|>{% for m in messages %}"
           "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}"
           "{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";
  return "";
}

}  // namespace tokamak
