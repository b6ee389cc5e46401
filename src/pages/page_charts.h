// Charts of bars and of points for pages, drawn by Chart.js from numbers that the page has. Tests:
// tests/pages/page_charts_test.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tokamak {

/// A part of every row. `colour`: a variable of the page's style, "--matmul".
struct BarSet {
  std::string label, colour;
  std::vector<double> values;  // one for each row
};

/// Horizontal bars. Each row has its name above it and its value beside the name, so that nothing needs to be pointed
/// at.
struct BarChart {
  std::string title, unit;
  std::vector<std::string> rows, values;
  std::vector<BarSet> sets;
  bool is_stacked = false;
  double limit = 0;  // where a dashed line stands; 0: nowhere
};

struct ChartPoint {
  double x, y, share;  // of the largest area
  std::string title;
};

struct PointSet {
  std::string label, colour;
  std::vector<ChartPoint> points;
};

/// A line with its name at its end.
struct NamedLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Points below lines; both axes are logarithmic.
struct PointChart {
  std::string title, x_unit, y_unit;
  std::vector<PointSet> sets;
  std::vector<NamedLine> lines;
};

/// The charts of one page. In a build without Chart.js a chart is a sentence that says so.
class PageCharts {
 public:
  PageCharts();
  ~PageCharts();

  /// What stands in the page where the chart is to be.
  std::string add(const BarChart& chart);
  std::string add(const PointChart& chart);

  /// Numbers and what draws them, for the end of a page that has `library()` before; empty where there are no charts.
  std::string scripts() const;
  /// Chart.js as part of a page.
  static std::string library();
  /// What the charts' places need of a page's style, which has the colours --ink, --soft, --page, --panel and --line.
  static std::string_view style();

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace tokamak
