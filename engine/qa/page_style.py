"""Looks and the one script of the report: sorts tables, unfolds the clip that is asked for."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --paper:#fbfbfa; --ink:#1d2027; --soft:#5c6470; --line:#dfe1e6;
  --panel:#ffffff; --accent:#3557d6; --good:#127a4b; --warn:#9a6200; --bad:#b3261e;
  --band:#dcefe4; --worst:#fdebd3; --wave:#b9c0d0; --seen:#3557d6; --expected:#e08a1e; }
@media (prefers-color-scheme: dark) { :root { --paper:#121317; --ink:#eceef2; --soft:#a9b0bd;
  --line:#2c3038; --panel:#181a1f; --accent:#8fa8ff; --good:#4ad295; --warn:#f2b84b; --bad:#ff6b6b;
  --band:#1d3a2d; --worst:#3d2f1a; --wave:#4c5466; --seen:#8fa8ff; --expected:#f2b84b; } }
* { box-sizing: border-box; }
body { margin:0 auto; max-width:1160px; padding:32px 24px 80px; background:var(--paper);
  color:var(--ink); font:15px/1.5 Inter,system-ui,-apple-system,"Segoe UI",sans-serif; }
h1 { font-size:15px; font-weight:600; color:var(--soft); margin:0 0 6px; }
h2 { font-size:17px; margin:40px 0 10px; } p { margin:6px 0; max-width:80ch; }
.verdict { font-size:30px; line-height:1.25; font-weight:650; letter-spacing:-.01em;
  margin:0 0 10px; max-width:34ch; text-wrap:balance; }
.good { color:var(--good); } .worse, .bad { color:var(--bad); } .undecided { color:var(--warn); }
.meta { color:var(--soft); font-size:13px; } .meta b { color:var(--ink); font-weight:550; }
.tiles { display:grid; grid-template-columns:repeat(auto-fit,minmax(160px,1fr)); gap:12px;
  margin:24px 0 0; }
.tile { background:var(--panel); border:1px solid var(--line); border-radius:10px;
  padding:12px 14px; } .tile b { display:block; font-size:24px; font-weight:600;
  font-variant-numeric:tabular-nums; line-height:1.3; }
.tile b small { font-size:13px; font-weight:500; color:var(--soft); }
.tile span { color:var(--soft); font-size:12.5px; display:block; line-height:1.35; }
svg { display:block; width:100%; height:auto; } svg text { font-size:12px; fill:var(--soft); }
.dist .name { text-anchor:end; fill:var(--ink); } .dist .value { fill:var(--ink);
  font-variant-numeric:tabular-nums; } .track { fill:var(--line); opacity:.35; }
.band { fill:var(--band); } .dot { fill:var(--seen); opacity:.7; } .dot.bad { fill:var(--bad);
  opacity:.85; } .median { stroke:var(--ink); stroke-width:2; }
.wide { overflow-x:auto; }
table { border-collapse:collapse; width:100%; font-size:13px; background:var(--panel); }
th, td { padding:5px 7px; text-align:right; border-bottom:1px solid var(--line);
  font-variant-numeric:tabular-nums; white-space:nowrap; }
th { position:sticky; top:0; background:var(--panel); font-weight:550; color:var(--soft);
  white-space:normal; vertical-align:bottom; line-height:1.25; } .sort th { cursor:pointer; }
.sort th:hover { color:var(--ink); } .sort th[data-down="1"]::after { content:" ↓"; }
.sort th[data-down="0"]::after { content:" ↑"; }
th:first-child, td:first-child, td.text, th.text { text-align:left; }
td.bad { font-weight:600; } td.aim { color:var(--good); font-weight:650; }
td.said { white-space:normal; min-width:24ch; }
h3 { font-size:14px; margin:22px 0 6px; } .answer { font-size:19px; font-weight:600; margin:0; }
details { margin:10px 0; } summary { cursor:pointer; color:var(--accent); padding:4px 0; }
details[open] > summary { margin-bottom:6px; }
.bar { display:inline-block; min-width:64px; padding:0 0 2px; background:linear-gradient(
  var(--seen),var(--seen)) 0 100%/var(--v) 3px no-repeat; text-align:right; }
tr:hover td { background:color-mix(in srgb, var(--accent) 7%, transparent); }
a { color:var(--accent); text-decoration:none; } a:hover { text-decoration:underline; }
.clip { background:var(--panel); border:1px solid var(--line); border-radius:10px;
  padding:14px 16px; margin:14px 0; scroll-margin-top:12px; }
.clip h3 { font-size:15px; margin:0; } .clip .row { display:flex; gap:16px; margin-top:10px; }
.clip .media { flex:0 0 170px; } .clip video, .clip .still { width:170px; border-radius:6px;
  background:#000; display:block; }
.clip .charts { flex:1; min-width:0; } .strip { width:100%; border-radius:6px; display:block; }
.time { height:196px; margin-top:8px; } .worst { fill:var(--worst); } .wave { fill:var(--wave); }
.span { fill:var(--line); } .span.closing { fill:var(--bad); opacity:.45; }
.phone { text-anchor:middle; font-size:11px; fill:var(--ink); } .grid { stroke:var(--line);
  stroke-width:.6; }
.seen, .expected { fill:none; stroke-width:2; vector-effect:non-scaling-stroke; }
.seen { stroke:var(--seen); } .expected { stroke:var(--expected); stroke-dasharray:5 3; }
.key { font-size:12.5px; color:var(--soft); } .key i { font-style:normal; font-weight:600; }
.key .s { color:var(--seen); } .key .e { color:var(--expected); }
.chips { display:flex; flex-wrap:wrap; gap:6px; margin-top:8px; font-size:12.5px; }
.chips span { border:1px solid var(--line); border-radius:99px; padding:1px 9px; }
.chips b { font-weight:600; font-variant-numeric:tabular-nums; }
.chips .bad { border-color:var(--bad); color:var(--bad); } .chips .fine { color:var(--good); }
.failed { color:var(--bad); }
@media (max-width:760px) { .clip .row { flex-direction:column; } }
"""

SCRIPT = """
document.querySelectorAll('table.sort th').forEach(th => th.addEventListener('click', () => {
  const body = th.closest('table').tBodies[0], down = th.dataset.down !== '1';
  const column = th.cellIndex;
  th.closest('tr').querySelectorAll('th').forEach(o => delete o.dataset.down);
  th.dataset.down = down ? '1' : '0';
  const key = row => { const cell = row.cells[Math.min(column, row.cells.length - 1)];
    const v = cell.dataset.v; if (v !== undefined) return v === '' ? Infinity : parseFloat(v);
    const text = cell.textContent, n = Number(text); return isNaN(n) ? text : n; };
  [...body.rows].sort((a, b) => { const x = key(a), y = key(b);
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? 1 : -1); }).forEach(r => body.append(r));
}));
const open = () => { const at = document.getElementById(location.hash.slice(1));
  const fold = at && at.closest('details'); if (fold && !fold.open) { fold.open = true;
  at.scrollIntoView(); } };
addEventListener('hashchange', open); open();
"""
