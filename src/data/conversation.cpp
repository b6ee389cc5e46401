#include "data/conversation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/hugging_face_fields.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// One object on its way to a text.
class Conversation {
 public:
  Conversation(const std::string& place, std::string_view else_do) : place_(place), else_do_(else_do) {}

  LearnedText of_pair(const json& object) const {
    for (const char* key : {"prompt", "completion"})
      if (!field(object, key).is_string()) refuse(fmt::format("a text as \"{}\"", key), kind_of(field(object, key)));
    auto prompt = object["prompt"].get<std::string>(), completion = object["completion"].get<std::string>();
    if (completion.empty()) refuse("a completion to learn", "an empty one");
    return {prompt + completion, {{prompt.size(), prompt.size() + completion.size()}}};
  }

  LearnedText of_messages(const json& all, const ChatTemplate& chat) const {
    check(all);
    json messages = up_to_last_answer(all);
    if (chat.marks_answers()) {
      RenderedChat rendered = chat.render(messages, false);
      return {std::move(rendered.text), std::move(rendered.generated)};
    }
    LearnedText result;
    result.text = chat.render(messages, false).text;
    json before = json::array();
    for (const json& message : messages) {
      bool is_answer = message["role"] == "assistant";
      std::string prompt = is_answer ? chat.render(before, true).text : "";
      before.push_back(message);
      if (!is_answer) continue;
      std::string answered = chat.render(before, false).text;
      if (!answered.starts_with(prompt) || !result.text.starts_with(answered))
        refuse("a chat template under which an answer stands the same whatever follows it",
               fmt::format("'{}', which writes it otherwise; {}", chat.name(), kOtherTemplate));
      if (prompt.size() < answered.size()) result.learned.push_back({prompt.size(), answered.size()});
    }
    return result;
  }

  /// What separates documents stands around them, not in them.
  void leave_out(const std::string& end, LearnedText& of) const {
    if (of.text.ends_with(end)) of.text.resize(of.text.size() - end.size());
    size_t begin = of.text.starts_with(end) ? end.size() : 0;
    of.text.erase(0, begin);
    for (TextSpan& span : of.learned) {
      span.begin = std::min(std::max(span.begin, begin) - begin, of.text.size());
      span.end = std::min(std::max(span.end, begin) - begin, of.text.size());
    }
    std::erase_if(of.learned, [](const TextSpan& span) { return span.begin == span.end; });
    if (of.text.find(end) != of.text.npos)
      refuse(fmt::format("{} at the end alone, as it separates documents", end),
             fmt::format("it between messages, where the template writes it; {}", kOtherTemplate));
    if (of.learned.empty()) refuse("an answer to learn", "a text without one");
  }

  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    user_error("[data] {}: expected {}, got {}; mend it, or {}", place_, expected, got, else_do_);
  }
  static std::string kind_of(const json& value) { return value.is_null() ? "nothing" : value.type_name(); }

 private:
  void check(const json& messages) const {
    if (!messages.is_array() || messages.empty()) refuse("a list of messages", kind_of(messages));
    for (const json& message : messages)
      for (const char* key : {"role", "content"})
        if (!field(message, key).is_string())
          refuse(fmt::format("messages with a text as \"{}\"", key), kind_of(field(message, key)));
  }

  json up_to_last_answer(const json& messages) const {
    size_t size = messages.size();
    while (size > 0 && messages[size - 1]["role"] != "assistant") --size;
    if (size == 0) refuse("an answer, a message of the role assistant", "none");
    json part = json::array();
    for (size_t i = 0; i < size; ++i) part.push_back(messages[i]);
    return part;
  }

  const std::string& place_;
  std::string_view else_do_;
};

std::string token_text(const json& config, const char* key) {
  const json& token = field(config, key);
  const json& text = token.is_object() ? field(token, "content") : token;
  return text.is_string() ? text.get<std::string>() : "";
}

// One text, or a list of several with names.
std::string template_in(const json& config) {
  const json& chat = field(config, "chat_template");
  if (chat.is_string()) return chat.get<std::string>();
  if (chat.is_array())
    for (const json& one : chat)
      if (field(one, "name") == "default" && field(one, "template").is_string()) return one["template"];
  return "";
}

ChatTemplate own_template(const fs::path& folder) {
  fs::path file = folder / kChatTemplateFiles[0], settings = folder / kChatTemplateFiles[1];
  json config = fs::exists(settings) ? parse_json(read_file(settings)) : json();
  bool has_file = fs::exists(file);
  std::string source = has_file ? read_file(file) : template_in(config);
  if (source.empty())
    user_error(
        "[chat] {}: expected chat_template.jinja, or a chat_template in tokenizer_config.json, got neither; take a "
        "named "
        "template (--chat=chatml or llama3)",
        folder.string());
  return ChatTemplate(source, (has_file ? file : settings).string(), token_text(config, "bos_token"),
                      token_text(config, "eos_token"));
}

// What a named template writes must be markers, else it is many tokens of text.
void require_markers(const std::string& chat, const std::vector<std::string>& markers) {
  std::string_view source = named_chat_template(chat);
  for (size_t at = source.find("<|"); at != source.npos; at = source.find("<|", at + 1)) {
    std::string marker(source.substr(at, source.find("|>", at) + 2 - at));
    if (std::find(markers.begin(), markers.end(), marker) == markers.end())
      user_error(
          "[chat] expected a tokenizer with the marker {}, which the template {} writes, got one without it; take the "
          "tokenizer of a model for conversations, or add the marker to it",
          marker, chat);
  }
}

}  // namespace

ConversationReader::ConversationReader(std::optional<ChatTemplate> chat, std::vector<std::string> markers,
                                       std::string end_of_text)
    : chat_(std::move(chat)), markers_(std::move(markers)), end_of_text_(std::move(end_of_text)) {
  for (const std::string& marker : markers_)
    if (!marker.empty()) begins_marker_[static_cast<unsigned char>(marker[0])] = true;
}

LearnedText ConversationReader::read(std::string_view object, const std::string& place,
                                     std::string_view else_do) const {
  Conversation conversation(place, else_do);
  json parsed = parse_json(object);
  if (!parsed.is_object()) conversation.refuse("a JSON object", "something else" + json_error(object));
  auto require_no_marker = [&](const json& text) {
    auto& content = text.get_ref<const std::string&>();
    for (size_t at = 0; at < content.size(); ++at)
      if (begins_marker_[static_cast<unsigned char>(content[at])])
        for (const std::string& marker : markers_)
          if (std::string_view(content).substr(at).starts_with(marker))
            conversation.refuse("messages without markers, which only a template writes",
                                fmt::format("{} in one", marker));
  };
  const json& messages = field(parsed, "messages");
  LearnedText result;
  if (messages.is_null() && parsed.contains("prompt")) {
    result = conversation.of_pair(parsed);
    require_no_marker(parsed["prompt"]);
    require_no_marker(parsed["completion"]);
  } else {
    if (messages.is_null()) conversation.refuse("\"messages\", or \"prompt\" and \"completion\"", "none of them");
    if (!chat_)
      conversation.refuse("\"prompt\" and \"completion\" (--chat=pairs)", "\"messages\", which need a template");
    result = conversation.of_messages(messages, *chat_);
    for (const json& message : messages) require_no_marker(message["content"]);
  }
  conversation.leave_out(end_of_text_, result);
  return result;
}

std::optional<ChatTemplate> find_chat_template(const std::string& chat, const fs::path& tokenizer,
                                               const Vocabulary& vocabulary) {
  if (chat == "pairs") return std::nullopt;
  if (chat == "own") return own_template(tokenizer);
  require_markers(chat, marker_texts(vocabulary));
  return ChatTemplate(named_chat_template(chat), chat);
}

std::vector<std::string> marker_texts(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  for (const AddedToken& token : vocabulary.added)
    if (token.special) texts.push_back(vocabulary.tokens[size_t(token.id)]);
  return texts;
}

}  // namespace tokamak
