// Draws the charts of a page of scaling laws from the numbers of its page.
"use strict";
const charts = JSON.parse(document.getElementById("data").textContent);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const toneOf = tone => tone === 8 ? colour("--ink") : colour("--run" + tone % 8);
const drawn = [];

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e14) return value.toExponential(0).replace("+", "");
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return Number((value / unit).toPrecision(3)) + letter;
  return String(Number(value.toPrecision(4)));
}

function datasetOf(set) {
  const tone = toneOf(set.tone), points = set.points.filter(point => point.y !== null);
  const line = { label: set.label, data: points, borderColor: tone, backgroundColor: tone, pointRadius: 0,
                 pointHitRadius: 0, borderWidth: 2, showLine: true, kind: set.kind,
                 pointStyle: set.kind === "points" ? "circle" : "line" };
  if (set.kind === "points") return Object.assign(line, { showLine: false, pointRadius: 4, pointHitRadius: 10 });
  if (set.kind === "dash") return Object.assign(line, { borderDash: [6, 4], borderWidth: 1.2 });
  if (set.kind.startsWith("band"))
    return Object.assign(line, { borderWidth: 0, backgroundColor: tone + "26",
                                 fill: set.kind === "band" ? false : "-1" });
  return line;
}

// What a reader counts in: 1, 2, 5 of each power of ten, and the powers alone where there are many.
function tickOf(value, range) {
  const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  const decades = Math.log10(range.max / range.min);
  const shown = decades > 3 ? [1] : decades > 0.7 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  return shown.some(one => Math.abs(one - mantissa) < 1e-6) ? short(value) : "";
}

// Less than a power of ten has few of those: even steps instead, about five.
const isNarrow = range => range.max / range.min < 5;
function evenTicks(range) {
  const rough = (range.max - range.min) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough), ticks = [];
  for (let i = Math.ceil(range.min / step); i * step <= range.max; ++i) ticks.push({ value: i * step });
  return ticks;
}

// Around the runs and full lines; dashed ones may leave it, but for published laws, which runs are compared with.
function rangeOf(chart, name) {
  const kinds = chart.id === "size" ? ["points", "line", "dash"] : ["points", "line"];
  const values = chart.sets.filter(set => kinds.includes(set.kind))
    .flatMap(set => set.points.map(point => point[name])).filter(value => value > 0);
  const margin = chart.id === "size" ? 1.4 : name === "x" ? 1.15 : 1.04;
  return { min: Math.min(...values) / margin, max: Math.max(...values) * margin };
}

function axis(chart, name) {
  const range = rangeOf(chart, name);
  const afterBuildTicks = scale => { if (isNarrow(range)) scale.ticks = evenTicks(range); };
  const callback = value => isNarrow(range) ? short(value) : tickOf(value, range);
  return { type: "logarithmic", ...range, afterBuildTicks, title: { display: true, text: chart[name], color: colour("--soft") },
           grid: { color: colour("--line") }, border: { color: colour("--line") },
           ticks: { color: colour("--soft"), callback, maxRotation: 0, autoSkip: false } };
}

function optionsOf(chart) {
  const isShown = (item, data) => {
    const kind = data.datasets[item.datasetIndex].kind;
    return !kind.startsWith("band") && (kind !== "dash" || chart.id === "size");
  };
  const legend = { display: true, position: "bottom",
                   labels: { color: colour("--soft"), usePointStyle: true, boxHeight: 7, filter: isShown } };
  const label = item => (item.raw.name ? item.raw.name + ": " : item.dataset.label + ": ") + short(item.raw.y) +
                        " at " + short(item.raw.x);
  return { animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
           interaction: { mode: "nearest", intersect: true },
           scales: { x: axis(chart, "x"), y: axis(chart, "y") }, plugins: { legend, tooltip: { callbacks: { label } } } };
}

function draw() {
  for (const chart of drawn.splice(0)) chart.destroy();
  for (const chart of charts)
    drawn.push(new Chart(document.getElementById("chart-" + chart.id),
                         { type: "scatter", data: { datasets: chart.sets.map(datasetOf) }, options: optionsOf(chart) }));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
