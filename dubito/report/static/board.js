// The table at one turn: seats with their hands, and the piles and boards between them.
"use strict";
window.dubitoBoard = (view) => {
  const { game, make } = view;
  const { back, drawnIn, face, fan } = window.dubitoCards;
  const $ = (id) => document.getElementById(id);
  const CROWDED = 7; // with this many seats, faces shrink
  const MOST_PLAYS = 5; // on a pile; earlier ones are drawn together
  const LONGEST_BUBBLE = 30; // maximum number of characters in large type
  const first = view.front;

  const faces = (indexes) => (indexes ?? []).map((index) => game.faces[index]);
  const avatar = (seat) => window.dubitoAvatar(game.names[seat], game.kinds?.[seat]);

  // Seats are placed clockwise, starting with the seat in front.
  function place(item, seat) {
    const turned = (2 * Math.PI * ((seat - first + game.names.length) % game.names.length)) / game.names.length;
    item.style.setProperty("--x", `${50 - 36 * Math.sin(turned)}%`);
    item.style.setProperty("--y", `${49 + (seat === first ? 36 : 33) * Math.cos(turned)}%`);
    const across = Math.round(9 * Math.sin(turned)) / 9; // bubbles are where the middle is not
    item.dataset.side = !across ? "" : across > 0 === Math.abs(across) > .9 ? "left" : "right";
    item.classList.toggle("front", seat === first);
  }

  // The cards replace the text after its first colon.
  function line(text, cards = []) {
    return make("p", text.includes("\n") ? "hand drawn" : "hand", ...drawnIn(text, cards));
  }

  function folded([title, text]) {
    return make("details", "", make("summary", "", title), make("p", "hand drawn", text));
  }

  // The text of a panel, and its hidden part with the hands.
  function words({ seat, public: text = "", truth = "", known, cards, folded: more }) {
    const hidden = view.isOpen(seat) && (truth || (cards && !known));
    return [
      ...(text || known ? [line(text, known ? faces(cards) : [])] : []),
      ...(hidden ? [line(truth, known ? [] : faces(cards))] : []),
      ...(view.isOpen(seat) && more ? [folded(more)] : []),
    ];
  }

  // A seat's cards as a fan below its text.
  function hand(panel) {
    const isShown = panel.cards && (panel.known || view.isOpen(panel.seat));
    const about = [panel.public, isShown ? panel.truth?.replace(/:$/, "") : ""].filter(Boolean).join(", ");
    const held = make("p", "held", about);
    if (!isShown) return held;
    const cards = make("ul", "open");
    fan(cards, faces(panel.cards).map((one) => face(one)));
    return make("div", "hand", held, cards);
  }

  function player(seat, panel, turn) {
    const name = game.names[seat];
    const kind = game.kinds?.[seat];
    const item = make("li", "seat", avatar(seat));
    const head = make("p", "who", window.dubitoName(make("b"), name));
    if (kind) head.append(" ", make("span", `kind ${kind}`, kind));
    item.append(head);
    const lost = view.isEnd() && game.winners && !game.winners.includes(seat);
    const ended = panel.badge ?? (lost ? "did not win" : "");
    if (ended) item.append(make("span", panel.badge ? "badge" : "badge lost", ended));
    const isNow = view.isNewest() && game.to_move === seat;
    if (isNow) item.append(make("span", "badge moved", game.thinks ? "is thinking …" : "to move"));
    item.append(...(isOnFelt() ? [hand(panel)] : words(panel)));
    const moved = turn?.seat === seat;
    if (moved) item.setAttribute("aria-current", "true");
    item.classList.toggle("mover", moved);
    const speech = moved && turn.speech;
    if (speech) item.append(make("p", speech.length > LONGEST_BUBBLE ? "bubble long" : "bubble", speech));
    if (view.isOpen(seat) && isNow && game.words) item.append(make("p", "bubble long thought", game.words));
    if (isOnFelt()) place(item, seat);
    return item;
  }

  // A play on a pile. Everyone has seen cards that are shown.
  function play([seat, claim, cards, lie, isShown], isLast, isPlayed) {
    const isKnown = view.isOpen(seat) || isShown;
    const item = make(
      "li",
      isLast && !(isShown && isPlayed) ? "latest" : "",
      avatar(seat),
      make("p", "claim", `${game.names[seat]}: ${claim}`),
      make("span", "cards", ...faces(cards).map((one) => (isKnown ? face(one) : back()))),
    );
    if (isKnown && lie !== null) {
      const kind = lie ? "bluff" : "honest";
      const word = lie ? game.lie : "honest";
      const isStamped = isShown && !isPlayed;
      item.append(make("span", `${isStamped ? "stamp" : "truth"} ${kind}`, lie && !isStamped ? `a ${word}` : word));
    }
    return item;
  }

  // All cards of the plays at the bottom of a pile, as a fan.
  function bottom(plays) {
    const cards = make("span", "cards");
    const drawn = plays.flatMap(([seat, , each, , isShown]) =>
      faces(each).map((one) => (view.isOpen(seat) || isShown ? face(one) : back()))
    );
    fan(cards, drawn);
    return make("li", "bottom", `${plays.length} earlier plays`, cards);
  }

  // The plays on a pile, the latest first and large.
  function pile({ plays = [] }, isPlayed) {
    if (!plays.length) return [];
    const all = plays.map((index) => game.plays[index]);
    const hidden = all.length > MOST_PLAYS + 1 ? all.splice(0, all.length - MOST_PLAYS) : [];
    const items = all.map((one, at) => play(one, at === all.length - 1, isPlayed)).reverse();
    const list = make("ol", "plays", ...items, ...(hidden.length ? [bottom(hidden)] : []));
    return [list];
  }

  function truly([sentence, drawn]) {
    const list = make("span", "cards", ...faces(drawn).map((one) => face(one)));
    return make("p", "", ...(drawn.length ? [list, " "] : []), sentence);
  }

  // What happened in secret, except for a play that lies on a pile.
  function secrets(turn, boards) {
    const laid = boards.flatMap((panel) => panel.plays?.slice(-1) ?? []).map((index) => `${game.plays[index][2]}`);
    return turn && view.isOpen(turn.seat)
      ? turn.truth.filter(([, drawn]) => !drawn.length || !laid.includes(`${drawn}`))
      : [];
  }

  // Games that count cards are drawn on felt, with the boards in the middle. Others are drawn as boxes.
  const isOnFelt = () => game.panels.some((panel) => panel.seat !== undefined && panel.backs);

  // Draws a turn. `isPlayed` is whether the page has just played its scene, so that the pile is gone.
  function show(panels, turn, isPlayed = false) {
    const table = document.querySelector(".table");
    table.classList.toggle("in-panels", !isOnFelt());
    table.classList.toggle("crowded", game.names.length >= CROWDED);
    table.classList.toggle("duel", game.names.length === 2);
    const seated = game.names.map((_, seat) => panels.find((one) => one.seat === seat) ?? {});
    $("seats").replaceChildren(...seated.map((panel, seat) => player(seat, panel, turn)));
    const boards = panels.filter((panel) => panel.seat === undefined);
    const really = secrets(turn, boards);
    $("boards").parentElement.hidden = !boards.length;
    $("boards").replaceChildren(
      ...boards.map((panel) => make("li", "", make("h2", "", panel.title), ...words(panel), ...pile(panel, isPlayed))),
    );
    $("really").hidden = !really.length;
    $("really").replaceChildren(make("h2", "", "What was really played"), ...really.map(truly));
  }

  // Plays a turn's scene on the table as it was before. Resolves to how it ended, as `dubitoScene.play`.
  function act(panels, { scene, seat, speech }, factor) {
    const felt = document.querySelector(".table");
    if (Object.keys(scene.panels).length) {
      const before = Object.assign([...panels], scene.panels).filter(Boolean);
      show(before, { seat, speech, truth: [] });
    }
    const liar = game.plays[panels.flatMap((panel) => panel.plays ?? []).at(-1)]?.[0];
    const known = scene.known || view.isOpen(Object.keys(scene.panels).length ? seat : liar);
    const data = {
      ...scene,
      known,
      cards: known || scene.shown ? faces(scene.cards) : [],
      wrong: known || scene.shown ? scene.wrong : [],
      count: scene.cards.length,
    };
    return window.dubitoScene.play(
      {
        felt,
        top: [...felt.querySelectorAll(scene.known ? ".boards .card" : ".plays .latest .card")],
        pile: [...felt.querySelectorAll(".plays .card")],
        place: (at) => {
          const item = $("seats").children[at];
          return { seat: item, to: item.querySelector(".avatar"), held: item.querySelector(".held") };
        },
      },
      data,
      factor,
    );
  }

  return { act, show };
};
