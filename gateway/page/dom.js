// h creates an element. Properties become attributes, except on…, which add listeners; null,
// undefined and false are skipped. Strings among the children become text, never HTML.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// $ returns the element with an id.
export const $ = (id) => document.getElementById(id);
