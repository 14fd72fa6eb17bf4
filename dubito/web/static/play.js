// The page of a game with cards: the person's hand and moves.

import { $, Table, count, make } from "./table.js";
import { Flow, complain } from "./flow.js";

const MOST = 3;
const MANY = 14; // cards, above which the buttons stay in view
const RESULTS = {
  hard_wins: ["A hard win!", "You were the first to get rid of all cards."],
  soft_wins: ["A soft win!", "You got rid of all your cards before the last two players."],
  losses: ["You lost.", "You were one of the last two players with cards."],
  unfinished: ["Unfinished.", "The game was stopped after too many turns."],
};
const LOST_DUEL = [RESULTS.losses[0], "Your opponent was the first to get rid of all cards."];

let table;
let chosen = new Set(); // places in the hand
let claimed = false; // whether the number was chosen by the person
const flow = new Flow({
  begin, show, controls,
  end: (game) => game.result === "losses" && game.names.length === 2 ? LOST_DUEL : RESULTS[game.result],
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
  if (frame.won.includes(flow.game.me)) celebrate(frame);
  $("skip").textContent = frame.places[flow.game.me] === null ? "Skip to my turn" : "Skip to the end";
  chosen = new Set();
  claimed = false;
  hand();
}

function celebrate(frame) {
  const title = frame.places[flow.game.me] === 1 ? RESULTS.hard_wins[0] : RESULTS.soft_wins[0];
  $("party").replaceChildren(...Array.from({ length: 24 }, () => make("i")), make("b", "", title), make("p", "", frame.to_move === null ? "" : "The other players continue."));
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
  $("hand").replaceChildren(...cards);
  $("own").hidden = frame.hand.length === 0;
  $("own").classList.toggle("many", frame.hand.length > MANY);
}

function choose(index) {
  if (!flow.mine) return;
  if (chosen.has(index)) chosen.delete(index);
  else if (chosen.size < MOST) chosen.add(index);
  else return complain(`You can play at most ${MOST} cards.`);
  complain("");
  const button = $("hand").children[index];
  button.setAttribute("aria-pressed", chosen.has(index));
  controls();
}

function picked() {
  return [...chosen].sort((a, b) => a - b).map((index) => flow.frame.hand[index]);
}

function controls() {
  const { frame, game, mine } = flow;
  const opening = mine && frame.board === 0;
  const cards = picked();
  $("claiming").hidden = !opening;
  const own = cards.find((value) => value !== 0);
  if (opening && !claimed && own) $("number").value = own;
  const number = opening ? Number($("number").value) : frame.number;
  $("put").disabled = !mine || cards.length === 0;
  $("put").textContent = mine && cards.length ? `Play ${count(cards.length, "card")} as ${game.words.many[number]}` : "Play";
  $("doubt").hidden = opening;
  $("doubt").disabled = !mine || !frame.can_doubt;
  for (const button of $("hand").children) button.setAttribute("aria-disabled", !mine);
  $("prompt").textContent = !mine ? "Your hand" : opening
    ? "Your turn: you start a round. Choose 1 to 3 cards, and the number you claim."
    : `Your turn: play 1 to 3 cards as ${game.words.many[frame.number]}${frame.can_doubt ? ", or doubt" : ""}.`;
}

function move(event) {
  const buttons = [...$("hand").children];
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (at < 0 || to === undefined || !buttons[to]) return;
  event.preventDefault();
  buttons[at].tabIndex = -1;
  buttons[to].tabIndex = 0;
  buttons[to].focus();
}

$("hand").addEventListener("keydown", move);
$("put").addEventListener("click", () => {
  const number = flow.frame.board === 0 ? Number($("number").value) : null;
  flow.send({ cards: picked(), number });
});
$("doubt").addEventListener("click", () => flow.send({ doubt: true }));
$("number").addEventListener("change", () => { claimed = true; controls(); });
flow.start();
