// Tables sort by a click on a head; without scripts they stay as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = Array.from(body.rows);
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
    const text = cell.textContent.trim();
    const number = Number(text.replace(/,/g, "").replace("\u2212", "-"));
    return text !== "" && !Number.isNaN(number) ? number : text;
  };
  const order = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    return typeof b === "number" ? 1 : a.localeCompare(b, undefined, { numeric: true });
  };
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort";
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sorted = original.map((row) => [key(row, column), row]);
      sorted.sort((a, b) => (up ? order(a[0], b[0]) : order(b[0], a[0])));
      body.append(...sorted.map((pair) => pair[1]));
    });
  });
}
