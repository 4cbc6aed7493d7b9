// Talking to the server: errors in words, its health, and the request as a command.

const $ = id => document.getElementById(id);
const HEADLINES = {
  0: "The server does not answer",
  400: "The observation does not fit this robot",
  401: "This server wants a token",
  403: "The server takes nothing from this page",
  408: "The request took too long to arrive",
  413: "The request is too large",
  422: "The request could not be read",
  429: "The server is busy",
  500: "The model or the device failed",
  503: "The server is not ready",
  504: "No actions within the time limit",
};

/// An answer that is none: its status (0 without one) and what is wrong, a line each.
class Refused extends Error {
  constructor(status, lines) {
    super(HEADLINES[status] || `The server answered ${status}`);
    this.status = status; this.lines = lines;
  }
}

const line = entry => typeof entry === "string" ? entry : entry && entry.msg ? entry.msg : JSON.stringify(entry);
const problems = detail => detail && detail.errors ? detail.errors.map(line) : Array.isArray(detail) ? detail.map(line) : [line(detail)];

async function ask(path, body) {
  const headers = { "content-type": "application/json" };
  if ($("token").value) headers.authorization = `Bearer ${$("token").value}`;
  let response, text;
  try {
    response = await fetch(path, body === undefined ? { headers } : { headers, method: "POST", body });
    text = await response.text();
  } catch {
    throw new Refused(0, [`no connection to ${location.host}`]);
  }
  let reply;
  try { reply = JSON.parse(text); } catch { throw new Refused(response.status, [text.slice(0, 200) || "an empty answer"]); }
  if (!response.ok) throw new Refused(response.status, problems(reply.detail));
  return reply;
}

function banner(headline, lines = [], waits = false, share = null) {
  const box = $("banner");
  box.hidden = !headline;
  box.classList.toggle("wait", waits);
  const bar = share === null ? [] : [element("progress", { max: 100, value: share })];
  box.replaceChildren(element("strong", {}, headline || ""), element("ul", {}, ...lines.map(text => element("li", {}, text))), ...bar);
}

function chip(text, kind) {
  $("status").textContent = text;
  $("status").className = `chip ${kind}`;
}

const curl = (body, token) => `curl -sS ${location.origin}/predict -H 'content-type: application/json'` +
  `${token ? " -H \"authorization: Bearer $GR00T_API_TOKEN\"" : ""} --data-binary @- <<'JSON'\n${JSON.stringify(body)}\nJSON`;

/// Where the page is not served from this machine or by TLS, browsers give no clipboard but the old command.
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element("textarea", {});
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("refused");
}
