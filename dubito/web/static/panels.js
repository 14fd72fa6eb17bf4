// The page of a game shown as text: what the person sees, and controls for the answer.

import { $, count, kindOf, make, seatAround } from "./table.js";
import { Flow } from "./flow.js";

let seats = [];
const flow = new Flow({
  begin, show, controls,
  end: (game) => [`Your result: ${game.ended}.`, flow.frame.said.at(-1) || ""],
  focus: () => $("answer").querySelector("input, button:not(:disabled)")?.focus({ preventScroll: true }),
  patience: (shown, speed) => (shown.said.length ? speed : 0), // what nobody observes takes no time
});

function begin(game) {
  seats = game.names.map((name, seat) => {
    const item = make("li", seat === game.me ? "seat me" : "seat");
    const shown = make("span", "name", name);
    shown.append(" ", kindOf(game, seat));
    item.append(shown, make("span", "held"), make("span", "badge"), make("span", "held"));
    return item;
  });
  seatAround(seats, game.me);
  $("seats").replaceChildren(...seats);
}

function show(frame) {
  $("seats").classList.toggle("over", frame.to_move === null);
  const me = flow.game.me;
  for (const [seat, item] of seats.entries()) {
    const [, held, badge, truth] = item.children;
    held.replaceChildren(...drawn(frame.seats[seat]));
    truth.className = `held ${drawnAs(frame.truth[seat]?.[0] ?? "")}`;
    truth.replaceChildren(...drawn(frame.truth[seat]));
    const next = seat === frame.to_move;
    badge.textContent = !next ? "" : seat === me ? "▶ your turn" : "▶ to move";
    item.classList.toggle("mover", seat === frame.mover);
    item.classList.toggle("next", next);
  }
  $("boards").hidden = !frame.boards.length;
  $("boards").replaceChildren(...frame.boards.flatMap(([title, shown], place) => {
    const text = make("p", drawnAs(shown[0]));
    text.append(...drawn(shown));
    return title === frame.boards[place - 1]?.[0] ? [text] : [make("p", "claim", title), text]; // turned over: known, then the truth
  }));
  $("own").hidden = false;
}

const drawnAs = (words) => (words.includes("\n") ? "drawn" : ""); // a board of lines
const drawn = (shown) => (shown ? window.dubitoCards.drawnIn(...shown) : []);

let asked; // the frame whose question stands there

function controls() {
  const { frame, mine } = flow;
  const question = mine ? frame.question : null;
  $("prompt").textContent = question ? frame.sees.at(-1) || "Your turn." : "Waiting for the other players.";
  const inQuestion = question?.kind === "cards" && question.options.length === frame.hand.length; // its boxes are the hand
  $("held").replaceChildren(...(inQuestion ? [] : frame.hand.map((one) => window.dubitoCards.face(one))));
  $("sees").replaceChildren(...(question ? frame.sees.slice(0, -1) : []).map((line) => make("p", drawnAs(line), line)));
  if (asked === (question && frame)) return;
  asked = question && frame;
  $("answer").replaceChildren(...(question ? KINDS[question.kind](question) : []));
}

function button(text, answer, primary = false) {
  const made = make("button", primary ? "primary" : "", text);
  made.type = "button";
  made.addEventListener("click", () => {
    const given = answer();
    if (given !== undefined) flow.send(given);
  });
  return made;
}

const KINDS = {
  bool: ({ options }) => options.map((yes) => button(yes ? "Yes" : "No", () => yes)),
  choice: ({ options }) => options.map((name) => button(name, () => name)),
  cards: ({ options }) => {
    const { hand } = flow.frame;
    const boxes = options.map((value, place) => {
      const box = Object.assign(make("input"), { type: "checkbox", value });
      const isHand = hand.length === options.length;
      const label = isHand ? window.dubitoCards.face(hand[place], "label") : window.dubitoCards.draw(`${value}`, "", "label");
      label.classList.add("tick");
      label.removeAttribute("aria-label");
      label.prepend(box);
      return [box, label];
    });
    const picked = () => boxes.filter(([box]) => box.checked).map(([box]) => Number(box.value));
    const give = button("Play", picked, true);
    const counted = () => {
      give.disabled = picked().length === 0;
      give.textContent = picked().length ? `Play ${count(picked().length, "card")}` : "Play";
    };
    for (const [box] of boxes) box.addEventListener("change", counted);
    counted();
    const all = make("div", "ticks");
    all.append(...boxes.map(([, label]) => label));
    return [all, give];
  },
  text: ({ wanted, options: [most] }) => {
    const field = Object.assign(make("input", "say"), { type: "text", autocomplete: "off", placeholder: "Say …" });
    field.setAttribute("aria-label", wanted);
    const left = make("span", "left");
    const say = button("Say it", () => field.value.trim() || undefined, true);
    const counted = () => { // nothing is cut off: too much cannot be sent
      const length = [...field.value.trim()].length;
      left.textContent = `${length} of ${most}`;
      left.classList.toggle("over", length > most);
      say.disabled = length === 0 || length > most;
    };
    field.addEventListener("input", counted);
    counted();
    return [field, left, say];
  },
  whole: ({ wanted, options, bounds }) => {
    if (options.length) return KINDS.choice({ options });
    const [min, max] = bounds || ["", ""];
    const field = Object.assign(make("input"), { type: "number", step: 1, required: true, min, max });
    field.setAttribute("aria-label", wanted);
    return [field, ...(bounds ? [make("span", "left", wanted)] : []), button("Answer", () => (field.reportValidity() ? Number(field.value) : undefined), true)];
  },
};

$("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  $("answer").querySelector("button.primary")?.click();
});
flow.start();
