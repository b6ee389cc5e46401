// Expected texts are those of Jinja, with the environment that Transformers gives it (trim_blocks, lstrip_blocks).
#include "data/chat_template.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

using nlohmann::json;

const json& messages() {
  static const json kMessages = {{{"role", "system"}, {"content", " Be brief. "}},
                                 {{"role", "user"}, {"content", "Hi"}},
                                 {{"role", "assistant"}, {"content", "Hello\n"}},
                                 {{"role", "user"}, {"content", "Bye?"}},
                                 {{"role", "assistant"}, {"content", "Bye."}}};
  return kMessages;
}

std::string render(std::string_view source, bool add_generation_prompt = false) {
  return ChatTemplate(source, "chat", "<s>", "</s>").render(messages(), add_generation_prompt).text;
}

struct Case {
  const char* name;
  const char* source;
  const char *text, *with_prompt;  // without and with add_generation_prompt
};

const Case kCases[] = {
    {"zephyr", R"({% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %})",
     "<|system|>\n Be brief. "
     "</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello\n</s>\n<|user|>\nBye?</s>\n<|assistant|>\nBye.</s>\n",
     "<|system|>\n Be brief. "
     "</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello\n</s>\n<|user|>\nBye?</s>\n<|assistant|>\nBye.</"
     "s>\n<|assistant|>\n"},
    {"bos_set",
     R"({% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '[' + message['role'] + ']

'+ message['content'] | trim + '[e]' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '[assistant]

' }}{% endif %}
)",
     "<s>[system]\n\nBe brief.[e][user]\n\nHi[e][assistant]\n\nHello[e][user]\n\nBye?[e][assistant]\n\nBye.[e]",
     "<s>[system]\n\nBe "
     "brief.[e][user]\n\nHi[e][assistant]\n\nHello[e][user]\n\nBye?[e][assistant]\n\nBye.[e][assistant]\n\n"},
    {"system_slice", R"({%- if messages[0]['role'] == 'system' -%}
    {%- set system_message = messages[0]['content'] | trim + '

' -%}
    {%- set messages = messages[1:] -%}
{%- else -%}
    {%- set system_message = '' -%}
{%- endif -%}
{{- bos_token -}}
{%- for message in messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('Conversation roles must alternate') -}}
    {%- endif -%}
    {%- if message.role == 'user' -%}
        {{- '[INST] ' ~ (system_message if loop.first else '') ~ message.content.strip() ~ ' [/INST]' -}}
    {%- else -%}
        {{- ' ' + message['content'].strip() + eos_token -}}
    {%- endif -%}
{%- endfor -%})",
     "<s>[INST] Be brief.\n\nHi [/INST] Hello</s>[INST] Bye? [/INST] Bye.</s>",
     "<s>[INST] Be brief.\n\nHi [/INST] Hello</s>[INST] Bye? [/INST] Bye.</s>"},
    {"spaces", R"(A 
  {# c #}
  {% if not tools and tools is none and x is not defined %}
  yes {{ messages | length }} {{ messages[-1].content[0:2] if false else loop_ }}
 {%- endif %}

 end {{ -3 + 2 * 5 }}{{ 'user' in ['user', "b"] }}{{ 'r' not in 'user' }}

)",
     "A \n  yes 5 \n end 7TrueFalse\n", "A \n  yes 5 \n end 7TrueFalse\n"},
};

TEST(ChatTemplate, GivesWhatJinjaGives) {
  for (const Case& c : kCases) {
    EXPECT_EQ(render(c.source, false), c.text) << c.name;
    EXPECT_EQ(render(c.source, true), c.with_prompt) << c.name;
  }
}

TEST(ChatTemplate, NamedOnesWriteTheirMarkers) {
  EXPECT_EQ(render(named_chat_template("chatml"), true),
            "<|im_start|>system\n Be brief. <|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello\n"
            "<|im_end|>\n<|im_start|>user\nBye?<|im_end|>\n<|im_start|>assistant\nBye.<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(render(named_chat_template("llama3")).substr(0, 86),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|star");
  EXPECT_EQ(named_chat_template("other"), "");
}

TEST(ChatTemplate, SaysWhatIsGenerated) {
  ChatTemplate chat(
      "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}{{ m.content }}.{% "
      "endgeneration "
      "%}{% endif %}{% endfor %}",
      "chat");
  EXPECT_TRUE(chat.marks_answers());
  RenderedChat rendered = chat.render(messages(), false);
  EXPECT_EQ(rendered.text, "[system][user][assistant]Hello\n.[user][assistant]Bye..");
  EXPECT_EQ(rendered.generated, (std::vector<TextSpan>{{25, 32}, {49, 54}}));
  EXPECT_FALSE(ChatTemplate("{{ 1 }}", "chat").marks_answers());
}

TEST(ChatTemplate, OtherConstructsAreRefusedByName) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a\n{% macro x() %}{% endmacro %}", "chat line 2: expected if, for, set or generation, got 'macro'"},
      {"{{ messages | tojson }}", "as filter, got 'tojson'"},
      {"{{ strftime_now('%d') }}", "raise_exception as function, got 'strftime_now'"},
      {"{{ messages.split('x') }}", "as method, got 'split'"},
      {"{% for a, b in messages %}{% endfor %}", "one variable and `in`, got ','"},
      {"{% for m in messages %}{{ loop.revindex }}{% endfor %}", "length of loop, got 'revindex'"},
      {"{{ x is divisibleby }}", "behind `is`, got 'divisibleby'"},
      {"{% set x.y = 1 %}", "= behind the variable of set, got '.'"},
      {"{% if x %}", "expected endif, got the end of the template"},
      {"{% endfor %}", "got 'endfor'"},
      {"{{ 'x }}", "a string with its quote"},
      {"{{ x ", "a tag that ends with }}"},
      {"{# x ", "a comment that ends with #}"},
      {"{{ [messages] }}", "constants in a list"},
  };
  for (const auto& [source, piece] : kCases)
    expect_user_error([&, s = source] { render(s); }, {"[chat] chat", piece, "take a named template"});
  expect_user_error([] { render("{{ " + std::string(100, '(') + "1" + std::string(100, ')') + " }}"); }, {"64 levels"});
  expect_user_error([] { render("{{ 1" + std::string(3000, '+') + " }}"); }, {"at most 1000 words"});
}

TEST(ChatTemplate, MistakesOfValuesAreRefused) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{{ raise_exception('no ' + messages[0].role) }}", "the template refuses the messages: no system"},
      {"{{ 'a' + 1 }}", "two texts, or whole numbers"},
      {"{{ nothing.x }}", "a value whose 'x' is asked for, got nothing"},
      {"{{ messages }}", "a text or a whole number to print, got array"},
      {"{% for m in 'abc' %}{% endfor %}", "a list to go through, got string"},
      {"{{ 1 % 0 }}", "numbers that can be counted with"},
      {"{{ 'x' in 3 }}", "a text, a list or an object behind `in`"},
  };
  for (const auto& [source, piece] : kCases) expect_user_error([&, s = source] { render(s); }, {piece});
  std::string loops = "{{ 1 }}";
  for (int i = 0; i < 20; ++i) loops = "{% for m in messages %}" + loops + "{% endfor %}";
  expect_user_error([&] { render(loops); }, {"expected a template that ends"});
}

}  // namespace
}  // namespace tokamak
