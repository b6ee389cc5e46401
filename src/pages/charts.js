// Draws the charts of bars and of points of a page from its numbers (page_charts.cpp).
"use strict";
{
const charts = JSON.parse(document.getElementById("charts").textContent);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const kFont = "12px system-ui, sans-serif", kLine = 15, kGap = 12;
const drawn = [], choices = charts.map(() => ({ rows: Infinity, axis: "zero" }));

function short(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return Number((value / unit).toPrecision(4)) + letter;
  return String(Number(value.toPrecision(4)));
}

function widthOf(text) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = kFont;
  return context.measureText(text).width;
}

// Pieces in lines of at most `width` pixels; one that is wider itself is broken further, at blanks.
function joined(pieces, width) {
  const lines = [];
  for (const piece of pieces) {
    const longer = lines.length ? lines.at(-1) + " " + piece : piece;
    if (lines.length && widthOf(longer) <= width) lines[lines.length - 1] = longer;
    else if (widthOf(piece) > width && piece.includes(" ")) lines.push(...joined(piece.split(" "), width));
    else lines.push(piece);
  }
  return lines;
}
const wrapped = (text, width) => joined(text.split(/(?<=,) /), width);

function axis(title, more) {
  return { title: { display: true, text: title, color: colour("--soft") }, grid: { color: colour("--line") },
           border: { color: colour("--line") }, ...more,
           ticks: { color: colour("--soft"), maxRotation: 0, autoSkipPadding: 12, callback: short, ...more.ticks } };
}

// On ground of its own, so that no line runs through it.
function write(ctx, text, left, y) {
  ctx.fillStyle = colour("--page");
  ctx.globalAlpha = 0.85;
  ctx.fillRect(left - 2, y - 11, ctx.measureText(text).width + 4, 14);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour("--ink");
  ctx.fillText(text, left, y);
}

// Names stand above their bars, values at the right of the names; bars give way downwards.
function rowNames(names, values, lines, thick, limit) {
  const shift = lines * kLine / 2;
  return { id: "rowNames",
    beforeDatasetsDraw(chart) { chart.ctx.save(); chart.ctx.translate(0, shift); },
    afterDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales } = chart;
      ctx.restore();
      ctx.save();
      ctx.font = kFont;
      ctx.textBaseline = "alphabetic";
      if (limit > scales.x.min && limit <= scales.x.max) {
        ctx.strokeStyle = colour("--ink");
        ctx.lineWidth = 1.5;
        ctx.setLineDash([5, 4]);
        ctx.beginPath();
        ctx.moveTo(scales.x.getPixelForValue(limit), area.top);
        ctx.lineTo(scales.x.getPixelForValue(limit), area.bottom);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      const left = area.left + 2;
      names.forEach((name, row) => {
        const last = scales.y.getPixelForValue(row) + shift - thick / 2 - 4;
        name.forEach((line, at) => write(ctx, line, left, last - (name.length - 1 - at) * kLine));
        write(ctx, values[row], area.right - 2 - ctx.measureText(values[row]).width, last);
      });
      ctx.restore();
    } };
}

// From 0, or from a little below the least, so that what differs by little is seen.
function rangeOf(chart, count, choice) {
  const totals = [];
  for (let row = 0; row < count; row++) {
    const values = chart.sets.map(set => set.values[row] || 0);
    if (chart.stacked) totals.push(values.reduce((sum, value) => sum + value, 0));
    else totals.push(...values.filter(value => value > 0));
  }
  const least = Math.min(...totals), most = Math.max(...totals);
  if (choice.axis === "zero") return { min: 0, suggestedMax: Math.max(most, chart.limit || 0) };
  const margin = Math.max(0.2 * (most - least), 0.001 * most);
  return { min: Math.max(0, least - margin), max: most + margin / 4 };
}

function drawBars(chart, canvas, choice) {
  const count = Math.min(chart.rows.length, choice.rows), width = canvas.parentElement.clientWidth;
  const beside = Math.max(...chart.values.map(widthOf)) + kGap;
  // Numbers at both ends of the axis take room, too.
  const names = chart.rows.slice(0, count).map(name => wrapped(name, width - beside - 4 * kGap));
  const lines = Math.max(...names.map(name => name.length));
  const thin = chart.stacked ? 14 : 9, thick = chart.stacked ? thin : thin * chart.sets.length;
  canvas.parentElement.style.height = count * (lines * kLine + thick + 12) + 80 + "px";
  const sets = chart.sets.map(set => ({ label: set.label, data: set.values.slice(0, count), barThickness: thin,
                                        backgroundColor: colour(set.colour) }));
  const range = rangeOf(chart, count, choice);
  const legend = { display: sets.length > 1, position: "bottom", onClick: () => {},
                   labels: { color: colour("--soft"), boxWidth: 10, boxHeight: 10 } };
  const options = { animation: false, responsive: true, maintainAspectRatio: false, indexAxis: "y",
    interaction: { mode: "index", axis: "y", intersect: false },
    scales: { x: axis(chart.unit, { ...range, stacked: chart.stacked }),
              y: { stacked: chart.stacked, ticks: { display: false }, grid: { display: false } } },
    plugins: { legend, tooltip: { callbacks: { label: item => item.dataset.label + ": " + short(item.raw) } } } };
  const made = { type: "bar", data: { labels: chart.rows.slice(0, count), datasets: sets }, options,
                 plugins: [rowNames(names, chart.values, lines, thick, chart.limit)] };
  return new Chart(canvas, made);
}

// Names of lines at their right ends, each on ground of its own; where two are near, one gives way to the left.
function lineNames(lines) {
  return { id: "lineNames", afterDatasetsDraw(chart) {
    const { ctx, chartArea: area, scales } = chart;
    ctx.save();
    ctx.font = kFont;
    ctx.textBaseline = "alphabetic";
    const placed = [];
    for (const line of lines) {
      const width = ctx.measureText(line.name).width;
      const y = scales.y.getPixelForValue(line.points.at(-1).y) - 6;
      let right = area.right - 4;
      for (const other of placed)
        if (Math.abs(other.y - y) < kLine + 5) right = Math.min(right, other.left - kGap);
      placed.push({ y, left: right - width });
      write(ctx, line.name, right - width, y);
    }
    ctx.restore();
  } };
}

// From a power of ten to another, with some room above the values where it is asked for.
function logarithmic(values, room) {
  const powers = values.filter(value => value > 0).map(Math.log10);
  return { type: "logarithmic", min: 10 ** Math.floor(Math.min(...powers)),
           max: 10 ** Math.ceil(Math.max(...powers) + room - 1e-9), afterBuildTicks(scale) {
             scale.ticks = scale.ticks.filter(tick => Math.abs(Math.log10(tick.value) % 1) < 1e-6);
           } };
}

function drawPoints(chart, canvas) {
  const narrow = canvas.parentElement.clientWidth < 600;
  canvas.parentElement.style.height = narrow ? "380px" : "460px";
  const points = chart.sets.flatMap(set => set.points).concat(chart.lines.flatMap(line => line.points));
  const radius = context => 3 + (narrow ? 16 : 26) * Math.sqrt(context.raw ? context.raw.share || 0 : 0);
  const sets = chart.sets.map(set => ({ label: set.label, data: set.points, pointRadius: radius, pointHoverRadius: radius,
    backgroundColor: colour(set.colour) + "c0", borderColor: colour("--page") }));
  for (const line of chart.lines)
    sets.push({ label: line.name, data: line.points, showLine: true, pointRadius: 0, pointHitRadius: 0, order: 1,
                borderColor: colour("--ink"), borderWidth: 1.5, isLine: true });
  const isShown = (item, data) => !data.datasets[item.datasetIndex].isLine;
  const options = { animation: false, parsing: false, responsive: true, maintainAspectRatio: false,
    interaction: { mode: "nearest", intersect: true },
    scales: { x: axis(chart.x, logarithmic(points.map(point => point.x), 0)),
              y: axis(chart.y, logarithmic(points.map(point => point.y), 0.05)) },
    plugins: { legend: { position: "bottom", onClick: () => {},
                         labels: { color: colour("--soft"), usePointStyle: true, boxHeight: 8, filter: isShown } },
               tooltip: { callbacks: { label: item => wrapped(item.raw.title || "", 260) } } } };
  return new Chart(canvas, { type: "scatter", data: { datasets: sets }, options, plugins: [lineNames(chart.lines)] });
}

function draw(index) {
  if (drawn[index]) drawn[index].destroy();
  const canvas = document.getElementById("chart-" + index), chart = charts[index];
  drawn[index] = chart.kind === "bars" ? drawBars(chart, canvas, choices[index]) : drawPoints(chart, canvas);
}
const drawAll = () => charts.forEach((chart, index) => draw(index));

for (const select of document.querySelectorAll("select[data-chart]")) {
  const take = () => {
    const value = select.dataset.choice === "rows" ? Number(select.value) : select.value;
    choices[select.dataset.chart][select.dataset.choice] = value;
  };
  take();
  select.addEventListener("change", () => { take(); draw(Number(select.dataset.chart)); });
}
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawAll(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
}
