// A model's decisions: requests, replies, costs, and stated probabilities.
"use strict";
window.dubitoDecisions = (view) => {
  const { game, shared, make, link, count } = view;
  const ORIGINS = {
    live: "from the provider",
    cache: "from the cache",
    tape: "from the recording (before the run was resumed)",
  };
  const FALLBACK = "fallback:"; // prefix of an outcome, followed by the cause
  const OUTCOMES = { model: "answered", model_after_reask: "answered after a re-ask" };
  let numbered = 0; // number of tab panels created

  function read(runs, pieces) {
    let text = "";
    for (let i = 0; i < runs.length; i += 2) text += pieces.slice(runs[i], runs[i + 1]).join("");
    return text;
  }

  // Creates tabs from [title, texts] pairs. Arrow keys switch between them.
  function tabs(name, parts) {
    const list = make("div", "tabs");
    list.role = "tablist";
    list.setAttribute("aria-label", name);
    const panels = parts.map(([title, texts]) => {
      const panel = make(
        "div",
        "",
        ...texts.map((content) => (typeof content === "string" ? verbatim(title, content) : content)),
      );
      Object.assign(panel, { id: `tab-${numbered++}`, role: "tabpanel" });
      panel.setAttribute("aria-label", title);
      return panel;
    });
    const buttons = parts.map(([title], place) => {
      const button = make("button", "", title);
      Object.assign(button, { type: "button", role: "tab" });
      button.setAttribute("aria-controls", panels[place].id);
      button.addEventListener("click", () => choose(place));
      return button;
    });
    function choose(chosen) {
      buttons.forEach((button, place) => {
        button.setAttribute("aria-selected", place === chosen);
        button.tabIndex = place === chosen ? 0 : -1;
        panels[place].hidden = place !== chosen;
      });
      toEnds(panels[chosen]);
    }
    list.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const to = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
      choose(to);
      buttons[to].focus();
    });
    list.append(...buttons);
    choose(0);
    return [list, ...panels];
  }

  function verbatim(title, content) {
    const body = make("pre", "", content);
    body.tabIndex = 0;
    body.role = "region";
    body.setAttribute("aria-label", title);
    return body;
  }

  function cost(attempt) {
    const parts = [ORIGINS[attempt.origin] ?? `from ${attempt.origin}`];
    if (attempt.tries) parts.push(count(attempt.tries, "call"));
    if (attempt.seconds !== null) parts.push(`${attempt.seconds.toFixed(2)} s`);
    if (attempt.tokens) {
      parts.push(`${attempt.tokens[0]} tokens in (${attempt.tokens[1]} cached), ${attempt.tokens[2]} out`);
    }
    if (!attempt.tries) parts.push("no call");
    else parts.push(attempt.cost === null ? "cost unknown" : `$${attempt.cost.toFixed(6)}`);
    return parts.join(" · ");
  }

  function attempt(one, number, of) {
    const box = make("div", "attempt");
    if (of > 1) box.append(make("h4", "", number ? `Re-ask ${number}` : "First request"));
    box.append(make("p", "cost", cost(one)));
    const messages = one.said.map(([role, runs]) => [role, read(runs, game.pieces)]);
    const alone = messages.length === 1; // otherwise each message has its role as a heading
    const prompt = messages.flatMap(([role, words]) => (alone ? [words] : [make("p", "note", `${role}:`), words]));
    const reply = one.reply !== null
      ? read(one.reply, game.pieces)
      : make("p", "none", one.cause ? `No reply: ${one.cause}` : "Empty reply");
    const system = one.system.map((runs) => read(runs, shared));
    box.append(...tabs("Request and reply", [
      ["Reply", [reply]],
      ...(prompt.length ? [["Prompt", prompt]] : []),
      ...(system.length ? [["System text", system]] : []),
      ...(one.raw !== null ? [["Body received", [read(one.raw, game.pieces)]]] : []),
      ["Parameters", [JSON.stringify(JSON.parse(read(one.rest, shared)), null, 1)]],
    ]));
    return box;
  }

  function answered(answer) {
    if (typeof answer === "boolean") return answer ? "yes" : "no";
    return typeof answer === "string" ? answer : JSON.stringify(answer);
  }

  function outcomeOf(one) {
    const [, cause] = one.outcome.split(FALLBACK);
    return cause
      ? `no usable answer (${cause.replaceAll("_", " ")}), so the fallback answered`
      : `${OUTCOMES[one.outcome] ?? one.outcome}${isDrawn(one) ? ", drawn by probability" : ""}`;
  }

  // Returns whether the player drew another yes-or-no answer than the reply has, as with `play: drawn`.
  function isDrawn(one) {
    const first = one.asked_with ? game.decisions.find((other) => other.number === one.asked_with) : one;
    const reply = first.attempts.at(-1)?.reply;
    try {
      const fields = JSON.parse(read(reply, game.pieces));
      const answer = fields[one.node] ?? fields.answer;
      return typeof answer === "boolean" && answer !== one.answer;
    } catch { // no reply, or one that is not JSON
      return false;
    }
  }

  function stated(one) {
    const statement = `Stated probability that ${one.stating}: ${Math.round(100 * one.p_bluff)} %.`;
    const gauge = make("meter");
    gauge.value = one.p_bluff;
    gauge.setAttribute("aria-hidden", "true"); // the number is next to it
    if (one.truth === null) return make("p", "", statement, " ", gauge);
    const truth = make("span", one.truth ? "bluff" : "honest", one.truth ? `✗ ${one.truths[0]}` : `✓ ${one.truths[1]}`);
    return make("p", "", statement, " ", gauge, "Actually: ", truth, ".");
  }

  // Shows the probabilities that the model stated for its answers, except for questions asked once per case.
  function odds(one, attempts) {
    const last = attempts.map((each) => each.odds?.[one.node] ?? each.odds?.answer).filter(Boolean).at(-1);
    if (!last) return null;
    const shares = last.map(([answer, share]) => `${answered(answer)} ${Math.round(100 * share)} %`);
    return make("p", "note", `Probabilities stated by the model: ${shares.join(", ")}.`);
  }

  // Shows a model's answer and reason next to the table.
  function thought(one) {
    const who = make(
      "p",
      "who",
      window.dubitoAvatar(game.names[one.seat], game.kinds?.[one.seat] ?? "model"),
      make("b", "", game.names[one.seat]),
    );
    const box = make(
      "div",
      "thought",
      who,
      make("p", "", `${one.question} `, link(`#${one.link}`, answered(one.answer))),
    );
    const reasoning = one.attempts.at(-1)?.reasoning;
    if (reasoning) box.append(make("q", "", reasoning));
    if (one.outcome.startsWith(FALLBACK)) box.append(make("p", "bluff", outcomeOf(one)));
    if (one.p_bluff !== null) box.append(stated(one));
    if (one.wrong) box.append(one.mistake ? make("p", "bluff", `✗ ${one.wrong}`) : make("p", "", `It ${one.wrong}.`));
    return box;
  }

  // Shows a decision with its requests and replies. `opened` is the link of the decision to expand.
  function decision(one, opened) {
    const outcome = make("span", one.outcome.startsWith(FALLBACK) ? "outcome fallback" : "outcome", outcomeOf(one));
    const heading = make(
      "h3",
      "",
      `${game.names[one.seat]}: `,
      link(`#${one.link}`, one.question),
      " ",
      make("b", "", answered(one.answer)),
      " ",
      outcome,
    );
    const first = one.asked_with ? game.decisions.find((other) => other.number === one.asked_with) : one;
    const attempts = first.attempts.map((each, number) => attempt(each, number, first.attempts.length));
    const asked = make("details", "asked", make("summary", "", "Prompt, reply and cost"), ...attempts);
    if (one.asked_with) {
      asked.firstChild.append(
        make("span", "", `: answered in one request with `),
        link(`#${first.link}`, first.question),
      );
    }
    asked.open = opened === one.link;
    asked.addEventListener("toggle", () => toEnds(asked));
    const about = make(
      "p",
      "note",
      make("small", "", `Decision ${one.number}, seat ${one.seat}, node ${one.node} (${one.method})`),
    );
    const box = make("article", "decision", heading, asked, about);
    box.id = `asked-${one.link}`; // not the link itself, or the browser would scroll past the table
    box.classList.toggle("linked", opened === one.link);
    const shown = one.outcome.startsWith(FALLBACK) ? null : odds(one, first.attempts);
    if (shown) heading.after(shown);
    if (one.p_bluff !== null) heading.after(stated(one));
    return box;
  }

  // Shows only the end of the prompt, where it differs from the previous one.
  function toEnds(element) {
    for (const body of element.querySelectorAll("pre")) body.scrollTop = body.scrollHeight;
  }

  return { decision, thought, toEnds };
};
