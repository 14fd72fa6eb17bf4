// The person's game: shows the frames one by one, then asks for a move and sends it.

import { $, Table, ask, card, count, make } from "./table.js";

const MOST = 3;
const MANY = 14; // cards, above which the buttons stay in view
const RESULTS = {
  hard_wins: ["A hard win!", "You were the first to be out of cards."],
  soft_wins: ["A soft win!", "You got rid of all your cards and have not lost."],
  losses: ["You lose this one.", "The last two players at the table lose."],
  unfinished: ["Unfinished.", "The game was stopped after too many turns."],
};

let game, table;
let turn = 0; // turns played, as the server counts them
let frame; // the one that is shown
let chosen = new Set(); // places in the hand
let claimed = false; // whether the number was chosen by the person
let busy = false;
let endPause = null;
let skipping = false;

function pause(milliseconds) {
  return new Promise((resolve) => {
    endPause = resolve;
    setTimeout(resolve, milliseconds);
  });
}

function patience(shown) {
  const speed = Number($("speed").value);
  return shown.shown || shown.won.length ? 2 * speed : speed;
}

// Shows what came, and asks on until the game rests: a model may think for minutes.
async function follow(answer, frames = answer.frames) {
  busy = true;
  skipping = false;
  for (;;) {
    game = { ...game, ...answer };
    turn = answer.turn;
    await playback(frames);
    if (game.asked || game.over || game.trouble) break;
    controls();
    answer = await ask(`/api/table?since=${turn + 1}`).catch((error) => ({ turn, frames: [], trouble: error.message }));
    frames = answer.frames;
  }
  busy = false;
  $("skip").disabled = true;
  controls();
  if (myTurn()) $("own").scrollIntoView({ block: "nearest" });
}

async function playback(frames) {
  frame ??= frames[0];
  $("skip").disabled = skipping || (frames.length < 2 && game.asked);
  controls();
  for (const [index, next] of frames.entries()) {
    show(next);
    const last = index === frames.length - 1;
    if (!(last && (game.asked || game.over)) && !skipping && patience(next) > 0) await pause(patience(next));
  }
}

function show(next) {
  frame = next;
  table.show(frame);
  $("now").textContent = frame.said.join(" ");
  for (const line of frame.said) {
    const item = make("li", { null: "dealt", [game.me]: "mine" }[frame.mover] || "", line);
    item.value = frame.turn;
    $("log").prepend(item);
  }
  if (frame.won.includes(game.me)) celebrate();
  chosen = new Set();
  claimed = false;
  hand();
}

function celebrate() {
  const title = frame.places[game.me] === 1 ? RESULTS.hard_wins[0] : RESULTS.soft_wins[0];
  $("party").replaceChildren(...Array.from({ length: 24 }, () => make("i")), make("b", "", title));
  setTimeout(() => $("party").replaceChildren(), 4000);
}

function myTurn() {
  return !busy && game.asked;
}

function hand() {
  const mine = myTurn();
  const seen = {};
  const cards = frame.hand.map((value, index) => {
    const button = card(value, game.words, "button");
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
  if (!myTurn()) return;
  if (chosen.has(index)) chosen.delete(index);
  else if (chosen.size < MOST) chosen.add(index);
  else return complain(`You may put down at most ${MOST} cards.`);
  complain("");
  const button = $("hand").children[index];
  button.setAttribute("aria-pressed", chosen.has(index));
  controls();
}

function picked() {
  return [...chosen].sort((a, b) => a - b).map((index) => frame.hand[index]);
}

function controls() {
  const mine = myTurn();
  const opening = mine && frame.board === 0;
  const cards = picked();
  $("claiming").hidden = !opening;
  const own = cards.find((value) => value !== 0);
  if (opening && !claimed && own) $("number").value = own;
  const number = opening ? Number($("number").value) : frame.number;
  $("put").disabled = !mine || cards.length === 0;
  $("put").textContent = mine && cards.length ? `Put down ${count(cards.length, "card")} as ${game.words.many[number]}` : "Put down";
  $("doubt").hidden = opening;
  $("doubt").disabled = !mine || !frame.can_doubt;
  for (const button of $("hand").children) button.setAttribute("aria-disabled", !mine);
  $("own").classList.toggle("asked", mine);
  const thinks = busy && !game.asked && !game.over && !game.trouble ? frame.to_move : null;
  $("thinks").textContent = thinks === null || thinks === game.me ? "" : `${game.names[thinks]} is thinking …`;
  $("trouble").hidden = busy || !game.trouble;
  $("why").textContent = game.trouble || "";
  $("prompt").textContent = !mine ? "Your hand" : opening
    ? "Your turn: you open a round. Choose 1 to 3 cards, and what you claim they are."
    : `Your turn: put down 1 to 3 cards as ${game.words.many[frame.number]}${frame.can_doubt ? ", or doubt" : ""}.`;
  if (!busy && game.over) finale();
}

function complain(sentence) {
  $("error").textContent = sentence;
}

async function send(move) {
  if (!myTurn()) return;
  complain("");
  busy = true;
  controls();
  try {
    await follow(await ask("/api/moves", { table: game.table, turn, answer: move }));
    if (myTurn()) $("hand").querySelector("button")?.focus({ preventScroll: true });
  } catch (error) {
    busy = false;
    if (error.status === 409 || error.status === 404) return start(error.message);
    complain(error.message);
    controls();
  }
}

function finale() {
  const [title, how] = RESULTS[game.result];
  $("own").hidden = true;
  $("result").textContent = title;
  $("how").textContent = how;
  $("watch").href = `/games/${encodeURIComponent(game.record)}`;
  $("saved").textContent = [`Saved as ${game.record}. Seed ${game.seed}, you in seat ${game.me}.`, ...game.errors].join(" ");
  if (!$("end").hidden) return;
  $("end").hidden = false;
  $("end").focus();
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

function wire() {
  $("hand").addEventListener("keydown", move);
  $("put").addEventListener("click", () => {
    const number = frame.board === 0 ? Number($("number").value) : null;
    send({ cards: picked(), number });
  });
  $("doubt").addEventListener("click", () => send({ doubt: true }));
  $("number").addEventListener("change", () => { claimed = true; controls(); });
  $("again").addEventListener("click", again);
  $("skip").addEventListener("click", () => { skipping = true; endPause?.(); });
  $("speed").value = localStorage.getItem("dubito speed") || "1100";
  $("speed").addEventListener("change", () => { localStorage.setItem("dubito speed", $("speed").value); endPause?.(); });
}

async function again() {
  try {
    await ask("/api/again", {});
  } catch (error) {
    if (!error.status) {
      $("why").textContent = error.message;
      return;
    }
  }
  await start();
}

async function start(complaint = "") {
  try {
    game = await ask("/api/table");
  } catch (error) {
    complain(error.message);
    $("own").hidden = false;
    $("trouble").hidden = true;
    $("prompt").replaceChildren("There is no game to show. ", Object.assign(make("a", "button", "To the start"), { href: "/" }));
    return;
  }
  table = new Table(game);
  $("rules-link").href = `/rules?${new URLSearchParams({ game: game.game, players: game.names.length, ...game.rules })}`;
  $("rules-link").target = "_blank";
  $("number").replaceChildren(...game.words.many.slice(1).map((word, index) => new Option(word, index + 1)));
  $("log").replaceChildren();
  const isNew = location.hash === "#new";
  if (isNew) history.replaceState(null, "", "/table");
  else game.frames.slice(0, -1).forEach((old) => { old.won = []; show(old); });
  await follow(game, isNew ? game.frames : game.frames.slice(-1));
  complain(complaint);
}

wire();
start();
