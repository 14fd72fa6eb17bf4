// The game viewer: shows states that the page brings along; it knows no rules. Every text is set as text, never as HTML.
"use strict";
(() => {
  const game = JSON.parse(document.getElementById("game").textContent);
  const shared = game.shared || window.DUBITO_SHARED || [];
  const $ = (id) => document.getElementById(id);
  const last = game.turns.length;
  const NAMES = { "*": "joker", A: "ace", T: "10", J: "jack", Q: "queen", K: "king" };
  const FACES = { "*": "★", T: "10" };
  const states = game.panels ? panelStates() : cardStates();
  const story = tell();
  let at = 0;
  let open = true;

  function cardStates() {
    const all = [{ hands: game.hands, places: game.names.map(() => 0) }];
    for (const turn of game.turns) {
      const before = all[all.length - 1];
      const hands = before.hands.map((hand, seat) => turn.hands[seat] ?? hand);
      const places = before.places.map((place, seat) => (turn.won.includes(seat) ? game.places[seat] : place));
      all.push({ hands, places });
    }
    return all;
  }

  function panelStates() {
    const all = [game.panels];
    for (const turn of game.turns) all.push(all[all.length - 1].map((panel, place) => turn.panels[place] ?? panel));
    return all;
  }

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  function tell() {
    $("about").textContent = `${game.about} ${game.ending}`;
    $("about").after(...game.warnings.map((words) => make("p", "warning", words)));
    $("proof").textContent = game.proof;
    $("slider").max = last;
    $("story").open = last < 60;
    $("story").lastElementChild.textContent = game.ending;
    const lines = game.story.map((words, place) => {
      const link = make("a", "", words);
      link.href = `#turn=${place + 1}`;
      return make("li", "", link);
    });
    $("story").querySelector("ol").append(...lines);
    return lines;
  }

  function read(runs, pieces) {
    let text = "";
    for (let i = 0; i < runs.length; i += 2) text += pieces.slice(runs[i], runs[i + 1]).join("");
    return text;
  }

  function cards(letters, shown) {
    const list = make("span", "cards");
    if (!shown) {
      list.append(make("span", "back", `${letters.length}`), letters.length === 1 ? " card" : " cards");
      return list;
    }
    for (const letter of letters) {
      const card = make("span", letter === "*" ? "card joker" : "card", FACES[letter] || letter);
      card.title = NAMES[letter] || letter;
      list.append(card);
    }
    return list;
  }

  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

  function seats(state, turn) {
    $("seats").replaceChildren(...game.names.map((name, seat) => {
      const place = state.places[seat];
      const ended = at === last && !place ? "did not win" : place ? `place ${place}` : "";
      const head = make("p", "who", make("span", "seat", `${seat}`), " ", make("b", "", name));
      if (ended) head.append(" ", make("span", place ? "ended" : "ended lost", ended));
      if (turn && turn.seat === seat) head.append(" ", make("span", "moved", turn.cards ? "played" : "doubted"));
      const hand = state.hands[seat];
      const item = make("li", "", head, make("p", "hand", hand ? cards(hand, open) : "no cards"));
      if (turn && turn.seat === seat) item.setAttribute("aria-current", "true");
      return item;
    }));
  }

  function pile(turn) {
    const doubt = turn && !turn.cards;  // what was doubted is shown once more
    const plays = doubt ? game.turns.slice(game.turns[at - 2].pile, at - 1) : turn ? game.turns.slice(turn.pile, at) : [];
    $("board").textContent = doubt ? "The board that was doubted" : "Board";
    $("pile").replaceChildren(...plays.map((play) => {
      const claim = `${game.names[play.seat]}: ${count(play.cards.length, "card")} as ${play.claimed}`;
      const item = make("li", "", make("p", "claim", claim));
      if (open) {
        const truth = make("span", play.honest ? "honest" : "bluff", play.honest ? "✓ honest" : "✗ a bluff");
        item.append(make("p", "", "really ", cards(play.cards, true), " ", truth));
      }
      return item;
    }));
    if (!plays.length) $("pile").append(make("li", "empty", "The board is empty."));
  }

  function words(panel) {
    const [, known, truth] = panel;
    return [known, open ? truth : ""].filter(Boolean).map((said) => make("p", said.includes("\n") ? "hand drawn" : "hand", said));
  }

  // A game without cards to draw: each seat and the board in words, the truth with the hands.
  function panels(state, turn) {
    $("seats").replaceChildren(...game.names.map((name, seat) => {
      const panel = state.find((one) => one[3] === seat);
      const moved = turn && turn.seat === seat;
      const head = make("p", "who", make("span", "seat", `${seat}`), " ", make("b", "", name));
      if (moved) head.append(" ", make("span", "moved", "moved"));
      const item = make("li", "", head, ...(panel ? words(panel) : []));
      if (moved) item.setAttribute("aria-current", "true");
      return item;
    }));
    const boards = state.filter((panel) => panel[3] === null);
    const really = turn && open ? turn.truth : [];
    $("board").textContent = boards.length ? boards[0][0] : "What happened";
    $("pile").replaceChildren(
      ...boards.map((panel, place) => make("li", "", ...(place ? [make("p", "claim", panel[0])] : []), ...words(panel))),
      ...(really.length ? [make("li", "", make("p", "claim", "What really happened"), ...really.map((said) => make("p", "", said)))] : []),
    );
  }

  function text(title, content, isOpen) {
    const body = make("pre", "", content);
    body.tabIndex = 0;
    const details = make("details", "", make("summary", "", title), body);
    details.open = isOpen;
    return details;
  }

  function cost(attempt) {
    const said = [`from ${attempt.origin}`];
    if (attempt.tries) said.push(count(attempt.tries, "call"));
    if (attempt.seconds !== null) said.push(`${attempt.seconds.toFixed(2)} s`);
    if (attempt.tokens) said.push(`${attempt.tokens[0]} tokens in, ${attempt.tokens[1]} of them cached, ${attempt.tokens[2]} out`);
    if (!attempt.tries) said.push("no call");
    else said.push(attempt.cost === null ? "no price is known" : `$${attempt.cost.toFixed(6)}`);
    return said.join(" · ");
  }

  function attempt(one, number, of) {
    const box = make("div", "attempt");
    if (of > 1) box.append(make("h4", "", number ? `Asked again (${number})` : "First asked"));
    box.append(make("p", "cost", cost(one)));
    for (const system of one.system) box.append(text("Prompt: system", read(system, shared), false));
    one.said.forEach(([role, runs], place) => {
      box.append(text(`Prompt: ${role}`, read(runs, game.pieces), place === one.said.length - 1));
    });
    if (one.reply !== null) box.append(text("Raw reply", read(one.reply, game.pieces), true));
    else box.append(make("p", "none", one.cause ? `No reply: ${one.cause}` : "A reply without text"));
    if (one.raw !== null) box.append(text("The whole body received", read(one.raw, game.pieces), false));
    box.append(text("Parameters sent", JSON.stringify(JSON.parse(read(one.rest, shared)), null, 1), false));
    return box;
  }

  function answered(answer) {
    if (typeof answer === "boolean") return answer ? "yes" : "no";
    return typeof answer === "string" ? answer : JSON.stringify(answer);
  }

  function decision(one) {
    const outcome = make("span", one.outcome.startsWith("fallback") ? "outcome fallback" : "outcome", one.outcome);
    const head = make("h3", "", `Node ${one.node}: `, make("b", "", answered(one.answer)), " ", outcome);
    const box = make("article", "decision", head, make("p", "", `${game.names[one.seat]} (seat ${one.seat}) was asked ${one.question}: decision ${one.number}.`));
    if (one.p_bluff !== null) box.append(make("p", "", `Stated probability that the last play is dishonest: ${one.p_bluff}`));
    box.append(...one.attempts.map((each, number) => attempt(each, number, one.attempts.length)));
    return box;
  }

  function show(turnNumber, fromHash) {
    at = Math.max(0, Math.min(last, turnNumber));
    const turn = at ? game.turns[at - 1] : null;
    $("turn").textContent = at ? `turn ${at} of ${last}${turn.free ? ", a free turn" : ""}` : `the deal, before ${last} turns`;
    const said = turn ? game.story[at - 1] : game.start || "The cards are dealt.";
    $("said").replaceChildren(make("p", "", said), ...(at === last ? [make("p", "", game.ending)] : []));
    $("slider").value = at;
    $("open").setAttribute("aria-pressed", String(open));
    $("open").textContent = open ? "Hands open" : "Hands hidden";
    for (const button of document.querySelectorAll("[data-go]")) {
      const stuck = ["first", "back"].includes(button.dataset.go) ? at === 0 : at === last;
      button.setAttribute("aria-disabled", String(stuck));
    }
    if (game.panels) {
      panels(states[at], turn);
    } else {
      seats(states[at], turn);
      pile(turn);
    }
    $("decisions").replaceChildren(...game.decisions.filter((one) => at && one.turn === at).map(decision));
    for (const body of document.querySelectorAll("#decisions details[open] pre")) body.scrollTop = body.scrollHeight;
    story.forEach((item, place) => item.classList.toggle("here", place === at - 1));
    if (!fromHash) history.replaceState(null, "", `#turn=${at}`);
  }

  const go = { first: () => show(0), back: () => show(at - 1), on: () => show(at + 1), last: () => show(last) };
  const keys = { ArrowLeft: go.back, ArrowRight: go.on, Home: go.first, End: go.last };
  const toggle = () => { open = !open; show(at); };
  const hash = () => {
    const found = /^#turn=(\d+)$/.exec(location.hash);
    show(found ? Number(found[1]) : 0, true);
    if (found) $("viewer").scrollIntoView();
  };

  for (const button of document.querySelectorAll("[data-go]")) button.addEventListener("click", () => go[button.dataset.go]());
  $("open").addEventListener("click", toggle);
  $("slider").addEventListener("input", (event) => show(Number(event.target.value)));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("pre, summary, .scroll")) return;
    if (event.key === "h" || event.key === "H") { toggle(); return; }
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  window.addEventListener("hashchange", hash);
  const games = window.DUBITO_GAMES || [];
  const here = games.indexOf(game.game);
  for (const [place, rel] of [[here - 1, "prev"], [here + 1, "next"]]) {
    if (here < 0 || games[place] === undefined) continue;
    const link = make("a", "", `Game ${games[place]}`);
    link.href = `${games[place]}.html`;
    link.rel = rel;
    $("about").append(" ", link);
  }
  $("viewer").hidden = false;
  hash();
})();
