// The other players around the felt: a face, a name, a fan of backs, and what they last said.

import { $, count, make } from "./page.js";

const MOST_AROUND = 7; // other players; more do not fit on half an ellipse
const CROWDED = 6; // other players; faces shrink from this number on
const SHOWN_BACKS = 9;
const LONGEST_BUBBLE = 30; // maximum number of characters in large type

// The person's name, for their own seat.
export const me = () => document.body.dataset.person || "You";

export class Seats {
  constructor(game) {
    this.game = game;
    const others = game.names.length - 1;
    this.items = game.names.map((name, seat) => (seat === game.me ? null : this.#seat(name, seat)));
    const order = Array.from({ length: others }, (_, place) => (game.me + 1 + place) % game.names.length);
    order.forEach((seat, place) => this.#place(this.items[seat], place, others));
    $("felt").classList.toggle("crowded", others >= CROWDED);
    $("felt").classList.toggle("crowd", others > MOST_AROUND);
    $("seats").replaceChildren(...order.map((seat) => this.items[seat]));
    $("me").replaceChildren(window.dubitoAvatar(me(), "person"));
    $("name").textContent = me();
  }

  #seat(name, seat) {
    const kind = this.game.kinds[seat];
    const parts = [
      window.dubitoName(make("span", "name"), name),
      make("span", `kind ${kind} hidden`, kind),
      make("span", "held"),
      make("span", "badge"),
    ];
    const backs = make("ul", "backs");
    backs.setAttribute("aria-hidden", "true");
    return make("li", "seat", window.dubitoAvatar(name, kind), ...parts, backs, make("span", "open"));
  }

  // Clockwise on half an ellipse, starting on the person's left.
  #place(item, place, others) {
    const angle = others === 1 ? Math.PI / 2 : Math.PI * (1 - place / (others - 1));
    item.style.setProperty("--x", `${50 + 39 * Math.cos(angle)}%`);
    item.style.setProperty("--y", `${54 - 35 * Math.sin(angle) ** 0.7}%`);
    item.dataset.side = { "-1": "left", 1: "right" }[Math.sign(Math.round(9 * Math.cos(angle)))] ?? "";
  }

  show(frame) {
    this.items.forEach((item, seat) => {
      item?.classList.toggle("mover", seat === frame.mover);
      item?.classList.toggle("next", seat === frame.to_move);
      if (frame.said.length) item?.querySelector(".bubble")?.remove(); // unobserved moves leave the last claim in the air
    });
  }

  // Where a seat speaks, where its cards fly to, and the text that counts them. The person's hand is below the felt.
  place(seat) {
    const item = this.items[seat];
    return item
      ? { seat: item, to: item.querySelector(".avatar"), held: item.querySelector(".held") }
      : { seat: $("mine"), to: $("hand"), held: null };
  }

  // Shows a seat's hand as a fan of backs and a text, by default the number of cards.
  hold(seat, cards, text = cards ? count(cards, "card") : "no cards") {
    const item = this.items[seat];
    if (!item) return;
    item.querySelector(".held").textContent = text;
    const backs = Array.from({ length: Math.min(cards, SHOWN_BACKS) }, () => window.dubitoCards.back());
    window.dubitoCards.fan(item.querySelector(".backs"), backs);
  }

  // Shows a seat's cards, which are known at the end of a game.
  open(seat, cards) {
    const item = this.items[seat];
    if (!item) return;
    window.dubitoCards.fan(item.querySelector(".open"), cards);
    if (cards.length) item.querySelector(".backs").replaceChildren();
  }

  mark(seat, text, isLost = false) {
    const item = this.items[seat];
    if (!item) return;
    item.querySelector(".badge").textContent = text;
    item.classList.toggle("lost", isLost);
  }

  say(seat, words) {
    const item = this.items[seat];
    if (!item || !words) return;
    const bubble = make("p", words.length > LONGEST_BUBBLE ? "bubble long" : "bubble", words);
    bubble.setAttribute("aria-hidden", "true"); // also in the log
    item.append(bubble);
  }
}

// Throws a card on a pile. A card always lands in the same place, and the last cards are side by side.
export function scatter(card, index, isLatest) {
  const noise = (n) => ((Math.imul(index + 1, n) >>> 7) % 1000) / 500 - 1;
  const spread = isLatest ? 1.2 : 3.4;
  card.style.setProperty("--dx", `${spread * noise(2654435761) + (isLatest ? 0.5 : 0)}rem`);
  card.style.setProperty("--dy", `${0.6 * noise(2246822519)}rem`);
  card.style.setProperty("--turn", `${(isLatest ? 12 : 34) * noise(3266489917)}deg`);
}
