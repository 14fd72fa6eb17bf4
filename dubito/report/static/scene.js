// Plays what a move turned over, on the table as it was before: a call, cards that turn one by one, a stamp, and the flight of
// the pile to the seat that takes it. Without motion, the same states follow each other. The page then draws what came of it.
"use strict";
window.dubitoScene = (() => {
  const CALL = 800; // milliseconds, like the others
  const TURN = 420; // per card
  const STAMP = 1100;
  const FLIGHT = 650;
  const APART = 45; // between cards in flight
  const IN_FLIGHT = 14; // most cards that are seen to fly
  const DONE = { Escape: true, Enter: true, " ": true };
  const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  let running = null;

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    element.className = className;
    element.append(...children);
    return element;
  }

  class Scene {
    #drawn;
    #table;
    #wake = null;
    #motions = [];
    #outcome = ""; // "skipped" by the reader, or "stopped" by the page

    // `table` has the felt, the pile's top cards `top` and all its cards `pile`, and `place(seat)`: the element that says and takes, where
    // cards fly `to`, and the text `held` with the number of cards.
    constructor(table, drawn) {
      [this.#table, this.#drawn] = [table, drawn];
      const { back, face } = window.dubitoCards;
      this.flips = Array.from({ length: drawn.count }, (_, at) => {
        const known = drawn.cards[at];
        const flip = make("span", known ? "flip" : "flip unknown", ...(known ? [face(known)] : []), back());
        if (drawn.wrong[at]) flip.classList.add("lie");
        return flip;
      });
      this.stage = make("div", "reveal", ...this.flips);
      this.stage.setAttribute("aria-hidden", "true"); // the sentence afterwards tells it
      this.stage.style.setProperty("--cards", Math.max(3, drawn.count));
      this.bubble = make("p", "bubble call", drawn.call);
      this.bubble.setAttribute("aria-hidden", "true");
    }

    // Resolves to "ended", "skipped" or "stopped".
    async play(factor) {
      const { felt } = this.#table;
      const turning = this.#drawn.known ? [] : this.flips.filter((flip) => !flip.matches(".unknown"));
      if (this.#drawn.known) { for (const flip of this.flips) flip.classList.add("turned"); }
      const steps = [
        ["call", CALL, () => this.#call()],
        ...turning.map((flip) => ["turn", TURN, () => flip.classList.add("turned")]),
        ...(this.#drawn.stamp ? [["stamp", STAMP, () => this.#stamp()]] : []),
        ...(this.#drawn.taker === null ? [] : [["flight", 0, () => this.#fly(factor)]]),
      ];
      document.addEventListener("keydown", this);
      felt.addEventListener("click", this);
      for (const [name, time, act] of steps) {
        if (this.#outcome) break;
        felt.dataset.scene = name;
        await this.#pause(factor * (time + (act() ?? 0)));
      }
      this.#clear();
      return this.#outcome || "ended";
    }

    handleEvent(event) {
      if (event.type === "keydown" && !DONE[event.key]) return;
      if (event.target.closest?.("select, input, a, .pace")) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.end("skipped");
    }

    end(outcome) {
      this.#outcome ||= outcome;
      this.#wake?.();
    }

    #pause(time) {
      return new Promise((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, time);
      });
    }

    #call() {
      const { felt, top, place } = this.#table;
      const spot = (top.at(0)?.parentElement ?? felt.querySelector(".pile, .boards"))?.getBoundingClientRect();
      const box = felt.getBoundingClientRect();
      if (spot) {
        this.stage.style.left = `${spot.x + spot.width / 2 - box.x}px`;
        this.stage.style.top = `${spot.y + spot.height / 2 - box.y}px`;
      }
      const { caller, taker } = this.#drawn;
      const seat = place(caller).seat;
      seat.append(this.bubble);
      for (const one of [caller, taker]) if (one !== null) place(one).seat.classList.add("acting");
      for (const card of top) card.classList.add("lifted");
      felt.append(this.stage);
    }

    #stamp() {
      this.stage.append(make("b", `stamp ${this.#drawn.bad ? "bluff" : "honest"}`, this.#drawn.stamp));
    }

    // Returns how long it takes, in ms.
    #fly(factor) {
      const { pile, place } = this.#table;
      const { taker, pile: taken } = this.#drawn;
      const { to, held } = place(taker);
      const cards = [...this.flips, ...pile.filter((card) => !card.matches(".lifted"))].slice(0, IN_FLIGHT);
      this.#count(held, taken);
      this.stage.querySelector(".stamp")?.classList.add("gone");
      if (isCalm()) {
        for (const card of cards) card.classList.add("lifted");
        return FLIGHT;
      }
      const goal = to.getBoundingClientRect();
      cards.forEach((card, at) => {
        const from = card.getBoundingClientRect();
        const x = goal.x + goal.width / 2 - from.x - from.width / 2;
        const y = goal.y + goal.height / 2 - from.y - from.height / 2;
        const end = { translate: `${x}px ${y}px`, scale: .3, opacity: .2 };
        const [duration, delay] = [factor * FLIGHT, factor * APART * at];
        this.#motions.push(card.animate([{}, end], { duration, delay, fill: "forwards", easing: "ease-in-out" }));
      });
      return FLIGHT + APART * cards.length;
    }

    // Counts the taken cards up in a seat's text, one after the other.
    #count(held, taken) {
      const words = held?.textContent ?? "";
      const before = Number(/\d+/.exec(words)?.[0] ?? 0);
      const write = (number) => {
        held.textContent = words.replace(/\d+ cards?|no cards/, `${number} card${number === 1 ? "" : "s"}`);
      };
      if (!held) return;
      if (isCalm()) return write(before + taken);
      const start = performance.now();
      const step = () => {
        const share = this.#outcome ? 1 : Math.min(1, (performance.now() - start) / FLIGHT);
        write(before + Math.round(share * taken));
        if (share < 1 && running === this) requestAnimationFrame(step);
      };
      step();
    }

    #clear() {
      const { felt, top, pile, place } = this.#table;
      document.removeEventListener("keydown", this);
      felt.removeEventListener("click", this);
      for (const motion of this.#motions) motion.cancel();
      for (const card of [...top, ...pile]) card.classList.remove("lifted");
      for (const one of [this.#drawn.caller, this.#drawn.taker]) {
        if (one !== null) place(one).seat.classList.remove("acting");
      }
      this.stage.remove();
      this.bubble.remove();
      if (running && running !== this) return; // the next scene
      delete felt.dataset.scene;
      running = null;
    }
  }

  // Returns how long a scene takes, in ms.
  const length = ({ cards, known, stamp, taker, pile }) =>
    CALL + (known ? 0 : TURN * cards.length) + (stamp ? STAMP : 0) +
    (taker === null ? 0 : FLIGHT + APART * Math.min(pile, IN_FLIGHT));

  function stop() {
    running?.end("stopped");
    running = null;
  }

  function play(table, drawn, factor) {
    stop();
    running = new Scene(table, drawn);
    return running.play(factor);
  }

  return {
    play,
    length,
    skip: () => running?.end("skipped"),
    stop,
    isOn: () => running !== null,
  };
})();
