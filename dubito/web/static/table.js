// Draws a frame: the other players, the boards and the piles. It does not know the rules. The server sends everything.

import { $, count, make } from "./page.js";
import { me, scatter, Seats } from "./seats.js";

const SHOWN_BACKS = 12;
const SHOWN_CHIPS = 8;

const { back, drawnIn, face } = window.dubitoCards;

// Returns the play that the last move revealed, if any.
export const revealed = (frame) => frame.boards.flatMap(({ plays }) => plays).find((play) => play.shown);

export const drawnAs = (words) => (words.includes("\n") ? "drawn" : ""); // a board of lines

export class Table {
  constructor(game) {
    this.game = game;
    this.seats = new Seats(game);
  }

  // `isPlayed` is whether the page has just played what the move turned over, so that the pile is gone.
  show(frame, isPlayed) {
    const over = frame.to_move === null;
    this.seats.show(frame);
    frame.seats.forEach(([text, faces], seat) => {
      const truth = frame.truth[seat]?.[1] ?? [];
      this.seats.hold(seat, frame.backs[seat], text);
      this.seats.open(seat, (truth.length ? truth : faces).map((one) => face(one)));
      this.seats.mark(seat, frame.badges[seat] || (!over && seat === frame.to_move ? "to move" : ""), frame.lost[seat]);
    });
    if (frame.mover !== null) this.seats.say(frame.mover, frame.speech);
    $("boards").hidden = !frame.boards.length;
    if (frame.boards.some(({ plays }) => plays.length)) $("boards").classList.add("laid");
    $("boards").replaceChildren(...frame.boards.map((one) => this.#board(one, over, isPlayed)));
  }

  // The parts of the table that a scene is played on.
  stage() {
    return {
      felt: $("felt"),
      top: [...document.querySelectorAll(".pile .latest")],
      pile: [...document.querySelectorAll(".pile .card")],
      place: (seat) => this.seats.place(seat),
    };
  }

  #board({ title, shown: [words, faces], backs, plays: all }, over, isPlayed) {
    const plays = isPlayed ? all.filter((play) => !play.shown && !all.at(-1).shown) : all;
    const board = make("section", "board", make("h2", "", title));
    const isPile = all.length || backs;
    if (isPile && !faces.length) board.append(...(words ? [this.#line(words)] : []), this.#pile(plays, backs, over));
    else board.append(make("p", drawnAs(words), ...drawnIn(words, faces)));
    if (plays.length) board.append(this.#chips(plays));
    return board;
  }

  // The text above a pile. The words after its colon are emphasized.
  #line(words) {
    const [, start = "", middle, end] = /^(.*: )?([^·]*)(.*)$/s.exec(words);
    return make("p", "round", start, start ? make("b", "", middle) : middle, end);
  }

  #pile(plays, backs, over) {
    const top = plays.at(-1);
    const pile = make("div", "pile");
    if (top?.shown) {
      pile.classList.add("revealed");
      pile.append(...top.cards.map((one, place) => this.#turned(one, top.wrong[place])));
      const [kind, word] = top.lie ? ["bluff", this.game.lie] : ["honest", "honest"];
      pile.append(make("b", `stamp ${kind}`, word));
    } else if (over && plays.length) {
      pile.classList.add("spread");
      pile.append(...plays.flatMap((play) => play.cards).map((one) => face(one)));
    } else if (backs) {
      const shown = Math.min(backs, SHOWN_BACKS);
      pile.append(...Array.from({ length: shown }, (_, index) => {
        const card = back();
        const isLatest = index >= shown - (top?.count ?? 0);
        card.classList.toggle("latest", isLatest);
        scatter(card, index, isLatest);
        return card;
      }));
    } else pile.classList.add("empty");
    return pile;
  }

  #turned(one, isWrong) {
    const flip = make("span", "flip", face(one), back());
    flip.classList.toggle("lie", isWrong);
    return flip;
  }

  // Who played how many cards, the last play at the end.
  #chips(plays) {
    const list = make("ul", "chips");
    list.setAttribute("aria-label", "Plays on the pile");
    const earlier = plays.length - SHOWN_CHIPS;
    if (earlier > 0) list.append(make("li", "", count(earlier, "earlier play")));
    list.append(
      ...plays.slice(-SHOWN_CHIPS).map((play) => {
        const name = play.seat === this.game.me ? me() : this.game.names[play.seat];
        const avatar = window.dubitoAvatar(name, this.game.kinds[play.seat]);
        const chip = make(
          "li",
          play === plays.at(-1) ? "last" : "",
          avatar,
          make("span", "who", name),
          ` ×${play.count}`,
        );
        chip.title = name;
        return chip;
      }),
    );
    return list;
  }
}
