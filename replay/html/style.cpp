#include "replay/html/style.h"

namespace nanquest::html {

const char* const kStyle = R"(
:root { color-scheme: light dark; --line: #8884; --link: #0b62a4; --chip: #b04a00; }
@media (prefers-color-scheme: dark) { :root { --link: #56b4e9; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem; }
nav { position: sticky; top: 0; background: Canvas; padding: .4rem 0; border-bottom: 1px solid var(--line); }
nav a { margin-right: 1.2rem; }
a { color: var(--link); }
section { scroll-margin-top: 3rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; }
.cause { background: var(--chip); color: #fff; padding: .15rem .5rem; border-radius: .2rem; }
.cause.unknown { background: #59616b; }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .3rem 1rem; }
dt { opacity: .75; } dd { margin: 0; white-space: pre-line; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; max-height: 40rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; white-space: pre-line; }
td.code { white-space: pre; font-family: ui-monospace, monospace; }
th { position: sticky; top: 0; background: Canvas; cursor: pointer; }
th[aria-sort=ascending]::after { content: " \25B2"; } th[aria-sort=descending]::after { content: " \25BC"; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
tr:target { outline: 2px solid var(--link); }
.verified::before { content: "\2713\00A0"; color: #009e73; } .finite::before { content: "\25CB\00A0"; color: #2b8fc7; }
.bad::before { content: "\2717\00A0"; color: #d55e00; } .failed::before { content: "\2013\00A0"; }
.caution::before { content: "\25C6\00A0"; color: #e69f00; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); }
@media print { .scroll { max-height: none; overflow: visible; } nav, th { position: static; } input { display: none; } }
input { font: inherit; width: 20rem; max-width: 100%; margin-bottom: .4rem; }
)";

const char* const kScript = R"(
function compare(a, b) {
  const x = parseFloat(a.replace(/,/g, "")), y = parseFloat(b.replace(/,/g, ""));
  if (!isNaN(x) && !isNaN(y) && x !== y) return x - y;
  if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
  return a.localeCompare(b, undefined, { numeric: true });
}
function sortTable(table, column) {
  const head = table.tHead.rows[0].cells[column], body = table.tBodies[0];
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = Array.from(body.rows).map(row => [row.cells[column].textContent.trim(), row]);
  rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
  for (const [, row] of rows) body.appendChild(row);
}
function filterTable(table, text) {
  const words = text.toLowerCase().split(/\s+/).filter(word => word);
  for (const row of table.tBodies[0].rows)
    row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
}
if (typeof document !== "undefined") {
  for (const table of document.querySelectorAll("table")) {
    Array.from(table.tHead.rows[0].cells).forEach((cell, column) => {
      cell.tabIndex = 0;
      cell.addEventListener("click", () => sortTable(table, column));
      cell.addEventListener("keydown", event => { if (event.key === "Enter") sortTable(table, column); });
    });
    if (table.tBodies[0].rows.length < 12) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Filter";
    field.setAttribute("aria-label", "Filter rows");
    field.addEventListener("input", () => filterTable(table, field.value));
    table.parentElement.before(field);
  }
}
)";

}  // namespace nanquest::html
