// Runs a person's game on the page: shows it frame by frame, polls the server and sends moves.

import { $, ask, make } from "./page.js";
import { me } from "./seats.js";
import { revealed } from "./table.js";

const NORMAL = 1100; // milliseconds per move at "normal"
const FAST = 450; // milliseconds per move at "fast"
const TOGETHER = 1500; // milliseconds for all moves until the person can act

export class Flow {
  game; // as last sent by the server
  frame; // the current frame
  turn = 0; // number of moves, as counted by the server
  busy = false;
  #page;
  #endPause = null;
  #skipping = false;
  #unheard = []; // sentences since the last pause, so that a screen reader gets all of them even if frames are skipped

  // A page implements `begin` (a game), `show` (a frame, and whether it is new), `controls`, `end` (returns a title, a sentence and the
  // person's last cards), `focus`, `patience(frame, speed)`, which returns how long a frame is shown, in ms, and `act`, which plays
  // the scene of a frame on the one before, at a factor of its usual time.
  constructor(page) {
    this.#page = page;
    $("again").addEventListener("click", () => this.#again());
    $("rematch").addEventListener("click", () => this.#rematch());
    $("skip").addEventListener("click", () => {
      this.#skipping = true;
      window.dubitoScene.skip();
      this.#endPause?.();
    });
    $("speed").value = localStorage.getItem("dubito speed") || "1100";
    $("speed").addEventListener("change", () => {
      localStorage.setItem("dubito speed", $("speed").value);
      this.#endPause?.();
    });
  }

  get mine() {
    return !this.busy && this.game.asked;
  }

  // Describes who is thinking; empty if nobody is.
  get thinking() {
    const { game, frame, busy } = this;
    const seat = busy && !game.asked && !game.over && !game.trouble ? frame.to_move : null;
    if (seat === null || seat === game.me) return "";
    return `${game.names[seat]} is thinking …${game.spoken ? ` ${game.spoken} words` : ""}`;
  }

  async start(complaint = "") {
    let game;
    try {
      game = await ask("api/table");
    } catch (error) {
      complain(error.message);
      $("own").hidden = false;
      for (const part of document.querySelectorAll(".felt > *, #trouble, #own .acts > :not(.self), .log")) {
        part.hidden = true;
      }
      $("prompt").replaceChildren(
        "No game to show. ",
        Object.assign(make("a", "button", "Back to the lobby"), { href: "./" }),
      );
      return;
    }
    this.game = game;
    $("rules-link").href = `rules?${new URLSearchParams({
      game: game.game,
      players: game.names.length,
      ...game.rules,
    })}`;
    $("rules-link").target = "_blank";
    $("log").replaceChildren();
    this.#page.begin(game);
    const isNew = location.hash === "#new";
    if (isNew) history.replaceState(null, "", "table");
    else {game.frames.slice(0, -1).forEach((old) => {
        this.#show(old, false);
      });}
    await this.#follow(game, isNew ? game.frames : game.frames.slice(-1), isNew);
    complain(complaint);
  }

  async send(move) {
    if (!this.mine) return;
    complain("");
    this.busy = true;
    this.#controls();
    try {
      await this.#follow(await ask("api/moves", { table: this.game.table, turn: this.turn, answer: move }));
    } catch (error) {
      this.busy = false;
      if (error.status === 409 || error.status === 404) return this.start(error.message);
      complain(error.message);
      this.#controls();
    }
  }

  // Shows new frames and polls until the game waits for the person. A model may think for minutes.
  async #follow(answer, frames = answer.frames, isNew = true) {
    this.busy = true;
    this.#skipping = false;
    this.#unheard = [];
    for (;;) {
      this.game = { ...this.game, spoken: 0, ...answer };
      this.turn = answer.turn;
      await this.#playback(frames, isNew);
      if (this.game.asked || this.game.over || this.game.trouble) break;
      this.#controls();
      const since = this.turn + 1;
      answer = await ask(`api/table?since=${since}`).catch((error) => ({
        turn: since - 1,
        frames: [],
        trouble: error.message,
      }));
      frames = answer.frames;
    }
    this.busy = false;
    $("skip").disabled = true;
    this.#controls();
    this.#attend();
  }

  // Moves the focus to the next action, unless the person is setting the speed or reading the log.
  #attend() {
    const { over, trouble } = this.game;
    if (over || trouble) {
      $(over ? "rematch" : "again").focus();
      if (over) $("result").scrollIntoView({ block: "nearest" });
      return;
    }
    if (!this.mine) return;
    if (!document.activeElement?.closest("#speed, #log")) this.#page.focus();
    $("own").scrollIntoView({ block: "nearest" });
  }

  async #playback(frames, isNew) {
    this.frame ??= frames[0];
    $("skip").disabled = this.#skipping || (frames.length < 2 && this.game.asked);
    this.#controls();
    for (const [index, next] of frames.entries()) {
      const factor = this.#sceneFactor(frames);
      if (next.scene && isNew && factor && !this.#skipping) await this.#page.act(next, factor);
      this.#show(next);
      const last = index === frames.length - 1;
      const time = this.#pace(frames) * this.#page.patience(next, Number($("speed").value));
      if (!(last && (this.game.asked || this.game.over)) && !this.#skipping && time > 0) await this.#pause(time);
    }
  }

  // Returns the factor by which frames are shown faster than usual.
  #pace(frames) {
    const speed = Number($("speed").value);
    if (speed !== FAST || !this.game.asked) return 1;
    const scenes = frames.map(({ scene }) => (scene ? (speed / NORMAL) * window.dubitoScene.length(scene) : 0));
    const pauses = frames.slice(0, -1).map((frame) => this.#page.patience(frame, speed));
    return Math.min(1, TOGETHER / [...scenes, ...pauses].reduce((sum, time) => sum + time, 0));
  }

  // Returns the share of its usual time that a scene takes.
  #sceneFactor(frames) {
    return this.#pace(frames) * Number($("speed").value) / NORMAL;
  }

  #pause(milliseconds) {
    this.#unheard = [];
    return new Promise((resolve) => {
      this.#endPause = resolve;
      setTimeout(resolve, milliseconds);
    });
  }

  #show(next, isNew = true) {
    this.frame = next;
    $("now").textContent = next.said.join(" ");
    this.#unheard.push(...next.said);
    $("heard").textContent = this.#unheard.join(" ");
    next.said.forEach((line, place) => $("log").prepend(this.#entry(next, line, place === 0)));
    this.#page.show(next, isNew);
  }

  // Returns a line of the log. A move's first line has the face of its player; the others are what followed from it.
  #entry(frame, line, isFirst) {
    const { game } = this;
    const item = make("li", frame.mover === null ? "dealt" : "after", make("span", "", line));
    if (frame.mover !== null && isFirst) {
      const isMine = frame.mover === game.me;
      const kind = revealed(frame) ? `event ${revealed(frame).lie ? "bluff" : "honest"}` : "";
      item.className = isMine ? `${kind} by-me` : kind;
      item.prepend(window.dubitoAvatar(isMine ? me() : game.names[frame.mover], game.kinds[frame.mover]));
    }
    item.value = frame.turn;
    return item;
  }

  #controls() {
    const { game, busy } = this;
    $("trouble").hidden = busy || !game.trouble;
    $("why").textContent = game.trouble || "";
    $("own").classList.toggle("asked", this.mine);
    $("pace").hidden = !busy && game.over;
    this.#page.controls();
    if (!busy && game.over) this.#finale();
  }

  #finale() {
    const { game } = this;
    const [title, how, left] = this.#page.end(game);
    const replay = `games/${encodeURIComponent(game.record)}`;
    $("own").hidden = true;
    $("winner").replaceChildren(window.dubitoAvatar(me(), "person"));
    $("result").textContent = title;
    $("how").textContent = how;
    window.dubitoCards.fan($("left"), left);
    $("figures").replaceChildren(
      ...game.figures.map(([what, value, more]) =>
        make("div", "", make("dt", "", what), make("dd", "", value, " ", make("small", "", more)))
      ),
    );
    $("figures").hidden = !game.figures.length;
    $("moments").replaceChildren(...game.moments.map(([kind, turn, text]) => {
      const link = Object.assign(make("a", "", "Watch it"), { href: `${replay}#turn-${turn}` });
      return make(
        "li",
        kind,
        make("b", "", `${kind === "best" ? "Best" : "Costliest"}, turn ${turn}. `),
        `${text} `,
        link,
      );
    }));
    $("moments").hidden = !game.moments.length;
    const fared = Object.entries(game.against).map(([name, [won, lost]]) => `${name}: ${won} won, ${lost} lost`);
    $("against").textContent = fared.length ? `Your record against ${fared.join("; ")}.` : "";
    $("watch").href = replay;
    $("share").href = `${replay}/share`;
    const seed = game.seed === null ? "Changed cards" : `Seed ${game.seed}`;
    $("saved").textContent = `Saved as ${game.record}. ${seed}, your seat: ${game.me}.`;
    $("failed").replaceChildren(...game.errors.map((error) => make("li", "", error)));
    $("failed").hidden = game.errors.length === 0;
    $("end").hidden = false;
  }

  async #rematch() {
    $("refusal").textContent = "";
    try {
      await ask("api/rematch", {});
      history.replaceState(null, "", "table#new");
    } catch (error) {
      if (error.status !== 409) { // otherwise another page has already started it
        $("refusal").textContent = error.message;
        return;
      }
    }
    $("end").hidden = true;
    this.frame = undefined;
    await this.start();
  }

  async #again() {
    try {
      await ask("api/again", {});
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
