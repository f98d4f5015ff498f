// Elements of the page. What a server sends becomes text or the value of an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) {
      node.addEventListener(name.slice(2), value);
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// h("a", {href, onclick}, child, [child, ...]): children are nodes and texts; null and false are left out.
export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Keeps the node of an item whose key stays, so that focus and scrolling do too. make(item) gives {node, update}.
export function reconcile(parent, items, keyOf, make) {
  parent.kept ??= new Map();
  const left = new Map(parent.kept);
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let entry = left.get(key);
    if (entry) {
      left.delete(key);
    } else {
      entry = make(item);
      parent.kept.set(key, entry);
    }
    if (entry.node === place) {
      place = place.nextElementSibling;
    } else {
      parent.insertBefore(entry.node, place);
    }
    entry.update?.(item);
  }
  for (const [key, entry] of left) {
    parent.kept.delete(key);
    entry.node.remove();
  }
}

export function button(text, action, attributes = {}) {
  return h("button", {type: "button", onclick: action, ...attributes}, text);
}

let labels = 0;
// A control with its label; `control` is an element without an id.
export function labelled(text, control, attributes = {}) {
  control.id ||= `control-${++labels}`;
  const name = h("label", {class: "field-name", for: control.id}, text);
    return h("div", {...attributes, class: `field ${attributes.class ?? ""}`}, name, control);
}

// choices: [value, text] or a value alone.
export function select(choices, chosen, onchange, attributes = {}) {
    const options = choices.map((choice) => {
      const [value, text] = Array.isArray(choice) ? choice : [choice, choice];
      return h("option", {value, selected: String(value) === String(chosen)}, String(text));
    });
    return h("select", {...attributes, onchange: (event) => onchange(event.target.value)}, options);
}

let groups = 0;
// A row of radio buttons that look like one control. choices: [value, text].
export function segments(name, choices, chosen, onchange) {
    const group = `segments-${++groups}`;
    return h("fieldset", {class: "segments"}, h("legend", {class: "hidden"}, name), choices.map(([value, text]) => {
      const radio = h("input", {
        type: "radio",
        name: group,
        value,
        checked: value === chosen,
        onchange: () => onchange(value),
      });
      return h("label", {}, radio, h("span", {}, text));
    }));
}

// head: texts, or {text, number: true}. On a narrow screen a row becomes a card, whose cells show `data-label`.
export function table(head, rows, attributes = {}) {
    const columns = head.map((c) => (typeof c === "string" ? {text: c} : c));
    const cells = (row) => row.map(
        (cell, i) => h("td", {"data-label": columns[i]?.text, class: columns[i]?.number ? "number" : null}, cell));
    return h(
        "div", {class: "scroll", tabindex: "0", role: "group", "aria-label": attributes.label},
        h("table", {class: attributes.class},
          h("thead", {},
            h("tr", {}, columns.map((c) => h("th", {scope: "col", class: c.number ? "number" : null}, c.text)))),
          h("tbody", {}, rows.map((row) => h("tr", {}, cells(row))))));
}

export function section(title, ...children) {
    return h("section", {class: "panel"}, h("h2", {}, title), children);
}

// Files that are dropped on the node go to take([file, ...]).
export function takesFiles(node, take) {
    node.addEventListener("dragover", (event) => {
      event.preventDefault();
      node.classList.add("over");
    });
    node.addEventListener("dragleave", () => node.classList.remove("over"));
    node.addEventListener("drop", (event) => {
      event.preventDefault();
      node.classList.remove("over");
      take([...event.dataTransfer.files]);
    });
}

export function notice(text, kind = "") {
    return h("p", {class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status"}, text);
}

// Shows what `reading` gives, or why it gives nothing. A newer call on the same place wins.
export async function show(place, reading, render) {
    const call = (place.call = (place.call ?? 0) + 1);
    try {
      const value = await reading;
      if (place.call === call) place.replaceChildren(...[render(value)].flat().filter(Boolean));
      place.classList.remove("failed");
    } catch (problem) {
      if (place.call !== call || problem.name === "AbortError") return;
      place.replaceChildren(notice(problem.message, "bad"));
      place.classList.add("failed");
    }
}

// Asks before something is done that cannot be taken back; resolves to whether it may.
export function confirmed(question, act, detail = "") {
    return new Promise((resolve) => {
      const close = (answer) => {
        dialog.close();
        dialog.remove();
        resolve(answer);
      };
      const dialog =
          h("dialog", {oncancel: () => close(false), "aria-label": question}, h("h2", {}, question),
            detail ? h("p", {}, detail) : null,
            h("div", {class: "row end"}, button("Cancel", () => close(false), {class: "quiet"}),
              button(act, () => close(true), {class: "primary", autofocus: true})));
      document.body.append(dialog);
      dialog.showModal();
    });
}
