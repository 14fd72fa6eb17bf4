// The page of games without their own page: seats and boards in words and cards, and controls for each answer.

import { $, count, make } from "./page.js";
import { scatter, Seats } from "./seats.js";
import { Flow } from "./flow.js";

const SHOWN_BACKS = 12;
let seats;
const flow = new Flow({
  begin,
  show,
  controls,
  end: (game) => [game.ended.replace(/[.]$/, ""), flow.frame.said.at(-1) || "", hand()],
  focus,
  patience: (shown, speed) => (shown.said.length ? speed : 0), // unobserved moves take no time
});

function begin(game) {
  seats = new Seats(game);
}

function show(frame) {
  const over = frame.to_move === null;
  seats.show(frame);
  frame.seats.forEach(([text, faces], seat) => {
    seats.hold(seat, frame.backs[seat], text);
    const truth = frame.truth[seat]?.[1] ?? [];
    seats.open(seat, (truth.length ? truth : faces).map((one) => window.dubitoCards.face(one)));
    seats.mark(seat, !over && seat === frame.to_move ? "to move" : "");
  });
  if (frame.mover !== null) seats.say(frame.mover, frame.speech);
  $("now").hidden = frame.mover === null ||
    Boolean(frame.speech) && frame.mover !== flow.game.me && frame.said.length < 2;
  $("boards").hidden = !frame.boards.length;
  $("boards").replaceChildren(...frame.boards.map(board));
  $("own").hidden = false;
}

function board({ title, shown: [words, faces], backs }) {
  const text = make("p", drawnAs(words), ...window.dubitoCards.drawnIn(words, faces));
  return make("section", "board", make("h2", "", title), ...(backs ? [heap(backs)] : []), text);
}

function heap(cards) {
  const pile = make("div", "heap");
  pile.append(...Array.from({ length: Math.min(cards, SHOWN_BACKS) }, (_, index) => {
    const back = window.dubitoCards.back();
    scatter(back, index, false);
    return back;
  }));
  return pile;
}

const drawnAs = (words) => (words.includes("\n") ? "drawn" : ""); // a board of lines

let asked; // the frame whose question is shown

function controls() {
  const { frame, mine } = flow;
  const question = mine ? frame.question : null;
  $("prompt").textContent = question
    ? frame.sees.at(-1) || "Your turn."
    : flow.thinking || "Wait for the other players.";
  $("sees").replaceChildren(...(question ? frame.sees.slice(0, -1) : []).map((line) => make("p", drawnAs(line), line)));
  if (asked === (question && frame)) return;
  asked = question && frame;
  const [cards, buttons] = question
    ? KINDS[question.kind](question)
    : [frame.hand.map((one) => window.dubitoCards.face(one)), []];
  window.dubitoCards.fan($("hand"), cards);
  $("controls").replaceChildren(...buttons);
}

// Yes-or-no questions focus their last answer, which changes the least.
function focus() {
  const { kind } = flow.frame.question;
  const all = [...document.querySelectorAll("#hand :is(button, input), #controls :is(button, input):not(:disabled)")];
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

// For each kind of question, returns the hand's cards and the controls below them.
const KINDS = {
  bool: (
    { options, labels },
  ) => [hand(), options.map((yes, place) => button(labels[place], () => yes, yes ? "gold" : ""))],

  // An answer that is the name of a card in the hand is given by choosing that card.
  choice: ({ options, labels }) => {
    const held = new Set(flow.frame.hand.map(([name]) => name));
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
    const others = options.map((name, place) => [name, labels[place]]).filter(([name]) => !held.has(name));
    const isPlayed = others.length < options.length;
    return [
      isPlayed ? cards : hand(),
      others.map(([name, text], place) => button(text, () => name, place ? "" : "gold")),
    ];
  },

  cards: ({ options }) => {
    const { hand: faces } = flow.frame;
    const isHand = faces.length === options.length;
    const boxes = options.map((value, place) => {
      const box = Object.assign(make("input", "hidden"), { type: "checkbox", value });
      const label = window.dubitoCards.face(isHand ? faces[place] : [`${value}`, `${value}`, ""], "label");
      box.setAttribute("aria-label", label.getAttribute("aria-label"));
      label.removeAttribute("aria-label");
      label.classList.add("tick");
      label.prepend(box);
      return [box, label];
    });
    const picked = () => boxes.filter(([box]) => box.checked).map(([box]) => Number(box.value));
    const give = button("Play", picked, "gold");
    const counted = () => {
      give.disabled = picked().length === 0;
      give.textContent = picked().length ? `Play ${count(picked().length, "card")}` : "Play";
    };
    for (const [box] of boxes) box.addEventListener("change", counted);
    counted();
    return [boxes.map(([, label]) => label), [give]];
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

$("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  $("controls").querySelector("button.gold")?.click();
});
flow.start();
