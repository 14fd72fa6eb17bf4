// Tables: sort on a click, fade the edges if they can be scrolled, and filter the list of games.
"use strict";
(() => {
  // Sorts cells by their value, which is their text unless `data-sort` has it. Dashes come last.
  function key(cell, numeric) {
    const value = cell.dataset.sort ?? cell.textContent.trim();
    if (!numeric) return value === "-" ? null : value;
    const number = Number(value);
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

  // --- Search: words, players' names and results, all compared with the fields of the games ---

  const END = /^(?:[\s,]|$)/;
  const plain = (text) => text.normalize("NFC").replace(/\s+/g, " ").trim();

  // Returns the phrases at the beginning of a text, as [length, whether the case is equal too, place in the list].
  function beginnings(text, phrases) {
    return phrases.flatMap(([phrase, place]) => {
      const there = text.slice(0, phrase.length);
      if (there.toLowerCase() !== phrase.toLowerCase() || !END.test(text.slice(phrase.length))) return [];
      return [[phrase.length, there === phrase, place]];
    });
  }

  const longest = (readings) =>
    readings.reduce((best, one) => {
      const at = one.findIndex((value, index) => value !== best[index]);
      return at >= 0 && one[at] > best[at] ? one : best;
    });

  // Splits a search into terms: a player or a word, or a result, or both. A player's name may be in quotes, and a result
  // in brackets. The longest reading counts, so a name may contain words such as "place 1".
  function makeReader({ players, labels, results }) {
    const named = players.flatMap((name, place) =>
      [name, `"${name}"`, labels[place]].map((phrase) => [plain(phrase), place])
    );
    const ended = results.flatMap((result, place) => [result, `(${result})`].map((phrase) => [plain(phrase), place]));

    function withResult(text, length) {
      const gap = text.slice(length).match(/^ ?/)[0].length;
      const [size, , result] = longest([[0, false, null], ...beginnings(text.slice(length + gap), ended)]);
      return size ? [length + gap + size, result] : [length, null];
    }

    function readTerm(text) {
      const readings = beginnings(text, named).map(([length, isEqual, player]) => {
        const [end, result] = withResult(text, length);
        return [end, result !== null, isEqual, { player, result }];
      });
      const [size, , result] = longest([[0, false, null], ...beginnings(text, ended)]);
      if (size) readings.push([size, false, false, { result }]); // a player of this name comes first
      if (readings.length) return longest(readings);
      const word = text.match(/^[^\s,]+/)[0];
      const [end, itsResult] = withResult(text, word.length);
      return [end, false, false, { word: word.toLowerCase(), result: itsResult }];
    }

    return (typed) => {
      const found = [];
      let text = plain(typed).replace(/^[\s,]+/, "");
      const only = text.match(/^(?:game )?(\d+)$/i);
      if (only) return [{ word: only[1], number: Number(only[1]) }];
      while (text) {
        const [end, , , term] = readTerm(text);
        found.push(term);
        text = text.slice(end).replace(/^[\s,]+/, "");
      }
      return found;
    };
  }

  // Returns whether one seat of a game is what a term describes. A search for only a number finds that game too.
  function matches(game, { player = null, word, number, result = null }, { labels, results }) {
    if (game.game === number) return true;
    const isMeant = (one) => (word === undefined ? player === null || one === player : hasWord(labels[one], word));
    const isSeated = game.seats.some(([one, its]) => isMeant(one) && (result === null || its === result));
    if (isSeated || word === undefined || result !== null) return isSeated;
    return game.seats.some(([, its]) => hasWord(`(${results[its]})`, word));
  }

  const hasWord = (text, word) => text.toLowerCase().includes(word);

  // Filters pass a game by a field: that is or contains the choice, is at least the number, or is not zero.
  const PASSES = {
    is: (value, wanted) => [value].flat().some((one) => `${one}` === wanted),
    least: (value, wanted) => value >= Number(wanted),
    some: (value) => value > 0,
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
    const fields = JSON.parse(form.querySelector("script").textContent);
    const read = makeReader(fields);
    const rows = [...document.querySelectorAll(`#${form.dataset.filters} tbody tr`)];
    const filters = [...form.querySelectorAll("[data-passes]")];
    const wanted = (filter) => (filter.type === "checkbox" ? filter.checked : filter.value);
    // The player and the result that are set describe the same seat.
    const seated = (filter, known) => {
      const value = form.querySelector(`[data-passes=${filter}]`).value;
      return value === "" ? null : known.indexOf(value);
    };
    const search = () => {
      const set = filters.filter(wanted);
      const terms = read(form.elements.filter.value);
      terms.push({ player: seated("names", fields.players), result: seated("result", fields.results) });
      const others = set.filter((one) => one.dataset.passes in PASSES);
      let left = 0;
      rows.forEach((row, place) => {
        const game = fields.games[place];
        const passes = others.every((one) => {
          const { field, passes: how } = one.dataset;
          const value = field === "winner" ? game.winner.map((player) => fields.players[player]) : game[field];
          return PASSES[how](value, wanted(one));
        });
        row.hidden = !passes || !terms.every((term) => matches(game, term, fields));
        left += row.hidden ? 0 : 1;
      });
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
