#include "passes/step_mesh.h"

#include "base/error.h"
#include "config/mesh_config.h"

#include <algorithm>

namespace tokamak {

Mesh step_mesh(const MeshConfig& config, int64_t world) {
  int64_t others = config.pipe * config.context * config.tensor;
  int64_t data = config.data == 0 ? std::max<int64_t>(world / others, 1) : config.data;
  if (world != 0 && data * others != world)
    user_error(
        "[mesh] expected pipe x data x context x tensor to be the {} ranks of this run, got {} x {} x {} x {}; {}",
        world, config.pipe, data, config.context, config.tensor,
        world % others == 0 ? "with mesh.data=0 they fit" : "change an axis or the number of ranks");
  return {{{kPipeAxis, config.pipe}, {kDataAxis, data}, {kContextAxis, config.context}, {kTensorAxis, config.tensor}}};
}

bool gathers_once(const MeshConfig& mesh) { return mesh.zero == 1 || mesh.zero == 2; }

}  // namespace tokamak
