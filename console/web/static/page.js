// The frame of the page: the connection, the theme, ages of things, and the details. Data reaches the page as text only.
"use strict";
(() => {
  const link = document.getElementById("link");
  const state = (name, text) => { link.dataset.state = name; link.textContent = text; };
  document.body.addEventListener("htmx:sseOpen", () => state("live", "live"));
  document.body.addEventListener("htmx:sseError", () => state("lost", "connection lost, trying again"));

  const theme = document.getElementById("theme");
  const dark = () => document.documentElement.dataset.theme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const wear = (name) => {
    document.documentElement.dataset.theme = name;
    theme.textContent = name === "dark" ? "Light" : "Dark";
    theme.setAttribute("aria-pressed", String(name === "dark"));
    document.dispatchEvent(new Event("themed"));
  };
  wear(localStorage.getItem("theme") || (dark() ? "dark" : "light"));
  theme.addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    localStorage.setItem("theme", next);
    wear(next);
  });

  const age = (seconds) => {
    if (seconds < 120) return `${seconds} s ago`;
    if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
    return seconds < 172800 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} d ago`;
  };
  const tick = () => {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[datetime]")) {
      const text = age(Math.max(0, Math.floor((now - Date.parse(time.dateTime)) / 1000)));
      if (time.textContent !== text) { time.textContent = text; time.title = time.dateTime; }
    }
  };
  setInterval(tick, 1000);
  document.body.addEventListener("htmx:afterSwap", tick);

  const detail = document.querySelector(".detail");
  const title = document.getElementById("detail-title");
  let opener = null;
  const open = (name, from) => {
    title.textContent = name;
    detail.hidden = false;
    opener = from;
    title.focus();
  };
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const name = event.detail.elt.dataset && event.detail.elt.dataset.detail;
    if (name) open(name, event.detail.elt);
  });
  document.addEventListener("node:open", (event) => {
    open(`Node ${event.detail.name}`, event.detail.card);
    htmx.ajax("GET", `/nodes/${encodeURIComponent(event.detail.name)}`, { target: "#detail", swap: "innerHTML" });
  });
  const close = () => { detail.hidden = true; if (opener && opener.isConnected) opener.focus(); };
  document.getElementById("close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !detail.hidden) close(); });
})();
