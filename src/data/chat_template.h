// Chat templates: how the messages of a conversation become one text. A template is a program of Jinja, as
// tokenizer_config.json has it; here is the part of the language that plain templates need. Source: Jinja's
// documentation of templates, and Transformers' of chat templates, with its trim_blocks and lstrip_blocks.
// Tests: tests/data/chat_template_test.cpp, with texts that Transformers gives; tests/fuzz/chat_template_fuzz.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// A piece of a text, in bytes.
struct TextSpan {
  size_t begin = 0, end = 0;

  bool operator==(const TextSpan&) const = default;
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> generated;  // what stands between {% generation %} and {% endgeneration %}
};

struct TemplateBlock;  // data/chat_template_parser.h

class ChatTemplate {
 public:
  /// `name` is for messages. UserError that names the line and the construct for what is wrong or not known here.
  ChatTemplate(std::string_view source, std::string name, std::string bos = "", std::string eos = "");

  /// The text of `messages`, a list of objects. UserErrors: what the template refuses (raise_exception), a kind of
  /// value that an operation does not take, a text without end.
  RenderedChat render(const nlohmann::json& messages, bool add_generation_prompt) const;

  /// Whether it has {% generation %}.
  bool marks_answers() const { return marks_answers_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_, bos_, eos_;
  std::shared_ptr<const std::vector<TemplateBlock>> blocks_;
  bool marks_answers_ = false;
};

/// The source of a template that has a name here: chatml or llama3; empty for another name.
std::string_view named_chat_template(std::string_view name);

/// What to do about a template that cannot be used, for the end of messages.
inline constexpr std::string_view kOtherTemplate =
    "take a named template (--chat=chatml or llama3), or prepare prompt and completion yourself";

}  // namespace tokamak
