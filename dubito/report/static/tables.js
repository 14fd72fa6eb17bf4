// Tables: sort on a click, fade the edges if they can be scrolled, and filter the list of games.
"use strict";
(() => {
  // Sorts cells by their first number or their text. Dashes come last.
  function key(cell, numeric) {
    const said = cell.dataset.sort ?? cell.textContent.trim();
    if (!numeric) return said === "-" ? null : said;
    const number = parseFloat(said.replace(/[,$+%]/g, ""));
    return Number.isNaN(number) ? null : number;
  }

  const compare = (
    one,
    other,
  ) => (typeof one === "number" ? one - other : one.localeCompare(other, undefined, { numeric: true }));

  function sort(table, column, header) {
    const numeric = header.classList.contains("n");
    const now = header.getAttribute("aria-sort");
    const down = now ? now === "ascending" : numeric; // numbers start with the highest, words with A
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => row.className !== "group")
        .map((row) => [key(row.cells[column], numeric), row]);
      rows.sort(([one], [other]) => {
        if (one === null || other === null) return (one === null) - (other === null);
        return down ? compare(other, one) : compare(one, other);
      });
      body.append(...rows.map(([, row]) => row));
    }
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function sortable(table) {
    if (table.tBodies[0].rows.length < 2) return;
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, column, header));
      header.append(button);
    });
  }

  function edges(box) {
    const faded = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    box.addEventListener("scroll", faded, { passive: true });
    new ResizeObserver(faded).observe(box);
    faded(); // collapsed tables are not observed until they open
  }

  // "NAME place 1" or "NAME (lost)" is one search term: a result of that player.
  const ENDED = /(\S+)\s+\(?(place\s+\d+|lost|unfinished)\)?(?=[\s,]|$)/g;

  function terms(typed) {
    const words = typed.replace(ENDED, " ").split(/[\s,]+/).filter(Boolean);
    for (const [, name, ended] of typed.matchAll(ENDED)) words.push(` ${name} (${ended.replace(/\s+/, " ")})`);
    return words;
  }

  // Filters pass a cell that equals the choice, names the player, is at least the number, or is not zero.
  const PASSES = {
    is: (cell, wanted) => cell === wanted,
    names: (cell, wanted) => `, ${cell}`.includes(`, ${wanted} (`),
    least: (cell, wanted) => parseFloat(cell.replace(/,/g, "")) >= Number(wanted),
    some: (cell) => parseFloat(cell.replace(/,/g, "")) > 0,
  };

  const NARROW = matchMedia("(max-width: 40rem)"); // as in report.css

  // On a phone, rows become cards with labelled cells.
  function cards(table) {
    const headers = [...table.tHead.rows[0].cells];
    for (const row of table.tBodies[0].rows) {
      headers.forEach((header, place) => {
        row.cells[place].dataset.title = header.textContent;
      });
    }
    table.classList.add("listed");
    return headers;
  }

  // On a phone, the filters are collapsed, and a menu sets the order of the games.
  function folding(form) {
    const box = form.querySelector(".filters");
    const fold = () => {
      box.open = !NARROW.matches;
    };
    NARROW.addEventListener("change", fold);
    fold();
    const table = document.querySelector(`#${form.dataset.filters} table`);
    const headers = cards(table);
    const order = document.createElement("select");
    order.append(...headers.map((header, place) => new Option(header.textContent, place)));
    order.addEventListener("change", () => sort(table, Number(order.value), headers[order.value]));
    const label = document.createElement("label");
    label.className = "order";
    label.append("Order by ", order);
    box.append(label);
  }

  function filtered(form) {
    const rows = [...document.querySelectorAll(`#${form.dataset.filters} tbody tr`)].map((row) => {
      const cells = [...row.cells].map((cell) => cell.textContent);
      return { row, cells, content: cells.map((cell) => ` ${cell.toLowerCase()}`).join("\n") };
    });
    const filters = [...form.querySelectorAll("[data-passes]")];
    const wanted = (filter) => (filter.type === "checkbox" ? filter.checked : filter.value);
    const search = () => {
      const words = terms(form.elements.filter.value.toLowerCase());
      const set = filters.filter(wanted);
      let left = 0;
      for (const { row, cells, content } of rows) {
        const passes = set.every((one) => PASSES[one.dataset.passes](cells[one.dataset.column], wanted(one)));
        row.hidden = !passes || !words.every((word) => content.includes(word));
        left += row.hidden ? 0 : 1;
      }
      document.getElementById("set").textContent = set.length ? ` (${set.length} set)` : "";
      form.elements.found.textContent = `${left} of ${rows.length} games shown`;
    };
    form.addEventListener("input", search);
    form.addEventListener("submit", (event) => event.preventDefault());
    search();
  }

  document.querySelectorAll(".block table:not(.map)").forEach(sortable);
  document.querySelectorAll(".scroll").forEach(edges);
  document.querySelectorAll("#runs table, #highlights table").forEach(cards);
  document.querySelectorAll("form[data-filters]").forEach((form) => {
    folding(form);
    filtered(form);
  });
})();
