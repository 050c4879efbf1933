"use strict";
// The panel: one picture with its nine questions, ratings, rationales, and what they can be traced to.
(() => {
  const { HB } = window;
  const { el } = HB;
  const $ = (id) => document.getElementById(id);
  const panel = $("panel"), body = $("panel-body"), place = $("panel-place");
  const previous = $("panel-prev"), next = $("panel-next");
  let view = [], current = -1, opener = null;

  const LABELS = {
    judge: "Judge", judge_digest: "Judge digest", prompt_digest: "Prompt digest", params: "Parameters",
    version: "HealBench version", granularity: "Granularity",
  };

  function nearest(anchors, rating) {
    return anchors.reduce((best, a) => (Math.abs(a[0] - rating) < Math.abs(best[0] - rating) ? a : best));
  }

  function whyFails(k, value, ratings) {
    const { meanBelow, ratingAtMost } = HB.data.rule;
    if (value < meanBelow) return `${ratings ? "mean" : "score"} below ${meanBelow}`;
    const lowest = ratings ? Math.min(...ratings[k].filter((r) => r != null)) : null;
    return lowest != null && lowest <= ratingAtMost ? `a rating of ${lowest}; ${ratingAtMost} or less fails` : "by the run’s rule";
  }

  function question(entry, rating) {
    const [text, level, anchors] = entry || [];
    const item = el("li", { class: "question" },
      el("div", { class: "rating" }, el("b", {}, rating == null ? "–" : rating), el("span", {}, " of 10"), HB.bar(rating, rating <= HB.data.rule.ratingAtMost)),
      el("div", {}, el("p", { class: "asked", dir: "auto" }, text || "Question text not available"),
        level && el("p", { class: "level" }, level === "coarse" ? "About the whole kind of scene" : "About this scene")));
    if (anchors && anchors.length && rating != null) {
      const [at, meaning] = nearest(anchors, rating);
      item.lastChild.append(el("p", { class: "anchor" }, `Nearest description (${at}): `, el("span", { dir: "auto" }, meaning)));
    }
    return item;
  }

  function dimension(k, i, row) {
    const value = HB.data[HB.dimensions[k]][i];
    const failing = (HB.data.fails[i] & (1 << k)) !== 0;
    const section = el("section", { class: failing ? "dimension failing" : "dimension", "aria-labelledby": `panel-d${k}` },
      el("h3", { id: `panel-d${k}` }, HB.names[k], " ", el("b", {}, HB.number(value)),
        el("span", { class: failing ? "badge bad" : "badge" }, failing ? `Fails: ${whyFails(k, value, row.ratings)}` : "Passes")));
    if (row.why && row.why[k]) section.append(el("p", { class: "rationale", dir: "auto" }, row.why[k]));
    if (row.ratings) {
      const set = row.questions >= 0 ? HB.shared.questions[row.questions][k] : [];
      section.append(el("ol", { class: "questions" }, row.ratings[k].map((rating, q) => question(set[q], rating))));
    }
    return section;
  }

  function facts(pairs) {
    return el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { dir: "auto" },
      /^https?:\/\/\S+$/.test(value) ? el("a", { href: value, rel: "noopener noreferrer", target: "_blank" }, value) : value))));
  }

  function content(i, row) {
    const { data } = HB;
    const [, category, cls] = data.categories[data.cat[i]];
    const side = el("div", { class: "panel-picture" }, el("div", { class: "frame" }, HB.picture(row, true)),
      row.credit && el("div", { class: "credit" }, facts(row.credit)));
    const main = el("div", { class: "panel-main" },
      el("p", { class: "where" }, el("span", { dir: "auto" }, category), " · ", data.classes[cls][1],
        row.categorySource && el("span", { class: "flag" }, " · category suggested by HealBench")),
      el("h2", { id: "panel-title", tabindex: "-1", dir: "auto" }, row.text || data.ids[i]),
      row.textSource && el("p", { class: "flag" }, "No text was given; this is the category’s definition."),
      row.instruction && el("p", { class: "what" }, "Instruction: ", el("span", { dir: "auto" }, row.instruction)));
    if (row.unscored) {
      main.append(HB.verdict(-1), el("p", { class: "rationale" }, el("span", { dir: "auto" }, row.unscored[1] || "No reason was given."),
        " ", el("code", {}, row.unscored[0])));
    } else {
      main.append(el("p", { class: "total" }, el("b", {}, HB.number(data.total[i])), " of 40"), HB.verdict(data.fails[i]));
      if (!row.ratings) main.append(el("p", { class: "what" }, "This judge gives one score a dimension and does not answer the nine questions."));
      if (row.ratings && row.questions === -1) {
        main.append(el("p", { class: "flag" }, "The questions have changed since this picture was rated, so their texts are not shown."));
      }
      main.append(...[0, 1, 2].map((k) => dimension(k, i, row)));
    }
    main.append(el("details", { class: "more" }, el("summary", {}, "How this was rated"),
      facts([["Id", data.ids[i]], ["Category", data.categories[data.cat[i]][0] || "none"],
        ...HB.shared.judges[row.judge].map(([key, value]) => [LABELS[key] || key, value]), ...(row.trace || [])])));
    return [side, main];
  }

  async function show(i) {
    const [row] = await Promise.all([HB.row(i), HB.load("details")]);
    current = i;
    body.replaceChildren(...content(i, row));
    body.scrollTop = panel.scrollTop = 0;
    const at = view.indexOf(i);
    place.textContent = at < 0 ? "" : `${(at + 1).toLocaleString("en")} of ${view.length.toLocaleString("en")}`;
    previous.disabled = at <= 0;
    next.disabled = at < 0 || at >= view.length - 1;
    HB.write(i);
  }

  async function step(by) {
    const at = view.indexOf(current);
    if (at < 0 || !(at + by in view)) return;
    await show(view[at + by]);
    $("panel-title").focus();
  }

  HB.panel = {
    use: (positions) => { view = positions; },
    open: async (i, from) => {
      opener = from;
      try {
        await show(i);
      } catch (error) {
        body.replaceChildren(el("p", { class: "rationale", id: "panel-title" }, `This picture cannot be shown: ${error.message}.`));
      }
      if (!panel.open) panel.showModal();
      document.documentElement.classList.add("panel-open");
      $("panel-title").focus();
    },
  };

  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  $("panel-close").addEventListener("click", () => panel.close());
  panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); });
  panel.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      step(event.key === "ArrowLeft" ? -1 : 1);
    }
  });
  panel.addEventListener("close", () => {
    document.documentElement.classList.remove("panel-open");
    HB.write();
    // Back to the card that was looked at last, or to where the panel was opened.
    const target = HB.cardOf(current) || opener || $("gallery-title");
    target.focus();
    current = -1;
  });
})();
