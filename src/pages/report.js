// Draws the charts of a report from the numbers of its page. What a reader has chosen lasts while the page is read again.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const runColour = run => colour("--run" + run % 8);
const controls = ["x", "smooth", "part", "scale"].map(name => document.getElementById(name));
const [x, smooth, part, scale] = controls;
const charts = [];

function saved() {
  try { return JSON.parse(sessionStorage.getItem("tokamak report") || "{}"); } catch { return {}; }
}
function save() {
  const state = { top: scrollY };
  for (const control of controls) state[control.id] = control.value;
  try { sessionStorage.setItem("tokamak report", JSON.stringify(state)); } catch { /* a page from a file may not */ }
}

// A mean of all values before, the nearer the more; where it begins it counts what there is.
function smoothed(points, decay) {
  let sum = 0, weight = 0;
  return points.map(point => {
    sum = decay * sum + (1 - decay) * point.y;
    weight = decay * weight + (1 - decay);
    return { x: point.x, y: sum / weight };
  });
}

function pointsOf(columns, name) {
  const values = columns.series[name] || [];
  const at = columns[x.value], points = [];
  for (let i = 0; i < values.length; i++) if (values[i] !== null) points.push({ x: at[i], y: values[i] });
  return points;
}

// The last part of the longest run, so that what differs by little is seen.
function firstShown() {
  const last = Math.max(...data.runs.map(run => run.training[x.value].at(-1) || 0));
  return last * (1 - Number(part.value));
}

function line(label, points, tone, more) {
  return Object.assign({ label, data: points, borderColor: tone, backgroundColor: tone, borderWidth: 2, pointRadius: 0,
                         pointHitRadius: 12 }, more);
}

function datasetsOf(chart) {
  const sets = [], decay = Number(smooth.value), from = firstShown();
  const shown = points => points.filter(point => point.x >= from && (scale.value !== "log" || point.y > 0));
  data.runs.forEach((run, index) => {
    const tone = runColour(index);
    for (const name of chart.training || []) {
      const points = pointsOf(run.training, name);
      if (chart.smooth && decay > 0) {
        sets.push(line(run.name, shown(points), tone + "70", { borderWidth: 1, raw: true }));
        sets.push(line(run.name + ", smoothed", shown(smoothed(points, decay)), tone, {}));
      } else sets.push(line(run.name, shown(points), tone, { borderWidth: points.length > 500 ? 1.2 : 2 }));
    }
    for (const name of chart.evaluations || [])
      sets.push(line(run.name + ", " + name, shown(pointsOf(run.evaluations, name)), tone,
                     { borderDash: chart.training ? [6, 4] : [], pointRadius: 3 }));
  });
  return sets.filter(set => set.data.length > 0);
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e12) return value / 1e12 + "T";
  if (size >= 1e9) return value / 1e9 + "G";
  if (size >= 1e6) return value / 1e6 + "M";
  if (size >= 1e4) return value / 1e3 + "k";
  const rounded = Number(value.toPrecision(6));
  return size > 0 && size < 1e-3 ? rounded.toExponential() : String(rounded);
}

function axis(title, type) {
  return { type, title: { display: true, text: title, color: colour("--soft") },
           grid: { color: colour("--line") }, border: { color: colour("--line") },
           ticks: { color: colour("--soft"), callback: short, maxTicksLimit: 9, maxRotation: 0, autoSkipPadding: 12 } };
}

const titles = { step: "steps", tokens: "tokens", hours: "hours of training" };
function optionsOf(chart) {
  return { animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
           interaction: { mode: "nearest", axis: "x", intersect: false },
           scales: { x: axis(titles[x.value], "linear"),
                     y: axis(chart.unit, scale.value === "log" && chart.logarithm ? "logarithmic" : "linear") },
           plugins: { legend: { display: false }, tooltip: { filter: item => !item.dataset.raw } } };
}

function draw() {
  for (const chart of charts.splice(0)) chart.destroy();
  for (const chart of data.charts)
    charts.push(new Chart(document.getElementById("chart-" + chart.id),
                          { type: "line", data: { datasets: datasetsOf(chart) }, options: optionsOf(chart) }));
  save();
}

const before = saved();
for (const control of controls) {
  if (before[control.id] !== undefined) control.value = before[control.id];
  control.addEventListener("change", draw);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("pagehide", save);
draw();
if (before.top) scrollTo(0, before.top);
