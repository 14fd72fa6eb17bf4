// Shared by the scripts of all pages: elements and requests to the server.

export const $ = (id) => document.getElementById(id);

export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children); // as text, never HTML, because names and records are untrusted
  return element;
}

export function count(n, noun) {
  return n === 1 ? `1 ${noun}` : `${n} ${noun}s`;
}

export async function ask(path, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
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
