"use strict";
// Filters, sorting and cards. The state lives in location.hash, so that a filtered view can be linked.
(() => {
  const { HB } = window;
  const { el } = HB;
  const $ = (id) => document.getElementById(id);
  const form = $("filters"), cards = $("cards"), count = $("count"), more = $("more"), reset = $("reset");
  const DEFAULTS = { q: "", failed: "", class: "", category: "", sort: "total", dir: "desc" };
  const AUTOMATIC = 120; // so many cards appear by scrolling; after that the button asks

  let state = { ...DEFAULTS };
  let view = [];      // positions in the index, filtered and sorted
  let shown = 0;      // how many of them have a card
  let pressed = 0;    // where the button was last pressed
  let generation = 0; // a newer filter makes older, slower work stop
  let busy = false;

  const fail = (error) => { count.textContent = `The pictures cannot be shown: ${error.message}.`; };
  if (!HB.data) {
    fail(new Error("data/index.js could not be read"));
    return;
  }
  const { data } = HB;
  const all = data.ids.map((_, position) => position);
  const collator = new Intl.Collator("en", { numeric: true });
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  let haystacks = null;

  async function haystack() {
    if (!haystacks) {
      await HB.load("search");
      haystacks = all.map((i) => fold([data.ids[i], HB.texts[i], data.categories[data.cat[i]][1],
        data.categories[data.cat[i]][0], data.classes[data.cls[i]][1]].join("\n")));
    }
    return haystacks;
  }

  const RESULTS = {
    "": () => true,
    healing: (bits) => bits === 0,
    any: (bits) => bits > 0,
    alignment: (bits) => bits > 0 && (bits & 1) !== 0,
    heal: (bits) => bits > 0 && (bits & 2) !== 0,
    quality: (bits) => bits > 0 && (bits & 4) !== 0,
    "heal-only": (bits) => bits === 2,
    unscored: (bits) => bits < 0,
  };

  function compare(a, b) {
    const sign = state.dir === "asc" ? 1 : -1;
    if (state.sort === "id") return sign * collator.compare(data.ids[a], data.ids[b]) || a - b;
    const column = data[state.sort];
    if (column[a] === null || column[b] === null) return (column[a] === null) - (column[b] === null) || a - b;
    return sign * (column[a] - column[b]) || a - b;
  }

  async function select() {
    const words = fold(state.q).split(/\s+/).filter(Boolean);
    const texts = words.length ? await haystack() : null;
    const cls = state.class ? data.classes.findIndex(([id]) => id === state.class) : -1;
    const cat = state.category ? data.categories.findIndex(([id]) => id === state.category) : -1;
    const fits = RESULTS[state.failed];
    return all.filter((i) => fits(data.fails[i]) && (!state.class || data.cls[i] === cls) &&
      (!state.category || data.cat[i] === cat) && words.every((word) => texts[i].includes(word))).sort(compare);
  }

  function pictures(n) { return `${n.toLocaleString("en")} ${n === 1 ? "picture" : "pictures"}`; }

  function status() {
    const part = shown < view.length ? `, ${shown.toLocaleString("en")} shown` : "";
    const of = view.length < all.length ? ` of ${all.length.toLocaleString("en")}` : "";
    count.textContent = view.length ? `${view.length.toLocaleString("en")}${of ? `${of} pictures` : pictures(view.length).replace(/^\S+/, "")}${part}`
      : `No picture fits${all.length ? ` (of ${all.length.toLocaleString("en")})` : ""}`;
    reset.hidden = !["q", "failed", "class", "category"].some((key) => state[key] !== DEFAULTS[key]);
    more.hidden = shown >= view.length;
    more.textContent = `Show ${Math.min(data.pageRows, view.length - shown)} more`;
  }

  async function apply() {
    const mine = ++generation;
    try {
      const found = await select();
      if (mine !== generation) return;
      view = found;
      shown = pressed = 0;
      busy = false;
      HB.panel.use(view);
      cards.replaceChildren();
      await append(mine);
    } catch (error) { fail(error); }
  }

  async function append(mine) {
    if (busy || shown >= view.length) { status(); return; }
    busy = true;
    try {
      const next = view.slice(shown, shown + data.pageRows);
      const rows = await Promise.all(next.map(HB.row));
      if (mine !== generation) return;
      cards.append(...rows.map((row, k) => card(next[k], row)));
      shown += next.length;
      busy = false;
      status();
      watch();
    } catch (error) {
      busy = false;
      fail(error);
    }
  }

  function scores(i) {
    const list = el("dl", { class: "scores" });
    HB.dimensions.forEach((name, k) => {
      const failing = data.fails[i] > 0 && (data.fails[i] & (1 << k)) !== 0;
      list.append(el("div", { class: failing ? "failing" : "" }, el("dt", {}, HB.names[k]),
        el("dd", {}, HB.number(data[name][i])), HB.bar(data[name][i], failing)));
    });
    return list;
  }

  function reasons(i, row) {
    if (row.unscored) return [el("p", { class: "why", dir: "auto" }, row.unscored[1] || row.unscored[0])];
    const bits = data.fails[i];
    const order = [0, 1, 2].sort((a, b) => !(bits & (1 << a)) - !(bits & (1 << b)) || (a !== 1) - (b !== 1));
    return order.filter((k) => row.why && row.why[k]).map((k) => el("p", { class: bits & (1 << k) ? "why failing" : "why" },
      el("b", {}, `${HB.names[k]}: `), el("span", { dir: "auto" }, row.why[k])));
  }

  function card(i, row) {
    const [, category, cls] = data.categories[data.cat[i]];
    const open = () => HB.panel.open(i, button);
    const heading = `card-${i}`;
    const button = el("button", { type: "button", class: "open", "aria-describedby": heading }, "Details");
    const frame = el("div", { class: "frame" }, HB.picture(row, false));
    button.addEventListener("click", open);
    frame.addEventListener("click", open);
    return el("li", { "data-position": i }, el("article", { class: "card", "aria-labelledby": heading }, frame,
      el("div", { class: "card-body" },
        el("p", { class: "where" }, el("span", { dir: "auto" }, category), " · ", data.classes[cls][1],
          row.categorySource && el("span", { class: "flag" }, " · category suggested")),
        el("h3", { id: heading, dir: "auto" }, row.text || data.ids[i]),
        row.textSource && el("p", { class: "flag" }, "Text: the category’s definition"),
        data.fails[i] < 0 ? null : el("p", { class: "total" }, el("b", {}, HB.number(data.total[i])), " of 40"),
        data.fails[i] < 0 ? null : scores(i), HB.verdict(data.fails[i]), el("div", { class: "whys" }, reasons(i, row)), button)));
  }

  // Hash <-> state. A hash without "=" is an anchor of the page and leaves the state alone.
  function read() {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return false;
    const given = new URLSearchParams(hash);
    const known = (name, value) => form.elements[name].tagName === "INPUT" ||
      [...form.elements[name].options].some((option) => option.value === value);
    state = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) {
      if (given.has(name) && known(name, given.get(name))) state[name] = given.get(name);
      form.elements[name].value = state[name];
    }
    return given.has("row") ? data.ids.indexOf(given.get("row")) : -1;
  }

  let written = location.hash;
  HB.write = (row) => {
    const hash = new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]));
    if (row != null) hash.set("row", data.ids[row]);
    const text = String(hash);
    written = text ? `#${text}` : "#gallery=";
    try { history.replaceState(null, "", written); } catch { location.replace(written); }
  };

  async function follow(scroll) {
    const row = read();
    if (row === false) return;
    await apply();
    if (scroll) {
      $("gallery").scrollIntoView();
      $("gallery-title").focus({ preventScroll: true });
    }
    if (row >= 0) HB.panel.open(row, null);
  }

  window.addEventListener("hashchange", () => {
    if (location.hash !== written) follow(true);
    written = location.hash;
  });
  // A link to the very view that is already set changes no hash; it still leads to the pictures.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href").includes("=") && link.hash === location.hash) follow(true);
  });

  let typing = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      for (const name of Object.keys(DEFAULTS)) state[name] = form.elements[name].value;
      if (event.target.name === "class") state.category = form.elements.category.value = "";
      HB.write();
      apply();
    }, event.target.type === "search" ? 200 : 0);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  reset.addEventListener("click", () => {
    state = { ...DEFAULTS, sort: state.sort, dir: state.dir };
    for (const name of Object.keys(DEFAULTS)) form.elements[name].value = state[name];
    HB.write();
    apply();
    form.elements.q.focus();
  });
  more.addEventListener("click", () => {
    pressed = shown;
    append(generation);
  });

  const observer = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && shown && shown - pressed < AUTOMATIC) append(generation);
  }, { rootMargin: "300px" });
  function watch() { // observing anew reports at once, so a page that is still too short goes on
    observer.unobserve($("more-place"));
    if (shown < view.length) observer.observe($("more-place"));
  }

  HB.cardOf = (i) => cards.querySelector(`[data-position="${i}"] button`);
  if (location.hash.includes("=")) follow(location.hash !== "#gallery=");
  else apply();
})();
