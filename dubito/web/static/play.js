// The page of Dubito: the person's hand and moves.

import { $, count, make } from "./page.js";
import { rank, Table } from "./table.js";
import { complain, Flow } from "./flow.js";
import { tip } from "./tips.js";

const MOST = 3;
const HARD_WIN = "A hard win: you were the first to get rid of all cards";
const SOFT_WIN = "A soft win: you got rid of all your cards before the last two";
const LOST_DUEL = "Your opponent was the first to get rid of all cards.";
const LOST = "You were one of the last two players with cards.";

let table;
let chosen = new Set(); // indexes in the hand
let claimed = false; // whether the person chose the number
const flow = new Flow({
  begin,
  show,
  controls,
  end,
  focus: () => $("hand").querySelector("button")?.focus({ preventScroll: true }),
  patience: (shown, speed) => (shown.shown || shown.won.length ? 2 * speed : speed),
});

function begin(game) {
  table = new Table(game);
  $("party").hidden = true;
  $("number").replaceChildren(...game.words.many.slice(1).map((word, index) => new Option(word, index + 1)));
}

function show(frame) {
  table.show(frame);
  table.reveal(frame, Number($("speed").value));
  $("now").hidden = !(frame.shown || frame.won.length || frame.mover === null || frame.to_move === null);
  if (frame.won.includes(flow.game.me)) celebrate();
  $("skip").textContent = frame.places[flow.game.me] === null ? "Skip to my turn" : "Skip to the end";
  chosen = new Set();
  claimed = false;
  hand();
}

function end(game) {
  const place = flow.frame.places[game.me];
  const left = flow.frame.hand.map((value) => table.card(value));
  if (game.result === "unfinished") return ["Unfinished", "The game was stopped after too many turns.", left];
  if (!place) return ["You lost", game.names.length === 2 ? LOST_DUEL : LOST, left];
  return [
    place === 1 ? "You win!" : `You came ${rank(place)}`,
    `${place === 1 ? HARD_WIN : SOFT_WIN}, after ${count(flow.frame.turn, "turn")}.`,
    [],
  ];
}

function celebrate() {
  $("party").replaceChildren(...Array.from({ length: 24 }, (_, place) => {
    const paper = make("i");
    paper.style.left = `${(place * 37) % 100}%`;
    paper.style.animationDelay = `${(place % 7) * 90}ms`;
    return paper;
  }));
  $("party").hidden = false;
}

function hand() {
  const { frame, game, mine } = flow;
  const seen = {};
  const cards = frame.hand.map((value, index) => {
    const button = table.card(value, "button");
    seen[value] = (seen[value] || 0) + 1;
    const held = frame.hand.filter((other) => other === value).length;
    const name = game.words.one[value];
    button.setAttribute("aria-label", held > 1 ? `${name}, ${seen[value]} of ${held}` : name);
    button.type = "button";
    button.tabIndex = index === 0 ? 0 : -1;
    button.setAttribute("aria-pressed", chosen.has(index));
    button.setAttribute("aria-disabled", !mine);
    button.addEventListener("click", () => choose(index));
    return button;
  });
  window.dubitoCards.fan($("hand"), cards);
  $("own").hidden = frame.hand.length === 0;
}

const buttons = () => [...$("hand").querySelectorAll("button")];

function choose(index) {
  if (!flow.mine) return;
  if (chosen.has(index)) chosen.delete(index);
  else if (chosen.size < MOST) chosen.add(index);
  else return complain(`You can play at most ${MOST} cards.`);
  complain("");
  buttons()[index].setAttribute("aria-pressed", chosen.has(index));
  controls();
}

function picked() {
  return [...chosen].sort((a, b) => a - b).map((index) => flow.frame.hand[index]);
}

function controls() {
  const { frame, mine } = flow;
  const opening = mine && frame.board === 0;
  const cards = picked();
  $("claiming").hidden = !opening;
  const own = cards.find((value) => value !== 0);
  if (opening && !claimed && own) $("number").value = own;
  const number = opening ? Number($("number").value) : frame.number;
  $("put").disabled = !mine || cards.length === 0;
  $("put").textContent = !mine || !cards.length
    ? "Play"
    : `Play ${opening ? count(cards.length, "card") : table.claim(cards.length, number)}`;
  $("doubt").hidden = opening || !mine;
  $("doubt").disabled = !mine || !frame.can_doubt;
  for (const button of buttons()) button.setAttribute("aria-disabled", !mine);
  $("prompt").textContent = prompt(frame, mine, opening);
  const isBluff = cards.length > 0 && cards.some((value) => ![0, number].includes(value));
  $("hint").replaceChildren(...hint(frame, cards, isBluff));
  advise(frame, opening, isBluff);
}

function prompt(frame, mine, opening) {
  if (frame.to_move === null || frame.places[flow.game.me]) return "You are out.";
  if (!mine) return flow.thinking || "Wait for your turn";
  return opening ? "Your turn: you open the round" : `Your turn${frame.can_doubt ? "" : ": nobody can doubt now"}`;
}

function hint(frame, cards, isBluff) {
  if (!flow.mine) return [];
  if (!cards.length) return [frame.can_doubt ? "Pick one to three cards, or doubt." : "Pick one to three cards."];
  return ["This would be ", make("b", "", isBluff ? `a ${flow.game.words.lie}` : "honest"), "."];
}

function advise(frame, opening, isBluff) {
  if (!flow.mine) return tip("");
  if (isBluff) return tip("bluff");
  if (opening) return tip("open");
  const about = { who: flow.game.names[frame.last_player], claim: table.claim(frame.last, frame.number) };
  tip(frame.can_doubt ? "doubt" : "", about);
}

function move(event) {
  const all = buttons();
  const at = all.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (at < 0 || to === undefined || !all[to]) return;
  event.preventDefault();
  all[at].tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
}

$("hand").addEventListener("keydown", move);
$("put").addEventListener("click", () => {
  const number = flow.frame.board === 0 ? Number($("number").value) : null;
  flow.send({ cards: picked(), number });
});
$("doubt").addEventListener("click", () => flow.send({ doubt: true }));
$("number").addEventListener("change", () => {
  claimed = true;
  controls();
});
flow.start();
