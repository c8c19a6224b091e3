// Times in the language of the browser.

import { h, message } from "./dom.js";

// time returns an element with the text before, and a time with its day unless it is today; null if there is none.
export function time(timestamp, before) {
  if (!timestamp) return null;
  const at = new Date(timestamp);
  const day = isToday(at) ? {} : { day: "numeric", month: "short" };
  return h("time", { datetime: timestamp, title: at.toLocaleString() }, before, message(at.toLocaleString([], { ...day, hour: "2-digit", minute: "2-digit" })));
}

// when returns the time of today, the day of this year, or else the month.
export function when(timestamp) {
  if (!timestamp) return "";
  const at = new Date(timestamp);
  if (isToday(at)) return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isThisYear = at.getFullYear() === new Date().getFullYear();
  return at.toLocaleDateString([], isThisYear ? { day: "numeric", month: "short" } : { month: "short", year: "numeric" });
}

const isToday = (at) => at.toDateString() === new Date().toDateString();
