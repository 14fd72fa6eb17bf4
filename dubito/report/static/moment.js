// Lets the reader of a game play on from the start of the turn that is shown, in the seat whose hand is open.
"use strict";
window.dubitoMoment = ({ game, make, at, chosen }) => {
  const button = document.getElementById("play-on");
  const box = document.getElementById("moment");
  const { command, saved, goes_on: goesOn } = game.play_on ?? {};
  const seat = () => game.me ?? chosen(); // only the person's seat can be taken over in a game that a person played
  const turn = () => Math.max(1, at());

  function show() {
    if (!game.play_on) return;
    const who = game.me === undefined || game.me === null ? ` as ${game.names[seat()]}` : "";
    button.textContent = `Play on from here${who}`;
    button.title = `You begin at the start of turn ${turn()}.`;
    button.hidden = false;
    if (box.firstChild) open();
  }

  // Shows the command for the turn.
  function open() {
    if (saved) return box.replaceChildren();
    const text = `${command}:${turn()} --seat ${seat()}`;
    const copy = make("button", "", "Copy");
    copy.type = "button";
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "Copied";
      } catch { // if the browser forbids it, the reader can copy the selected text
        getSelection().selectAllChildren(box.querySelector("code"));
      }
    });
    const words = text.split(" ").flatMap((word, place) => [place ? " " : "", make("span", "whole", word)]);
    box.replaceChildren(`You begin at the start of turn ${turn()}. Run: `, make("code", "", ...words), " ", copy);
  }

  // Opens a table of this server.
  async function sit() {
    if (goesOn && !confirm("This abandons your current game. Play on from here?")) return;
    try {
      const answer = await fetch(`../api/games/${encodeURIComponent(saved)}/moment`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ turn: turn(), seat: seat() }),
      });
      if (answer.ok) location.href = "../table";
      else box.textContent = (await answer.json()).error;
    } catch {
      box.textContent = "The server does not respond. Is dubito web still running?";
    }
  }

  button?.addEventListener("click", () => {
    if (saved) sit();
    else if (box.firstChild) box.replaceChildren();
    else open();
  });
  return { show };
};
