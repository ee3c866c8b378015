// Load and spot share over time.
"use strict";
(() => {
  const KEPT = 1800;
  const data = { at: [], highest: [], mean: [], lowest: [], spot_share: [], open_moves: [] };
  const plots = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";

  const make = (id, fields) => {
    const box = document.getElementById(id);
    const ink = colour("--calm");
    const clock = (plot, splits) => splits.map((it) => new Date(it * 1000).toLocaleTimeString([], { hour12: false }));
    const axis = { stroke: ink, grid: { stroke: `${ink}33` }, ticks: { stroke: `${ink}33` } };
    const times = { ...axis, values: clock, space: 90 };
    const moves = { ...axis, scale: "moves", side: 1, grid: { show: false } };
    const options = {
      width: Math.max(300, box.clientWidth),
      height: 220,
      scales: { x: { time: true }, y: { range: [0, 100] }, moves: { range: (plot, low, high) => [0, Math.max(5, high || 0)] } },
      axes: fields.some((it) => it.scale) ? [times, axis, moves] : [times, axis],
      series: [{ label: "time", value: (plot, it) => (it ? clock(plot, [it])[0] : "-") }, ...fields.map((it) => ({ label: it.label, scale: it.scale || "y", stroke: colour(it.colour), width: 2, dash: it.dash }))],
    };
    const values = () => [data.at, ...fields.map((it) => data[it.key])];
    return { plot: new uPlot(options, values(), box), values, box };
  };

  const build = () => {
    for (const { plot } of plots) plot.destroy();
    plots.length = 0;
    plots.push(make("load", [
      { key: "highest", label: "highest", colour: "--leaving" },
      { key: "mean", label: "mean", colour: "--on-demand" },
      { key: "lowest", label: "lowest", colour: "--calm", dash: [6, 4] },
    ]));
    plots.push(make("spot", [
      { key: "spot_share", label: "on spot", colour: "--spot" },
      { key: "open_moves", label: "moves", colour: "--moved", dash: [3, 3], scale: "moves" },
    ]));
  };

  const add = (sent) => {
    if (sent.anew) for (const key of Object.keys(data)) data[key].length = 0;
    for (const sample of sent.samples) for (const key of Object.keys(data)) data[key].push(sample[key]);
    const over = data.at.length - KEPT;
    if (over > 0) for (const key of Object.keys(data)) data[key].splice(0, over);
    if (!plots.length) build();
    for (const { plot, values } of plots) plot.setData(values());
    const last = (key) => data[key][data[key].length - 1];
    document.getElementById("now").textContent =
      `Now: load ${last("lowest")} to ${last("highest")} %, mean ${last("mean")} %; ${last("spot_share")} % of pods on spot; ${last("open_moves")} moves under way.`;
  };

  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (event.detail.type !== "samples") return;
    event.preventDefault();
    add(JSON.parse(event.detail.data));
  });
  document.addEventListener("themed", () => { if (plots.length) build(); });
  addEventListener("resize", () => { for (const { plot, box } of plots) plot.setSize({ width: Math.max(300, box.clientWidth), height: 220 }); });
})();
