"use strict";
// Drawing: one plot per joint group, and the bars of a request's parts.

const COLOURS = 10;
const colour = joint => `var(--joint-${joint % COLOURS})`;

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};
const shape = (name, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
};

/// Round numbers from low to high, a few more than `count` at most.
function ticks(low, high, count) {
  const power = 10 ** Math.floor(Math.log10((high - low) / count));
  const step = power * [1, 2, 5, 10].find(factor => (high - low) / (factor * power) <= count + 2);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/// Correlation and largest difference; no correlation of what does not move.
function compared(steps, expected) {
  const a = steps.flat(), b = expected.flat(), n = a.length;
  const mean = xs => xs.reduce((sum, x) => sum + x, 0) / n, ma = mean(a), mb = mean(b);
  let ab = 0, aa = 0, bb = 0, most = 0;
  for (let i = 0; i < n; i++) {
    ab += (a[i] - ma) * (b[i] - mb); aa += (a[i] - ma) ** 2; bb += (b[i] - mb) ** 2;
    most = Math.max(most, Math.abs(a[i] - b[i]));
  }
  return { pcc: aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : null, most };
}

/// The plot of one group: `steps[step][joint]`, and the same of the reference where there is one.
function plot(key, steps, expected, width) {
  const height = 200, left = 46, right = 10, top = 10, bottom = 30;
  const joints = steps[0].length, last = steps.length - 1, all = steps.concat(expected || []).flat();
  let low = Math.min(...all), high = Math.max(...all);
  const room = high - low > 1e-6 ? .06 * (high - low) : .5;
  low -= room; high += room;
  const x = step => left + step * (width - left - right) / Math.max(last, 1);
  const y = value => top + (high - value) * (height - top - bottom) / (high - low);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${key}: ${joints} joints over ${steps.length} steps` });

  const levels = ticks(low, high, 4);
  for (const value of levels.found) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      shape("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(levels.digits)));
  }
  for (const step of ticks(0, Math.max(last, 1), 5).found.filter(Number.isInteger)) {
    svg.append(shape("text", { x: x(step), y: height - 15, "text-anchor": "middle" }, step));
  }
  svg.append(shape("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, "step of the chunk"));

  const curve = (rows, joint, kind) => shape("polyline", {
    class: kind, "data-joint": joint, points: rows.map((row, step) => `${x(step).toFixed(1)},${y(row[joint]).toFixed(1)}`).join(" "),
    ...(kind === "curve" && { style: `stroke:${colour(joint)}` }),
  });
  for (let joint = 0; joint < joints; joint++) svg.append(curve(steps, joint, "curve"));
  for (let joint = 0; expected && joint < joints; joint++) svg.append(curve(expected, joint, "expected"));

  // the legend shows the values of the step under the pointer
  const cursor = shape("line", { class: "cursor", y1: top, y2: height - bottom, x1: x(0), x2: x(0) });
  svg.append(cursor);
  const legend = element("div", { class: "joint-values" }), label = element("span"), values = [];
  legend.append(label);
  for (let joint = 0; joint < joints; joint++) {
    const value = document.createTextNode(""), item = element("span", {}, element("i", { style: `background:${colour(joint)}` }), value);
    const only = shown => { for (const line of svg.querySelectorAll("polyline")) line.classList.toggle("faded", shown && line.dataset.joint !== String(joint)); };
    item.onpointerenter = () => only(true);
    item.onpointerleave = () => only(false);
    values.push(value); legend.append(item);
  }
  const digits = Math.min(6, levels.digits + 2);
  const at = step => {
    cursor.setAttribute("x1", x(step)); cursor.setAttribute("x2", x(step));
    label.textContent = `step ${String(step).padStart(String(last).length)}`;
    values.forEach((text, joint) => { text.data = `${joint}: ${steps[step][joint].toFixed(digits).padStart(digits + 3)}`; });
  };
  const follow = event => {
    const box = svg.getBoundingClientRect(), share = ((event.clientX - box.left) * width / box.width - left) / (width - left - right);
    at(Math.min(last, Math.max(0, Math.round(share * last))));
  };
  svg.onpointermove = follow; svg.onpointerdown = follow;
  svg.onpointerleave = () => at(0);
  at(0);

  const head = element("header", {}, element("h3", {}, key));
  if (expected) {
    const { pcc, most } = compared(steps, expected);
    const text = `${pcc === null ? "" : `PCC ${pcc.toFixed(6)}, `}max |Δ| ${most.toExponential(1)}`;
    head.append(element("span", { class: "quiet difference" }, text));
  }
  return element("div", { class: "plot", "data-key": key }, head, svg, legend);
}

/// One row per part of a request, each where it lies in time.
function bars(timing, wall) {
  const rows = [];
  let now = 0;
  const add = (name, ms, kind) => { rows.push({ name, ms, start: now, kind }); };
  const pass = (name, ms) => { add(name, ms); now += ms; };
  pass("read the request", timing.decode);
  pass("encode", timing.encode);
  pass("wait for the device", timing.queue);
  add("device", timing.device);
  const device = now;
  for (const [name, ms] of Object.entries(timing.stages)) { add(name, ms, "part"); now += ms; }
  now = device + timing.device;
  pass("decode actions", timing.decode_actions);
  now = 0;
  add("in the server", timing.total, "sum");
  add("seen by the browser", wall, "sum");
  const whole = Math.max(...rows.map(row => row.start + row.ms), 1e-3);
  return rows.map(({ name, ms, start, kind }) => element("div", { class: kind || "" }, element("span", {}, name),
    element("b", {}, element("i", { style: `left:${100 * start / whole}%;width:${100 * ms / whole}%` })),
    element("span", {}, `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`)));
}
