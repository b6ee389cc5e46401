// A peephole step of the tile compiler, before registers are allotted: an arithmetic op whose only reader is another
// one joins it in one loop, and a product whose only reader is a sum becomes a dot product.
#pragma once

#include "backend/cpu/tile_program.h"

namespace tokamak::cpu {

/// Registers must still be named by the values that they hold: each written once.
void merge_loops(TileProgram& program);

}  // namespace tokamak::cpu
