#include "advise/tiles.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Tiles, OneMoreThanAWaveTakesTwo) {
  TileUse full = tile_use(256 * 12, 128 * 9, 108);
  EXPECT_EQ(full.tiles, 108);
  EXPECT_EQ(full.waves, 1);
  EXPECT_DOUBLE_EQ(full.idle, 0);
  EXPECT_DOUBLE_EQ(full.slowdown(108), 1);
  TileUse more = tile_use(256 * 109, 128, 108);
  EXPECT_EQ(more.waves, 2);
  EXPECT_DOUBLE_EQ(more.idle, 107.0 / 108);
  EXPECT_DOUBLE_EQ(more.slowdown(108), 216.0 / 109);
}

TEST(Tiles, WhatLiesOutsideIsWorkToo) {
  TileUse use = tile_use(256, 129, 1);
  EXPECT_EQ(use.tiles, 2);
  EXPECT_DOUBLE_EQ(use.padding, 1 - 129.0 / 256);
  EXPECT_DOUBLE_EQ(use.slowdown(1), 256.0 / 129);
}

}  // namespace
}  // namespace tokamak
