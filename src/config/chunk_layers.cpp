#include "config/chunk_layers.h"

#include "base/error.h"
#include "config/number.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>

namespace tokamak {

std::vector<int64_t> chunk_layers(const MeshConfig& mesh, int64_t layers) {
  int64_t chunks = mesh.pipe * mesh.interleave;
  std::vector<int64_t> counts;
  std::istringstream list(mesh.chunk_layers);
  for (std::string text; std::getline(list, text, ',');) {
    std::optional<int64_t> count = parse_whole(text);
    if (!count || *count < 0)
      user_error("[mesh.chunk_layers] expected numbers of layers with commas between them, got '{}'", text);
    counts.push_back(*count);
  }
  if (counts.empty()) return {};
  if (chunks == 1)
    user_error("[mesh.chunk_layers] expected none without mesh.pipe > 1, got {}; leave it out", mesh.chunk_layers);
  int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t(0));
  if (int64_t(counts.size()) != chunks || sum != layers)
    user_error(
        "[mesh.chunk_layers] expected {} numbers, one for each of mesh.pipe x mesh.interleave chunks, that are {} "
        "together, as model.layers, got {} that are {}: {}",
        chunks, layers, counts.size(), sum, mesh.chunk_layers);
  if (std::count(counts.begin() + 1, counts.end() - 1, 0) > 0)
    user_error(
        "[mesh.chunk_layers] expected at least 1 layer in every chunk but the first, which has the embeddings, and the "
        "last, which has the classifier, got {}",
        mesh.chunk_layers);
  return counts;
}

int64_t count_chunk_layers(const MeshConfig& mesh) {
  return mesh.chunk_layers.empty() ? 0 : 1 + std::ranges::count(mesh.chunk_layers, ',');
}

}  // namespace tokamak
