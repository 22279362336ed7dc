// The lines of script in a report, on a table that is no more than they need: node report_script_test.js out.html
const fs = require("fs");
const html = fs.readFileSync(process.argv[2], "utf8");
const script = html.match(/<script>([^]*)<\/script>/)[1];
const { sortTable, filterTable } = new Function(script + "; return { sortTable, filterTable };")();

function tableOf(rows) {
  const heads = rows[0].map(() => {
    const set = {};
    return { getAttribute: name => set[name] ?? null, setAttribute: (name, to) => { set[name] = to; },
             removeAttribute: name => { delete set[name]; } };
  });
  const body = { rows: rows.map(cells => ({ cells: cells.map(textContent => ({ textContent })), textContent: cells.join(" "), hidden: false })) };
  body.appendChild = row => { body.rows.splice(body.rows.indexOf(row), 1); body.rows.push(row); };
  return { tHead: { rows: [{ cells: heads }] }, tBodies: [body] };
}
const column = (table, c) => table.tBodies[0].rows.map(row => row.cells[c].textContent).join(" ");
let failures = 0;
function expect(got, wanted, what) {
  if (got === wanted) return;
  console.log(`FAILED: ${what}: ${got} instead of ${wanted}`);
  failures += 1;
}
const table = tableOf([["b", "1,000"], ["a", "9.5e+01"], ["d", "-"], ["c", "-3"]]);
sortTable(table, 0);
expect(column(table, 0), "a b c d", "words");
sortTable(table, 0);
expect(column(table, 0), "d c b a", "words the other way");
sortTable(table, 1);
expect(column(table, 1), "-3 9.5e+01 1,000 -", "numbers by their value, what is none at the end");
filterTable(table, "A 9.5");
expect(table.tBodies[0].rows.filter(row => !row.hidden).length, 1, "rows with all words");
filterTable(table, "");
expect(table.tBodies[0].rows.filter(row => !row.hidden).length, 4, "all rows");
process.exit(failures === 0 ? 0 : 1);
