"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows];
      const text = (row) => row.cells[column].textContent;
      rows.sort((a, b) => text(a).localeCompare(text(b), "en", {numeric: true}) * (up ? 1 : -1));
      body.append(...rows);
    });
  });
}
const search = document.getElementById("search");
if (search) {
  const rows = [...document.querySelectorAll("#moves tbody tr")];
  const told = document.getElementById("found");
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      if (!row.hidden) count += 1;
    }
    told.textContent = `${count} of ${rows.length}`;
  });
}
