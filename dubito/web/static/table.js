// Shows one frame of a table. It knows no rules; the server sends everything to show.

const FACES = ["★", "A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"];
const SHOWN_BACKS = 12;
const MOST_AROUND = 9; // others: more have no room around the board
const LONGEST_BEAT = 600; // milliseconds of a reveal: a pause, then each card, then the verdict

export const $ = (id) => document.getElementById(id);

export function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text; // never HTML: names and records are foreign text
  return element;
}

// The kind of player in a seat (see look.css).
export function kindOf(game, seat) {
  return make("span", `kind ${game.kinds[seat]}`, game.kinds[seat]);
}

export function count(n, noun) {
  return n === 1 ? `1 ${noun}` : `${n} ${noun}s`;
}

// Places the other players clockwise around the board if the window is wide enough.
export function seatAround(items, me) {
  const others = items.length - 1;
  const side = others < 2 ? 0 : others < 6 ? 1 : Math.floor(others / 3);
  const top = others - 2 * side;
  $("around").classList.toggle("round", others <= MOST_AROUND);
  $("around").style.setProperty("--top", Math.max(1, top));
  $("around").style.setProperty("--side", Math.max(1, side));
  items.forEach((item, seat) => {
    const place = (seat - me + items.length) % items.length; // 0 is the person
    const [row, column] = !place ? [2 + Math.max(1, side), "2 / -2"]
      : place <= side ? [2 + side - place, 1]
      : place <= side + top ? [1, top > 1 ? 1 + place - side : "2 / -2"]
      : [1 + place - side - top, "-2 / -1"];
    item.style.setProperty("--row", row);
    item.style.setProperty("--column", column);
  });
}

export async function ask(path, body) {
  const options = body && {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not respond. Is dubito web still running? Your game is saved.");
  }
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status });
  return answer;
}

function place(n) {
  return n === 1 ? "◆ place 1, hard win" : `◇ place ${n}, soft win`;
}

export class Table {
  constructor(game) {
    this.game = game;
    const seats = game.names.map((name, seat) => this.#seat(name, seat));
    seatAround(seats, game.me);
    $("seats").replaceChildren(...seats);
  }

  #seat(name, seat) {
    const item = make("li", seat === this.game.me ? "seat me" : "seat");
    const shown = make("span", "name");
    for (const part of name.split(/(?<=[a-z])(?=[A-Z])/)) shown.append(part, make("wbr"));
    shown.append(" ", kindOf(this.game, seat));
    item.append(shown, make("span", "held"), make("span", "badge"), make("span", "cards"));
    return item;
  }

  // Reveals doubted cards one by one, then the verdict. Until then the page does not show it.
  reveal(frame, speed) {
    for (const motion of this.#motions) motion.cancel();
    this.#motions = [];
    const beat = Math.min(LONGEST_BEAT, 0.4 * speed);
    if (!frame.shown || !beat || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const cards = [...$("pile").children];
    const back = { backgroundColor: "var(--back)", color: "transparent" };
    const end = beat * (cards.length + 1);
    const move = (element, frames, delay, duration) => this.#motions.push(element.animate(frames, { delay, duration, fill: "backwards" }));
    cards.forEach((card, place) => move(card, [{ ...back, rotate: "y 0deg" }, { ...back, rotate: "y 90deg", offset: 0.5 }, { rotate: "y 90deg", offset: 0.5 }, { rotate: "y 0deg" }], beat * (place + 1), 0.9 * beat));
    move($("verdict"), [{ opacity: 0, scale: 1.6 }, { opacity: 1, scale: 1 }], end, 0.5 * beat);
    const told = [$("now"), $("log").firstElementChild, ...[...$("seats").children].flatMap((item) => [...item.children].slice(1))];
    if (frame.shown.loser === this.game.me) told.push($("hand"));
    for (const element of told.filter(Boolean)) move(element, [{ opacity: 0 }, { opacity: 1 }], end, 0.5 * beat);
  }

  #motions = [];

  show(frame) {
    const over = frame.to_move === null;
    [...$("seats").children].forEach((item, seat) => {
      const [, held, badge, cards] = item.children;
      const won = frame.places[seat];
      held.textContent = won === null ? count(frame.counts[seat], "card") : "no cards";
      item.classList.toggle("mover", seat === frame.mover);
      item.classList.toggle("next", seat === frame.to_move);
      item.classList.toggle("won", won !== null);
      item.classList.toggle("loser", frame.shown !== null && frame.shown.loser === seat);
      badge.textContent = this.#badge(frame, seat, won, over);
      cards.replaceChildren(...(frame.hands[seat] ?? []).map((value) => this.card(value)));
    });
    this.#board(frame);
  }

  card(value, tag) {
    return window.dubitoCards.draw(FACES[value], this.game.words.one[value], tag);
  }

  #badge(frame, seat, won, over) {
    if (won !== null) return place(won);
    if (over) return frame.places.filter((p) => p === null).length === (this.game.names.length === 2 ? 1 : 2) ? "✗ loses" : "unfinished";
    if (seat === frame.to_move) return seat === this.game.me ? "▶ your turn" : "▶ to move";
    return "";
  }

  #board(frame) {
    const { words, names } = this.game;
    const cards = frame.shown ? frame.shown.cards.map((value) => this.card(value)) : this.#pile(frame);
    $("pile").replaceChildren(...cards);
    $("pile").classList.toggle("revealed", frame.shown !== null || frame.turned.length > 0);
    const claim = frame.board
      ? `${count(frame.board, "card")} on the board. ${frame.last_player === this.game.me ? "You" : names[frame.last_player]} played ` +
        `the last ${frame.last === 1 ? "one" : frame.last} as ${words.many[frame.number]}` +
        (frame.can_doubt || frame.to_move === null ? "." : "; no one can doubt now.")
      : frame.shown ? `Claimed as ${words.many[frame.shown.number]}.` : "The board is empty.";
    $("claim").textContent = claim;
    const verdict = $("verdict");
    verdict.className = "verdict";
    verdict.textContent = "";
    if (frame.shown) {
      verdict.textContent = frame.shown.correct ? `✗ A ${words.lie}, caught!` : "✓ Honest, a wrong doubt";
      verdict.classList.add(frame.shown.correct ? "bluff" : "honest");
    } else if (frame.really) {
      verdict.textContent = `Really ${frame.really.map((value) => words.one[value]).join(", ")}: ` +
        (frame.honest ? "✓ honest" : `✗ a ${words.lie}`);
    }
    $("gone").textContent = frame.gone.length
      ? `Out of the game: ${frame.gone.map((value) => words.many[value]).join(", ")}.` : "";
  }

  #pile(frame) {
    if (frame.turned.length) return frame.turned.map((value) => this.card(value));
    const shown = Math.min(frame.board, SHOWN_BACKS);
    return Array.from({ length: shown }, (_, index) => {
      const back = make("span", "back");
      back.setAttribute("aria-hidden", "true");
      if (index >= shown - frame.last) back.classList.add("latest");
      return back;
    });
  }
}
