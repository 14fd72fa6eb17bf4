// The table at one turn: seats with their hands, and the pile or the boards.
"use strict";
window.dubitoBoard = (view) => {
  const { game, make, count } = view;
  const $ = (id) => document.getElementById(id);
  const NUMBERS = ["no", "one", "two", "three"];
  const CROWDED = 7; // with this many seats, faces shrink
  const first = game.me ?? 0; // the seat in front

  const draw = window.dubitoCards.byLetter;

  function hand(letters) {
    if (!letters.length) return make("p", "held", "no cards");
    const held = make("p", "held", count(letters.length, "card"));
    if (!view.isOpen()) return held;
    const cards = make("ul", "open");
    window.dubitoCards.fan(cards, [...letters].map(draw));
    return make("div", "hand", held, cards);
  }

  // Seats are placed clockwise, starting with the seat in front.
  function place(item, seat) {
    const turned = (2 * Math.PI * ((seat - first + game.names.length) % game.names.length)) / game.names.length;
    item.style.setProperty("--x", `${50 - 36 * Math.sin(turned)}%`);
    item.style.setProperty("--y", `${49 + (seat === first ? 38 : 33) * Math.cos(turned)}%`);
    item.classList.toggle("front", seat === first);
  }

  function player(seat, { moved, said, ended, won, below }) {
    const name = game.names[seat];
    const kind = game.kinds?.[seat];
    const item = make("li", "seat", window.dubitoAvatar(name, kind));
    const head = make("p", "who", make("b", "", name));
    if (kind) head.append(" ", make("span", `kind ${kind}`, kind));
    item.append(head);
    if (ended) item.append(make("span", won ? "badge" : "badge lost", ended));
    const isNow = view.isNewest() && game.to_move === seat;
    if (isNow) item.append(make("span", "badge moved", game.thinks ? "is thinking …" : "to move"));
    item.append(...below);
    if (moved) item.setAttribute("aria-current", "true");
    item.classList.toggle("mover", Boolean(moved));
    if (said) item.append(make("p", said.length > 30 ? "bubble long" : "bubble", said));
    if (view.isOpen() && isNow && game.words) item.append(make("p", "bubble long thought", game.words));
    place(item, seat);
    return item;
  }

  function claim(turn) {
    const words = `${NUMBERS[turn.cards.length] ?? turn.cards.length} ${turn.claimed}`;
    return `${turn.cards.length === 1 ? words.replace(/s$/, "") : words}!`;
  }

  function cardSeats(state, turn) {
    return game.names.map((_, seat) => {
      const won = state.places[seat];
      const moved = turn && turn.seat === seat;
      const said = !moved ? "" : turn.cards ? claim(turn) : "Dubito!";
      const ended = view.isEnd() && !won ? "did not win" : won ? `place ${won}` : "";
      return player(seat, { moved, said, ended, won, below: [hand(state.hands[seat])] });
    });
  }

  // The plays of the round, latest first and large. Everyone has seen doubted cards.
  function pile(turn, at) {
    const doubt = turn && !turn.cards;
    const plays = doubt
      ? game.turns.slice(game.turns[at - 2].pile, at - 1)
      : turn
      ? game.turns.slice(turn.pile, at)
      : [];
    $("board").textContent = doubt
      ? "The doubted cards"
      : view.isOpen() && view.isEnd() && plays.length
      ? "Board, face up"
      : "Board";
    const items = plays.map((play, index) => {
      const isLast = index === plays.length - 1;
      const isKnown = view.isOpen() || (doubt && isLast);
      const words = `${game.names[play.seat]}: ${count(play.cards.length, "card")} as ${play.claimed}`;
      const cards = make(
        "span",
        "cards",
        ...[...play.cards].map((letter) => (isKnown ? draw(letter) : window.dubitoCards.back())),
      );
      const item = make(
        "li",
        isLast ? "latest" : "",
        window.dubitoAvatar(game.names[play.seat], game.kinds?.[play.seat]),
        make("p", "claim", words),
        cards,
      );
      if (isKnown) {
        item.append(
          make(
            "span",
            doubt && isLast ? `stamp ${play.honest ? "honest" : "bluff"}` : `truth ${play.honest ? "honest" : "bluff"}`,
            play.honest ? "honest" : doubt && isLast ? game.lie : `a ${game.lie}`,
          ),
        );
      }
      return item;
    });
    $("pile").className = "plays";
    $("pile").replaceChildren(...items.reverse());
    if (!plays.length) $("pile").append(make("li", "empty", "The board is empty."));
  }

  const faces = (places) => (places ?? []).map((each) => game.faces[each]);

  function words([, known, truth, , drawn, folded]) {
    const shown = view.isOpen() ? truth : "";
    const under = view.isOpen() && folded
      ? [make("details", "", make("summary", "", folded[0]), make("p", "hand drawn", folded[1]))]
      : [];
    const line = (said, cards) =>
      make("p", said.includes("\n") ? "hand drawn" : "hand", ...window.dubitoCards.drawnIn(said, cards));
    return [
      ...(known ? [line(known, truth ? [] : faces(drawn))] : []),
      ...(shown ? [line(shown, faces(drawn))] : []),
      ...under,
    ];
  }

  function truly([said, drawn]) {
    const list = make("span", "cards", ...faces(drawn).map((one) => window.dubitoCards.face(one)));
    return make("p", "", ...(drawn.length ? [list, " "] : []), said);
  }

  // A game without drawn cards shows seats and boards as text. Hidden values are shown with the hands.
  function panels(state, turn) {
    $("seats").replaceChildren(...game.names.map((_, seat) => {
      const panel = state.find((one) => one[3] === seat);
      return player(seat, { moved: turn && turn.seat === seat, below: panel ? words(panel) : [] });
    }));
    const boards = state.filter((panel) => panel[3] === null);
    const really = turn && view.isOpen() ? turn.truth : [];
    $("board").parentElement.hidden = !boards.length && !really.length;
    $("board").textContent = boards.length ? boards[0][0] : "Game log";
    $("pile").className = "panels";
    $("pile").replaceChildren(
      ...boards.map((panel, index) =>
        make("li", "", ...(index ? [make("p", "claim", panel[0])] : []), ...words(panel))
      ),
      ...(really.length ? [make("li", "", make("p", "claim", "What was really played"), ...really.map(truly))] : []),
    );
  }

  function show(state, turn, at) {
    const table = document.querySelector(".table");
    table.classList.toggle("in-panels", Boolean(game.panels));
    table.classList.toggle("crowded", game.names.length >= CROWDED);
    if (game.panels) return panels(state, turn);
    $("seats").replaceChildren(...cardSeats(state, turn));
    pile(turn, at);
  }

  return { show };
};
