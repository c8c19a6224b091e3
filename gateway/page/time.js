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

const DAY_MS = 86_400_000;

// period returns the heading of a time in a list: today, yesterday, the last days, or the month.
export function period(timestamp) {
  if (!timestamp) return "";
  const at = new Date(timestamp);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / DAY_MS);
  if (days < 1) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Previous 7 days";
  if (days <= 30) return "Previous 30 days";
  return at.toLocaleDateString([], { month: "long", year: "numeric" });
}

const isToday = (at) => at.toDateString() === new Date().toDateString();
