// Charts as SVG. Each says in words what it shows; colours are classes of style.css.
import {h, setText, svg} from "./dom.js";

const numbers = (values) => values.filter((v) => v !== null && Number.isFinite(v));

// A line of the last five minutes, filling its place; update(values, words) draws it. null leaves a gap.
export function sparkline({width = 120, height = 28, kind = ""} = {}) {
  const area = svg("path", {class: "spark-area"});
  const line = svg("path", {class: "spark-line"});
  const title = svg("title", {});
  const node =
      svg("svg", {class: `spark ${kind}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img"},
          title, area, line);
  const update = (values, words) => {
    const top = Math.max(...numbers(values), 0) || 1;
    // Up to a minute, a young line grows from the right.
    const points = Math.max(values.length, 60);
    const x = (i) => (width * (points - values.length + i)) / Math.max(points - 1, 1);
    const y = (v) => height - 1 - (v / top) * (height - 3);
    let path = "", fill = "", begun = null, last = null;
    const close = () => {
      if (begun !== null) fill += `L${x(last).toFixed(1)} ${height}L${x(begun).toFixed(1)} ${height}Z`;
      begun = null;
    };
    values.forEach((v, i) => {
      if (v === null) return close();
      const at = `${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
      path += (begun === null ? "M" : "L") + at;
      fill += (begun === null ? "M" : "L") + at;
      // A single point would be invisible.
      if (begun === null) {
        path += "h0.1";
        begun = i;
      }
      last = i;
    });
    close();
    line.setAttribute("d", path);
    area.setAttribute("d", fill);
    setText(title, words);
  };
  return {node, update};
}

// bars: [{label, value, words}]. Columns above their labels.
export function columns(bars, words) {
  const width = 640, height = 150, foot = 22, head = 14;
  const top = Math.max(...bars.map((b) => b.value), 0) || 1;
  const step = width / Math.max(bars.length, 1);
  const every = Math.ceil(bars.length / 12);
  return svg(
      "svg", {class: "columns", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words},
      bars.map((bar, i) => {
        const size = (bar.value / top) * (height - foot - head);
        return svg(
            "g", {}, svg("title", {}, bar.words), svg("rect", {
              class: "column",
              x: i * step + 2,
              y: height - foot - size,
              width: Math.max(step - 4, 1),
              height: size,
              rx: 1
            }),
            bar.value ? svg("text", {class: "column-value", x: (i + 0.5) * step, y: height - foot - size - 3},
                            bar.shown ?? "") :
                        null,
            i % every === 0 ? svg("text", {class: "column-name", x: (i + 0.5) * step, y: height - 6}, bar.label) :
                              null);
      }),
      svg("line", {class: "axis", x1: 0, x2: width, y1: height - foot, y2: height - foot}));
}

// parts: [{name, value, shown}]. One bar of several parts, and its legend.
export function split(parts, words) {
  const total = parts.reduce((sum, p) => sum + p.value, 0) || 1;
  let x = 0;
  const bar = svg(
      "svg", {class: "split", viewBox: "0 0 1000 24", preserveAspectRatio: "none", role: "img", "aria-label": words},
      parts.map((p, i) => {
        const width = (1000 * p.value) / total;
        x += width;
        return svg(
            "rect", {class: `part-${i}`, x: x - width, y: 0, width, height: 24},
            svg("title", {}, `${p.name}: ${p.shown}`));
      }));
  return h(
      "div", {}, bar,
      h("ul", {class: "legend"},
        parts.map((p, i) => h("li", {}, h("span", {class: `swatch part-${i}`}), `${p.name} `, h("b", {}, p.shown)))));
}

// rows: [{name, value, shown, marked}], values from 0 to 1.
export function bars(rows, words) {
  return h("ul", {class: "bars", "aria-label": words}, rows.map((row) => {
    const bar =
        svg("svg", {
          class: row.marked ? "bar-track marked" : "bar-track",
          viewBox: "0 0 100 10",
          preserveAspectRatio: "none",
          "aria-hidden": "true"
        },
            svg("rect", {width: Math.max(0, Math.min(1, row.value)) * 100, height: 10}));
    return h("li", {}, h("span", {class: "bar-name"}, row.name), bar, h("span", {class: "bar-value"}, row.shown));
  }));
}

// spans: [{from, to, name, words, kind}], times in seconds; which set served when.
export function timeline(spans, from, to, words) {
  const x = (time) => (1000 * (time - from)) / Math.max(to - from, 1e-9);
  return svg(
      "svg", {class: "timeline", viewBox: "0 0 1000 34", preserveAspectRatio: "none", role: "img", "aria-label": words},
      spans.map(
          (span, i) =>
              svg("rect", {
                class: `${span.kind} ${i % 2 ? "odd" : "even"}`,
                x: x(span.from),
                y: 2,
                height: 30,
                width: Math.max(x(span.to) - x(span.from) - 2, 2)
              },
                  svg("title", {}, span.words))));
}
