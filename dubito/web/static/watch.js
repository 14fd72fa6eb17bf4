// A finished game, stepped through turn by turn; #turn-12 in the address points at a turn.

import { $, Table, ask } from "./table.js";

let game, table;
let at = 0;

function go(to) {
  at = Math.max(0, Math.min(game.frames.length - 1, to));
  const frame = game.frames[at];
  table.show(frame, $("open").checked);
  $("now").textContent = frame.said.join(" ");
  $("slider").value = at;
  $("turn").textContent = `${at} of ${game.frames.length - 1}`;
  $("first").disabled = $("back").disabled = at === 0;
  $("on").disabled = $("last").disabled = at === game.frames.length - 1;
  history.replaceState(null, "", `#turn-${at}`);
}

function fromAddress() {
  go(Number(/^#turn-(\d{1,6})$/.exec(location.hash)?.[1] || 0));
}

function keys(event) {
  if (event.target.matches("input[type=range]")) return;
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: game.frames.length - 1 }[event.key];
  if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  go(to);
}

async function start() {
  try {
    game = await ask(`/api/games/${encodeURIComponent($("watch").dataset.game)}`);
  } catch (error) {
    $("error").textContent = error.message;
    return;
  }
  table = new Table(game);
  $("slider").max = game.frames.length - 1;
  const jokers = ["no joker", "one joker", "two jokers"][game.rules.jokers];
  $("facts").textContent = `${jokers}, win rule ${game.rules.win_rule}; seed ${game.seed}, deal ${game.deal}.`;
  $("first").addEventListener("click", () => go(0));
  $("back").addEventListener("click", () => go(at - 1));
  $("on").addEventListener("click", () => go(at + 1));
  $("last").addEventListener("click", () => go(game.frames.length - 1));
  $("slider").addEventListener("input", () => go(Number($("slider").value)));
  $("open").addEventListener("change", () => go(at));
  document.addEventListener("keydown", keys);
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
}

start();
