// An op without a case, a reference, or a gradient (or the reason why it has none) fails here.
#include "ops/all_ops.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tokamak::test {
namespace {

TEST(AllOps, HaveACase) {
  std::set<const OpDef*> covered;
  for (const OpCase& c : all_cases()) covered.insert(c.op);
  for (const OpDef* op : all_ops()) EXPECT_TRUE(covered.count(op)) << op->name << " has no case in tests/ops";
  for (const OpDef* op : covered)
    EXPECT_EQ(find_op(op->name), op) << op->name << " is declared in no header of src/ops";
}

TEST(AllOps, HaveAReferenceAndAShapeRule) {
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(op->reference) << op->name;
    EXPECT_TRUE(op->infer) << op->name;
  }
}

TEST(AllOps, HaveAGradientOrSayWhyNot) {
  for (const OpDef* op : all_ops()) EXPECT_NE(bool(op->gradient), !op->no_gradient.empty()) << op->name;
}

TEST(AllOps, CanBeFusedOnlyWithWhatFusionNeeds) {
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(op->fusion != Fusion::kPointwise || op->tile) << op->name;
    EXPECT_TRUE(op->fusion != Fusion::kComposite || op->decompose) << op->name;
  }
}

TEST(AllOps, DeclareAttributesInOrder) {
  for (const OpDef* op : all_ops())
    EXPECT_TRUE(std::is_sorted(op->attrs.begin(), op->attrs.end(), [](const AttrDef& a, const AttrDef& b) {
      return a.name < b.name;
    })) << op->name;
}

TEST(AllOps, AreSortedAndFoundByName) {
  for (size_t i = 1; i < all_ops().size(); ++i) EXPECT_LT(all_ops()[i - 1]->name, all_ops()[i]->name);
  for (const OpDef* op : all_ops()) EXPECT_EQ(find_op(op->name), op);
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

}  // namespace
}  // namespace tokamak::test
