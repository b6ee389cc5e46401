// Meshes of every axis but pipe, on which tests of families cut a whole step.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "config/mesh_config.h"
#include "passes/pass.h"
#include "passes/step_mesh.h"

namespace tokamak::test {

struct FamilyMesh {
  const char* name;
  MeshConfig mesh;

  PassContext context() const {
    PassContext context;
    context.mesh = step_mesh(mesh);
    context.zero = mesh.zero;
    context.sequence = mesh.sequence && mesh.tensor > 1;
    return context;
  }
};

inline const FamilyMesh kFamilyMeshes[] = {
    {"data2", {.data = 2, .tensor = 1}},
    {"zero3", {.data = 2, .zero = 3}},
    {"tensor2", {.data = 1, .tensor = 2}},
    {"tensor2_without_sequence", {.data = 1, .tensor = 2, .sequence = false}},
    {"context2", {.data = 1, .context = 2}},
    {"data2_context2_tensor2_zero2", {.data = 2, .context = 2, .tensor = 2, .zero = 2}},
};

inline std::string mesh_name(const testing::TestParamInfo<FamilyMesh>& info) { return info.param.name; }

}  // namespace tokamak::test
