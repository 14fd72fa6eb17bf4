// Charts over the turns of a game: each seat's cards, and its winning chances.
"use strict";
window.dubitoCourses = (view) => {
  const { game, make } = view;

  function shape(tag, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  // Draws a line per seat over the turns. A click opens the turn.
  function course(high, label, of) {
    const last = game.turns.length;
    const drawn = shape("svg", {
      viewBox: `0 0 ${last} ${high}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    });
    game.names.forEach((_, seat) => {
      const points = view.states().map((_, turn) => `${turn},${of(turn, seat)}`).join(" ");
      drawn.append(shape("polyline", { points, class: `line of-${seat}${seat === game.me ? " me" : ""}` }));
    });
    drawn.append(shape("line", { class: "now", y1: 0, y2: high }));
    drawn.addEventListener("click", (event) => view.goTo(Math.round((event.offsetX / drawn.clientWidth) * last)));
    return drawn;
  }

  function sample(kind) {
    const drawn = shape("svg", { viewBox: "0 0 20 8", class: "sample" });
    drawn.append(shape("line", { x1: 0, x2: 20, y1: 4, y2: 4, class: kind }));
    return drawn;
  }

  function legend(title) {
    const seats = game.names.flatMap((name, seat) => [
      make("span", "whole", sample(`line of-${seat}${seat === game.me ? " me" : ""}`), ` ${name}`),
      "  ",
    ]);
    return make("p", "note", title, ...seats);
  }

  // Returns the turn of each lie, and whether it was caught.
  function tellLies() {
    const lies = new Map();
    let latest;
    game.turns.forEach((turn, place) => {
      if (turn.marks.includes(game.lie)) lies.set(latest = place + 1, false);
      if (turn.caught) lies.set(latest, true);
    });
    return lies;
  }

  // Draws each seat's number of cards, with a tick for each lie. Ticks of caught lies are longer.
  function hands() {
    const held = view.states().map((panels) =>
      game.names.map((_, seat) => panels.find((panel) => panel.seat === seat)?.backs ?? 0)
    );
    if (!held[0].some(Boolean)) return []; // the game does not count cards
    const most = Math.max(...held.flat());
    const drawn = course(
      1.3 * most,
      "Cards in each player's hand, by turn",
      (turn, seat) => most - held[turn][seat],
    );
    const lies = tellLies();
    for (const [x, isCaught] of lies) {
      const y1 = (isCaught ? 1.02 : 1.16) * most;
      drawn.append(shape("line", { x1: x, x2: x, y1, y2: 1.3 * most, class: isCaught ? "told caught" : "told" }));
    }
    const ticks = make("p", "note truth", `Short ticks: a ${game.lie}. Long ticks: a ${game.lie} that was caught.`);
    return [drawn, legend("Cards in hand: "), ...(lies.size ? [ticks] : [])];
  }

  // Draws each seat's winning chances by turn.
  function chances() {
    const { won, playouts, substitute, why } = game.odds;
    if (why) return game.sent ? [] : [make("p", "note", `Winning chances are not shown: ${why}.`)]; // a shared page does not mention them
    if (won.length !== view.states().length) return [];
    const share = (turn, seat) => (100 * won[turn][seat]) / playouts;
    const instead = substitute ? ` and ${substitute} instead of models` : "";
    const how =
      `Winning chances: each player's share of wins in ${playouts} playouts from this turn, with the same cards${instead}. `;
    const drawn = course(100, "Winning chances by turn", (turn, seat) => 100 - share(turn, seat));
    return [drawn, legend("Winning chances: "), make("p", "note", how, make("span", "chances", ""))];
  }

  function draw() {
    document.getElementById("strip")?.remove();
    if (!game.turns.length) return;
    const box = make("div", "", ...hands(), make("div", "truth", ...(game.odds ? chances() : [])));
    box.id = "strip";
    document.getElementById("slider").after(box);
  }

  // Marks a turn in the charts.
  function mark(turn, open) {
    for (const line of document.querySelectorAll("#strip .now")) {
      line.setAttribute("x1", turn);
      line.setAttribute("x2", turn);
    }
    const shown = document.querySelector("#strip .chances");
    const share = (seat) => Math.round((100 * game.odds.won[turn][seat]) / game.odds.playouts);
    if (shown) {
      const shares = game.names.flatMap((name, seat) => [
        seat ? ", " : "",
        make("span", "whole", `${name} ${share(seat)} %`),
      ]);
      shown.replaceChildren("At this turn: ", ...shares, ".");
    }
    document.getElementById("strip")?.classList.toggle("closed", !open);
  }

  return { draw, mark };
};
