#include "advise/format_published.h"

#include "base/json.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

// In the order of the table.
std::vector<const Software*> software_of(const std::vector<PublishedPrediction>& predictions) {
  std::vector<const Software*> list;
  for (const PublishedPrediction& one : predictions)
    if (std::ranges::find(list, one.run->software) == list.end()) list.push_back(one.run->software);
  return list;
}

std::vector<const PublishedSource*> sources_of(const std::vector<PublishedPrediction>& predictions) {
  std::vector<const PublishedSource*> list;
  for (const PublishedPrediction& one : predictions)
    if (std::ranges::find(list, one.run->source) == list.end()) list.push_back(one.run->source);
  return list;
}

std::string line(const PublishedPrediction& one) {
  std::string text =
      fmt::format("  {:<16}{:<40}{:>10.3f}{:>11.3f}{:>+8.1f}%{} {}", one.run->source->name, one.run->name,
                  one.published, one.predicted, 100 * one.error(), one.run->apart.empty() ? " " : "*", one.layout);
  if (one.missing_bytes > 0) text += fmt::format(" (needs {} more than there is)", format_bytes(one.missing_bytes));
  return text + "\n";
}

std::string part(const std::vector<PublishedPrediction>& predictions, const Software& software) {
  std::string text = fmt::format("{}: {}\n  {:<16}{:<40}{:>10}{:>11}{:>9}  {}\n", software.name, software.about,
                                 "source", "run", "published", "predicted", "error", "layout");
  for (const PublishedPrediction& one : predictions)
    if (one.run->software == &software) text += line(one);
  PublishedErrors e = errors_of(predictions, software);
  return text + fmt::format("  of {} runs: mean absolute error {:.1f}%, mean {:+.1f}%, worst {:+.1f}%\n\n", e.runs,
                            100 * e.size, 100 * e.mean, 100 * e.worst);
}

}  // namespace

PublishedErrors errors_of(const std::vector<PublishedPrediction>& predictions, const Software& software) {
  PublishedErrors e;
  for (const PublishedPrediction& one : predictions) {
    if (one.run->software != &software || !one.run->apart.empty()) continue;
    ++e.runs;
    e.mean += one.error();
    e.size += std::abs(one.error());
    if (std::abs(one.error()) > std::abs(e.worst)) e.worst = one.error();
  }
  if (e.runs > 0) e.mean /= double(e.runs), e.size /= double(e.runs);
  return e;
}

std::string format_published(const std::vector<PublishedPrediction>& predictions) {
  std::string text = "seconds of a step as others published them, and as plan predicts them with their layouts\n\n";
  for (const Software* software : software_of(predictions)) text += part(predictions, *software);
  for (const PublishedPrediction& one : predictions)
    if (!one.run->apart.empty())
      text += fmt::format("* {}, {}: counts in no mean: {}\n", one.run->source->name, one.run->name, one.run->apart);
  text += "\nsources\n";
  for (const PublishedSource* source : sources_of(predictions))
    text += fmt::format("  {:<16}{}{}\n", source->name, source->where,
                        source->opened ? "" : " (read in a transcription; the source was not opened)");
  return text;
}

std::string published_json(const std::vector<PublishedPrediction>& predictions) {
  Json json = {{"runs", Json::array()}, {"software", Json::array()}};
  for (const PublishedPrediction& one : predictions)
    json["runs"].push_back({{"source", one.run->source->name},
                            {"where", one.run->source->where},
                            {"opened", one.run->source->opened},
                            {"run", one.run->name},
                            {"software", one.run->software->name},
                            {"layout", one.layout},
                            {"published", one.published},
                            {"predicted", one.predicted},
                            {"error", one.error()},
                            {"missing_bytes", one.missing_bytes},
                            {"apart", one.run->apart}});
  for (const Software* software : software_of(predictions)) {
    PublishedErrors e = errors_of(predictions, *software);
    json["software"].push_back({{"name", software->name},
                                {"about", software->about},
                                {"runs", e.runs},
                                {"mean_absolute_error", e.size},
                                {"mean_error", e.mean},
                                {"worst_error", e.worst}});
  }
  return format_json(json);
}

}  // namespace tokamak
