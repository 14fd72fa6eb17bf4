// Shows a frame of a Dubito table. It does not know the rules. The server sends everything to show.

import { $, count, make } from "./page.js";
import { me, scatter, Seats } from "./seats.js";

const FACES = ["★", "A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"];
const SHOWN_BACKS = 12;
const LONGEST_BEAT = 600; // milliseconds per step of a reveal: a pause, then each card, then the verdict
const NUMBERS = ["no", "one", "two", "three"];
const ORDINALS = ["", "1st", "2nd", "3rd"];
const RANKS = ["", "first", "second", "third", "fourth", "fifth", "sixth"];

export const rank = (place) => RANKS[place] ?? `number ${place}`;

export class Table {
  #motions = [];
  #claims = []; // claims in this round, as [seat, number of cards]

  constructor(game) {
    this.game = game;
    this.seats = new Seats(game);
  }

  claim(cards, number) {
    const { one, many } = this.game.words;
    return `${NUMBERS[cards]} ${cards === 1 ? one[number] : many[number]}`;
  }

  card(value, tag) {
    return window.dubitoCards.draw(FACES[value], this.game.words.one[value], tag);
  }

  show(frame) {
    this.#note(frame);
    this.seats.show(frame);
    this.game.names.forEach((_, seat) => this.#seat(frame, seat));
    const played = frame.mover !== null && frame.last_player === frame.mover && frame.board;
    if (played) this.seats.say(frame.mover, `${this.claim(frame.last, frame.number)}!`);
    if (frame.shown) this.seats.say(frame.mover, "Dubito!");
    this.#board(frame);
    this.#round(frame);
  }

  // Collects the round's claims. Frames arrive in order, each with its last play.
  #note(frame) {
    if (!frame.board) this.#claims = [];
    else if (frame.mover === frame.last_player) this.#claims.push([frame.mover, frame.last]);
  }

  #seat(frame, seat) {
    const place = frame.places[seat];
    const over = frame.to_move === null;
    this.seats.hold(seat, frame.counts[seat]);
    this.seats.open(seat, (frame.hands[seat] ?? []).map((value) => this.card(value)));
    const lost = frame.places.filter((one) => one === null).length <= 2 ? "lost" : "unfinished";
    const badge = place ? `${ORDINALS[place] ?? `${place}th`}` : over ? lost : seat === frame.to_move ? "to move" : "";
    this.seats.mark(seat, badge, over && !place);
  }

  #board(frame) {
    const pile = $("pile");
    const cards = frame.shown
      ? frame.shown.cards.map((value) => this.#turned(value, frame.shown.number))
      : this.#pile(frame);
    pile.className = `pile${frame.shown ? " revealed" : frame.turned.length ? " open" : cards.length ? "" : " empty"}`;
    pile.replaceChildren(...cards);
    if (frame.shown) {
      const [kind, word] = frame.shown.correct ? ["bluff", this.game.words.lie] : ["honest", "honest"];
      pile.append(Object.assign(make("b", `stamp ${kind}`, word), { id: "verdict" }));
    }
    $("chips").replaceChildren(...this.#claims.map(([seat, cards], place) => {
      const name = seat === this.game.me ? me() : this.game.names[seat];
      const who = make("span", "who", name);
      const chip = make(
        "li",
        place === this.#claims.length - 1 ? "last" : "",
        window.dubitoAvatar(name, this.game.kinds[seat]),
        who,
        ` ×${cards}`,
      );
      chip.title = name;
      return chip;
    }));
    $("gone").textContent = frame.gone.length
      ? `Out of the game: ${frame.gone.map((value) => this.game.words.many[value]).join(", ")}`
      : "";
  }

  #pile(frame) {
    if (frame.turned.length) return frame.turned.map((value) => this.card(value));
    const shown = Math.min(frame.board, SHOWN_BACKS);
    return Array.from({ length: shown }, (_, index) => {
      const back = window.dubitoCards.back();
      back.classList.toggle("latest", index >= shown - frame.last);
      scatter(back, index, index >= shown - frame.last);
      return back;
    });
  }

  #turned(value, number) {
    const flip = make("span", "flip", this.card(value), window.dubitoCards.back());
    flip.classList.toggle("lie", ![0, number].includes(value));
    return flip;
  }

  #round(frame) {
    const { many } = this.game.words;
    $("round").hidden = frame.to_move === null;
    if (frame.to_move === null) return;
    if (frame.board) {
      $("round").replaceChildren(
        "This round: ",
        make("b", "", many[frame.number]),
        ` · ${count(frame.board, "card")} on the pile`,
      );
    } else {
      const opens = frame.to_move === this.game.me ? "You open" : `${this.game.names[frame.to_move]} opens`;
      $("round").replaceChildren("New round. ", make("b", "", opens), " it.");
    }
  }

  // Turns doubted cards over one by one, then stamps them. The page hides the verdict until then.
  reveal(frame, speed) {
    for (const motion of this.#motions) motion.cancel();
    this.#motions = [];
    const beat = Math.min(LONGEST_BEAT, 0.4 * speed);
    if (!frame.shown || !beat || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const cards = [...document.querySelectorAll("#pile .flip")];
    const end = beat * (cards.length + 1);
    const move = (element, frames, delay, duration) =>
      this.#motions.push(element.animate(frames, { delay, duration, fill: "backwards" }));
    const unmarked = { outlineColor: "transparent" };
    cards.forEach((card, place) => {
      move(card, [{ transform: "rotateY(180deg)" }, { transform: "none" }], beat * (place + 1), 0.9 * beat);
      for (const side of card.children) move(side, [unmarked, unmarked], 0, end);
    });
    move($("verdict"), [{ opacity: 0, scale: 2.4 }, { opacity: 1, scale: 1 }], end, 0.5 * beat);
    const told = [
      $("now"),
      $("round"),
      $("log").firstElementChild,
      ...document.querySelectorAll(".seat .held, .seat .backs"),
    ];
    if (frame.shown.loser === this.game.me) told.push($("hand"));
    for (const element of told.filter(Boolean)) move(element, [{ opacity: 0 }, { opacity: 1 }], end, 0.5 * beat);
  }
}
