// The course of a person's game, whichever it is: shows what came frame by frame, asks on, and sends their moves.

import { $, ask, make } from "./table.js";

export class Flow {
  game; // as the server last told it
  frame; // the one that is shown
  turn = 0; // moves made, as the server counts them
  busy = false;
  #page;
  #endPause = null;
  #skipping = false;

  // A page knows how to `begin` a game, `show` a frame, set its `controls`, tell its `end`, and how long a frame stands:
  // `patience(frame, speed)`, in milliseconds.
  constructor(page) {
    this.#page = page;
    $("again").addEventListener("click", () => this.#again());
    $("skip").addEventListener("click", () => { this.#skipping = true; this.#endPause?.(); });
    $("speed").value = localStorage.getItem("dubito speed") || "1100";
    $("speed").addEventListener("change", () => { localStorage.setItem("dubito speed", $("speed").value); this.#endPause?.(); });
  }

  get mine() {
    return !this.busy && this.game.asked;
  }

  async start(complaint = "") {
    let game;
    try {
      game = await ask("/api/table");
    } catch (error) {
      complain(error.message);
      $("own").hidden = false;
      $("trouble").hidden = true;
      $("prompt").replaceChildren("There is no game to show. ", Object.assign(make("a", "button", "To the start"), { href: "/" }));
      return;
    }
    this.game = game;
    $("rules-link").href = `/rules?${new URLSearchParams({ game: game.game, players: game.names.length, ...game.rules })}`;
    $("rules-link").target = "_blank";
    $("log").replaceChildren();
    this.#page.begin(game);
    const isNew = location.hash === "#new";
    if (isNew) history.replaceState(null, "", "/table");
    else game.frames.slice(0, -1).forEach((old) => { old.won = []; this.#show(old); });
    await this.#follow(game, isNew ? game.frames : game.frames.slice(-1));
    complain(complaint);
  }

  async send(move) {
    if (!this.mine) return;
    complain("");
    this.busy = true;
    this.#controls();
    try {
      await this.#follow(await ask("/api/moves", { table: this.game.table, turn: this.turn, answer: move }));
      if (this.mine) this.#page.focus();
    } catch (error) {
      this.busy = false;
      if (error.status === 409 || error.status === 404) return this.start(error.message);
      complain(error.message);
      this.#controls();
    }
  }

  // Shows what came, and asks on until the game rests: a model may think for minutes.
  async #follow(answer, frames = answer.frames) {
    this.busy = true;
    this.#skipping = false;
    for (;;) {
      this.game = { ...this.game, ...answer };
      this.turn = answer.turn;
      await this.#playback(frames);
      if (this.game.asked || this.game.over || this.game.trouble) break;
      this.#controls();
      const since = this.turn + 1;
      answer = await ask(`/api/table?since=${since}`).catch((error) => ({ turn: since - 1, frames: [], trouble: error.message }));
      frames = answer.frames;
    }
    this.busy = false;
    $("skip").disabled = true;
    this.#controls();
    if (this.mine) $("own").scrollIntoView({ block: "nearest" });
  }

  async #playback(frames) {
    this.frame ??= frames[0];
    $("skip").disabled = this.#skipping || (frames.length < 2 && this.game.asked);
    this.#controls();
    for (const [index, next] of frames.entries()) {
      this.#show(next);
      const last = index === frames.length - 1;
      const time = this.#page.patience(next, Number($("speed").value));
      if (!(last && (this.game.asked || this.game.over)) && !this.#skipping && time > 0) await this.#pause(time);
    }
  }

  #pause(milliseconds) {
    return new Promise((resolve) => {
      this.#endPause = resolve;
      setTimeout(resolve, milliseconds);
    });
  }

  #show(next) {
    this.frame = next;
    $("now").textContent = next.said.join(" ");
    for (const line of next.said) {
      const item = make("li", { null: "dealt", [this.game.me]: "mine" }[next.mover] || "", line);
      item.value = next.turn;
      $("log").prepend(item);
    }
    this.#page.show(next);
  }

  #controls() {
    const { game, frame, busy } = this;
    const thinks = busy && !game.asked && !game.over && !game.trouble ? frame.to_move : null;
    $("thinks").textContent = thinks === null || thinks === game.me ? "" : `${game.names[thinks]} is thinking …`;
    $("trouble").hidden = busy || !game.trouble;
    $("why").textContent = game.trouble || "";
    $("own").classList.toggle("asked", this.mine);
    this.#page.controls();
    if (!busy && game.over) this.#finale();
  }

  #finale() {
    const game = this.game;
    const [title, how] = this.#page.end(game);
    $("own").hidden = true;
    $("result").textContent = title;
    $("how").textContent = how;
    $("watch").href = `/games/${encodeURIComponent(game.record)}`;
    $("saved").textContent = [`Saved as ${game.record}. Seed ${game.seed}, you in seat ${game.me}.`, ...game.errors].join(" ");
    if (!$("end").hidden) return;
    $("end").hidden = false;
    $("end").focus();
  }

  async #again() {
    try {
      await ask("/api/again", {});
    } catch (error) {
      if (!error.status) {
        $("why").textContent = error.message;
        return;
      }
    }
    await this.start();
  }
}

export function complain(sentence) {
  $("error").textContent = sentence;
}
