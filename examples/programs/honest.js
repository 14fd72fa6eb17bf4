// A bot of Dubito as a program: it never bluffs, plays as many cards as it can, and doubts only to stop a win.
// docs/programs.md describes the messages.

const readline = require("readline");

function answer(node, facts) {
  if (node === "C") return facts.prev_about_to_win; // doubt the last play?
  return node === "B" || node === "E"; // play as many cards as possible; A and D: bluff?
}

function reply(message) {
  // This program keeps nothing from one game to the next.
  if (message.type === "hello") return { ready: true, resets: true };
  if (message.type === "decide") return { answer: answer(message.node, message.facts) };
  return null; // `event` and `end` need no reply
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const answered = reply(JSON.parse(line));
  if (answered !== null) console.log(JSON.stringify(answered));
});
