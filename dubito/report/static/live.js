// Follows a game or a run in progress: polls the server and updates the viewer.
"use strict";
window.DUBITO_FOLLOW = (viewer) => {
  const POLL = 500; // milliseconds between polls
  const { game, shared } = viewer;
  const { news: address, ...which } = game.live;
  const line = Object.assign(document.createElement("p"), { id: "news", className: "note" });
  const [speed, hands] = ["speed", "open"].map((id) => document.getElementById(id));
  let newer = null; // the run's next finished game
  let waits = false; // whether the reader waits for it

  async function follow() {
    let wait = POLL;
    try {
      const had = has();
      const answer = await fetch(`${address}?${new URLSearchParams({ ...which, ...(viewer.isOver() ? {} : had) })}`);
      const news = await answer.json();
      if (!answer.ok) throw new Error(news.error);
      if (!viewer.isOver()) take(news, had);
      if (news.newest <= which.game) line.replaceChildren();
      else if (news.newest !== newer || !line.firstElementChild) offer(news.newest);
      if (news.ended && viewer.isOver()) return;
    } catch (error) {
      wait = 10 * POLL;
      line.textContent = error instanceof TypeError ? "The server does not answer." : error.message;
    }
    setTimeout(follow, wait);
  }

  // The length of the final part of each list. Decisions for the next turn may still change.
  function has() {
    const turns = game.turns.length;
    const decisions = game.decisions.filter((one) => one.turn <= turns).length;
    return {
      turns,
      story: turns,
      decisions,
      pieces: game.pieces.length,
      faces: game.faces.length,
      plays: game.plays.length,
      shared: shared.length,
    };
  }

  const looks = () =>
    JSON.stringify([
      game.turns.length,
      game.decisions.length,
      game.to_move,
      game.thinks,
      game.words,
      game.over,
      game.warnings,
    ]);

  // Readers at the newest turn move on to the next one. Others stay where they are.
  function take(news, had) {
    const wasAtNewest = viewer.isAtNewest();
    const before = looks();
    for (const [key, first] of Object.entries(had)) {
      (key === "shared" ? shared : game[key]).splice(first, Infinity, ...news[key]);
    }
    for (const key of ["ending", "winners", "over", "to_move", "thinks", "words", "warnings", "final"]) {
      game[key] = news[key];
    }
    if (looks() === before) return;
    viewer.tell();
    if (wasAtNewest) viewer.show(game.turns.length);
    else viewer.controls();
  }

  function offer(number) {
    newer = number;
    const link = Object.assign(document.createElement("a"), { href: `${number}#play`, textContent: "show it" });
    line.replaceChildren(`Game ${number} is finished: `, link);
    if (waits && viewer.isAtNewest()) goOn();
  }

  const goOn = () => location.assign(`${newer}#play`);

  // Readers at the end of a game move on to the run's next game.
  viewer.playedOut = () => {
    waits = true;
    if (newer !== null) goOn();
  };
  // Keeps settings from one game to the next.
  const [chosen, open] = JSON.parse(sessionStorage.getItem("dubito watch") || "[]");
  if (chosen) speed.value = chosen;
  while (open && viewer.hands() !== open) hands.click();
  window.addEventListener("pagehide", () => {
    sessionStorage.setItem("dubito watch", JSON.stringify([speed.value, viewer.hands()]));
  });
  line.setAttribute("role", "status");
  document.getElementById("said").after(line);
  setTimeout(follow, 0);
};
