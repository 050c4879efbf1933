"use strict";
// What the other scripts share: the data loader, a DOM helper and the theme. Texts become DOM through textContent only.
(() => {
  const waiting = new Map();
  const HB = (window.HB = { chunks: new Map(), data: null, texts: null, shared: null });

  // Called by the files in data/.
  HB.index = (data) => { HB.data = data; };
  HB.chunk = (k, rows) => { HB.chunks.set(k, rows); };
  HB.search = (texts) => { HB.texts = texts; };
  HB.details = (shared) => { HB.shared = shared; };

  HB.load = (name) => {
    if (!waiting.has(name)) {
      waiting.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = `data/${name}.js`;
        script.charset = "utf-8";
        script.onload = resolve;
        script.onerror = () => { waiting.delete(name); reject(new Error(`data/${name}.js could not be read`)); };
        document.head.append(script);
      }));
    }
    return waiting.get(name);
  };

  HB.row = async (position) => {
    const k = Math.floor(position / HB.data.chunkRows);
    await HB.load(String(k));
    return HB.chunks.get(k)[position % HB.data.chunkRows];
  };

  // el("p", {class: "x", dir: "auto"}, "text", node, ...)
  HB.el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, String(value));
    }
    node.append(...children.flat().filter((child) => child != null && child !== "").map((child) =>
      child instanceof Node ? child : document.createTextNode(String(child))));
    return node;
  };

  HB.dimensions = ["alignment", "heal", "quality"];
  HB.names = ["Alignment", "Heal", "Quality"];
  HB.number = (value, digits = 2) => (value == null ? "–" : value.toFixed(digits));

  // A small bar on the scale 1-10; the number always stands beside it.
  HB.bar = (value, failing) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const rect = (css, width) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, v] of [["class", css], ["x", 0], ["y", 0], ["width", width], ["height", 4]]) {
        node.setAttribute(name, v);
      }
      svg.append(node);
    };
    for (const [name, v] of [["viewBox", "0 0 90 4"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) {
      svg.setAttribute(name, v);
    }
    svg.setAttribute("class", "mini-bar");
    rect("bar-track", 90);
    if (value != null) rect(failing ? "bar-fail" : "bar-fill", 10 * (value - 1));
    return svg;
  };

  HB.verdict = (fails) => {
    const badge = (css, text) => HB.el("li", { class: `badge ${css}` }, text);
    const list = HB.el("ul", { class: "badges", "aria-label": "Result" });
    if (fails < 0) list.append(badge("none", "Not scored"));
    else if (fails === 0) list.append(badge("good", "Healing"));
    else HB.names.forEach((name, k) => { if (fails & (1 << k)) list.append(badge("bad", `${name} fails`)); });
    return list;
  };

  HB.picture = (row, large) => {
    if (!row.picture) {
      const reason = row.noPicture || "no picture";
      return HB.el("div", { class: "tile", role: "img", "aria-label": `No picture: ${reason}` },
        HB.el("span", { "aria-hidden": "true" }, "No picture"), HB.el("span", { dir: "auto", "aria-hidden": "true" }, reason));
    }
    const [card, panel, width, height] = row.picture;
    return HB.el("img", {
      src: `thumbs/${large ? panel : card}`, width, height, alt: row.text || "Picture without a text",
      loading: large ? null : "lazy", decoding: "async",
    });
  };

  // Theme: the system's until someone chooses.
  const button = document.getElementById("theme");
  const root = document.documentElement;
  root.classList.add("js");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  const remembered = (value) => {
    try {
      if (value) localStorage.setItem("healbench-theme", value);
      return localStorage.getItem("healbench-theme");
    } catch {
      return null; // some browsers keep nothing for pages from disk
    }
  };
  const stored = remembered();
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remembered(root.dataset.theme);
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
})();
