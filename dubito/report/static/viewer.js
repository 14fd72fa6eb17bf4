// The game viewer: steps through a game. It shows the states stored in the page and knows no rules. All texts are
// set as text, never as HTML. The table is drawn by board.js, charts by courses.js, models' decisions by decisions.js.
"use strict";
(() => {
  const game = JSON.parse(document.getElementById("game").textContent);
  const shared = game.shared || window.DUBITO_SHARED || [];
  const $ = (id) => document.getElementById(id);
  const MISTAKE = "model mistake";
  const [ONE, ALL, NONE] = ["one", "all", "none"]; // hands that are open
  const NEXT = { [ONE]: [ALL, "Show all hands"], [ALL]: [NONE, "Hide hands"], [NONE]: [ONE, "Show one hand"] };
  const NORMAL = 2000; // milliseconds per turn at the usual speed
  const story = []; // the lines of the game in words
  const first = game.first ?? 0; // number of turns before this page
  let last;
  let states;
  let finds;
  let at = 0;
  let open = ONE; // which hands are open
  // The player whose hand is open: the person, or the first model.
  let chosen = game.me ?? Math.max(0, (game.kinds ?? []).findIndex((kind) => ["model", "fake model"].includes(kind)));
  let timer = 0; // timer for the next turn during playback
  let until = Infinity; // the turn to stop at

  // --- The page's data ---

  function panelStates() {
    const all = [game.panels];
    for (const turn of game.turns) all.push(Object.assign([...all[all.length - 1]], turn.panels).filter(Boolean));
    return all;
  }

  // The turns of each kind of move that has a search button.
  function turnsByKind() {
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

  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const isOver = () => game.over !== false; // set only for games in progress
  const isNewest = () => at === last;
  const decisionsAt = (turn) => game.decisions.filter((one) => turn && one.turn === turn);
  // Returns the decisions to show with this turn. The newest turn includes those for the next one.
  const decisionsHere = () => [...decisionsAt(at), ...(isNewest() && !isOver() ? decisionsAt(last + 1) : [])];

  const view = {
    game,
    shared,
    make,
    link,
    count,
    goTo,
    front: chosen,
    isNewest,
    at: () => at,
    chosen: () => chosen,
    states: () => states,
    isOpen: (seat) => open === ALL || (open === ONE && seat === chosen),
    isEnd: () => isNewest() && isOver(),
  };
  const board = window.dubitoBoard(view);
  const courses = window.dubitoCourses(view);
  const decisions = window.dubitoDecisions(view);
  const moment = window.dubitoMoment?.(view); // not in shared pages

  // --- Parts that do not depend on the turn, but grow during a game in progress ---

  function tell() {
    last = game.turns.length;
    states = panelStates();
    finds = turnsByKind();
    $("about").textContent = game.live || game.sent ? game.about : `${game.about} ${game.ending}`;
    for (const old of document.querySelectorAll("#about ~ .warning")) old.remove();
    $("about").after(...game.warnings.map((words) => make("p", "warning", words)));
    $("slider").max = last;
    $("story").lastElementChild.textContent = game.ending;
    const lines = game.story.slice(story.length).map((words, place) =>
      make("li", "", link(`#turn-${story.length + place + 1}`, words))
    );
    $("story").querySelector("ol").append(...lines);
    story.push(...lines);
    courses.draw();
    for (const kind of finds.keys()) addFind(kind);
  }

  function addFind(kind) {
    if (document.querySelector(`[data-find="${kind}"]`)) return;
    const button = make("button", "", `Next ${kind}`);
    button.type = "button";
    button.dataset.find = kind;
    button.title = kind[0].toUpperCase();
    button.addEventListener("click", () => find(kind));
    $("finds").append(button);
    $("keys").append(`, ${kind[0].toUpperCase()} goes to the next ${kind}`);
  }

  function addNeighbours() {
    const games = window.DUBITO_GAMES || [];
    const here = games.indexOf(game.game);
    for (const [place, rel] of [[here - 1, "prev"], [here + 1, "next"]]) {
      if (here < 0 || games[place] === undefined) continue;
      const other = link(`${games[place]}.html`, `Game ${games[place]}`);
      other.rel = rel;
      $("about").append(" ", other);
    }
  }

  // --- Turn by turn ---

  function controls() {
    const note = at && game.turns[at - 1].note ? `, ${game.turns[at - 1].note}` : "";
    $("turn").textContent = at
      ? `turn ${at + first} of ${last + first}${isOver() ? "" : " so far"}${note}`
      : `deal (${count(last, "turn")} follow)`;
    $("slider").value = at;
    courses.mark(at, open === ALL);
    $("slider").setAttribute("aria-valuetext", $("turn").textContent);
    $("open").textContent = NEXT[open][1];
    for (const button of document.querySelectorAll("[data-go]")) {
      const stuck = ["first", "back"].includes(button.dataset.go) ? at === 0 : at === last;
      button.setAttribute("aria-disabled", String(stuck));
    }
    for (const button of document.querySelectorAll("[data-find]")) {
      button.setAttribute("aria-disabled", String(!next(button.dataset.find)));
    }
    const isLive = viewer.isAtNewest() && !isOver();
    $("play").setAttribute("aria-disabled", String(isLive));
    $("play").classList.toggle("primary", !isLive);
    $("play").textContent = isLive ? "● Live" : timer ? "❚❚ Pause" : "▶ Play";
  }

  function show(turnNumber, opened = "", isPlayed = false) {
    window.dubitoScene.stop();
    at = Math.max(0, Math.min(last, turnNumber));
    const turn = at ? game.turns[at - 1] : null;
    const said = turn ? game.story[at - 1] : game.start;
    $("said").replaceChildren(
      make("p", "", said),
      ...(view.isEnd() && game.ending ? [make("p", "", game.ending)] : []),
    );
    if (view.isEnd() && game.final) document.title = document.querySelector("h1").textContent = game.final;
    controls();
    board.show(states[at], turn, isPlayed);
    showDecisions(opened);
    moment?.show();
    story.forEach((item, place) => item.classList.toggle("here", place === at - 1));
    const [list, item] = [$("story").querySelector("ol"), story[at - 1]];
    list.scrollTop = item ? item.offsetTop - list.offsetTop - list.clientHeight / 2 : 0;
  }

  function showDecisions(opened) {
    const here = decisionsHere().sort((one, other) => (other.link === opened) - (one.link === opened)); // the linked one comes first
    const hidden = here.length
      ? [make("p", "note", "Model requests and replies reveal their cards. Press “Show one hand” (H) to see both.")]
      : [];
    $("decisions").classList.remove("sheet");
    $("thoughts").replaceChildren(...(open === NONE ? [] : here.map(decisions.thought)));
    $("decisions").replaceChildren(...(open !== NONE ? here.map((one) => decisions.decision(one, opened)) : hidden));
    decisions.toEnds($("decisions"));
  }

  function goTo(turn) {
    pause();
    step(turn);
  }

  function step(turn, isPlayed) {
    show(turn, "", isPlayed);
    history.replaceState(null, "", `#turn-${at}`);
  }

  // Steps on. A turn with a scene is played, and another step ends it.
  async function stepOn() {
    const turn = game.turns[at];
    if (window.dubitoScene.isOn() || !turn?.scene) return goTo(at + 1);
    pause();
    const end = await board.act(states[at], turn, Number($("speed").value) / NORMAL);
    if (end !== "stopped") step(at + 1, end === "ended");
  }

  const stepBack = () => goTo(window.dubitoScene.isOn() ? at : at - 1);

  function next(kind) {
    return finds.get(kind)?.find((turn) => turn > at);
  }

  // --- Playing ---

  function play(stopAt = Infinity) {
    if (isNewest() && !isOver()) return; // new turns appear by themselves
    if (isNewest()) step(0);
    until = stopAt;
    $("said").setAttribute("aria-live", "off");
    const speed = () => Number($("speed").value);
    const goOn = async () => {
      const next = game.turns[at];
      const end = next.scene ? await board.act(states[at], next, speed() / NORMAL) : "";
      if (end === "stopped") return;
      const isLast = at + 1 >= Math.min(last, until);
      if (isLast) $("said").setAttribute("aria-live", "polite"); // before its text changes, so that it is read out
      step(at + 1, end === "ended" && at + 1 < until);
      if (isLast) {
        pause();
        if (isNewest()) viewer.playedOut();
      } else timer = setTimeout(goOn, speed());
    };
    timer = setTimeout(goOn, Math.min(400, speed()));
    controls();
  }

  function pause() {
    window.dubitoScene.stop();
    clearTimeout(timer);
    timer = 0;
    $("said").setAttribute("aria-live", "polite");
    controls();
  }

  // --- Buttons, keys and addresses ---

  const go = { first: () => goTo(0), back: stepBack, on: stepOn, last: () => goTo(last) };
  const keys = { ArrowLeft: go.back, ArrowRight: go.on, Home: go.first, End: go.last };
  const playOrPause = () => (timer ? pause() : play());

  function find(kind) {
    if (next(kind)) goTo(next(kind));
  }

  function toggle() {
    open = NEXT[open][0];
    show(at);
  }

  function choose(seat) {
    if (seat < 0 || window.dubitoScene.isOn()) return;
    [chosen, open] = [seat, ONE];
    show(at);
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch { // an invalid escape
      return text;
    }
  }

  // Shows a linked decision next to the table or, on a phone, in a sheet over its lower half.
  function bringUp(box) {
    const sheet = $("decisions");
    const close = make("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => {
      sheet.classList.remove("sheet");
      box.scrollIntoView();
    });
    sheet.classList.add("sheet");
    sheet.prepend(close);
    if (getComputedStyle(sheet).position === "fixed") $("said").scrollIntoView({ block: "start" });
    else box.scrollIntoView({ block: "nearest" });
  }

  // Reads #turn-7, or #turn-7-C for a decision.
  function fromAddress(event) {
    const named = /^#turn[-=](\d+)(-.+)?$/.exec(decoded(location.hash));
    pause();
    const asked = named?.[2] && game.decisions.find((one) => one.link === `turn-${named[1]}${named[2]}`);
    if (asked) chosen = asked.seat;
    const start = location.hash === "#play" ? 0 : game.opens ?? 0;
    show(named ? Number(named[1]) : isOver() ? start : last, named?.[2] ? `turn-${named[1]}${named[2]}` : "");
    if (named && (event || !game.sent)) $("viewer").scrollIntoView(); // a shared page opens at its headline
    const linked = named?.[2] && $(`asked-turn-${named[1]}${named[2]}`);
    if (linked) bringUp(linked);
    if (location.hash === "#play") play();
  }

  function press(event) {
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

  for (const button of document.querySelectorAll("[data-go]")) {
    button.addEventListener("click", () => go[button.dataset.go]());
  }
  $("play").addEventListener("click", playOrPause);
  $("open").addEventListener("click", toggle);
  $("link").addEventListener("click", async () => {
    const address = `${location.href.split("#")[0]}#turn-${at}`;
    try {
      await navigator.clipboard.writeText(address);
      $("link").textContent = "Copied";
      setTimeout(() => $("link").textContent = "Copy link", NORMAL);
    } catch { // if the browser forbids it, the reader can copy it from there
      prompt("The address of this turn:", address);
    }
  });
  $("seats").addEventListener(
    "click",
    (event) => choose([...$("seats").children].indexOf(event.target.closest(".seat"))),
  );
  $("slider").addEventListener("input", (event) => goTo(Number(event.target.value)));
  document.addEventListener("keydown", press);
  window.addEventListener("hashchange", fromAddress);
  // Used by live.js for games and runs in progress, and by sender.js.
  const viewer = {
    game,
    shared,
    states: view.states,
    tell,
    show,
    play,
    controls,
    isOver,
    hands: () => open,
    isAtNewest: () => isNewest() && !timer,
    playedOut: () => {},
  };

  tell();
  addNeighbours();
  $("proof").textContent = game.proof;
  $("story").open = !game.live && matchMedia("(min-width: 64rem)").matches; // a live game's log must not run ahead of the table
  $("viewer").hidden = false;
  if (game.live) window.DUBITO_FOLLOW(viewer);
  fromAddress();
  if (game.sent) window.dubitoShared(viewer);
})();
