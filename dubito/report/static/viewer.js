// The game viewer. It shows the states in the page and knows no rules. All texts are set as text, never as HTML.
"use strict";
(() => {
  const game = JSON.parse(document.getElementById("game").textContent);
  const shared = game.shared || window.DUBITO_SHARED || [];
  const $ = (id) => document.getElementById(id);
  const NAMES = { "*": "joker", A: "ace", T: "10", J: "jack", Q: "queen", K: "king" };
  const FACES = { "*": "★", T: "10" };
  const LEAST_TABLE = 0.4; // of the window's height is left to the table above a decision that was linked to
  const MISTAKE = "model mistake";
  const ORIGINS = { live: "from the provider", cache: "from the cache", tape: "from the recording (before the run was resumed)" };
  const FALLBACK = "fallback:"; // begins an outcome; the cause follows
  const OUTCOMES = { model: "answered", model_after_reask: "answered after a re-ask" };
  const story = []; // the lines of the game in words
  let last, states, finds;
  let at = 0;
  let open = true;
  let timer = 0; // of the next turn, while the game plays

  // --- The page's data ---

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
    for (const turn of game.turns) all.push(Object.assign([...all[all.length - 1]], turn.panels).filter(Boolean));
    return all;
  }

  // The turns of each kind of move that has a search button.
  function found() {
    const kinds = new Map();
    const note = (kind, turn) => kinds.set(kind, [...(kinds.get(kind) || []), turn]);
    game.turns.forEach((turn, place) => turn.marks.forEach((kind) => note(kind, place + 1)));
    for (const turn of new Set(game.decisions.filter((one) => one.mistake).map((one) => one.turn))) note(MISTAKE, turn);
    return kinds;
  }

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  function link(address, ...children) {
    const element = make("a", "", ...children);
    element.href = address;
    return element;
  }

  function read(runs, pieces) {
    let text = "";
    for (let i = 0; i < runs.length; i += 2) text += pieces.slice(runs[i], runs[i + 1]).join("");
    return text;
  }

  function decisionsAt(turn) {
    return game.decisions.filter((one) => turn && one.turn === turn);
  }

  // The decisions to show with this turn. The newest turn also shows the decisions for the next one.
  const decisionsHere = () => [...decisionsAt(at), ...(at === last && !isOver() ? decisionsAt(last + 1) : [])];

  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

  // --- Parts that do not depend on the turn; they grow while a game is played ---

  const isOver = () => game.over !== false; // only a game that is watched says so

  function tell() {
    last = game.turns.length;
    states = game.panels ? panelStates() : cardStates();
    finds = found();
    $("about").textContent = game.live || game.sent ? game.about : `${game.about} ${game.ending}`;
    for (const old of document.querySelectorAll("#about ~ .warning")) old.remove();
    $("about").after(...game.warnings.map((words) => make("p", "warning", words)));
    $("slider").max = last;
    $("story").lastElementChild.textContent = game.ending;
    const lines = game.story.slice(story.length).map((words, place) => make("li", "", link(`#turn-${story.length + place + 1}`, words)));
    $("story").querySelector("ol").append(...lines);
    story.push(...lines);
    strip();
    for (const kind of finds.keys()) {
      if (document.querySelector(`[data-find="${kind}"]`)) continue;
      const button = make("button", "", `Next ${kind}`);
      button.type = "button";
      button.dataset.find = kind;
      button.title = kind[0].toUpperCase();
      button.addEventListener("click", () => find(kind));
      $("finds").append(button);
      $("keys").append(`, ${kind[0].toUpperCase()} goes to the next ${kind}`);
    }
  }

  function neighbours() {
    const games = window.DUBITO_GAMES || [];
    const here = games.indexOf(game.game);
    for (const [place, rel] of [[here - 1, "prev"], [here + 1, "next"]]) {
      if (here < 0 || games[place] === undefined) continue;
      const other = link(`${games[place]}.html`, `Game ${games[place]}`);
      other.rel = rel;
      $("about").append(" ", other);
    }
  }

  // --- The table ---

  function cards(letters, shown) {
    const list = make("span", "cards");
    if (!shown) {
      list.append(make("span", "back", `${letters.length}`), letters.length === 1 ? " card" : " cards");
      return list;
    }
    list.append(...[...letters].map((letter) => dubitoCards.draw(FACES[letter] || letter, NAMES[letter] || letter)));
    return list;
  }

  function player(seat, turn, moved, ended, ...below) {
    const head = make("p", "who", make("span", "seat", `${seat}`), " ", make("b", "", game.names[seat]));
    if (game.kinds?.[seat]) head.append(" ", make("span", `kind ${game.kinds[seat]}`, game.kinds[seat]));
    if (ended) head.append(" ", make("span", ended.startsWith("place") ? "ended" : "ended lost", ended));
    if (turn && turn.seat === seat) head.append(" ", make("span", "moved", moved));
    const isNow = at === last && game.to_move === seat;
    if (isNow) head.append(" ", make("span", "moved", game.thinks ? "is thinking …" : "to move"));
    const said = open && isNow && game.words ? [make("p", "thought", game.words)] : [];
    const item = make("li", "", head, ...below, ...said, ...(open ? decisionsHere().filter((one) => one.seat === seat).map(thought) : []));
    if (turn && turn.seat === seat) item.setAttribute("aria-current", "true");
    return item;
  }

  // A model's answer and reason, next to its seat. The requests are below.
  function thought(one) {
    const box = make("div", "thought", make("p", "", `${one.question} `, link(`#${one.link}`, answered(one.answer))));
    const reasoning = one.attempts.at(-1)?.reasoning;
    if (reasoning) box.append(make("q", "", reasoning));
    if (one.outcome.startsWith(FALLBACK)) box.append(make("p", "bluff", outcomeOf(one)));
    if (one.p_bluff !== null) box.append(stated(one));
    if (one.wrong) box.append(one.mistake ? make("p", "bluff", `✗ ${one.wrong}`) : make("p", "", `It ${one.wrong}.`));
    return box;
  }

  function stated(one) {
    const said = `Stated probability that ${one.stating}: ${Math.round(100 * one.p_bluff)} %.`;
    const gauge = make("meter");
    gauge.value = one.p_bluff;
    gauge.setAttribute("aria-hidden", "true"); // the number stands beside it
    if (one.truth === null) return make("p", "", said, " ", gauge);
    return make("p", "", said, " ", gauge, "Actually: ", make("span", one.truth ? "bluff" : "honest", one.truth ? `✗ ${one.truths[0]}` : `✓ ${one.truths[1]}`), ".");
  }

  function seats(state, turn) {
    $("seats").replaceChildren(...game.names.map((name, seat) => {
      const place = state.places[seat];
      const ended = isEnd() && !place ? "did not win" : place ? `place ${place}` : "";
      const hand = state.hands[seat];
      return player(seat, turn, turn?.cards ? "played" : "doubted", ended, make("p", "hand", hand.length ? cards(hand, open) : "no cards"));
    }));
  }

  function pile(turn) {
    const doubt = turn && !turn.cards; // what was doubted is shown once more
    const plays = doubt ? game.turns.slice(game.turns[at - 2].pile, at - 1) : turn ? game.turns.slice(turn.pile, at) : [];
    $("board").textContent = doubt ? "The doubted cards" : open && isEnd() && plays.length ? "Board, face up" : "Board";
    $("board").append(make("small", "sizes", game.names.map((name, seat) => `${name} ${states[at].hands[seat].length}`).join(" · ")));
    $("pile").classList.add("plays");
    $("pile").replaceChildren(...plays.map((play, place) => {
      const claim = `${game.names[play.seat]}: ${count(play.cards.length, "card")} as ${play.claimed}`;
      const item = make("li", "", make("p", "claim", claim));
      if (open || (doubt && place === plays.length - 1)) { // what was doubted everybody has seen
        const truth = make("span", play.honest ? "honest" : "bluff", play.honest ? "✓ honest" : `✗ a ${game.lie}`);
        item.append(make("p", "", "really ", cards(play.cards, true), " ", truth));
      }
      return item;
    }).reverse()); // the last one on top
    if (!plays.length) $("pile").append(make("li", "empty", "The board is empty."));
  }

  const isEnd = () => at === last && isOver();
  const faces = (places) => (places ?? []).map((place) => game.faces[place]);

  function words([, known, truth, , drawn, folded]) {
    const shown = open ? truth : "";
    const under = open && folded ? [make("details", "", make("summary", "", folded[0]), make("p", "hand drawn", folded[1]))] : [];
    const line = (said, cards) => make("p", said.includes("\n") ? "hand drawn" : "hand", ...dubitoCards.drawnIn(said, cards));
    return [...(known ? [line(known, truth ? [] : faces(drawn))] : []), ...(shown ? [line(shown, faces(drawn))] : []), ...under];
  }

  function truly([said, drawn]) {
    const list = make("span", "cards", ...faces(drawn).map((one) => dubitoCards.face(one)));
    return make("p", "", ...(drawn.length ? [list, " "] : []), said);
  }

  // A game without cards: seats and board as text. The truth is shown with the hands.
  function panels(state, turn) {
    $("seats").replaceChildren(...game.names.map((name, seat) => {
      const panel = state.find((one) => one[3] === seat);
      return player(seat, turn, "moved", "", ...(panel ? words(panel) : []));
    }));
    const boards = state.filter((panel) => panel[3] === null);
    const really = turn && open ? turn.truth : [];
    $("board").parentElement.hidden = !boards.length && !really.length;
    $("board").textContent = boards.length ? boards[0][0] : "Game log";
    $("pile").replaceChildren(
      ...boards.map((panel, place) => make("li", "", ...(place ? [make("p", "claim", panel[0])] : []), ...words(panel))),
      ...(really.length ? [make("li", "", make("p", "claim", "What was really played"), ...really.map(truly))] : []),
    );
  }

  // --- Charts over the turns ---

  function shape(tag, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  // A line for each seat over the turns; a click goes to the turn.
  function course(high, label, of) {
    const drawn = shape("svg", { viewBox: `0 0 ${last} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
    game.names.forEach((name, seat) => {
      const points = states.map((state, turn) => `${turn},${of(turn, seat)}`).join(" ");
      drawn.append(shape("polyline", { points, class: `line of-${seat}` }));
    });
    drawn.append(shape("line", { class: "now", y1: 0, y2: high }));
    drawn.addEventListener("click", (event) => goTo(Math.round((event.offsetX / drawn.clientWidth) * last)));
    return drawn;
  }

  function seatsBy(title) {
    const sample = (kind) => { const one = shape("svg", { viewBox: "0 0 20 8", class: "sample" }); one.append(shape("line", { x1: 0, x2: 20, y1: 4, y2: 4, class: kind })); return one; };
    return make("p", "note", title, ...game.names.flatMap((name, seat) => [sample(`line of-${seat}`), ` ${name}  `]));
  }

  // The number of cards of each seat, with a tick for each lie, longer if it was caught.
  function hands() {
    const most = Math.max(...states.flatMap((state) => state.hands.map((hand) => hand.length)));
    const drawn = course(1.3 * most, "Cards in each player's hand, by turn", (turn, seat) => most - states[turn].hands[seat].length);
    game.turns.forEach((turn, place) => {
      if (turn.honest !== false) return;
      const caught = game.turns[place + 1] && !game.turns[place + 1].cards;
      drawn.append(shape("line", { x1: place + 1, x2: place + 1, y1: (caught ? 1.02 : 1.16) * most, y2: 1.3 * most, class: caught ? "told caught" : "told" }));
    });
    const ticks = make("p", "note truth", `Short ticks: a ${game.lie}. Long ticks: a ${game.lie} that was caught.`);
    return [drawn, seatsBy("Cards in hand: "), ...(finds.has(game.lie) ? [ticks] : [])];
  }

  // Each seat's winning chances by turn.
  function standings() {
    const { won, playouts, stand_in: standIn, why } = game.odds;
    if (why) return game.sent ? [] : [make("p", "note", `Winning chances are not shown: ${why}.`)]; // a shared page does not mention them
    if (won.length !== states.length) return [];
    const share = (turn, seat) => (100 * won[turn][seat]) / playouts;
    const how = `Winning chances: each player's share of wins in ${playouts} playouts from this turn, with the same cards${standIn ? ` and ${standIn} instead of models` : ""}. `;
    const legend = make("p", "note", how, make("span", "chances", ""));
    return [course(100, "Winning chances by turn", (turn, seat) => 100 - share(turn, seat)), seatsBy("Winning chances: "), legend];
  }

  function strip() {
    $("strip")?.remove();
    if (!last || (game.panels && !game.odds)) return;
    const chances = make("div", "truth", ...(game.odds ? standings() : []));
    const box = make("div", "", ...(game.panels ? [] : hands()), chances);
    box.id = "strip";
    document.querySelector(".finds").before(box);
  }

  // --- Model decisions ---

  let numbered = 0; // panels of tabs, so far

  // Tabs, as [title, texts]. Arrow keys switch between them.
  function tabs(name, parts) {
    const list = make("div", "tabs");
    list.role = "tablist";
    list.setAttribute("aria-label", name);
    const panels = parts.map(([title, texts]) => {
      const panel = make("div", "", ...texts.map((content) => (typeof content === "string" ? verbatim(title, content) : content)));
      Object.assign(panel, { id: `tab-${numbered++}`, role: "tabpanel" });
      panel.setAttribute("aria-label", title);
      return panel;
    });
    const buttons = parts.map(([title], place) => {
      const button = make("button", "", title);
      Object.assign(button, { type: "button", role: "tab" });
      button.setAttribute("aria-controls", panels[place].id);
      button.addEventListener("click", () => choose(place));
      return button;
    });
    function choose(chosen) {
      buttons.forEach((button, place) => {
        button.setAttribute("aria-selected", place === chosen);
        button.tabIndex = place === chosen ? 0 : -1;
        panels[place].hidden = place !== chosen;
      });
      toEnds(panels[chosen]);
    }
    list.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const to = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
      choose(to);
      buttons[to].focus();
    });
    list.append(...buttons);
    choose(0);
    return [list, ...panels];
  }

  function verbatim(title, content) {
    const body = make("pre", "", content);
    body.tabIndex = 0;
    body.role = "region";
    body.setAttribute("aria-label", title);
    return body;
  }

  function cost(attempt) {
    const said = [ORIGINS[attempt.origin] ?? `from ${attempt.origin}`];
    if (attempt.tries) said.push(count(attempt.tries, "call"));
    if (attempt.seconds !== null) said.push(`${attempt.seconds.toFixed(2)} s`);
    if (attempt.tokens) said.push(`${attempt.tokens[0]} tokens in (${attempt.tokens[1]} cached), ${attempt.tokens[2]} out`);
    if (!attempt.tries) said.push("no call");
    else said.push(attempt.cost === null ? "cost unknown" : `$${attempt.cost.toFixed(6)}`);
    return said.join(" · ");
  }

  function attempt(one, number, of) {
    const box = make("div", "attempt");
    if (of > 1) box.append(make("h4", "", number ? `Re-ask ${number}` : "First request"));
    box.append(make("p", "cost", cost(one)));
    const said = one.said.map(([role, runs]) => [role, read(runs, game.pieces)]);
    const alone = said.length === 1; // else who says what stands over each
    const prompt = said.flatMap(([role, words]) => (alone ? [words] : [make("p", "note", `${role}:`), words]));
    const reply = one.reply !== null ? read(one.reply, game.pieces) : make("p", "none", one.cause ? `No reply: ${one.cause}` : "Empty reply");
    const system = one.system.map((runs) => read(runs, shared));
    box.append(...tabs("Request and reply", [
      ["Reply", [reply]],
      ...(prompt.length ? [["Prompt", prompt]] : []),
      ...(system.length ? [["System text", system]] : []),
      ...(one.raw !== null ? [["Body received", [read(one.raw, game.pieces)]]] : []),
      ["Parameters", [JSON.stringify(JSON.parse(read(one.rest, shared)), null, 1)]],
    ]));
    return box;
  }

  function answered(answer) {
    if (typeof answer === "boolean") return answer ? "yes" : "no";
    return typeof answer === "string" ? answer : JSON.stringify(answer);
  }

  function outcomeOf(one) {
    const [, cause] = one.outcome.split(FALLBACK);
    return cause ? `no usable answer (${cause.replaceAll("_", " ")}), so the fallback answered` : OUTCOMES[one.outcome] ?? one.outcome;
  }

  // The probabilities that the model stated for its answers. A question that was asked once per case is left out.
  function odds(one, attempts) {
    const told = attempts.map((each) => each.odds?.[one.node] ?? each.odds?.answer).filter(Boolean).at(-1);
    if (!told) return null;
    const shares = told.map(([answer, share]) => `${answered(answer)} ${Math.round(100 * share)} %`);
    return make("p", "note", `Probabilities stated by the model: ${shares.join(", ")}.`);
  }

  function decision(one, opened) {
    const outcome = make("span", one.outcome.startsWith(FALLBACK) ? "outcome fallback" : "outcome", outcomeOf(one));
    const heading = make("h3", "", `${game.names[one.seat]}: `, link(`#${one.link}`, one.question), " ", make("b", "", answered(one.answer)), " ", outcome);
    const first = one.asked_with ? game.decisions.find((other) => other.number === one.asked_with) : one;
    const asked = make("details", "asked", make("summary", "", "Prompt, reply and cost"), ...first.attempts.map((each, number) => attempt(each, number, first.attempts.length)));
    if (one.asked_with) asked.firstChild.append(make("span", "", `: answered in one request with `), link(`#${first.link}`, first.question));
    asked.open = opened === one.link;
    asked.addEventListener("toggle", () => toEnds(asked));
    const box = make("article", "decision", heading, asked, make("p", "note", make("small", "", `Decision ${one.number}, seat ${one.seat}, node ${one.node} (${one.method})`)));
    box.id = `asked-${one.link}`; // not the address itself: the browser would scroll past the table
    box.classList.toggle("linked", opened === one.link);
    const told = one.outcome.startsWith(FALLBACK) ? null : odds(one, first.attempts);
    if (told) heading.after(told);
    if (one.p_bluff !== null) heading.after(stated(one));
    return box;
  }

  // Only the end of a prompt differs from the previous one.
  const toEnds = (element) => element.querySelectorAll("pre").forEach((body) => { body.scrollTop = body.scrollHeight; });

  // --- Turn by turn ---

  function controls() {
    const free = at && game.turns[at - 1].free ? ", a free turn" : "";
    $("turn").textContent = at ? `turn ${at} of ${last}${isOver() ? "" : " so far"}${free}` : `deal (${count(last, "turn")} follow)`;
    $("slider").value = at;
    document.querySelectorAll("#strip .now").forEach((line) => ["x1", "x2"].forEach((end) => line.setAttribute(end, at)));
    const chances = document.querySelector("#strip .chances");
    if (chances) chances.textContent = `At this turn: ${game.names.map((name, seat) => `${name} ${Math.round((100 * game.odds.won[at][seat]) / game.odds.playouts)} %`).join(", ")}.`;
    $("strip")?.classList.toggle("closed", !open);
    $("slider").setAttribute("aria-valuetext", $("turn").textContent);
    $("open").textContent = open ? "Hide hands" : "Show hands";
    for (const button of document.querySelectorAll("[data-go]")) {
      const stuck = ["first", "back"].includes(button.dataset.go) ? at === 0 : at === last;
      button.setAttribute("aria-disabled", String(stuck));
    }
    for (const button of document.querySelectorAll("[data-find]")) button.setAttribute("aria-disabled", String(!next(button.dataset.find)));
    const isLive = viewer.isAtNewest() && !isOver();
    $("play").setAttribute("aria-disabled", String(isLive));
    $("play").classList.toggle("primary", !isLive);
    $("play").textContent = isLive ? "● Live" : timer ? "❚❚ Pause" : "▶ Play";
  }

  function show(turnNumber, opened = "") {
    at = Math.max(0, Math.min(last, turnNumber));
    const turn = at ? game.turns[at - 1] : null;
    const said = turn ? game.story[at - 1] : game.start || "The cards are dealt.";
    $("said").replaceChildren(make("p", "", said), ...(at === last && game.ending ? [make("p", "", game.ending)] : []));
    if (at === last && game.final) document.title = document.querySelector("h1").textContent = game.final;
    controls();
    if (game.panels) {
      panels(states[at], turn);
    } else {
      seats(states[at], turn);
      pile(turn);
    }
    $("decisions").classList.remove("sheet");
    const asked = decisionsHere().sort((one, other) => (other.link === opened) - (one.link === opened)); // what was linked to comes first
    const hidden = asked.length ? [make("p", "note", "Model requests and replies reveal their cards. Press “Show hands” (H) to see both.")] : [];
    $("decisions").replaceChildren(...(open ? asked.map((one) => decision(one, opened)) : hidden));
    toEnds($("decisions"));
    story.forEach((item, place) => item.classList.toggle("here", place === at - 1));
    const [list, item] = [$("story").querySelector("ol"), story[at - 1]];
    list.scrollTop = item ? item.offsetTop - list.offsetTop - list.clientHeight / 2 : 0;
  }

  function goTo(turn) {
    pause();
    step(turn);
  }

  function step(turn) {
    show(turn);
    history.replaceState(null, "", `#turn-${at}`);
  }

  const next = (kind) => finds.get(kind)?.find((turn) => turn > at);

  // --- Playing ---

  function play() {
    if (at === last && !isOver()) return; // it goes on by itself
    if (at === last) step(0);
    $("said").setAttribute("aria-live", "off");
    const on = () => {
      step(at + 1);
      if (at === last) {
        pause();
        viewer.playedOut();
      } else timer = setTimeout(on, Number($("speed").value));
    };
    timer = setTimeout(on, Math.min(400, Number($("speed").value)));
    controls();
  }

  function pause() {
    clearTimeout(timer);
    timer = 0;
    $("said").setAttribute("aria-live", "polite");
    controls();
  }

  // --- Buttons, keys and addresses ---

  const go = { first: () => goTo(0), back: () => goTo(at - 1), on: () => goTo(at + 1), last: () => goTo(last) };
  const keys = { ArrowLeft: go.back, ArrowRight: go.on, Home: go.first, End: go.last };
  const find = (kind) => { if (next(kind)) goTo(next(kind)); };
  const toggle = () => { open = !open; show(at); };
  const playOrPause = () => (timer ? pause() : play());

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch { // a lone %, which names nothing here
      return text;
    }
  }

  // A linked decision is shown below the table or, on a phone, in a sheet over its lower half.
  function bringUp(box) {
    const sheet = $("decisions");
    const close = make("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => { sheet.classList.remove("sheet"); box.scrollIntoView(); });
    sheet.classList.add("sheet");
    sheet.prepend(close);
    const top = (element) => element.getBoundingClientRect().top;
    if (getComputedStyle(sheet).position === "sticky") scrollBy(0, top($("said")) - document.querySelector(".controls").offsetHeight);
    else scrollBy(0, Math.max(0, Math.min(top(box) + box.offsetHeight - innerHeight, top(box) - LEAST_TABLE * innerHeight)));
  }

  // #turn-7, or #turn-7-C for a decision.
  function fromAddress() {
    const named = /^#turn[-=](\d+)(-.+)?$/.exec(decoded(location.hash));
    pause();
    const first = location.hash === "#play" ? 0 : game.opens ?? 0;
    show(named ? Number(named[1]) : isOver() ? first : last, named?.[2] ? `turn-${named[1]}${named[2]}` : "");
    if (named) $("viewer").scrollIntoView();
    if (!named && at === game.opens && game.opens_at) $("said").append(make("p", "note", `Starts at the ${game.opens_at}.`));
    const linked = named?.[2] && $(`asked-turn-${named[1]}${named[2]}`);
    if (linked) bringUp(linked);
    if (location.hash === "#play") play();
  }

  function pressed(event) {
    const letter = event.key.toLowerCase();
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("pre, select, .scroll, .tabs")) return;
    if (event.key === " ") {
      if (event.target.closest("button, a, input, summary")) return;
      event.preventDefault();
      playOrPause();
    } else if (letter === "h") {
      toggle();
    } else if (event.key in keys) {
      event.preventDefault();
      keys[event.key]();
    } else {
      for (const kind of finds.keys()) if (letter === kind[0]) find(kind);
    }
  }

  for (const button of document.querySelectorAll("[data-go]")) button.addEventListener("click", () => go[button.dataset.go]());
  $("play").addEventListener("click", playOrPause);
  $("open").addEventListener("click", toggle);
  $("slider").addEventListener("input", (event) => goTo(Number(event.target.value)));
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", fromAddress);
  // Used by live.js, for a game or a run in progress.
  const viewer = { game, shared, tell, show, controls, isOver, isOpen: () => open, isAtNewest: () => at === last && !timer, playedOut: () => {} };

  document.querySelector(".table").append($("decisions"), $("story")); // beside each other where there is room
  tell();
  neighbours();
  $("proof").textContent = game.proof;
  $("story").open = !game.live && last < 60; // a game that is watched is not told before it is shown
  $("viewer").hidden = false;
  if (game.live) window.DUBITO_FOLLOW(viewer);
  fromAddress();
})();
