// A game's page: the table, the person's hand, and a control for each kind of question.

import { $, count, make } from "./page.js";
import { drawnAs, revealed, Table } from "./table.js";
import { complain, Flow } from "./flow.js";
import { tip } from "./tips.js";

const NUMBERS = ["no", "one", "two", "three", "four"];

let table;
let badges = []; // of the seats before
let played; // the frame whose scene was played
let asked; // the frame whose question is shown
const flow = new Flow({
  begin,
  show,
  controls,
  end: (game) => [
    game.ended.replace(/[.]$/, ""),
    game.explained || flow.frame.said.at(-1) || "",
    hand(),
  ],
  focus,
  act,
  // Unobserved moves take no time.
  patience: (shown, speed) => (isEvent(shown) && !shown.scene ? 2 * speed : shown.said.length ? speed : 0),
});

// Plays what a move turned over, on the table as it was before.
async function act(frame, factor) {
  await window.dubitoScene.play(table.stage(), frame.scene, factor);
  played = frame;
}

// Whether a frame is worth a longer look.
const isEvent = (frame) => Boolean(revealed(frame)) || frame.said.length > 1;

function begin(game) {
  table = new Table(game);
  $("boards").classList.remove("laid");
  asked = undefined;
  $("party").hidden = true;
}

function show(frame, isNew) {
  const { me } = flow.game;
  const won = frame.badges.map((badge, seat) => badge !== badges[seat] && badge !== "" && !frame.lost[seat]);
  table.show(frame, frame === played);
  window.dubitoCards.fan($("hand"), hand());
  $("now").hidden = !isEvent(frame) && frame.to_move !== null && Boolean(frame.speech) && frame.mover !== me;
  $("skip").textContent = frame.badges[me] ? "Skip to the end" : "Skip to my turn";
  $("own").hidden = Boolean(frame.badges[me]);
  if (won[me] && isNew) celebrate();
  badges = frame.badges;
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

function controls() {
  const { frame, mine } = flow;
  const question = mine ? frame.question : null;
  $("prompt").textContent = question
    ? question.prompt || frame.sees.at(-1) || "Your turn"
    : flow.thinking || "Wait for the other players.";
  $("sees").replaceChildren(...(question ? frame.sees.slice(0, -1) : []).map((line) => make("p", drawnAs(line), line)));
  if (asked === (question && frame)) return;
  asked = question && frame;
  tip("");
  $("hand").setAttribute("role", "group");
  const [cards, buttons] = question ? KINDS[question.kind](question) : [hand(), []];
  window.dubitoCards.fan($("hand"), cards);
  $("controls").replaceChildren(...buttons);
}

// Yes-or-no questions focus their last answer, which changes the least.
function focus() {
  const { kind } = flow.frame.question;
  const all = [...document.querySelectorAll("#hand button, #controls :is(button, input):not(:disabled)")];
  all.at(kind === "bool" ? -1 : 0)?.focus({ preventScroll: true });
}

function button(text, answer, className = "") {
  const made = make("button", className, text);
  made.type = "button";
  made.addEventListener("click", () => {
    const given = answer();
    if (given !== undefined) flow.send(given);
  });
  return made;
}

const hand = () => flow.frame.hand.map((one) => window.dubitoCards.face(one));

// Lets the person choose cards, and a claim about them if there are several. `give` makes the answer.
class Chooser {
  #chosen = new Set(); // indexes of the options
  #claimed = false; // whether the person chose the claim
  #question;
  #give;

  constructor(question, give) {
    this.#question = question;
    this.#give = give;
    const { hand: faces } = flow.frame;
    const drawn = question.options.map((value, place) =>
      faces.length === question.options.length ? faces[place] : [`${value}`, `${value}`, ""]
    );
    this.cards = drawn.map((one, place) => this.#card(one, place, drawn));
    this.play = button("Play", () => this.#answer(), question.others.length ? "" : "gold");
    this.play.id = "put";
    this.claim = make("select");
    this.claim.id = "number";
    this.claim.setAttribute("aria-label", "Claim them as");
    this.claim.append(...question.claims.map(({ many }, place) => new Option(many, place)));
    this.claim.addEventListener("change", () => {
      this.#claimed = true;
      this.#update();
    });
    this.hint = make("p", "hint");
    this.hint.id = "hint";
    this.hint.setAttribute("aria-live", "polite");
    const others = question.others.map(([text, answer]) => button(text, () => answer, "gold other"));
    const label = make("label", "", "as ", this.claim);
    this.controls = [...(question.claims.length > 1 ? [label] : []), this.play, ...others, this.hint];
    $("hand").setAttribute("role", "toolbar");
    this.#update();
  }

  #card(one, place, all) {
    const card = window.dubitoCards.face(one, "button");
    const [name] = one;
    const alike = all.flatMap(([other], at) => (other === name ? [at] : []));
    const text = alike.length > 1 ? `${name}, ${alike.indexOf(place) + 1} of ${alike.length}` : name;
    card.setAttribute("aria-label", text);
    card.type = "button";
    card.tabIndex = place === 0 ? 0 : -1;
    card.setAttribute("aria-pressed", false);
    card.addEventListener("click", () => this.#choose(place));
    return card;
  }

  #choose(place) {
    if (!flow.mine) return;
    const { most } = this.#question;
    if (this.#chosen.has(place)) this.#chosen.delete(place);
    else if (most !== null && this.#chosen.size >= most) return complain(`You can play at most ${most} cards.`);
    else this.#chosen.add(place);
    complain("");
    this.cards[place].setAttribute("aria-pressed", this.#chosen.has(place));
    this.#update();
  }

  get #picked() {
    return [...this.#chosen].sort((one, other) => one - other).map((place) => this.#question.options[place]);
  }

  #answer() {
    const claim = this.#question.claims[this.claim.value];
    return this.#chosen.size ? this.#give(this.#picked, claim?.value ?? null) : undefined;
  }

  // Suggests the claim that is true of most of the cards.
  #suggest(cards) {
    const counts = this.#question.claims.map(({ honest }) => cards.filter((card) => honest.includes(card)).length);
    this.claim.value = counts.indexOf(Math.max(...counts));
  }

  #update() {
    const { claims, kind, tips, wanted } = this.#question;
    const cards = this.#picked;
    if (claims.length > 1 && !this.#claimed && cards.length) this.#suggest(cards);
    const claim = claims[this.claim.value];
    this.play.disabled = !cards.length;
    const what = claims.length === 1
      ? `${NUMBERS[cards.length] ?? cards.length} ${cards.length === 1 ? claim.one : claim.many}`
      : count(cards.length, "card");
    this.play.textContent = cards.length ? `Play ${what}` : "Play";
    const isLie = Boolean(claim) && cards.some((card) => !claim.honest.includes(card));
    const verdict = ["This would be ", make("b", "", isLie ? `a ${flow.game.lie}` : "honest"), "."];
    this.hint.replaceChildren(
      ...(!cards.length ? [kind === "play" ? wanted : "Pick one or more cards."] : claim ? verdict : []),
    );
    const other = Object.keys(tips).find((name) => name !== "lie");
    const about = isLie && tips.lie ? "lie" : other;
    tip(about, tips[about]);
  }
}

// For each kind of question, returns the hand's cards and the controls below them.
const KINDS = {
  bool: (
    { options, labels },
  ) => [hand(), options.map((yes, place) => button(labels[place], () => yes, yes ? "gold" : ""))],

  // An answer that is the name of a card in the hand is given by choosing that card.
  choice: ({ options, labels }) => {
    const names = new Set(flow.frame.hand.map(([name]) => name));
    const cards = flow.frame.hand.map((one) => {
      const card = window.dubitoCards.face(one, "button");
      const isPlayable = options.includes(one[0]);
      card.type = "button";
      card.disabled = !isPlayable;
      card.classList.toggle("idle", !isPlayable);
      card.setAttribute("aria-label", isPlayable ? labels[options.indexOf(one[0])] : one[0]);
      card.addEventListener("click", () => flow.send(one[0]));
      return card;
    });
    const others = options.map((name, place) => [name, labels[place]]).filter(([name]) => !names.has(name));
    const isPlayed = others.length < options.length;
    return [
      isPlayed ? cards : hand(),
      others.map(([name, text], place) => button(text, () => name, place ? "" : "gold")),
    ];
  },

  cards: (question) => {
    const chooser = new Chooser(question, (cards) => cards);
    return [chooser.cards, chooser.controls];
  },

  play: (question) => {
    const chooser = new Chooser(question, (cards, number) => ({ cards, number }));
    return [chooser.cards, chooser.controls];
  },

  text: ({ wanted, options: [most] }) => {
    const field = Object.assign(make("input", "say"), { type: "text", autocomplete: "off", placeholder: "Say …" });
    field.setAttribute("aria-label", wanted);
    const left = make("span", "left");
    const say = button("Say it", () => field.value.trim() || undefined, "gold");
    const counted = () => { // messages that are too long cannot be sent, but are not truncated
      const length = [...field.value.trim()].length;
      left.textContent = `${length} of ${most}`;
      left.classList.toggle("over", length > most);
      say.disabled = length === 0 || length > most;
    };
    field.addEventListener("input", counted);
    counted();
    return [hand(), [field, left, say]];
  },

  whole: ({ wanted, options, labels, bounds }) => {
    if (options.length) return [hand(), options.map((number, place) => button(labels[place], () => number))];
    const [min, max] = bounds || ["", ""];
    const field = Object.assign(make("input"), { type: "number", step: 1, required: true, min, max });
    field.setAttribute("aria-label", wanted);
    const answer = () => (field.reportValidity() ? Number(field.value) : undefined);
    return [hand(), [field, ...(bounds ? [make("span", "left", wanted)] : []), button("Answer", answer, "gold")]];
  },
};

// In a hand of cards to choose, arrow keys move the focus.
function move(event) {
  const all = [...$("hand").querySelectorAll("button")];
  const at = all.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (at < 0 || !all[to] || $("hand").getAttribute("role") !== "toolbar") return;
  event.preventDefault();
  all[at].tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
}

$("hand").addEventListener("keydown", move);
$("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  $("controls").querySelector("button.gold")?.click();
});
flow.start();
