import { visible } from "./visible.js";

// h creates an element. Properties that begin with "on" are listeners; others are attributes,
// omitted if null, undefined or false. String children become text, never HTML, in which hidden characters
// are visible; message returns a child for the text of a message.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : name === "aria-label" ? visible(value) : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false).map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

export const message = (text) => document.createTextNode(text);

export const $ = (id) => document.getElementById(id);
