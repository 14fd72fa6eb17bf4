// Cards as they are drawn, in reports and at the table. Suits are decoration: a game knows numbers alone, so the page gives them.
"use strict";
window.dubitoCards = (() => {
  const SUITS = 4; // ♠ ♥ ♣ ♦, as look.css has them: one a copy of a number

  // A card, or a button that is one; whoever listens hears its name, which has no suit. A joker has none.
  function draw(face, suit, name, tag = "span") {
    const card = document.createElement(tag);
    card.className = face === "★" ? "card joker" : "card";
    card.textContent = face;
    card.setAttribute("aria-label", name);
    if (tag === "span") card.setAttribute("role", "img");
    if (face !== "★") card.dataset.suit = suit;
    return card;
  }

  // Gives the cards of one screen their suits by order of appearance: no suit of a number twice, as long as there are four.
  class Screen {
    #used = new Map();

    suit(value) {
      const used = this.#used.get(value) ?? 0;
      this.#used.set(value, used + 1);
      return used % SUITS;
    }
  }

  // Follows all the cards of an open game, hands of letters: each keeps the suit that it is dealt with.
  class Deal {
    #board = []; // [letter, suit]: what lies there, or did until somebody took it

    constructor(hands) {
      const screen = new Screen();
      this.hands = hands.map((letters) => [...letters].map((letter) => [letter, screen.suit(letter)]));
    }

    // The hands after a turn, and the cards that it played. What was played came from the mover's hand to the board;
    // whoever has cards more has them from there.
    after(turn) {
      const hands = [...this.hands];
      const take = (from, letter) => from.splice(from.findIndex((card) => card[0] === letter), 1)[0];
      const left = [...hands[turn.seat]];
      const played = [...(turn.cards ?? "")].map((letter) => take(left, letter));
      this.#board.push(...played);
      for (const [seat, letters] of Object.entries(turn.hands)) {
        const own = Number(seat) === turn.seat ? left : [...hands[seat]];
        hands[seat] = [...letters].map((letter) => take(own.some((card) => card[0] === letter) ? own : this.#board, letter));
      }
      this.hands = hands;
      return { hands, played };
    }
  }

  return { draw, Screen, Deal };
})();
