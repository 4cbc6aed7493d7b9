// The page: fills itself from /info and /demo, sends what is edited to /predict, shows the answer.

const EVERY_MS = { starting: 500, ok: 5000, other: 1500 };
/// What /demo gave, pictures by camera, and the last answer as it was drawn.
let demo = null, images = {}, shown = null;
/// Whether the server is warm, whether a request is under way, and the next look at its health.
let ready = false, running = false, timer = 0;

/// Follows the server's health: fills the page once it is warm, says so when it goes down.
async function watch() {
  clearTimeout(timer);
  let next = EVERY_MS.other;
  try {
    const health = await ask("/health");
    if (health.status === "starting") {
      const phase = health.phase || "", share = /(\d+)%/.exec(phase);
      chip("starting", "");
      banner("The server is starting", [phase.replace(/\|.*\|/, "")], true, share ? Number(share[1]) : null);
      next = EVERY_MS.starting;
      ready = false;
    } else {
      chip({ ok: "ready", failed: "device failed" }[health.status] || health.status, health.status === "ok" ? "ok" : "bad");
      if (!ready) await fill();
      next = EVERY_MS.ok;
    }
  } catch (error) {
    chip(error.status === 401 ? "locked" : "no answer", "bad");
    refused(error);
    ready = false;
    // asking again without a token would only be refused again
    if (error.status === 401) return;
  }
  timer = setTimeout(watch, next);
}

async function fill() {
  const info = await ask("/info"), given = await ask("/demo");
  // a server that comes back with the same robot finds the form as it was left
  const same = demo && JSON.stringify(demo) === JSON.stringify(given);
  demo = given;
  ready = true;
  const fidelity = info.warmup_fidelity_vs_golden, pcc = fidelity && fidelity.actions && fidelity.actions.pcc;
  $("facts").textContent = [info.model, info.data_config, info.policy, info.device_facts && info.device_facts.description,
    info.weights && info.weights.source, typeof pcc === "number" && `PCC ${pcc.toFixed(5)} with fp32`].filter(Boolean).join(" · ");
  $("made-up").hidden = !(info.weights && info.weights.kind === "synthetic");
  $("gate").hidden = !$("token").value;
  banner("");
  if (!same) reset();
  for (const id of ["run", "reset", "copy"]) $(id).disabled = false;
  if (!same && new URLSearchParams(location.search).has("run")) run();
}

/// Puts the demo's observation into the form.
function reset() {
  images = Object.fromEntries(Object.entries(demo.request.images).map(([key, data]) => [key, { data, name: "demo" }]));
  $("cameras").replaceChildren(...Object.keys(images).map(camera));
  $("instruction").value = demo.request.instruction;
  $("seed").value = String(demo.request.seed || 0);
  $("state").replaceChildren(...Object.entries(demo.request.state).map(([key, rows]) => {
    const inputs = rows[0].map((value, joint) => {
      const text = String(+value.toFixed(6));
      const input = element("input", { value: text, inputmode: "decimal", "aria-label": `${key} ${joint}`, "data-given": text });
      input.onpaste = event => spread(event, inputs, joint);
      return input;
    });
    return element("fieldset", { "data-key": key }, element("legend", {}, key),
      element("div", { class: "joints" }, ...inputs.map((input, joint) => element("label", {}, String(joint), input))));
  }));
  unmark(); edited();
}

/// Several numbers pasted at once go into this joint and the next ones.
function spread(event, inputs, first) {
  const numbers = event.clipboardData.getData("text").split(/[\s,;[\]]+/).filter(Boolean);
  if (numbers.length < 2) return;
  event.preventDefault();
  numbers.slice(0, inputs.length - first).forEach((text, i) => { inputs[first + i].value = text; });
  edited();
}

const type = data => data.startsWith("/9j/") ? "jpeg" : data.startsWith("UklGR") ? "webp" : data.startsWith("Qk") ? "bmp" : "png";
function camera(key) {
  const picture = element("img", { alt: `picture of ${key}` }), about = element("span", { class: "quiet" });
  const pick = element("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/bmp", "aria-label": `file for ${key}` });
  const box = element("label", { class: "camera", "data-key": key }, picture, element("b", {}, key), about, pick);
  const name = () => images[key].name;
  picture.onload = () => { about.textContent = `${name()}, ${picture.naturalWidth} × ${picture.naturalHeight} px`; };
  picture.onerror = () => { about.textContent = `${name()}, not a picture`; box.classList.add("broken", "wrong"); };
  picture.src = `data:image/${type(images[key].data)};base64,${images[key].data}`;
  pick.onchange = () => { if (pick.files[0]) take(key, pick.files[0]); };
  box.ondragover = event => { event.preventDefault(); box.classList.add("over"); };
  box.ondragleave = () => box.classList.remove("over");
  return box;
}

/// Reads `file` as the picture of camera `key`. The server judges it, not the browser.
function take(key, file) {
  const reader = new FileReader();
  reader.onerror = () => banner(`${file.name} cannot be read`, [String(reader.error && reader.error.message)]);
  reader.onload = () => {
    images[key] = { data: reader.result.split(",")[1] || "", name: file.name };
    box(key).replaceWith(camera(key));
    edited();
  };
  reader.readAsDataURL(file);
}
const box = key => [...document.querySelectorAll(".camera")].find(found => found.dataset.key === key);

/// Files dropped on a camera are its picture; further ones, or those dropped elsewhere, go to the cameras in order.
function dropped(event) {
  event.preventDefault();
  for (const found of document.querySelectorAll(".over")) found.classList.remove("over");
  if (!demo) return;
  const keys = Object.keys(images), aimed = event.target.closest && event.target.closest(".camera");
  const first = aimed ? keys.indexOf(aimed.dataset.key) : 0;
  [...event.dataTransfer.files].slice(0, keys.length - first).forEach((file, i) => take(keys[first + i], file));
}

/// The body of /predict; throws what is not a number before anything is sent.
function request() {
  const state = {}, wrong = [];
  for (const group of $("state").children) {
    const key = group.dataset.key, given = demo.request.state[key][0];
    // what nobody edited goes as it came, with all its digits
    const number = (input, joint) => input.value === input.dataset.given ? given[joint] : Number(input.value.trim() || NaN);
    state[key] = [[...group.querySelectorAll("input")].map(number)];
    state[key][0].forEach((value, joint) => { if (!Number.isFinite(value)) wrong.push(`state ${key}: joint ${joint} is not a number`); });
  }
  const seed = Number($("seed").value.trim() || NaN);
  if (!Number.isSafeInteger(seed) || seed < 0) wrong.push("seed: wanted a whole number from 0");
  if (wrong.length) throw new Refused(400, wrong);
  const pictures = Object.fromEntries(Object.entries(images).map(([key, image]) => [key, image.data]));
  return { images: pictures, state, instruction: $("instruction").value, seed };
}

/// Whether `body` asks what the demo asks, so that the reference's actions are those to compare with.
const isDemo = body => ["images", "state", "instruction"].every(field => JSON.stringify(body[field]) === JSON.stringify(demo.request[field])) &&
  body.seed === (demo.request.seed || 0);

function edited() {
  $("copied").textContent = "";
  if (shown) $("plots").classList.add("stale");
  try {
    const body = request();
    const short = Object.fromEntries(Object.entries(body.images).map(([key, data]) => [key, `${data.slice(0, 24)}…`]));
    $("curl").textContent = curl({ ...body, images: short }, $("token").value);
  } catch (error) { $("curl").textContent = error.lines.join("\n"); }
}

function unmark() { for (const marked of document.querySelectorAll(".wrong")) marked.classList.remove("wrong"); }

/// Says why, and marks the fields that the lines name.
function refused(error) {
  if (!(error instanceof Refused)) throw error;
  const lines = error.status === 429 ? [...error.lines, "Run again in a moment: others are being answered."] : error.lines;
  banner(error.message, lines, error.status === 429 || error.status === 503);
  if (error.status === 401) { $("gate").hidden = false; $("token").focus(); }
  for (const text of error.lines) {
    const names = (kind, key) => text.startsWith(`${kind} ${key}`);
    for (const found of document.querySelectorAll(".camera")) if (names("image", found.dataset.key)) found.classList.add("wrong");
    for (const found of $("state").children) {
      if (!names("state", found.dataset.key)) continue;
      for (const input of found.querySelectorAll("input")) if (!Number.isFinite(Number(input.value.trim() || NaN))) input.classList.add("wrong");
    }
    for (const id of ["instruction", "seed"]) if (text.startsWith(id)) $(id).classList.add("wrong");
  }
}

async function run() {
  if (running || !demo) return;
  running = true; unmark(); banner("");
  $("run").disabled = true;
  const sent = performance.now(), seconds = () => ((performance.now() - sent) / 1e3).toFixed(1);
  const clock = setInterval(() => { $("run").textContent = `Running, ${seconds()} s`; }, 100);
  try {
    const body = request(), reply = await ask("/predict", JSON.stringify(body));
    shown = { reply, expected: isDemo(body) ? demo.expected.actions : null, wall: performance.now() - sent };
    show();
  } catch (error) {
    refused(error);
    $("banner").scrollIntoView({ block: "nearest" });
  } finally {
    clearInterval(clock);
    running = false;
    $("run").textContent = "Run"; $("run").disabled = !demo;
  }
}

/// Draws the last answer, again whenever the window has another width.
function show() {
  if (!shown) return;
  const { reply, expected, wall } = shown, plots = $("plots");
  const draw = width => reply.action_keys.map(key => plot(key, reply.actions[key], expected && expected[key], width));
  plots.classList.remove("stale");
  plots.replaceChildren(...draw(360));
  plots.replaceChildren(...draw(Math.max(240, plots.firstElementChild.clientWidth)));
  $("legend").replaceChildren(element("i", { class: "key" }), "served, a colour per joint",
    ...(expected ? [element("i", { class: "key reference" }), "fp32 reference"] : []), ` · robot units over ${reply.action_horizon} steps`);
  const outside = reply.out_of_range ? [`${reply.out_of_range} values lie outside the training data’s range`] : [];
  $("said").textContent = [`prompt: ${reply.instruction}`, `seed ${reply.seed}`, `${reply.seq_len} tokens`, ...reply.warnings, ...outside].join(" · ");
  $("timing").hidden = false;
  $("bars").replaceChildren(...bars(reply.timing_ms, wall));
}

$("form").onsubmit = event => { event.preventDefault(); run(); };
$("form").addEventListener("input", event => { if (event.target.type !== "file" && demo) edited(); });
$("reset").onclick = () => { banner(""); reset(); };
$("unlock").onclick = () => { banner(""); watch(); };
$("token").onkeydown = event => { if (event.key === "Enter") { event.preventDefault(); $("unlock").click(); } };
$("copy").onclick = async () => {
  try {
    await copied(curl(request(), $("token").value));
    $("copied").textContent = "Copied.";
  } catch (error) { $("copied").textContent = error.lines ? error.lines.join("; ") : "This browser does not allow it."; }
};
window.addEventListener("dragover", event => event.preventDefault());
window.addEventListener("drop", dropped);
new ResizeObserver(() => { if (shown && !$("plots").classList.contains("stale")) show(); }).observe($("legend"));
watch();
