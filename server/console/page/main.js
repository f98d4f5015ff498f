// The console: asks for access, follows the server, and shows the page that the address names.
import {get, onRefusedAccess, token} from "./api.js";
import {button, h, notice, setText} from "./dom.js";
import {clock} from "./figures.js";
import {connect, live, watch} from "./live.js";
import {showLog} from "./log.js";
import {showModel} from "./model.js";
import {showOperations} from "./operations.js";
import {showOverview} from "./overview.js";
import {showTraces} from "./traces.js";

const place = document.getElementById("main");
const byId = (id) => document.getElementById(id);
const PAGES = [
  ["", "Overview", showOverview], ["operations", "Operations", showOperations], ["log", "Log", showLog],
  ["traces", "Traces", showTraces]
];

// What the token allows: {scopes, read_only, http, grpc, version, instance}.
let access = null;
let leave = null;

// The address after #: "/models/NAME/VERSION/VIEW" gives {page: "models", rest: [NAME, VERSION, VIEW]}.
function parts() {
  const [path] = location.hash.slice(1).split("?");
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  return {page, rest};
}

function showPages(page) {
  byId("pages").replaceChildren(...PAGES.map(([path, name]) => {
    const here = path === page || (path === "" && page === "models");
    return h("a", {href: `#/${path}`, "aria-current": path === page ? "page" : here ? "true" : null}, name);
  }));
}

function route(moved) {
  leave?.();
  leave = null;
  const {page, rest} = parts();
  showPages(page);
  place.replaceChildren();
  place.classList.remove("failed");
  if (page === "models" && rest.length >= 2) {
    document.title = `${rest[0]} – Sconce`;
    leave = showModel(place, {name: rest[0], version: rest[1], view: rest[2] ?? "", access});
  } else {
    const found = PAGES.find(([path]) => path === page);
    document.title = `${found ? found[1] : "Not found"} – Sconce`;
    if (found) leave = found[2](place, {access});
    if (!found) place.append(h("h1", {}, "Not found"), notice(`The console has no page "${page}".`));
  }
  // A reader of the screen hears where it is now.
  if (moved) place.focus({preventScroll: true});
  scrollTo(0, 0);
}

let asked = null;
function askForToken(message) {
  if (asked) return;
  const field = h("input", {
    type: "password",
    autocomplete: "off",
    required: true,
    "aria-describedby": "token-message",
    name: "token",
    id: "token"
  });
  const submit = (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    asked.remove();
    asked = null;
    start();
  };
  asked =
      h("dialog", {class: "token", "aria-label": "Token", oncancel: (event) => event.preventDefault()},
        h("form", {onsubmit: submit}, h("h2", {}, "This server wants a token"),
          h("p", {id: "token-message", role: "alert"}, message),
          h("label",
            {for: "token"
            },
            "Token of the scope admin, or metrics to read only"),
          field, h("div", {class: "row end"}, h("button", {type: "submit", class: "primary"}, "Continue"))));
  document.body.append(asked);
  asked.showModal();
}

function showAccess() {
  const tag = byId("access");
  tag.hidden = !access.read_only;
  setText(tag, "read only");
  tag.title = "This token may look at everything and change nothing";
  document.body.classList.toggle("read-only", access.read_only);
  byId("footer").replaceChildren(
      h("span", {}, `Sconce ${access.version}`), h("span", {}, `instance ${access.instance.slice(0, 8)}`),
      access.http ? h("span", {}, `HTTP ${access.http}`) : "", access.grpc ? h("span", {}, `gRPC ${access.grpc}`) : "",
      token.get() ? button("Forget the token", forget, {class: "link"}) : "");
}

function forget() {
  token.set("");
  location.reload();
}

function followConnection() {
  let seen = "", wasLost = false;
  watch(({status, lostSince, data}) => {
    const text = {connecting: "connecting", open: "live", lost: "no answer"}[status];
    const tag = byId("connection");
    setText(tag, text);
    tag.className = `connection ${status}`;
    const lost = byId("lost");
    lost.hidden = status !== "lost";
    if (status === "lost")
      setText(
          lost,
          `The server has not answered since ${
              clock(lostSince)}. The console goes on asking; what it shows is from before.`);
    if (status !== "open") {
      wasLost = true;
      return;
    }
    if (access && data.server.instance !== access.instance) readAccess().then(showAccess, () => {});
    // What could not be read may be there now.
    const now = JSON.stringify([data.server.instance, data.models.map((m) => [m.name, m.version, m.state])]);
    if ((now !== seen || wasLost) && place.querySelector(".failed")) route(false);
    seen = now;
    wasLost = false;
  });
}

async function readAccess() {
  access = Object.assign(access ?? {}, await get("v2/admin/access"));
}

async function start() {
  try {
    await readAccess();
  } catch (problem) {
    if (problem.status === 401 || problem.status === 403) return askForToken(problem.message);
    place.replaceChildren(notice(problem.message, "bad"), button("Try again", start));
    return;
  }
  showAccess();
  connect();
  route(false);
}

const THEMES = {
  auto: "Theme: as the system",
  dark: "Theme: dark",
  light: "Theme: light"
};
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const text = THEMES[theme];
  byId("theme").title = text;
  byId("theme").setAttribute("aria-label", text);
  setText(byId("theme"), {auto: "◐", dark: "●", light: "○"}[theme]);
  localStorage.setItem("sconce-theme", theme);
}
function nextTheme() {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
}

setTheme(localStorage.getItem("sconce-theme") in THEMES ? localStorage.getItem("sconce-theme") : "auto");
byId("theme").addEventListener("click", nextTheme);
byId("skip").addEventListener("click", () => place.focus());
addEventListener("hashchange", () => access && route(true));
onRefusedAccess(askForToken);
followConnection();
start();
