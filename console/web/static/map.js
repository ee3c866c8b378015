// The map of nodes. Cards are made once and changed in place; a few per frame, so that no frame takes long.
"use strict";
(() => {
  const KINDS = ["ready", "not-ready", "leaving", "moved", "system"];
  const PER_FRAME = 25;
  const ALARMS = new Set(["not-ready", "interrupted", "maintenance", "rebalance", "hot"]);
  const map = document.getElementById("map");
  const filter = document.getElementById("filter");
  const cards = new Map();
  const landed = new Set();
  const waiting = new Map();
  let drawing = false;
  let fresh = true;

  const element = (name, className) => { const it = document.createElement(name); it.className = className || ""; return it; };

  const make = (node) => {
    const card = element("div", "node");
    card.setAttribute("role", "listitem");
    card.tabIndex = cards.size ? -1 : 0;
    card.dataset.name = node.name;
    const parts = { title: element("b"), bar: element("progress"), state: element("div", "state"), pods: element("div", "pods") };
    parts.words = element("span"); parts.moves = element("span");
    parts.bar.max = 100;
    parts.bar.setAttribute("aria-hidden", "true");
    parts.pods.setAttribute("aria-hidden", "true");
    parts.state.append(parts.words, parts.moves);
    card.append(parts.title, parts.bar, parts.state, parts.pods);
    cards.set(node.name, { card, parts, node: null });
    place(card, node.name);
    return cards.get(node.name);
  };

  const place = (card, name) => {
    const last = map.lastElementChild;
    if (!last || last.dataset.name < name) { map.append(card); return; }
    for (const other of map.children) if (other.dataset.name > name) { map.insertBefore(card, other); return; }
    map.append(card);
  };

  const draw = (node) => {
    const found = cards.get(node.name) || make(node);
    const { card, parts } = found;
    found.node = node;
    const words = node.drain ? node.drain : node.states.join(", ");
    card.dataset.capacity = node.capacity;
    card.dataset.states = node.states.join(" ");
    card.setAttribute("aria-label", `${node.name}, ${node.capacity}, ${node.load} percent full, ${node.pods} pods, ${words}`);
    parts.title.textContent = node.name;
    parts.bar.value = Math.min(node.load, 100);
    parts.words.textContent = `${node.load} % ${words}`;
    parts.state.classList.toggle("alarm", node.states.some((it) => ALARMS.has(it)));
    parts.moves.textContent = [node.leaving && `-${node.leaving}`, node.coming && `+${node.coming}`].filter(Boolean).join(" ");
    tiles(parts.pods, node.tiles);
    show(card, node);
  };

  const tiles = (box, wanted) => {
    const have = new Map();
    for (const tile of [...box.children]) have.set(tile.title, tile);
    const kept = new Set();
    for (const [name, kind] of wanted) {
      let tile = have.get(name);
      if (!tile) { tile = element("i"); tile.title = name; box.append(tile); }
      const look = `tile ${KINDS[kind]}`;
      if (tile.className !== look) tile.className = look;
      kept.add(name);
    }
    for (const [name, tile] of have) if (!kept.has(name)) tile.remove();
  };

  const show = (card, node) => {
    const text = filter.value.trim().toLowerCase();
    const all = `${node.name} ${node.capacity} ${node.zone || ""} ${node.states.join(" ")}`.toLowerCase();
    card.hidden = Boolean(text) && !text.split(/\s+/).every((word) => all.includes(word));
  };
  filter.addEventListener("input", () => { for (const { card, node } of cards.values()) if (node) show(card, node); });

  const frame = () => {
    let count = 0;
    for (const [name, node] of waiting) {
      waiting.delete(name);
      draw(node);
      if (++count >= PER_FRAME) break;
    }
    drawing = waiting.size > 0;
    map.setAttribute("aria-busy", String(drawing));
    if (drawing) requestAnimationFrame(frame);
  };

  const keep = (names) => {
    for (const [name, { card }] of cards) if (!names.has(name)) { card.remove(); cards.delete(name); }
    for (const name of waiting.keys()) if (!names.has(name)) waiting.delete(name);
  };

  const update = (sent) => {
    if (sent.all) keep(new Set(sent.all));
    for (const node of sent.nodes) waiting.set(node.name, node);
    if (!drawing && waiting.size) { drawing = true; requestAnimationFrame(frame); }
  };

  // A move that has landed flies from its source to its target, once.
  const fly = () => {
    for (const row of document.querySelectorAll("#moves tr[data-uid]")) {
      const [, from, , to] = [...row.children].map((it) => it.textContent);
      if (to === "-" || landed.has(row.dataset.uid)) continue;
      landed.add(row.dataset.uid);
      if (!fresh) flight(cards.get(from), cards.get(to));
    }
    fresh = false;
  };
  const flight = (from, to) => {
    if (!from || !to || document.hidden) return;
    const [start, end] = [from, to].map((it) => it.parts.pods.getBoundingClientRect());
    if (end.top > innerHeight || start.top > innerHeight || start.bottom < 0 || end.bottom < 0) return;
    const dot = element("div", "flight");
    dot.style.left = `${start.left}px`; dot.style.top = `${start.top}px`;
    document.body.append(dot);
    requestAnimationFrame(() => requestAnimationFrame(() => { dot.style.transform = `translate(${end.left - start.left}px, ${end.top - start.top}px)`; }));
    setTimeout(() => dot.remove(), 1500);
  };

  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (event.detail.type !== "nodes") return;
    event.preventDefault();
    update(JSON.parse(event.detail.data));
  });
  document.body.addEventListener("htmx:sseMessage", (event) => { if (event.detail.type === "moves") fly(); });

  // One card is in the order of Tab; arrows go on from there.
  const visible = () => [...map.children].filter((it) => !it.hidden);
  const focus = (card) => {
    for (const it of map.querySelectorAll('[tabindex="0"]')) it.tabIndex = -1;
    card.tabIndex = 0;
    card.focus();
  };
  map.addEventListener("click", (event) => { const card = event.target.closest(".node"); if (card) opened(card); });
  map.addEventListener("keydown", (event) => {
    const card = event.target.closest(".node");
    if (!card) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); opened(card); return; }
    const all = visible();
    const columns = getComputedStyle(map).gridTemplateColumns.split(" ").length;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : step && all.indexOf(card) + step;
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    focus(all[to]);
  });
  const opened = (card) => document.dispatchEvent(new CustomEvent("node:open", { detail: { name: card.dataset.name, card } }));
})();
