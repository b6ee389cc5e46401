// The fields of the run's configuration, each named once: see config/field.h for what is derived from this.
// A command's own option struct has its visit() beside it, in the same style.
#pragma once

#include "config/field.h"

namespace tokamak {

struct ModelConfig;
struct DataConfig;
struct OptimizerConfig;
struct TrainConfig;
struct CompileConfig;
struct MeshConfig;
struct RunConfig;

void visit(FieldList& v, ModelConfig& c);
void visit(FieldList& v, DataConfig& c);
void visit(FieldList& v, OptimizerConfig& c);
void visit(FieldList& v, TrainConfig& c);
void visit(FieldList& v, CompileConfig& c);
void visit(FieldList& v, MeshConfig& c);
void visit(FieldList& v, RunConfig& c);

}  // namespace tokamak
