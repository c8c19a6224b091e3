// h makes an element. Properties are attributes, but for on…, which listens;
// those that are null, undefined or false are left out. Strings among the children
// become text, never HTML.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// $ finds an element of the page by its id.
export const $ = (id) => document.getElementById(id);
