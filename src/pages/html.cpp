#include "pages/html.h"

#include "base/printable.h"

namespace tokamak {

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string command_html(std::string_view command) {
  const std::string word = "<span style=\"display: inline-block; max-width: 100%\">", end = "</span>";
  const std::string between = end + " " + word;
  std::string text = word + escape_html(command) + end;
  for (size_t at = 0; (at = text.find(" --", at)) != text.npos; at += between.size()) text.replace(at, 1, between);
  return text;
}

}  // namespace tokamak
